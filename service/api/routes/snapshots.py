"""/v1/graphs/{name}/snapshots: write one now, list those there are."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.backend import Context, GraphName, unknown_graph
from service.api.bodies.receive import refuse_body
from service.api.openapi import ACCEPTED, IDEMPOTENCY_KEY, PREFER, PROBLEMS, told
from service.api.replies.answers import answer, json_response
from service.models.graphs import SnapshotInfo, SnapshotList
from service.protocol import EmptyArgs, Kind

router = APIRouter(prefix="/v1/graphs/{name}/snapshots", tags=["snapshots"], responses=PROBLEMS)


@router.get("", response_model=SnapshotList)
async def list_snapshots(name: GraphName, backend: Context) -> Response:
    """The snapshots a restore could start from, newest first."""
    snapshots = await backend.catalogue.snapshots(name)
    if snapshots is None:
        raise unknown_graph(name)
    listed = [SnapshotInfo.model_validate(snapshot, from_attributes=True) for snapshot in snapshots]
    return json_response(SnapshotList(snapshots=listed))


@router.post(
    "",
    response_model=SnapshotInfo,
    responses={200: told("ETag"), **ACCEPTED},
    openapi_extra={"parameters": [PREFER, IDEMPOTENCY_KEY]},
)
async def write_snapshot(name: GraphName, request: Request, backend: Context) -> Response:
    """Write the present version, so that a restore need not replay the updates before it."""
    await refuse_body(request)
    return await answer(request, backend, Kind.SNAPSHOT, name, EmptyArgs())
