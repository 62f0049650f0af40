"""Blobs: bulk bytes in chunks under one key, with a digest. They expire until somebody adopts them.

One hash holds a blob, so that expiry, adoption and deletion are one command each. A value over 512 MiB would
reset the connection; chunks of 4 MiB do not, and other commands run between them.
"""

import asyncio
import hashlib
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

import redis
import redis.asyncio

from service.errors import ServiceError
from service.store.keys import Keys
from service.store.room import AsyncRoom, Need, Room

CHUNK_BYTES: Final = 4 << 20
READS: Final = 2
"""Blobs that one API process reads at a time: each takes the event loop some milliseconds, and memory."""

HEADER: Final = ("chunks", "bytes", "sha256")


class BrokenBlob(RuntimeError):
    """A blob is missing, incomplete or not what was written."""


class Blobs:
    """The blocking side."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys
        self._room = Room(client)

    def put(self, data: bytes, ttl_s: int, need: Need = Need.GROWTH) -> str:
        """Write, and return the new blob's name. It vanishes after ``ttl_s`` unless its key is persisted.

        Raises out_of_memory while Redis has no room for it.
        """
        return self.write([data], ttl_s, need, len(data))[0]

    def write(self, pieces: Iterable[bytes], ttl_s: int, need: Need = Need.GROWTH, of: int = 0) -> tuple[str, int]:
        """`put` what comes piece by piece, of at least ``of`` bytes in all; no more than a chunk is in memory.

        Name and number of bytes. What the pieces raise is passed on, and what was written is removed.
        """
        name = uuid.uuid4().hex
        key = self._keys.blob(name)
        n_bytes = 0
        try:
            for fields in _fields_of(_chunks(pieces)):
                chunk_bytes = sum(len(value) for value in fields.values() if isinstance(value, bytes))
                self._room.take(chunk_bytes, need, of - n_bytes)
                with self._redis.pipeline() as pipe:
                    pipe.hset(key, mapping=fields)
                    pipe.expire(key, ttl_s)
                    pipe.execute()
                n_bytes += chunk_bytes
        except BaseException:
            with suppress(redis.RedisError):  # then it expires
                self.delete(name)
            raise
        return name, n_bytes

    def get(self, name: str) -> bytes:
        """Read and check; raises `BrokenBlob`."""
        key = self._keys.blob(name)
        header = self._redis.hmget(key, HEADER)
        chunks = [self._redis.hget(key, str(i)) for i in range(_count(header, name))]
        return _join(chunks, header, name)

    def delete(self, *names: str) -> None:
        if names:
            self._redis.unlink(*(self._keys.blob(name) for name in names))


class AsyncBlobs:
    """The same for API processes."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys
        self._reads = asyncio.Semaphore(READS)
        self._room = AsyncRoom(client)

    async def put(self, data: bytes, ttl_s: int = 3600) -> str:
        """Write, and return the new blob's name. It vanishes after ``ttl_s`` unless its key is persisted.

        Raises out_of_memory while Redis has no room for it.
        """
        name = uuid.uuid4().hex
        key = self._keys.blob(name)
        parts, left = _fields_of(_chunks([data])), len(data)
        try:
            while (fields := await _next(parts, len(data))) is not None:
                await self._room.take(min(left, CHUNK_BYTES), Need.GROWTH, left)
                async with self._redis.pipeline() as pipe:
                    pipe.hset(key, mapping=fields)
                    pipe.expire(key, ttl_s)
                    await pipe.execute()
                left = max(0, left - CHUNK_BYTES)
        except ServiceError:
            await self.delete(name)
            raise
        return name

    async def get(self, name: str) -> bytes:
        """Read and check; raises `BrokenBlob`."""
        key = self._keys.blob(name)
        async with self._reads:
            header = await self._redis.hmget(key, HEADER)
            count = _count(header, name)
            chunks = [await self._redis.hget(key, str(i)) for i in range(count)]
            if count <= 1:
                return _join(chunks, header, name)
            return await asyncio.to_thread(_join, chunks, header, name)

    async def delete(self, *names: str) -> None:
        if names:
            await self._redis.unlink(*(self._keys.blob(name) for name in names))


async def _next(parts: Iterator[dict[str, Any]], size: int) -> dict[str, Any] | None:
    """The next part; hashing a large body must not hold up the event loop."""
    if size <= CHUNK_BYTES:
        return next(parts, None)
    return await asyncio.to_thread(next, parts, None)


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in chunks of `CHUNK_BYTES`, the last one shorter."""
    gathered = bytearray()
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), CHUNK_BYTES):
            gathered += view[start : start + CHUNK_BYTES]
            if len(gathered) >= CHUNK_BYTES:
                yield bytes(gathered[:CHUNK_BYTES])
                del gathered[:CHUNK_BYTES]
    if gathered:
        yield bytes(gathered)


def _fields_of(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The hash fields to write, chunk by chunk, the header last: without it a blob does not exist."""
    digest = hashlib.sha256()
    count = n_bytes = 0
    for chunk in chunks:
        digest.update(chunk)
        yield {str(count): chunk}
        count += 1
        n_bytes += len(chunk)
    yield {"chunks": count, "bytes": n_bytes, "sha256": digest.hexdigest()}


def _count(header: list[bytes | None], name: str) -> int:
    if header[0] is None:
        raise BrokenBlob(f"blob {name} is not there or not complete")
    return int(header[0])


def _join(chunks: list[bytes | None], header: list[bytes | None], name: str) -> bytes:
    """The blob, checked against its header; the caller read that header from the same key."""
    present = [chunk for chunk in chunks if chunk is not None]
    if len(present) < len(chunks) or header[1] is None or header[2] is None:
        raise BrokenBlob(f"blob {name} has lost a chunk")
    data = b"".join(present)
    if len(data) != int(header[1]) or hashlib.sha256(data).hexdigest() != header[2].decode():
        raise BrokenBlob(f"blob {name} is not what was written")
    return data
