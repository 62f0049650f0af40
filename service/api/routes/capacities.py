"""/v1/graphs/{name}/capacities: read a page, change a batch."""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from gpu_engine.networks.rounding import Rounding
from service.api.backend import Backend, Context, GraphName, known_graph
from service.api.bodies.arrow import ARROW_STREAM, PatchLimits
from service.api.bodies.budget import Hold
from service.api.bodies.parsing import advice_of, limit_of
from service.api.bodies.receive import Body
from service.api.bodies.tasks import JSON, PageTask, patch_task
from service.api.headers import accepts, if_match, refuse_if_none_match, require_media_type
from service.api.openapi import (
    ACCEPTED,
    BINARY,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    PREFER,
    PROBLEMS,
    request_body,
)
from service.api.questions import answer_body, body_for
from service.api.replies.answers import ask, long_result, success, version_of
from service.api.replies.results import HeldResponse
from service.models.capacities import EXAMPLES, PatchBody
from service.models.flows import PatchInfo
from service.models.graphs import CapacitiesInfo
from service.protocol import CapacitiesArgs, Kind, Reply

router = APIRouter(prefix="/v1/graphs/{name}/capacities", tags=["capacities"], responses=PROBLEMS)
MAX_OFFSET = 2**31 - 1
MEDIA = (JSON, ARROW_STREAM)


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
    if isinstance(reply, Response):
        return reply
    if not accepts(request.headers, ARROW_STREAM):
        return await success(backend, reply)
    return await _as_arrow(backend, reply, (await known_graph(backend, name)).decimals)


async def _as_arrow(backend: Backend, reply: Reply, decimals: int) -> Response:
    """The page in another form, which a parser process makes of it."""
    page = Body(Hold(backend.budget))
    try:
        await _fill(page, backend, reply)
        await backend.parsers.convert(page, PageTask(decimals))
    except BaseException:
        page.close()
        raise
    headers = version_of(reply.envelope)
    return HeldResponse(_each(page.pieces()), page.n_bytes, ARROW_STREAM, headers, page.n_bytes, page.close)


async def _fill(page: Body, backend: Backend, reply: Reply) -> None:
    """Write the JSON of a reply."""
    if reply.result_blob is None:
        page.write((reply.result_json or "{}").encode())
        return
    result = await long_result(backend, reply.id, reply.result_blob)
    async for piece in result.pieces():
        page.write(piece)


async def _each(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


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
    rounding: Annotated[
        Rounding | None, Query(description="What becomes of a result of more decimals than the graph's.")
    ] = None,
) -> Response:
    """A batch of changes, all or nothing, durable when answered."""
    refuse_if_none_match(request.headers)
    kind = require_media_type(request.headers, MEDIA)
    settings, version = backend.settings, if_match(request.headers)
    limits = PatchLimits(settings.max_patch_rows, limit_of(JSON, settings))
    task = patch_task(kind, limits, version, solve, rounding)
    advice = advice_of(JSON, settings, "send several batches, or an Arrow stream")
    async with body_for(request, backend, name, limits.max_bytes, advice) as body:
        return await answer_body(request, backend, Kind.PATCH, name, body, task)
