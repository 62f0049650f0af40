"""/v1/graphs/{name}/what-if."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.accept import rows_form
from service.api.backend import Context, GraphName
from service.api.bodies.tasks import what_if_task
from service.api.openapi import ACCEPTED, KEY_IGNORED, PREFER, PROBLEMS, ROW_FORMS, request_body
from service.api.questions import answer_question
from service.api.replies.rows import as_they_come
from service.models.what_if import EXAMPLES, WhatIfBody, WhatIfInfo
from service.protocol import Kind

router = APIRouter(prefix="/v1/graphs/{name}", tags=["flows"], responses={**PROBLEMS, **ACCEPTED})

BODY: Final = request_body(WhatIfBody, EXAMPLES, PREFER, KEY_IGNORED)


@router.post("/what-if", response_model=WhatIfInfo, responses=ROW_FORMS, openapi_extra=BODY)
async def what_if(name: GraphName, request: Request, backend: Context) -> Response:
    """The maximum flow in each of many scenarios. The graph itself changes in none, and updates do not wait."""
    lines, encoding = rows_form(request.headers)
    settings = backend.settings
    task = what_if_task(settings.max_question_rows, settings.max_patch_rows, lines=lines, encoding=encoding)
    wait = as_they_come(request, backend, name) if lines else None
    return await answer_question(request, backend, Kind.WHAT_IF, name, task, wait)
