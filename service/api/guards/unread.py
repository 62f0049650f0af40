"""What a route does not read and a caller may believe it did is refused: a condition that nobody holds against anything
is a lost update, and a body that nobody looks at says what was to be done.

What browsers, proxies and clients send of themselves is none of that: conditions of a cache on a GET, an empty body,
preferences that we do not know.
"""

import re
from collections.abc import Collection
from typing import Final

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.datastructures import Headers

from service.api.bodies.digests import DIGESTS, OUTDATED
from service.api.bodies.receive import refuse_body
from service.api.headers import preferences
from service.api.replies.signposts import QUESTION, header_parameters
from service.errors import ServiceError

OVERRIDES: Final = ("x-http-method-override", "x-http-method", "x-method-override")
CONDITIONS: Final = ("if-match", "if-none-match", "if-unmodified-since")
OF_BODY: Final = tuple(name.lower() for name in (*DIGESTS, *OUTDATED))
"""Headers that say what the body is, if only an empty one."""
CHANGES: Final = frozenset({"PUT", "PATCH", "POST", "DELETE"})
"""Methods that change something, so that their conditions are not those of a cache."""
LOOKED_AT: Final = frozenset(
    name.encode()
    for name in (*CONDITIONS, *OF_BODY, "prefer", "content-length", "content-range", "transfer-encoding", *OVERRIDES)
)
BODILESS: Final = frozenset({"GET", "HEAD", "DELETE"})
NO_LENGTH: Final = ("", "0")
SECONDS: Final = re.compile(r"[0-9]+")


async def refuse_unread(request: Request) -> None:
    """Raises invalid_request for a header, and invalid_body for a body. Probes, pages and metrics take any."""
    route: APIRoute = request.scope["route"]
    path = route.path
    if not path.startswith("/v1/") or LOOKED_AT.isdisjoint(name for name, _ in request.scope["headers"]):
        return
    headers, method = request.headers, request.method
    _refuse_override(headers, {method, "QUERY"} if QUESTION.fullmatch(path) else {method})
    if "content-range" in headers:  # the first part of an upload may well be a graph of its own
        detail = f"Content-Range is not read, and the body would be taken for the whole: send all of it by one {method}"
        raise ServiceError("invalid_request", detail, header="Content-Range")
    if any(name in headers for name in (*CONDITIONS, "prefer")):
        _refuse_headers(request, route)
    has_body = headers.get("content-length", "") not in NO_LENGTH or "transfer-encoding" in headers
    if method in BODILESS and (has_body or any(name in headers for name in OF_BODY)):
        await refuse_body(request)


def _refuse_override(headers: Headers, methods: Collection[str]) -> None:
    """Raises invalid_request for another method than these, which are the same here; an empty header is none."""
    for name in OVERRIDES:
        if (meant := headers.get(name, "")) and meant.upper() not in methods:
            detail = f"{name} is not looked at: send the method {meant[:20]!r} itself"
            raise ServiceError("invalid_request", detail, header=name)


def _refuse_headers(request: Request, route: APIRoute) -> None:
    headers, method, path = request.headers, request.method, route.path
    known = header_parameters(route)
    if "if-match" in headers and "if-match" not in known:
        detail = f"If-Match is not held against anything by {method} {path}: it is for what has versions of its own"
        raise ServiceError("invalid_request", detail, header="If-Match")
    changes = method in CHANGES and not QUESTION.fullmatch(path)
    if changes and method != "PATCH" and "if-none-match" in headers and "if-none-match" not in known:
        detail = f"If-None-Match is not held against anything by {method} {path}"
        raise ServiceError("invalid_request", detail, header="If-None-Match")
    if changes and "if-unmodified-since" in headers:
        detail = 'If-Unmodified-Since is not held against anything: If-Match: "7" names the version of a graph'
        raise ServiceError("invalid_request", detail, header="If-Unmodified-Since")
    if "prefer" not in known:
        return
    for name, value in preferences(headers):
        if name == "wait" and not SECONDS.fullmatch(value):
            detail = f"Prefer: wait={value[:20]} is no time to wait: whole seconds are, as in Prefer: wait=5"
            raise ServiceError("invalid_request", detail, header="Prefer")
