"""Changes of a column of a graph: its capacities, those of its vertices, costs and lower bounds."""

from typing import Literal

from fastapi import Request
from starlette.responses import Response

from gpu_engine.networks.rounding import Rounding
from service.api.accept import texts_of
from service.api.backend import Backend
from service.api.bodies.arrow import PatchLimits
from service.api.bodies.parsing import advice_of, limit_of
from service.api.bodies.tasks import JSON, Beside, patch_task
from service.api.headers import if_match, refuse_if_none_match, require_media_type
from service.api.questions import answer_body, body_for
from service.models.capacities import Batch, OnMissing
from service.protocol import ARROW_TYPE, Kind


async def answer_batch(
    request: Request,
    backend: Backend,
    kind: Kind,
    name: str,
    model: type[Batch],
    rounding: Rounding | None,
    on_missing: OnMissing | None,
    solve: Literal["all", "none"] = "none",
) -> Response:
    """The answer of a batch, which is a ``model`` in JSON or the same columns in Arrow, all or nothing."""
    refuse_if_none_match(request.headers)
    media_type = require_media_type(request.headers, (JSON, ARROW_TYPE))
    settings, version = backend.settings, if_match(request.headers)
    limits = PatchLimits(settings.max_patch_rows, limit_of(JSON, settings))
    beside = Beside(version, solve, rounding, on_missing)
    task = patch_task(media_type, limits, beside, model, texts_of(request.headers))
    advice = advice_of(JSON, settings, "send several batches, or an Arrow stream")
    async with body_for(request, backend, name, limits.max_bytes, advice) as body:
        return await answer_body(request, backend, kind, name, body, task)
