"""Request bodies with bounds: counted as they stream in, decoded with a bound on what comes out."""

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio.to_thread
import zstandard
from fastapi import Request

from service.errors import ServiceError

INLINE_BYTES: Final = 64 * 1024
"""Bodies up to this size are decoded and parsed on the event loop: cheaper than a thread."""

SLICE_BYTES: Final = 1024
"""Fed to a decoder at a time, so that what one step can blow up to stays small (zstd: 32 MiB)."""

GRACE_S: Final = 30.0
MIN_BYTES_PER_S: Final = 1024
"""Slower bodies are given up: each holds one of the requests that may be open."""

MAX_WINDOW_BYTES: Final = 128 * 1024 * 1024

DECODERS: Final[Mapping[str, Callable[[], Any]]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "zstd": lambda: zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj(),
}


class ByteBudget:
    """Bytes of bodies in flight in this process; a request that would exceed it is told to come back."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0

    def take(self, n_bytes: int) -> None:
        if self._used_bytes + n_bytes > self._limit_bytes:
            raise ServiceError("rate_limited", "too many bytes of bodies in flight", retry_after_s=1)
        self._used_bytes += n_bytes

    def give_back(self, n_bytes: int) -> None:
        self._used_bytes -= n_bytes


@asynccontextmanager
async def read_body(request: Request, limit_bytes: int, budget: ByteBudget) -> AsyncIterator[bytearray]:
    """The decoded body, at most `limit_bytes`; its bytes count against `budget` until the block ends.

    Raises too_large, unsupported_media_type (unknown Content-Encoding), invalid_body (broken encoding).
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit_bytes:
        raise _too_large(limit_bytes)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity" and encoding not in DECODERS:
        raise ServiceError("unsupported_media_type", f"Content-Encoding {encoding[:40]!r}; we read gzip and zstd")
    raw = bytearray()
    taken = 0
    try:
        async for chunk in _chunks(request):
            if len(raw) + len(chunk) > limit_bytes:
                raise _too_large(limit_bytes)
            budget.take(len(chunk))
            taken += len(chunk)
            raw += chunk
        if encoding == "identity":
            yield raw
            return
        decode = partial(_decode, raw, encoding, limit_bytes)
        decoded = decode() if len(raw) <= INLINE_BYTES else await anyio.to_thread.run_sync(decode)
        del raw
        budget.take(len(decoded))
        taken += len(decoded)
        yield decoded
    finally:
        budget.give_back(taken)


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    """The body as it comes, at `MIN_BYTES_PER_S` at least after the first `GRACE_S`. Raises invalid_request."""
    stream, late_at = request.stream(), time.monotonic() + GRACE_S
    while True:
        try:
            async with asyncio.timeout(late_at - time.monotonic()):
                chunk = await anext(stream, None)
        except TimeoutError:
            error = ServiceError("invalid_request", f"a body comes at {MIN_BYTES_PER_S} bytes a second at least")
            error.unread = True
            raise error from None
        if chunk is None:
            return
        yield chunk
        late_at += len(chunk) / MIN_BYTES_PER_S


def _too_large(limit_bytes: int) -> ServiceError:
    return ServiceError("too_large", f"a body has at most {limit_bytes} bytes, encoded and decoded")


def _decode(raw: bytearray, encoding: str, limit_bytes: int) -> bytearray:
    out = bytearray()
    try:
        for piece in _pieces(raw, DECODERS[encoding]):
            if len(out) + len(piece) > limit_bytes:
                raise _too_large(limit_bytes)
            out += piece
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        raise ServiceError("invalid_body", f"the {encoding} encoding is broken: {error}") from None
    return out


def _pieces(raw: bytearray, new_decoder: Callable[[], Any]) -> Iterator[bytes]:
    """Decode members or frames that follow one another; each must be whole. Linear in their bytes."""
    view = memoryview(raw)
    at = 0
    while at < len(view):
        decoder = new_decoder()
        while not decoder.eof:
            if at >= len(view):
                raise EOFError("it ends too early")
            piece = view[at : at + SLICE_BYTES]
            yield decoder.decompress(piece)
            at += len(piece) - len(decoder.unused_data)
