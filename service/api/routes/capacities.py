"""/v1/graphs/{name}/capacities: read a page, change a batch."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from gpu_engine.networks.rounding import Rounding
from service.api.accept import encoding_of
from service.api.backend import Context, GraphName
from service.api.batches import answer_batch
from service.api.headers import if_match
from service.api.openapi import (
    ACCEPTED,
    BINARY,
    DRY_RUN,
    FORMS,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    NOT_MODIFIED_FORM,
    ON_MISSING,
    PREFER,
    PROBLEMS,
    UNLESS_HELD,
    UPDATE_FORMS,
    request_body,
)
from service.api.replies.conditions import answer_page
from service.models.capacities import EXAMPLES, OnMissing, PatchBody
from service.models.flows import PatchInfo
from service.models.graphs import CapacitiesInfo
from service.protocol import ARROW_TYPE, CapacitiesArgs, Kind

router = APIRouter(prefix="/v1/graphs/{name}/capacities", tags=["capacities"], responses=PROBLEMS)
MAX_OFFSET = 2**31 - 1


@router.get(
    "",
    response_model=CapacitiesInfo,
    responses={**FORMS, **NOT_MODIFIED_FORM},
    openapi_extra={"parameters": [PREFER, IF_MATCH, UNLESS_HELD]},
)
async def get_capacities(
    name: GraphName,
    request: Request,
    backend: Context,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 10_000,
) -> Response:
    """The edges' capacities in the order they were sent, a page at a time."""
    wanted = if_match(request.headers)
    args = CapacitiesArgs(offset=offset, limit=limit, if_match=wanted, encoding=encoding_of(request.headers))
    return await answer_page(request, backend, Kind.CAPACITIES, name, args)


@router.patch(
    "",
    response_model=PatchInfo,
    responses={**UPDATE_FORMS, **ACCEPTED},
    openapi_extra=request_body(PatchBody, EXAMPLES, PREFER, IDEMPOTENCY_KEY, IF_MATCH, media={ARROW_TYPE: BINARY}),
)
async def patch_capacities(
    name: GraphName,
    request: Request,
    backend: Context,
    solve: Annotated[Literal["all", "none"], Query(description="Re-solve resident flow states?")] = "all",
    rounding: Annotated[
        Rounding | None, Query(description="What becomes of a result of more decimals than the graph's.")
    ] = None,
    on_missing: Annotated[OnMissing | None, Query(description=ON_MISSING)] = None,
    dry_run: Annotated[bool, Query(description=DRY_RUN)] = False,
) -> Response:
    """A batch of changes, all or nothing, durable when answered."""
    kind = Kind.DRY_RUN if dry_run else Kind.PATCH
    return await answer_batch(request, backend, kind, name, PatchBody, rounding, on_missing, solve)
