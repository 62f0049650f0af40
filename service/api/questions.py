"""The body of a question to a graph: JSON, or none at all for the defaults."""

from typing import Final, TypeVar

from fastapi import Request

from service.api.backend import Backend
from service.api.bodies import read_body
from service.api.headers import require_json
from service.api.parsing import JSON, limit_of
from service.models.body import Body, parse_body

MAX_QUESTION_BYTES: Final = 64 * 1024 * 1024

B = TypeVar("B", bound=Body)


async def read_question(request: Request, backend: Backend, model: type[B]) -> B:
    """Raises as `read_body`, `require_json` and `parse_body` do."""
    limit_bytes = min(MAX_QUESTION_BYTES, limit_of(JSON, backend.settings))
    async with read_body(request, limit_bytes, backend.budget) as raw:
        if not raw:
            return model()
        require_json(request)
        return await backend.parsers.run(JSON, raw, parse_body, model, raw)
