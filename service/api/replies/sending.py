"""Answers leave in pieces, and one process holds only so many bytes of them for those who read slowly.

An answer is in memory until its last byte is handed over, so a hundred callers who ask and then do not read could hold
any amount. When there is no room for one more long answer, the slowest readers are cut off; if all read fast enough, it
is refused, and can be asked for again.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from prometheus_client import Gauge
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.replies.problems import problem_response
from service.errors import ServiceError

PIECE_BYTES: Final = 128 * 1024
"""Bytes that are handed to the connection at a time, when it has sent those before. Shorter answers are not counted.

A connection whose reader does not take a piece in time is closed by `service.api.http.protocol`.
"""

SLOW_S: Final = 2.0
"""A reader who has not taken the latest piece in this time, which is 64 KiB a second, can be cut off."""

CHANGES: Final = frozenset({"PUT", "PATCH", "DELETE"})
"""Methods whose answers, which are short, are never refused: what they did is done."""

log = structlog.get_logger("headrace.api")


@dataclass(slots=True, eq=False)
class Answer:
    """One long answer on its way."""

    request_id: str
    n_bytes: int
    abort: Callable[[], None] | None
    """Ends the connection of the answer; None: this server offers no way."""
    sent_bytes: int = 0
    handed_at: float | None = None
    """Since when its reader has not taken the latest piece; None while nothing is on its way to him."""
    cut_off: bool = False


class Sending:
    """Cuts long bodies into pieces and counts them."""

    def __init__(self, app: ASGIApp, limit_bytes: int, sending_bytes: Gauge) -> None:
        self._app = app
        self._limit_bytes = limit_bytes
        self._gauge = sending_bytes
        self._answers: set[Answer] = set()
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer: Answer | None = None
        is_refused, is_of_head = False, scope["method"] == "HEAD"

        async def send_in_pieces(message: Message) -> None:
            nonlocal answer, is_refused
            if is_refused:
                return  # the body of what was refused
            begins = message["type"] == "http.response.start" and not is_of_head
            if begins and (n_bytes := held_bytes_of(scope, message)) > PIECE_BYTES:
                answer = self._enter(n_bytes, scope)
                is_refused = answer is None
                if is_refused:
                    await self._refuse(scope, receive, send)
                    return
            body, more = message.get("body", b""), message.get("more_body", False)
            if message["type"] != "http.response.body" or (answer is None and len(body) <= PIECE_BYTES):
                await send(message)
                return
            for at in range(0, max(len(body), 1), PIECE_BYTES):
                piece = body[at : at + PIECE_BYTES]
                is_last = at + PIECE_BYTES >= len(body)
                if answer is not None:
                    answer.handed_at = time.monotonic()
                await send({"type": "http.response.body", "body": piece, "more_body": more or not is_last})
                if answer is not None:
                    if answer.cut_off:
                        return
                    answer.sent_bytes += len(piece)
                    answer.handed_at = None
                await asyncio.sleep(0)  # a fast reader must not keep the loop from all others

        try:
            await self._app(scope, receive, send_in_pieces)
        finally:
            if answer is not None:
                self._leave(answer)

    def _enter(self, n_bytes: int, scope: Scope) -> Answer | None:
        """Count a long answer; None if there is no room for it."""
        extensions: dict[str, Any] = scope.get("extensions") or {}
        abort = extensions.get("headrace", {}).get("abort")
        answer = Answer(scope["state"].get("request_id", ""), n_bytes, abort)
        if not self._has_room(n_bytes):
            self._make_room(n_bytes)
        if not self._has_room(n_bytes) and scope["method"] not in CHANGES:
            return None
        self._answers.add(answer)
        self._count(n_bytes)
        return answer

    def _leave(self, answer: Answer) -> None:
        if answer in self._answers:
            self._answers.remove(answer)
            self._count(-answer.n_bytes)

    def _has_room(self, n_bytes: int) -> bool:
        """Whether there is room for so much more. One answer alone may be of any length."""
        return not self._answers or self._held_bytes + n_bytes <= self._limit_bytes

    def _make_room(self, n_bytes: int) -> None:
        """Cut off slow readers, those first that have taken nothing for longest, until there is room."""
        slow_since = time.monotonic() - SLOW_S
        waiting = {answer: answer.handed_at for answer in self._answers if answer.handed_at is not None}
        for answer, handed_at in sorted(waiting.items(), key=lambda item: item[1]):
            if self._has_room(n_bytes) or handed_at > slow_since:
                return
            if answer.abort is not None:
                answer.cut_off = True
                answer.abort()
                self._leave(answer)
                known = {"of_request": answer.request_id, "of_bytes": answer.n_bytes}
                log.warning("reader_cut_off", sent_bytes=answer.sent_bytes, **known)

    def _count(self, n_bytes: int) -> None:
        self._held_bytes += n_bytes
        self._gauge.set(self._held_bytes)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = f"answers of {self._held_bytes} bytes are on their way to their readers"
        error = ServiceError("rate_limited", detail, retry_after_s=1)
        scope["state"]["code"] = error.code
        await problem_response(error, scope["state"].get("request_id"))(scope, receive, send)


def held_bytes_of(scope: Scope, message: Message) -> int:
    """What an answer has in memory while it is sent: all of it, unless it says otherwise (`replies.results`)."""
    n_bytes = length_of(message)
    held_bytes: int = scope["state"].get("held_bytes", n_bytes)
    return min(held_bytes, n_bytes) if n_bytes else held_bytes


def length_of(message: Message) -> int:
    """What the head of an answer says of its body's length; 0 if it does not."""
    return next((int(value) for name, value in message["headers"] if name == b"content-length"), 0)
