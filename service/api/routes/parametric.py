"""/v1/graphs/{name}/parametric."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.accept import texts_of
from service.api.backend import Context, GraphName
from service.api.bodies.tasks import parametric_task
from service.api.openapi import ACCEPTED, KEY_IGNORED, PREFER, PROBLEMS, VERSION_FORMS, request_body
from service.api.questions import answer_question
from service.models.parametric import EXAMPLES, ParametricBody, ParametricInfo
from service.protocol import Kind

router = APIRouter(prefix="/v1/graphs/{name}", tags=["flows"], responses={**PROBLEMS, **ACCEPTED})

BODY: Final = request_body(ParametricBody, EXAMPLES, PREFER, KEY_IGNORED)


@router.post("/parametric", response_model=ParametricInfo, responses=VERSION_FORMS, openapi_extra=BODY)
async def parametric(name: GraphName, request: Request, backend: Context) -> Response:
    """The maximum flow as a function of one factor that scales some capacities or caps, with exact breakpoints."""
    task = parametric_task(backend.settings.max_patch_rows, texts_of(request.headers))
    return await answer_question(request, backend, Kind.PARAMETRIC, name, task)
