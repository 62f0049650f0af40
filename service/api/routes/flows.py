"""/v1/graphs/{name}/max-flow and /min-cut: one question, two default answers."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from gpu_engine.networks.coordinates import is_wgs84
from service.api.accept import map_or_encoding_of
from service.api.backend import Backend, Context, GraphName
from service.api.bodies.tasks import flow_task
from service.api.openapi import ACCEPTED, FORMS_AND_MAP, KEY_IGNORED, PREFER, PROBLEMS, request_body
from service.api.questions import answer_question
from service.models.flows import EXAMPLES, FlowField, MaxFlowBody, MaxFlowInfo
from service.protocol import Kind

router = APIRouter(prefix="/v1/graphs/{name}", tags=["flows"], responses={**PROBLEMS, **ACCEPTED})

VALUE: Final[frozenset[FlowField]] = frozenset({"value"})
VALUE_AND_CUT: Final[frozenset[FlowField]] = frozenset({"value", "cut"})
BODY: Final = request_body(MaxFlowBody, EXAMPLES, PREFER, KEY_IGNORED, required=False)


@router.post("/max-flow", response_model=MaxFlowInfo, responses=FORMS_AND_MAP, openapi_extra=BODY)
async def max_flow(name: GraphName, request: Request, backend: Context) -> Response:
    """The maximum flow between the terminals, with its certificate."""
    return await _flow(Kind.MAX_FLOW, name, request, backend, VALUE)


@router.post("/min-cut", response_model=MaxFlowInfo, responses=FORMS_AND_MAP, openapi_extra=BODY)
async def min_cut(name: GraphName, request: Request, backend: Context) -> Response:
    """The minimum cut between the terminals, with its certificate."""
    return await _flow(Kind.MIN_CUT, name, request, backend, VALUE_AND_CUT)


async def _flow(kind: Kind, name: str, request: Request, backend: Backend, fields: frozenset[FlowField]) -> Response:
    forms = map_or_encoding_of(request.headers)
    if len(forms) > 1 and not await _has_map(backend, name):
        forms = forms[1:]
    return await answer_question(request, backend, kind, name, flow_task(fields, forms))


async def _has_map(backend: Backend, name: str) -> bool:
    """Whether the vertices of the graph lie where a map can show them."""
    info = await backend.catalogue.get(name)
    return info is not None and info.coordinates is not None and is_wgs84(info.coordinates)
