"""Long results on their way to a caller: read from Redis piece by piece, as fast as they are taken.

Nobody's result is in memory as a whole. The pieces that are, are counted; where there is no room for more, a caller
gets the address of the job and fetches the result later.
"""

import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from service.api.budget import ByteBudget, Hold
from service.errors import ServiceError
from service.store.blobs import AsyncBlobs, BrokenBlob

RESULT_BYTES: Final = 128 << 20
"""Of results that are being sent by one process: three chunks for each."""

GONE: Final = "the result of the job is no longer kept"


class Results:
    """Those that lie in blobs."""

    def __init__(self, blobs: AsyncBlobs) -> None:
        self._blobs = blobs
        self.budget = ByteBudget(RESULT_BYTES, "results being sent")

    async def open(self, blob: str) -> "Result":
        """Raises unknown_job if the result has been dropped, rate_limited if too much is being sent."""
        try:
            stored = await self._blobs.open(blob)
        except BrokenBlob:
            raise ServiceError("unknown_job", GONE) from None
        hold = Hold(self.budget)
        hold.take(stored.held_bytes)
        chunks = stored.chunks()
        try:
            first = await anext(chunks)
        except BrokenBlob:
            hold.settle(0)
            raise ServiceError("unknown_job", GONE) from None
        except BaseException:
            hold.settle(0)
            raise
        return Result(stored.n_bytes, first, chunks, hold)


class Result:
    """One long result; `close` it, or give it to `result_response`."""

    def __init__(self, n_bytes: int, first: bytes, rest: AsyncIterator[bytes], hold: Hold) -> None:
        self.n_bytes = n_bytes
        self.first = first
        """Its first piece, at least one byte unless it is empty."""
        self._rest = rest
        self._hold = hold

    async def pieces(self) -> AsyncIterator[bytes]:
        """All of them. Raises `BrokenBlob` in the middle if what is stored was dropped or is not what was written."""
        piece, self.first = self.first, b""
        yield piece
        async for piece in self._rest:
            yield piece

    def close(self) -> None:
        self._hold.settle(0)


class HeldResponse(StreamingResponse):
    """An answer sent in pieces, which says how long it is: one that is broken off is known to be.

    What it holds is given back by `release`, when it has been sent or is not sent after all.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        n_bytes: int,
        media_type: str,
        headers: Mapping[str, str] | None,
        release: Callable[[], None],
    ) -> None:
        super().__init__(pieces, 200, {"Content-Length": str(n_bytes)} | dict(headers or {}), media_type)
        self._release = weakref.finalize(self, release)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._release()


def result_response(
    result: Result, headers: Mapping[str, str] | None = None, before: bytes = b"", after: bytes = b""
) -> Response:
    """A long result, alone or within other JSON."""
    n_bytes = len(before) + result.n_bytes + len(after)
    return HeldResponse(_joined(result, before, after), n_bytes, "application/json", headers, result.close)


async def _joined(result: Result, before: bytes, after: bytes) -> AsyncIterator[bytes]:
    if before:
        yield before
    async for piece in result.pieces():
        yield piece
    if after:
        yield after
