"""/v1/graphs/{name}/capacities: read a page, change a batch."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.answers import answer, ask, etag, success
from service.api.arrow import ARROW_STREAM, capacities_to_arrow, patch_from_arrow
from service.api.backend import Context, GraphName, known_graph
from service.api.bodies import read_body
from service.api.headers import accepts, if_match, media_type
from service.api.openapi import (
    ACCEPTED,
    BINARY,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    PREFER,
    PROBLEMS,
    request_body,
)
from service.api.parsing import JSON, limit_of
from service.errors import ServiceError
from service.models.body import parse_body
from service.models.capacities import EXAMPLES, PatchBody
from service.models.exact_json import loads_exact
from service.models.flows import PatchInfo
from service.models.graphs import CapacitiesInfo
from service.protocol import CapacitiesArgs, Kind, PatchArgs

router = APIRouter(prefix="/v1/graphs/{name}/capacities", tags=["capacities"], responses=PROBLEMS)
MAX_OFFSET = 2**31 - 1


@router.get(
    "",
    response_model=CapacitiesInfo,
    responses={200: {"content": {ARROW_STREAM: BINARY}}, **ACCEPTED},
    openapi_extra={"parameters": [PREFER]},
)
async def get_capacities(
    name: GraphName,
    request: Request,
    backend: Context,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 10_000,
) -> Response:
    """The edges' capacities in the order they were sent, a page at a time."""
    args = CapacitiesArgs(offset=offset, limit=limit)
    reply = await ask(request, backend, Kind.CAPACITIES, name, args)
    if isinstance(reply, Response) or not accepts(request.headers, ARROW_STREAM):
        return reply if isinstance(reply, Response) else success(reply)
    page = loads_exact((reply.result_json or "{}").encode())
    decimals = (await known_graph(backend, name)).decimals
    content = await anyio.to_thread.run_sync(capacities_to_arrow, page, decimals)
    return Response(content, 200, etag(page["version"]), ARROW_STREAM)


@router.patch(
    "",
    response_model=PatchInfo,
    responses=ACCEPTED,
    openapi_extra=request_body(PatchBody, EXAMPLES, PREFER, IDEMPOTENCY_KEY, IF_MATCH, media={ARROW_STREAM: BINARY}),
)
async def patch_capacities(
    name: GraphName,
    request: Request,
    backend: Context,
    solve: Annotated[Literal["all", "none"], Query(description="Re-solve resident flow states?")] = "all",
) -> Response:
    """A batch of changes, all or nothing, durable when answered."""
    readers: dict[str, Callable[[bytearray], PatchBody]] = {
        JSON: partial(parse_body, PatchBody),
        ARROW_STREAM: patch_from_arrow,
    }
    kind = media_type(request.headers)
    reader = readers.get(kind)
    if reader is None:
        raise ServiceError("unsupported_media_type", f"we read {', '.join(readers)}")
    version = if_match(request.headers)
    async with read_body(request, limit_of(kind, backend.settings), backend.budget) as raw:
        options = {"if_match": version, "solve": solve, "max_rows": backend.settings.max_patch_rows}
        args = await backend.parsers.run(kind, raw, _read, reader, raw, options)
    return await answer(request, backend, Kind.PATCH, name, args)


def _read(reader: Callable[[bytearray], PatchBody], raw: bytearray, options: dict[str, Any]) -> PatchArgs:
    """Counted where it is read, so that no more rows than are allowed are handed on."""
    return reader(raw).args(**options)
