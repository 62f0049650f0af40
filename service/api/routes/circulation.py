"""/v1/graphs/{name}/circulation."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.accept import encoding_of
from service.api.backend import Context, GraphName
from service.api.bodies.tasks import circulation_task
from service.api.openapi import ACCEPTED, FORMS, KEY_IGNORED, PREFER, PROBLEMS, request_body
from service.api.questions import answer_question
from service.models.circulation import EXAMPLES, CirculationBody, CirculationInfo
from service.protocol import Kind

router = APIRouter(prefix="/v1/graphs/{name}", tags=["flows"], responses={**PROBLEMS, **ACCEPTED})

BODY: Final = request_body(CirculationBody, EXAMPLES, PREFER, KEY_IGNORED, required=False)


@router.post("/circulation", response_model=CirculationInfo, responses=FORMS, openapi_extra=BODY)
async def circulation(name: GraphName, request: Request, backend: Context) -> Response:
    """A flow in which edges carry, and terminals move, at least so much; or what proves that there is none."""
    task = circulation_task(backend.settings.max_patch_rows, encoding_of(request.headers))
    return await answer_question(request, backend, Kind.CIRCULATION, name, task)
