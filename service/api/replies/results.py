"""Long results on their way to a caller: read from Redis piece by piece, as fast as they are taken.

Nobody's result is in memory as a whole. What is, three pieces for each caller, `service.api.replies.sending` counts.
"""

import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from service.errors import ServiceError
from service.store.blobs import AsyncBlobs, BrokenBlob

DONE: Final = b'{"done":'
"""The last line of a whole answer begins so, and no row does."""

LAST_LINE_BYTES: Final = 1024

GONE: Final = "the result of the job is no longer kept"


class Result:
    """One long result."""

    def __init__(
        self, n_bytes: int, held_bytes: int, first: bytes, rest: AsyncIterator[bytes], sha256: str = ""
    ) -> None:
        self.n_bytes = n_bytes
        self.sha256 = sha256
        """The digest of all pieces, in hexadecimal digits."""
        self.held_bytes = held_bytes
        """The most of the result that is in memory at a time."""
        self.first = first
        """Its first piece, at least one byte unless it is empty."""
        self._rest = rest

    async def pieces(self) -> AsyncIterator[bytes]:
        """All pieces. Raises `BrokenBlob` in the middle if what is stored was dropped or is not what was written."""
        piece, self.first = self.first, b""
        yield piece
        async for piece in self._rest:
            yield piece


async def open_result(blobs: AsyncBlobs, blob: str) -> Result:
    """The result that lies in a blob. Raises unknown_job if it has been dropped."""
    try:
        stored = await blobs.open(blob)
        chunks = stored.chunks()
        return Result(stored.n_bytes, stored.held_bytes, await anext(chunks), chunks, stored.sha256)
    except BrokenBlob:
        raise ServiceError("unknown_job", GONE) from None


class HeldResponse(StreamingResponse):
    """An answer sent in pieces, which says how long it is, if it is known: one that is broken off is known to be.

    `held_bytes` is what it has in memory while it is sent; `release` is called when it has been sent, or is not sent
    after all.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        n_bytes: int | None,
        media_type: str,
        headers: Mapping[str, str] | None,
        held_bytes: int,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        length = {} if n_bytes is None else {"Content-Length": str(n_bytes)}
        super().__init__(pieces, 200, length | dict(headers or {}), media_type)
        self._held_bytes = held_bytes
        self._release = weakref.finalize(self, release)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["held_bytes"] = self._held_bytes
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()


def result_response(
    result: Result, media_type: str, headers: Mapping[str, str] | None, before: bytes = b"", after: bytes = b""
) -> Response:
    """A long result, alone or as a member of other JSON."""
    n_bytes = len(before) + result.n_bytes + len(after)
    return HeldResponse(_joined(result, before, after), n_bytes, media_type, headers, result.held_bytes)


def lines_response(result: Result, after: int, media_type: str, headers: Mapping[str, str] | None) -> Response:
    """A long result of lines without the first one and the ``after + 1`` rows behind it. The last line ends it."""
    return HeldResponse(lines_behind(result.pieces(), after + 2), None, media_type, headers, result.held_bytes)


async def lines_behind(pieces: AsyncIterator[bytes], count: int) -> AsyncIterator[bytes]:
    """What comes after so many lines, in the same pieces; of a whole answer the last line at least."""
    last, behind = b"", False
    async for piece in pieces:
        ends = piece.count(b"\n") if count else 0
        at = len(piece)
        if ends >= count:
            at = 0
            for _ in range(count):
                at = piece.index(b"\n", at) + 1
            ends = count
        count -= ends
        if at < len(piece):
            behind = True
            yield piece[at:]
        elif not behind:
            last = _last_line(last + piece)
    if last.startswith(DONE) and not behind:
        yield last


def _last_line(text: bytes) -> bytes:
    """The last line, or the end of a long one, which is not `DONE`."""
    return text[text.rfind(b"\n", 0, -1) + 1 :][-LAST_LINE_BYTES:]


async def _joined(result: Result, before: bytes, after: bytes) -> AsyncIterator[bytes]:
    if before:
        yield before
    async for piece in result.pieces():
        yield piece
    if after:
        yield after
