"""/v1/graphs/{name}:copy and :restore: a graph once more under another name, or as it was at an earlier version."""

from contextlib import suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from service.api.accept import texts_of
from service.api.backend import Context, GraphName, known_graph
from service.api.bodies.receive import read_body
from service.api.guards.access import CallerOf
from service.api.headers import idempotency_key, if_match, require_json
from service.api.openapi import ACCEPTED, IDEMPOTENCY_KEY, IF_MATCH, PREFER, PROBLEMS, UPDATE_FORMS, request_body, told
from service.api.replies.answers import answer, ask, digest, success
from service.api.routes.export import read_export
from service.api.routes.graphs import MAX_SMALL_BODY_BYTES
from service.errors import ServiceError
from service.models.body import parse_body
from service.models.edges import RestoredInfo
from service.models.graphs import CopyBody, RestoreBody
from service.protocol import ExportArgs, Kind, LoadArgs, RestoreArgs
from service.store.catalogue import LoadedInfo, check_version
from service.store.connection import AWAY

router = APIRouter(prefix="/v1", tags=["graphs"], responses=PROBLEMS)


@router.post(
    "/graphs/{name}:copy",
    status_code=201,
    response_model=LoadedInfo,
    responses={201: told("ETag"), **ACCEPTED},
    openapi_extra=request_body(CopyBody, {"another name": {"value": {"to": "city-2"}}}, PREFER, IDEMPOTENCY_KEY),
)
async def copy_graph(name: GraphName, request: Request, backend: Context, caller: CallerOf) -> Response:
    """A new graph with the present edges of this one, at version 1: nothing that has the other name is replaced."""
    require_json(request)
    async with read_body(request, MAX_SMALL_BODY_BYTES, backend.budget, backend.parsers.threads) as raw:
        to = parse_body(CopyBody, raw.view()).to
    if not caller.sees(to):
        raise ServiceError("forbidden", f"the key is good for graphs named {caller.prefix}...")
    backend.admission.check(to, caller.key_id)
    key, blob, n_bytes = idempotency_key(request.headers), "", 0
    if key is None or not await backend.dispatcher.knows(to, key):  # else it was copied then
        await known_graph(backend, name)
        found = await backend.catalogue.get(to)
        check_version(to, None if found is None else found.version, "new", "")
        reply = await ask(request, backend, Kind.EXPORT, name, ExportArgs(format="packed"), in_place=True)
        assert not isinstance(reply, Response)
        written = read_export(reply)
        blob, n_bytes = written["blob"], written["bytes"]
    hashed = None if key is None else digest(Kind.LOAD, b"copy", name.encode())
    try:
        args = LoadArgs(blob=blob, n_bytes=n_bytes, if_match="new")
        loaded = await ask(request, backend, Kind.LOAD, to, args, hashed)
    except ServiceError as error:
        if blob and error.code != "worker_unavailable":  # else it may yet be loaded
            with suppress(*AWAY):
                await backend.blobs.delete(blob)
        raise
    return loaded if isinstance(loaded, Response) else await success(backend, loaded, 201)


@router.post(
    "/graphs/{name}:restore",
    response_model=RestoredInfo,
    responses={**UPDATE_FORMS, **ACCEPTED},
    openapi_extra=request_body(
        RestoreBody, {"a version": {"value": {"version": 7}}}, PREFER, IDEMPOTENCY_KEY, IF_MATCH
    ),
)
async def restore_graph(
    name: GraphName,
    request: Request,
    backend: Context,
    solve: Annotated[Literal["all", "none"], Query(description="Re-solve resident flow states?")] = "all",
) -> Response:
    """A new version with the capacities and closed edges of an earlier one; an update like any other."""
    require_json(request)
    wanted, encoding = if_match(request.headers), texts_of(request.headers)
    async with read_body(request, MAX_SMALL_BODY_BYTES, backend.budget, backend.parsers.threads) as raw:
        version = parse_body(RestoreBody, raw.view()).version
    args = RestoreArgs(version=version, if_match=wanted, solve=solve, encoding=encoding)
    return await answer(request, backend, Kind.RESTORE, name, args)
