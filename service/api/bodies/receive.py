"""Request bodies with bounds: counted as they stream in, decoded with a bound on what comes out."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import Request

from gpu_engine.formats import FREE_BYTES
from service.api.bodies.budget import ByteBudget, Hold
from service.api.bodies.digests import Digests
from service.api.bodies.encodings import DECODERS, MAX_EXPANSION, decoded
from service.api.bodies.spool import Spool
from service.errors import ServiceError

INLINE_BYTES: Final = 64 * 1024
"""Bodies up to this size stay in a buffer of their own; a longer one goes to a file in memory."""

NO_OPTIONS_BYTES: Final = 16
"""A longer body is more than an empty object with some space around it."""

GRACE_S: Final = 30.0
MIN_BYTES_PER_S: Final = 1024
"""Bodies that come more slowly are given up, because each holds one of the requests that may be open."""


class Body:
    """The bytes of one request, or what became of them on the way; a budget counts them until `close`."""

    def __init__(self, hold: Hold) -> None:
        self.hold = hold
        self._short = bytearray()
        self._spool: Spool | None = None

    @property
    def n_bytes(self) -> int:
        return len(self._short) if self._spool is None else self._spool.n_bytes

    @property
    def is_short(self) -> bool:
        return self._spool is None

    def write(self, piece: bytes) -> None:
        """Append; raises as `Hold.take`."""
        self.hold.take(len(piece))
        if self._spool is None and len(self._short) + len(piece) <= INLINE_BYTES:
            self._short += piece
        else:
            self.spool().write(piece)

    def spool(self) -> Spool:
        """The whole body as a file, for another process."""
        if self._spool is None:
            self._spool = Spool()
            self._spool.write(self._short)
            self._short = bytearray()
        return self._spool

    def replace(self, content: Spool) -> None:
        """Replace the content; the hold has been given enough for it."""
        self._drop()
        self._spool = content
        self.hold.settle(content.n_bytes)

    def become(self, other: "Body") -> None:
        """Go on with the bytes of a body that shares the hold."""
        self._drop()
        self._short, self._spool = other._short, other._spool
        self.hold.settle(self.n_bytes)

    def view(self) -> memoryview:
        """The whole body, not copied."""
        return memoryview(self._short) if self._spool is None else self._spool.view()

    def pieces(self) -> Iterator[bytes]:
        return iter([bytes(self._short)]) if self._spool is None else self._spool.pieces()

    def to_json(self) -> bytes:
        """The bytes of the whole body, where it is the JSON of a command's arguments."""
        return b"".join(self.pieces())

    def close(self) -> None:
        """Give memory and budget back. A second call does nothing."""
        self._drop()
        self.hold.settle(0)

    def _drop(self) -> None:
        if self._spool is not None:
            self._spool.close()
            self._spool = None
        self._short = bytearray()


async def refuse_body(request: Request) -> None:
    """Raises invalid_body for a request that brings options where there are none, as an empty object does not, or
    another body than its digests say, and invalid_request for digests that are not looked at."""
    start, digests = b"", Digests(request.headers)
    async for chunk in _chunks(request):
        start += chunk[: NO_OPTIONS_BYTES + 1]
        if len(start) > NO_OPTIONS_BYTES:
            break
        digests.update(chunk)
    if len(start) > NO_OPTIONS_BYTES or start.strip() not in (b"", b"{}"):
        raise ServiceError("invalid_body", "this request takes no body: what it says would not be looked at")
    digests.check()


@asynccontextmanager
async def read_body(
    request: Request,
    limit_bytes: int,
    budget: ByteBudget,
    threads: CapacityLimiter | None = None,
    advice: str = "",
) -> AsyncIterator[Body]:
    """The decoded body, at most `limit_bytes`, closed when the block ends. It is decoded in one of `threads`.
    `advice` ends the sentence about one that is longer.

    Raises too_large, rate_limited, unsupported_media_type (unknown Content-Encoding), invalid_body (broken encoding, or
    another digest than is said), invalid_request.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit_bytes:
        raise _too_large(limit_bytes, advice)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity" and encoding not in DECODERS:
        raise ServiceError(
            "unsupported_media_type",
            f"Content-Encoding {encoding[:40]!r}; we read gzip and zstd",
            header="Content-Encoding",
        )
    digests = Digests(request.headers)
    body = Body(Hold(budget))
    try:
        async for chunk in _chunks(request):
            if body.n_bytes + len(chunk) > limit_bytes:
                raise _too_large(limit_bytes, advice)
            digests.update(chunk)
            body.write(chunk)
        digests.check()
        if encoding != "identity":
            await anyio.to_thread.run_sync(partial(_decode, body, encoding, limit_bytes, advice), limiter=threads)
        yield body
    finally:
        body.close()


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    """The body as it comes, at `MIN_BYTES_PER_S` at least after the first `GRACE_S`. Raises invalid_request."""
    stream, late_at = request.stream(), time.monotonic() + GRACE_S
    while True:
        try:
            async with asyncio.timeout(late_at - time.monotonic()):
                chunk = await anext(stream, None)
        except TimeoutError:
            detail = f"the body came more slowly than {MIN_BYTES_PER_S} bytes a second"
            raise ServiceError("invalid_request", detail, unread=True) from None
        if chunk is None:
            return
        yield chunk
        late_at += len(chunk) / MIN_BYTES_PER_S


def _too_large(limit_bytes: int, advice: str) -> ServiceError:
    return ServiceError("too_large", f"a body has at most {limit_bytes} bytes, encoded and decoded{advice}")


def _decode(body: Body, encoding: str, limit_bytes: int, advice: str) -> None:
    """Replace the body by what it encodes; its bytes are counted and bounded as they come."""
    most = max(FREE_BYTES, MAX_EXPANSION * body.n_bytes)
    plain = Body(body.hold)
    try:
        for piece in decoded(body.view(), encoding):
            n_bytes = plain.n_bytes + len(piece)
            if n_bytes > limit_bytes:
                raise _too_large(limit_bytes, advice)
            if n_bytes > most:
                detail = f"the body decodes to more than {MAX_EXPANSION} times its bytes: send it as it is"
                raise ServiceError("too_large", detail)
            plain.write(piece)
        body.become(plain)
    except BaseException:
        plain._drop()
        raise
