"""Answers in lines, sent while their rows are made.

What fails before there is a row is refused like anything else. What fails later is the last line: `{"error": {...}}`.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, aclosing, suppress
from functools import partial
from typing import Final

from fastapi import Request
from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.api.accept import VARY, preferred
from service.api.backend import Backend
from service.api.guards.access import authorise
from service.api.replies.answers import Wait, refusal, version_of
from service.api.replies.problems import problem_content
from service.api.replies.results import HeldResponse, lines_behind
from service.api.replies.streams import has_left, while_allowed
from service.errors import ServiceError
from service.protocol import Reply
from service.queue.rows import Ended
from service.store.blobs import RESULT_CHUNK_BYTES
from service.store.jobs.record import Draft

HELD_BYTES: Final = 3 * RESULT_CHUNK_BYTES
"""The most of an answer that is in memory: a piece as it is read, one that waits, and one on its way."""

UNBUFFERED: Final = {"X-Accel-Buffering": "no"}
"""nginx passes each piece on as it comes, which it does for event streams by the same header."""


def as_they_come(request: Request, backend: Backend, graph: str) -> Wait:
    """How the answer to a question about this graph is waited for whose caller wants lines."""
    return partial(reply_or_rows, request, backend, graph)


async def reply_or_rows(
    request: Request, backend: Backend, graph: str, job_id: str, wait_s: float, after: int | None = None
) -> Reply | Response | None:
    """The reply, or as soon as there is a row the answer that sends what there is and goes on; None after `wait_s`
    without either. `after`: only what comes after this row.

    While as many streams are open as may be it is the reply that is waited for. Raises unknown_job, not_acceptable,
    and unauthorised or forbidden if the key has ended meanwhile.
    """
    until = time.monotonic() + wait_s
    found = await backend.dispatcher.rows.first(job_id, wait_s)
    if not isinstance(found, Draft):
        return found
    preferred(request.headers, (found.envelope.media_type,))
    caller, room = await authorise(request), ExitStack()
    try:
        room.enter_context(backend.admission.stream(caller.key_id))
    except ServiceError:
        return await backend.dispatcher.wait(job_id, max(0.0, until - time.monotonic()))

    async def may_read() -> bool:
        with suppress(ServiceError):
            return not has_left(request) and (await authorise(request)).sees(graph)
        return False

    lines = _lines(request, while_allowed(_pieces(backend, job_id, found), may_read), after)
    headers = version_of(found.envelope) | VARY | {"Content-Location": f"/v1/jobs/{job_id}/result"} | UNBUFFERED
    return RowsResponse(lines, None, found.envelope.media_type, headers, HELD_BYTES, room.close)


class RowsResponse(HeldResponse):
    """Lets go of what it follows as soon as nobody reads any more."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if isinstance(self.body_iterator, AsyncGenerator):
                await self.body_iterator.aclose()


async def _pieces(backend: Backend, job_id: str, draft: Draft) -> AsyncGenerator[bytes, None]:
    """The pieces of the answer as they come. Raises what the job was refused with, and as `Rows.pieces`."""
    async with aclosing(backend.dispatcher.rows.pieces(job_id, draft)) as pieces:
        try:
            async for piece in pieces:
                yield piece
        except Ended as end:
            raise refusal(job_id, end.reply.status, end.reply.problem) from None


async def _lines(
    request: Request, pieces: AsyncGenerator[bytes, None], after: int | None
) -> AsyncGenerator[bytes, None]:
    """What comes after a row, or all of it, and what went wrong as the last line.

    It just ends where its caller may not read any more, and where something went wrong in the middle of a line.
    """
    at_end_of_line = True

    async def noted() -> AsyncIterator[bytes]:
        nonlocal at_end_of_line
        async for piece in pieces:
            at_end_of_line = piece.endswith(b"\n")
            yield piece

    async with aclosing(pieces):
        try:
            async for piece in lines_behind(noted(), 0 if after is None else after + 2):
                yield piece
        except ServiceError as error:
            request.state.code = error.code  # for the log
            if at_end_of_line:
                told = problem_content(error) | {"request_id": request.state.request_id}
                yield to_json({"error": told}, serialize_unknown=True) + b"\n"
