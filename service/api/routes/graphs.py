"""/v1/graphs: load, list, describe, delete, estimate."""

from contextlib import suppress
from typing import Annotated, Final, TypeVar

import anyio.to_thread
from fastapi import APIRouter, Query, Request
from pydantic_core import to_json
from starlette.responses import Response

from gpu_engine import formats
from gpu_engine.networks.rounding import Precision, Rounding
from gpu_engine.types import MAX_DECIMALS
from service.api.backend import Backend, Context, GraphName, known_graph
from service.api.bodies.encodings import MAX_EXPANSION
from service.api.bodies.parsing import advice_of, limit_of
from service.api.bodies.receive import read_body
from service.api.bodies.tasks import GraphTask
from service.api.guards.access import CallerOf
from service.api.headers import (
    idempotency_key,
    if_match,
    must_be_new,
    refuse_if_none_match,
    require_json,
    require_media_type,
)
from service.api.openapi import (
    ACCEPTED,
    GRAPH_MEDIA,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    IF_NONE_MATCH,
    NOT_MODIFIED,
    PREFER,
    PROBLEMS,
    UNLESS_HELD,
    request_body,
    told,
)
from service.api.replies.answers import ask, digest, json_response, success
from service.api.replies.conditions import etag_of_info, unless_held
from service.api.routes.estimate import estimate
from service.errors import ServiceError
from service.models.body import parse_body
from service.models.graphs import EXAMPLE, EstimateBody, EstimateInfo, GraphBody, GraphList
from service.protocol import DeleteArgs, Kind, LoadArgs
from service.settings import Settings
from service.store.catalogue import GraphInfo, IfMatch, LoadedInfo, check_version
from service.store.connection import AWAY
from service.store.graphs import MAX_LISTED

router = APIRouter(prefix="/v1", tags=["graphs"], responses=PROBLEMS)
W = TypeVar("W", bound=IfMatch)
MAX_SMALL_BODY_BYTES: Final = 64 * 1024


@router.get("/graphs", response_model=GraphList)
async def list_graphs(
    backend: Context,
    caller: CallerOf,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = MAX_LISTED,
    after: Annotated[str, Query(max_length=128, description="`next` of the page before.")] = "",
) -> Response:
    """The graphs the key is good for, by name, with their versions and bytes, a page at a time."""
    page = await backend.catalogue.page(caller.sees, after, limit)
    return json_response({"graphs": page.graphs, "next": page.next})


@router.put(
    "/graphs/{name}",
    response_model=LoadedInfo,
    responses={200: told("ETag"), 201: {"description": "Created", "model": LoadedInfo, **told("ETag")}, **ACCEPTED},
    openapi_extra=request_body(
        GraphBody,
        {"four edges": {"value": EXAMPLE}},
        PREFER,
        IDEMPOTENCY_KEY,
        IF_MATCH,
        IF_NONE_MATCH,
        media=GRAPH_MEDIA,
    ),
)
async def put_graph(
    name: GraphName,
    request: Request,
    backend: Context,
    decimals: Annotated[int | None, Query(ge=0, le=MAX_DECIMALS, description="Places amounts are kept to.")] = None,
    rounding: Annotated[
        Rounding | None, Query(description="What becomes of a capacity with more places; needs `decimals`.")
    ] = None,
    cost_decimals: Annotated[int | None, Query(ge=0, le=MAX_DECIMALS, description="Places costs are kept to.")] = None,
) -> Response:
    """Create or replace a graph; nothing changes unless the whole body is well-formed."""
    absent = must_be_new(request.headers)
    wanted = (
        await _hold_against(request, backend, name, "absent")
        if absent
        else await _check_version(request, backend, name)
    )
    backend.admission.check(name, request.state.caller.key_id)  # before gigabytes are read
    key = idempotency_key(request.headers)
    kind_of_body = require_media_type(request.headers, formats.MEDIA_TYPES)
    settings, hashed = backend.settings, None
    precision = Precision(decimals, rounding, cost_decimals)
    task = GraphTask(kind_of_body, _limits(settings), precision)
    limit_bytes = limit_of(kind_of_body, settings)
    advice = advice_of(kind_of_body, settings, "an npz or Arrow body is several times smaller")
    async with read_body(request, limit_bytes, backend.budget, backend.parsers.threads, advice) as body:
        if key is not None:
            places = () if cost_decimals is None else (b"cost_decimals=%d" % cost_decimals,)
            parts = (Kind.LOAD, kind_of_body.encode(), repr(precision).encode(), *places, body.view())
            hashed = await anyio.to_thread.run_sync(digest, *parts, limiter=backend.parsers.threads)
        await backend.parsers.convert(body, task)
        repeated = key is not None and await backend.dispatcher.knows(name, key)  # then its edges are there already
        blob = "" if repeated else await backend.blobs.put_pieces(body.pieces(), body.n_bytes)
        args = LoadArgs(blob=blob, n_bytes=body.n_bytes, if_match=wanted)
    try:
        reply = await ask(request, backend, Kind.LOAD, name, args, hashed)
    except ServiceError as error:
        if blob and error.code != "worker_unavailable":  # else it may yet be loaded
            with suppress(*AWAY):
                await backend.blobs.delete(blob)
        raise
    if isinstance(reply, Response):
        return reply
    return await success(backend, reply, 200 if reply.envelope.replaced else 201)


