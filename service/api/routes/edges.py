"""/v1/graphs/{name}/edges: insert and delete edges and vertices."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from gpu_engine.networks.rounding import Rounding
from service.api.accept import texts_of
from service.api.backend import Context, GraphName
from service.api.batches import answer_change
from service.api.bodies.parsing import advice_of, limit_of
from service.api.bodies.tasks import JSON, edges_task
from service.api.headers import if_match, refuse_if_none_match, require_json
from service.api.openapi import (
    ACCEPTED,
    DRY_RUN,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    PREFER,
    PROBLEMS,
    UPDATE_FORMS,
    request_body,
)
from service.api.questions import body_for
from service.models.edges import EXAMPLES, EdgesBody, StructureInfo
from service.protocol import Kind

router = APIRouter(prefix="/v1/graphs/{name}/edges", tags=["structure"], responses=PROBLEMS)


@router.patch(
    "",
    response_model=StructureInfo,
    responses={**UPDATE_FORMS, **ACCEPTED},
    openapi_extra=request_body(EdgesBody, EXAMPLES, PREFER, IDEMPOTENCY_KEY, IF_MATCH),
)
async def patch_edges(
    name: GraphName,
    request: Request,
    backend: Context,
    solve: Annotated[Literal["all", "none"], Query(description="Re-solve resident flow states?")] = "all",
    rounding: Annotated[
        Rounding | None, Query(description="What becomes of amounts of more decimals than the graph's.")
    ] = None,
    dry_run: Annotated[bool, Query(description=DRY_RUN)] = False,
) -> Response:
    """A batch of insertions and deletions, all or nothing, durable when answered."""
    refuse_if_none_match(request.headers)
    require_json(request)
    settings, version = backend.settings, if_match(request.headers)
    task = edges_task(settings.max_patch_rows, version, solve, rounding, texts_of(request.headers))
    advice = advice_of(JSON, settings, "send several batches")
    async with body_for(request, backend, name, limit_of(JSON, settings), advice) as body:
        command = Kind.DRY_RUN_EDGES if dry_run else Kind.PATCH_EDGES
        return await answer_change(request, backend, command, name, body, task)
