"""Work on a graph that comes with a body: is the graph there and has it room, then the body, then the command."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import Request
from starlette.datastructures import Headers
from starlette.responses import Response

from service.api.backend import Backend, known_graph
from service.api.bodies.parsing import HERE_BYTES, limit_of
from service.api.bodies.receive import Body, read_body
from service.api.bodies.tasks import JSON, ArgsTask
from service.api.headers import idempotency_key, media_type, require_json
from service.api.replies.answers import Wait, answer
from service.protocol import Kind

MAX_QUESTION_BYTES: Final = 64 * 1024 * 1024


async def answer_question(
    request: Request, backend: Backend, kind: Kind, name: str, task: ArgsTask, wait: Wait | None = None
) -> Response:
    """The answer to a body of JSON, or to none at all for the defaults. Raises as `answer_body`."""
    limit_bytes = min(MAX_QUESTION_BYTES, limit_of(JSON, backend.settings))
    async with body_for(request, backend, name, limit_bytes, is_keyed=False) as body:
        if body.n_bytes:
            require_json(request)
        return await answer_body(request, backend, kind, name, body, task, wait)


async def answer_body(
    request: Request, backend: Backend, kind: Kind, name: str, body: Body, task: ArgsTask, wait: Wait | None = None
) -> Response:
    """The body as a command, and its answer; raises as `Parsers.args` and `ask`. The body is closed on the way."""
    args = await backend.parsers.args(body, task)
    return await answer(request, backend, kind, name, args, on_sent=body.close, wait=wait)


@asynccontextmanager
async def body_for(
    request: Request, backend: Backend, name: str, limit_bytes: int, advice: str = "", *, is_keyed: bool = True
) -> AsyncIterator[Body]:
    """The body of a request about this graph.

    Raises as `read_body`, and rate_limited and unknown_graph before any of it is read. A short body of JSON is read
    at once: that costs less than to look for the graph, which is done anyway when its command is queued. Where an
    Idempotency-Key counts, a repeated one gets its first answer, whatever has become of the graph.
    """
    backend.admission.check(name, request.state.caller.key_id)
    if not _is_short(request.headers):
        key = idempotency_key(request.headers) if is_keyed else None
        if key is None or not await backend.dispatcher.knows(name, key):
            await known_graph(backend, name)
    async with read_body(request, limit_bytes, backend.budget, backend.parsers.threads, advice) as body:
        yield body


def _is_short(headers: Headers) -> bool:
    length = headers.get("content-length", "0")
    plain = "transfer-encoding" not in headers and "content-encoding" not in headers
    return plain and media_type(headers) in (JSON, "") and length.isdecimal() and int(length) <= HERE_BYTES