@router.get(
    "/graphs/{name}",
    response_model=GraphInfo,
    responses={200: told("ETag"), **NOT_MODIFIED},
    openapi_extra={"parameters": [IF_MATCH, UNLESS_HELD]},
)
async def get_graph(name: GraphName, request: Request, backend: Context) -> Response:
    wanted, info = if_match(request.headers), await known_graph(backend, name)
    check_version(name, info.version, wanted, info.generation)
    body = to_json(info)
    return unless_held(request, Response(body, 200, etag_of_info(info, body), "application/json"))


@router.delete(
    "/graphs/{name}",
    status_code=204,
    responses=ACCEPTED,
    openapi_extra={"parameters": [PREFER, IDEMPOTENCY_KEY, IF_MATCH]},
)
async def delete_graph(name: GraphName, request: Request, backend: Context) -> Response:
    """Forget the graph, its updates and its snapshots."""
    refuse_if_none_match(request.headers)
    wanted = await _check_version(request, backend, name)
    reply = await ask(request, backend, Kind.DELETE, name, DeleteArgs(if_match=wanted))
    return reply if isinstance(reply, Response) else Response(status_code=204)


@router.post(
    "/graphs:estimate",
    response_model=EstimateInfo,
    openapi_extra=request_body(EstimateBody, {"a city": {"value": {"n_vertices": 50_000, "n_edges": 120_000}}}),
)
async def estimate_graph(request: Request, backend: Context) -> Response:
    """What a graph of this size would need, before it is sent."""
    require_json(request)
    async with read_body(request, MAX_SMALL_BODY_BYTES, backend.budget, backend.parsers.threads) as raw:
        body = parse_body(EstimateBody, raw.view())
    workers = await backend.dispatcher.watch.workers()
    return json_response(estimate(body, workers))


def _limits(settings: Settings) -> formats.Limits:
    return formats.Limits(settings.max_vertices, settings.max_edges, settings.max_body_bytes, MAX_EXPANSION)


async def _check_version(request: Request, backend: Backend, name: str) -> IfMatch:
    """The versions `If-Match` wants, which the worker checks; refused here at once if they cannot hold."""
    if "if-match" not in request.headers:
        return None
    return await _hold_against(request, backend, name, if_match(request.headers) or "*")


async def _hold_against(request: Request, backend: Backend, name: str, wanted: W) -> W:
    """Raises version_conflict if the graph as it is now is not what is wanted.

    A repeated Idempotency-Key is not refused: it gets its first answer, whatever has become of the graph.
    """
    key = idempotency_key(request.headers)
    if key is None or not await backend.dispatcher.knows(name, key):
        info = await backend.catalogue.get(name)
        version, generation = (None, "") if info is None else (info.version, info.generation)
        check_version(name, version, wanted, generation)
    return wanted
