"""/v1/workers and /v1/graphs/{name}:move: who serves what, and how an operator changes it."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from service.api.backend import Context, GraphName
from service.api.bodies.receive import read_body, refuse_body
from service.api.guards.access import Caller, CallerOf
from service.api.headers import require_json
from service.api.openapi import ACCEPTED, IDEMPOTENCY_KEY, LAST_WORKER, PREFER, PROBLEMS, request_body
from service.api.replies.answers import answer, json_response
from service.api.routes.graphs import MAX_SMALL_BODY_BYTES
from service.errors import ServiceError
from service.models.body import parse_body
from service.models.workers import MoveBody, MoveInfo
from service.protocol import Kind, MoveArgs
from service.queue.models import Drained, WorkerInfo, WorkerList

router = APIRouter(prefix="/v1", tags=["workers"], responses=PROBLEMS)

WorkerName = Annotated[str, Path(max_length=200)]


@router.get("/workers", response_model=WorkerList)
async def list_workers(backend: Context, caller: CallerOf) -> Response:
    """All workers that were ever seen, by name, as of their last heartbeats."""
    return json_response(WorkerList(workers=await _workers(backend, caller)))


@router.get("/workers/{worker}", response_model=WorkerInfo)
async def get_worker(worker: WorkerName, backend: Context, caller: CallerOf) -> Response:
    """One worker, as of its last heartbeat."""
    for info in await _workers(backend, caller):
        if info.name == worker:
            return json_response(info)
    raise ServiceError("unknown_worker", f"there is no worker {worker!r}")


@router.put("/workers/{worker}/drain", response_model=Drained, responses=LAST_WORKER)
async def drain_worker(worker: WorkerName, request: Request, backend: Context) -> Response:
    """Have a worker give all its graphs to the others, one after the other, and get no new ones."""
    await refuse_body(request)
    return json_response(await backend.dispatcher.drains.set(worker, True))


@router.delete("/workers/{worker}/drain", response_model=Drained)
async def undrain_worker(worker: WorkerName, backend: Context) -> Response:
    """Let a worker have graphs again. Those that it gave away stay where they are."""
    return json_response(await backend.dispatcher.drains.set(worker, False))


@router.post(
    "/graphs/{name}:move",
    response_model=MoveInfo,
    responses=ACCEPTED,
    openapi_extra=request_body(MoveBody, {"a worker": {"value": {"to": "gpu-1"}}}, PREFER, IDEMPOTENCY_KEY),
)
async def move_graph(name: GraphName, request: Request, backend: Context) -> Response:
    """Have another worker serve the graph. It is served meanwhile, but for the pause that the answer states."""
    require_json(request)
    async with read_body(request, MAX_SMALL_BODY_BYTES, backend.budget, backend.parsers.threads) as raw:
        to = parse_body(MoveBody, raw.view()).to
    return await answer(request, backend, Kind.MOVE, name, MoveArgs(to=to))


async def _workers(backend: Context, caller: Caller) -> list[WorkerInfo]:
    workers = await backend.dispatcher.watch.workers()
    if caller.prefix:  # notes name graphs
        workers = [worker.model_copy(update={"notes": []}) for worker in workers]
    return workers
