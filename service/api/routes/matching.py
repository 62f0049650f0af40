"""/v1/graphs/{name}/matching."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.accept import encoding_of
from service.api.backend import Context, GraphName
from service.api.bodies.tasks import matching_task
from service.api.openapi import ACCEPTED, FORMS, KEY_IGNORED, PREFER, PROBLEMS, request_body
from service.api.questions import answer_question
from service.models.matching import EXAMPLES, MatchingBody, MatchingInfo
from service.protocol import Kind

router = APIRouter(prefix="/v1/graphs/{name}", tags=["flows"], responses={**PROBLEMS, **ACCEPTED})

BODY: Final = request_body(MatchingBody, EXAMPLES, PREFER, KEY_IGNORED, required=False)


@router.post("/matching", response_model=MatchingInfo, responses=FORMS, openapi_extra=BODY)
async def matching(name: GraphName, request: Request, backend: Context) -> Response:
    """A maximum matching of left and right vertices, with a vertex cover of the same size."""
    task = matching_task(encoding_of(request.headers))
    return await answer_question(request, backend, Kind.MATCHING, name, task)
