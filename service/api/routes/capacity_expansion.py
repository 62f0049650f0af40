"""/v1/graphs/{name}/capacity-expansion."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.accept import encoding_of
from service.api.backend import Context, GraphName
from service.api.bodies.tasks import expansion_task
from service.api.openapi import ACCEPTED, FORMS, KEY_IGNORED, PREFER, PROBLEMS, request_body
from service.api.questions import answer_question
from service.models.capacity_expansion import EXAMPLES, CapacityExpansionBody, CapacityExpansionInfo
from service.protocol import Kind

router = APIRouter(prefix="/v1/graphs/{name}", tags=["flows"], responses={**PROBLEMS, **ACCEPTED})

BODY: Final = request_body(CapacityExpansionBody, EXAMPLES, PREFER, KEY_IGNORED)


@router.post("/capacity-expansion", response_model=CapacityExpansionInfo, responses=FORMS, openapi_extra=BODY)
async def capacity_expansion(name: GraphName, request: Request, backend: Context) -> Response:
    """What to add to which edges so that so much more can flow, at the least price. The graph stays as it is."""
    task = expansion_task(backend.settings.max_patch_rows, encoding_of(request.headers))
    return await answer_question(request, backend, Kind.CAPACITY_EXPANSION, name, task)
