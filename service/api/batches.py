"""Changes of a column of a graph: its capacities, those of its vertices, costs and lower bounds."""

import re
from typing import Final, Literal

from fastapi import Request
from starlette.responses import Response

from gpu_engine.networks.rounding import Rounding
from service.api.accept import texts_of
from service.api.backend import Backend
from service.api.bodies.arrow import PatchLimits
from service.api.bodies.parsing import advice_of, limit_of
from service.api.bodies.receive import Body
from service.api.bodies.tasks import JSON, ArgsTask, Beside, patch_task
from service.api.headers import if_match, refuse_if_none_match, require_media_type
from service.api.questions import body_for
from service.api.replies.answers import answer
from service.models.capacities import Batch, OnMissing
from service.protocol import ARROW_TYPE, Kind

BEGINNING_BYTES: Final = 4096
"""How much of a body is looked at for its `batch`: nothing but its two other members stands before that."""

OF_BATCH: Final = re.compile(
    rb'\A(?:\xef\xbb\xbf)?\s*+\{\s*+(?:"(?:on_missing|rounding)"\s*+:\s*+"\w*+"\s*+,\s*+){0,2}+"batch"\s*+:\s*+\['
)


async def answer_change(
    request: Request, backend: Backend, kind: Kind, name: str, body: Body, task: ArgsTask
) -> Response:
    """As `answer_body`, of operations that may stand in a `batch`: a refusal by the worker, who gets the only one of a
    batch as it gets one that is the body itself, says so, here and in the job."""
    in_batch = OF_BATCH.match(bytes(body.view()[:BEGINNING_BYTES])) is not None
    args = await backend.parsers.args(body, task)
    return await answer(request, backend, kind, name, args, on_sent=body.close, in_batch=in_batch)


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
        return await answer_change(request, backend, kind, name, body, task)
