"""/v1/graphs/{name}/partition."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.accept import encoding_of
from service.api.backend import Context, GraphName
from service.api.bodies.tasks import partition_task
from service.api.openapi import ACCEPTED, FORMS, KEY_IGNORED, PREFER, PROBLEMS, request_body
from service.api.questions import answer_question
from service.models.partition import EXAMPLES, PartitionBody, PartitionInfo
from service.protocol import Kind

router = APIRouter(prefix="/v1/graphs/{name}", tags=["flows"], responses={**PROBLEMS, **ACCEPTED})

BODY: Final = request_body(PartitionBody, EXAMPLES, PREFER, KEY_IGNORED)


@router.post("/partition", response_model=PartitionInfo, responses=FORMS, openapi_extra=BODY)
async def partition(name: GraphName, request: Request, backend: Context) -> Response:
    """The vertices in k parts of about equal weight, with little between them; kept up to date as the graph changes."""
    task = partition_task(backend.settings.max_patch_rows, encoding_of(request.headers))
    return await answer_question(request, backend, Kind.PARTITION, name, task)
