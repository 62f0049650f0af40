"""/console: the pages of `service.console`, for whoever may read; and their scripts and styles, which say nothing."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from service.api.backend import GraphName
from service.api.guards.access import CallerOf
from service.console import pages
from service.console.files import assets
from service.errors import ServiceError

router = APIRouter(prefix="/console", include_in_schema=False)

KEPT: Final = "no-cache"
"""A browser keeps a script, and asks each time whether it is still the one of this release."""


@router.get("")
async def overview(caller: CallerOf) -> Response:
    """Graphs, workers and jobs."""
    page = pages.overview(caller.key_id, caller.scope, by_session=caller.by_session)
    return HTMLResponse(page, headers=pages.HEADERS)


@router.get("/graphs/{name}")
async def graph(name: GraphName, caller: CallerOf) -> Response:
    """One graph. Whether there is one is found out by the page, which says so."""
    page = pages.graph(name, caller.key_id, caller.scope, by_session=caller.by_session)
    return HTMLResponse(page, headers=pages.HEADERS)


@router.get("/assets/{file}")
async def asset(file: str, request: Request) -> Response:
    """A script, the style or the icon; 304 for who has it. Raises not_found."""
    found = assets().get(file)
    if found is None:
        raise ServiceError("not_found", "the console has no such file")
    headers = {"Cache-Control": KEPT, "ETag": found.etag}
    if found.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(found.content, 200, headers, found.media_type)
