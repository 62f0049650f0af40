"""Bounds on an answer while it comes: one that drips for ever is given up, and one that no memory could hold."""

import os
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final

import httpx

from headrace._errors import UnexpectedAnswer

SLOWEST_BYTES_PER_S: Final = 1024
"""An answer that has begun comes as fast as this, beyond the time that the service may be silent. The service asks the
same of bodies."""


def _most_bytes() -> float:
    """Half of the machine's memory: the pieces of an answer are there twice while they are joined."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2
    except (AttributeError, OSError, ValueError):  # a system that does not say it
        return float("inf")


MOST_BYTES: Final = _most_bytes()


class Metered(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of an answer. Raises `httpx.ReadTimeout` once it is late, and `UnexpectedAnswer` once it is too long."""

    def __init__(self, response: httpx.Response, silent_s: float, *, to_memory: bool) -> None:
        self._stream = response.stream
        self._request = response.request
        self._late_at = time.monotonic() + silent_s
        self._left_bytes = MOST_BYTES if to_memory else float("inf")

    def __iter__(self) -> Iterator[bytes]:
        assert isinstance(self._stream, httpx.SyncByteStream)
        for piece in self._stream:
            yield self._counted(piece)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._stream, httpx.AsyncByteStream)
        async for piece in self._stream:
            yield self._counted(piece)

    def close(self) -> None:
        assert isinstance(self._stream, httpx.SyncByteStream)
        self._stream.close()

    async def aclose(self) -> None:
        assert isinstance(self._stream, httpx.AsyncByteStream)
        await self._stream.aclose()

    def _counted(self, piece: bytes) -> bytes:
        if time.monotonic() > self._late_at:
            said = f"an answer comes at {SLOWEST_BYTES_PER_S} bytes a second at least"
            raise httpx.ReadTimeout(said, request=self._request)
        self._late_at += len(piece) / SLOWEST_BYTES_PER_S
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            raise UnexpectedAnswer("an answer is larger than half of the memory of this machine")
        return piece
