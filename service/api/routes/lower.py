"""/v1/graphs/{name}/lower: change a batch. They are read with the capacities."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from gpu_engine.networks.rounding import Rounding
from service.api.backend import Context, GraphName
from service.api.batches import answer_batch
from service.api.openapi import (
    ACCEPTED,
    BINARY,
    DRY_RUN,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    ON_MISSING,
    PREFER,
    PROBLEMS,
    UPDATE_FORMS,
    request_body,
)
from service.models.capacities import OnMissing
from service.models.flows import PatchInfo
from service.models.lower import EXAMPLES, LowerBody
from service.protocol import ARROW_TYPE, Kind

router = APIRouter(prefix="/v1/graphs/{name}/lower", tags=["capacities"], responses=PROBLEMS)


@router.patch(
    "",
    response_model=PatchInfo,
    responses={**UPDATE_FORMS, **ACCEPTED},
    openapi_extra=request_body(LowerBody, EXAMPLES, PREFER, IDEMPOTENCY_KEY, IF_MATCH, media={ARROW_TYPE: BINARY}),
)
async def patch_lower(
    name: GraphName,
    request: Request,
    backend: Context,
    rounding: Annotated[
        Rounding | None, Query(description="What becomes of a result of more decimals than the graph's.")
    ] = None,
    on_missing: Annotated[OnMissing | None, Query(description=ON_MISSING)] = None,
    dry_run: Annotated[bool, Query(description=DRY_RUN)] = False,
) -> Response:
    """A batch of lower bounds, all or nothing, durable when answered. No flow that is kept solved changes."""
    kind = Kind.DRY_RUN_LOWER if dry_run else Kind.PATCH_LOWER
    return await answer_batch(request, backend, kind, name, LowerBody, rounding, on_missing)
