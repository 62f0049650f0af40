"""/v1/graphs/{name}/closure-study."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.accept import rows_form
from service.api.backend import Context, GraphName
from service.api.bodies.tasks import closure_task
from service.api.openapi import ACCEPTED, KEY_IGNORED, PREFER, PROBLEMS, ROW_FORMS, request_body
from service.api.questions import answer_question
from service.api.replies.rows import as_they_come
from service.models.closure_study import EXAMPLES, ClosureStudyBody, ClosureStudyInfo
from service.protocol import Kind

router = APIRouter(prefix="/v1/graphs/{name}", tags=["flows"], responses={**PROBLEMS, **ACCEPTED})

BODY: Final = request_body(ClosureStudyBody, EXAMPLES, PREFER, KEY_IGNORED)


@router.post("/closure-study", response_model=ClosureStudyInfo, responses=ROW_FORMS, openapi_extra=BODY)
async def closure_study(name: GraphName, request: Request, backend: Context) -> Response:
    """Which closure costs most: each candidate is closed by itself, in thought, and the worst are ranked."""
    lines, encoding = rows_form(request.headers)
    settings = backend.settings
    task = closure_task(settings.max_question_rows, settings.max_patch_rows, lines=lines, encoding=encoding)
    wait = as_they_come(request, backend, name) if lines else None
    return await answer_question(request, backend, Kind.CLOSURE_STUDY, name, task, wait)
