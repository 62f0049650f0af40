"""A refusal as a page, for a browser that asked for what is not of the API. Programs get the problem itself."""

from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from service.api.accept import wants_page
from service.api.replies.pages import HOME, plain_page, root_of
from service.errors import TITLES, ServiceError

STATUS_PAGE: Final = "/status"
OF_PROGRAMS: Final = frozenset({"v1", "livez", "readyz", "health", "metrics", "openapi.json"})
"""First segments of paths that programs ask for. All others are pages for people, or nothing."""


def wants_refused_page(request: Request) -> bool:
    """Whether a browser asks for a page, be it one that there is not."""
    return not _is_of_programs(request) and request.method == "GET" and wants_page(request.headers)


def wants_login_page(request: Request) -> bool:
    """Whether somebody who has no key asks for a page. Some libraries of programs prefer HTML too, as that of Java
    does, so what programs ask for is such a page only where the browser says that a person opens it."""
    if request.method != "GET" or not wants_page(request.headers):
        return False
    return not _is_of_programs(request) or request.headers.get("sec-fetch-dest", "").lower() == "document"


def _is_of_programs(request: Request) -> bool:
    path: str = request.scope["path"]
    return path.removeprefix("/").partition("/")[0] in OF_PROGRAMS


def refused_page(path: str, error: ServiceError) -> Response:
    """What was refused, and links to the pages that there are."""
    root = root_of(path)
    console, status = f"{root}{HOME[1:]}", f"{root}{STATUS_PAGE[1:]}"
    said = error.detail[:1].upper() + error.detail[1:]
    parts = [
        f'<p class="bad">{escape(TITLES[error.code])}.</p>',
        f"<p>{escape(said if said.endswith(('.', '?')) else f'{said}.')}</p>",
        f'<p><a href="{console}">The console</a>, <a href="{status}">the state of the service</a></p>',
    ]
    return plain_page(f"Headrace: {TITLES[error.code]}", parts, error.status)
