"""/v1/graphs/{name}/min-cost-flow."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.api.accept import encoding_of
from service.api.backend import Context, GraphName
from service.api.bodies.tasks import min_cost_task
from service.api.openapi import ACCEPTED, FORMS, KEY_IGNORED, PREFER, PROBLEMS, request_body
from service.api.questions import answer_question
from service.models.min_cost_flow import EXAMPLES, MinCostFlowBody, MinCostFlowInfo
from service.protocol import Kind

router = APIRouter(prefix="/v1/graphs/{name}", tags=["flows"], responses={**PROBLEMS, **ACCEPTED})

BODY: Final = request_body(MinCostFlowBody, EXAMPLES, PREFER, KEY_IGNORED, required=False)


@router.post("/min-cost-flow", response_model=MinCostFlowInfo, responses=FORMS, openapi_extra=BODY)
async def min_cost_flow(name: GraphName, request: Request, backend: Context) -> Response:
    """The cheapest flow between the terminals, as much as can flow or a given value, with potentials as its proof."""
    task = min_cost_task(encoding_of(request.headers))
    return await answer_question(request, backend, Kind.MIN_COST_FLOW, name, task)
