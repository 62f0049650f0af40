"""Blobs: bulk bytes in chunks under one key, with a digest. A blob expires unless its key is persisted.

One hash holds a blob, so that expiry, persisting and deletion are one command each. A value over 512 MiB would reset
the connection. Chunks of 4 MiB do not, and other commands run between them.
"""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar

import redis
import redis.asyncio

from service.errors import ServiceError
from service.store.keys import Keys
from service.store.room import AsyncRoom, Need, Room

CHUNK_BYTES: Final = 4 << 20
RESULT_CHUNK_BYTES: Final = 256 << 10
"""The size of the chunks of a result. An API process holds three of them for each caller to whom it sends one."""

HASHED_HERE_BYTES: Final = 1 << 20
"""Longer pieces are hashed in a thread, because hashing would stop the event loop."""

READ_AT_ONCE: Final = 4
"""How many chunks an API process reads from Redis at a time. If a hundred came at once, the event loop would be busy
with them for a second."""

HEADER: Final = ("chunks", "bytes", "sha256")


class BrokenBlob(RuntimeError):
    """A blob is missing, incomplete or not what was written."""


class Blobs:
    """Blobs as workers write and read them, with a client that blocks."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys
        self._room = Room(client)

    def put(self, data: bytes, ttl_s: int, need: Need = Need.GROWTH) -> str:
        """Write, and return the new blob's name. It vanishes after ``ttl_s`` unless its key is persisted.

        Raises out_of_memory while Redis has no room for it.
        """
        return self.write([data], ttl_s, need, len(data))[0]

    def write(
        self,
        pieces: Iterable[bytes],
        ttl_s: int,
        need: Need = Need.GROWTH,
        of: int = 0,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> tuple[str, int]:
        """`put` what comes piece by piece, of at least ``of`` bytes in all; no more than a chunk is in memory.

        Name and number of bytes. What the pieces raise is passed on, and what was written is removed.
        """
        blob = self.begin(ttl_s, need)
        try:
            for chunk in _chunks(pieces, chunk_bytes):
                blob.append(chunk, of)
            blob.end()
        except BaseException:
            with suppress(redis.RedisError):  # then it expires
                self.delete(blob.name)
            raise
        return blob.name, blob.n_bytes

    def begin(self, ttl_s: int, need: Need = Need.GROWTH) -> "BlobWriter":
        """A new blob, to be written chunk by chunk. It vanishes ``ttl_s`` after the last one."""
        return BlobWriter(self._redis, self._keys, self._room, ttl_s, need)

    def expire(self, name: str, ttl_s: int) -> None:
        """The blob vanishes after so long."""
        self._redis.expire(self._keys.blob(name), ttl_s)

    def get(self, name: str, on_read: Callable[[float], None] = lambda fraction: None) -> bytes:
        """Read and check; raises `BrokenBlob`. `on_read` hears how much of it has been read, from 0 to 1."""
        key = self._keys.blob(name)
        reader, chunks = _Reader(name, self._redis.hmget(key, HEADER)), []
        for i in range(reader.n_chunks):
            on_read(i / reader.n_chunks)
            chunks.append(reader.chunk(self._redis.hget(key, str(i))))
        reader.check()
        return b"".join(chunks)

    def delete(self, *names: str) -> None:
        if names:
            self._redis.unlink(*(self._keys.blob(name) for name in names))


class BlobWriter:
    """A blob on its way into Redis. Until its end only `GrowingBlob` reads it. One thread at a time."""

    def __init__(self, client: redis.Redis, keys: Keys, room: Room, ttl_s: int, need: Need) -> None:
        self.name = uuid.uuid4().hex
        self._redis: Any = client
        self._key = keys.blob(self.name)
        self._room = room
        self._ttl_s = ttl_s
        self._need = need
        self._writer = _Writer()

    @property
    def n_bytes(self) -> int:
        """How many bytes have been written."""
        return self._writer.n_bytes

    def append(self, chunk: bytes, of: int = 0) -> None:
        """One more chunk, of a blob of at least ``of`` bytes. Raises out_of_memory while Redis has no room for it."""
        self._room.take(len(chunk), self._need, of - self.n_bytes)
        self._write(self._writer.chunk(chunk))

    def end(self, last: bytes = b"") -> None:
        """Make it a blob, with a last chunk that nobody reads sooner. Raises as `append`."""
        if last:
            self._room.take(len(last), self._need)
        chunk = self._writer.chunk(last) if last else {}
        self._write(chunk | self._writer.header())

    def _write(self, fields: dict[str, Any]) -> None:
        with self._redis.pipeline() as pipe:
            pipe.hset(self._key, mapping=fields)
            pipe.expire(self._key, self._ttl_s)
            pipe.execute()


class AsyncBlobs:
    """Blobs as API processes write and read them, a piece at a time."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys
        self._room = AsyncRoom(client)
        self._turns = asyncio.Semaphore(READ_AT_ONCE)

    async def put(self, data: bytes, ttl_s: int = 3600) -> str:
        """Write one piece as a blob, as `put_pieces` does."""
        return await self.put_pieces([data], len(data), ttl_s)

    async def put_pieces(self, pieces: Iterable[bytes], n_bytes: int, ttl_s: int = 3600) -> str:
        """Write, and return the new blob's name. It vanishes after ``ttl_s`` unless its key is persisted.

        The pieces have `n_bytes` in all. Raises out_of_memory while Redis has no room for them.
        """
        name, writer = uuid.uuid4().hex, _Writer()
        key = self._keys.blob(name)
        try:
            for chunk in _chunks(pieces, CHUNK_BYTES):
                await self._room.take(len(chunk), Need.GROWTH, n_bytes - writer.n_bytes)
                await self._write(key, await _hashed(writer.chunk, chunk), ttl_s)
            await self._write(key, writer.header(), ttl_s)
        except ServiceError:
            await self.delete(name)
            raise
        return name

    async def _write(self, key: str, fields: dict[str, Any], ttl_s: int) -> None:
        async with self._redis.pipeline() as pipe:
            pipe.hset(key, mapping=fields)
            pipe.expire(key, ttl_s)
            await pipe.execute()

    async def open(self, name: str) -> "StoredBlob":
        """Open a blob for reading. Raises `BrokenBlob` if it is not there, or not whole."""
        key = self._keys.blob(name)
        reader = _Reader(name, await self._redis.hmget(key, HEADER))
        return StoredBlob(self._redis, key, reader, self._turns)

    def growing(self, name: str) -> "GrowingBlob":
        """A blob that `BlobWriter` may still write."""
        return GrowingBlob(self._redis, self._keys.blob(name), name, self._turns)

    async def delete(self, *names: str) -> None:
        if names:
            await self._redis.unlink(*(self._keys.blob(name) for name in names))


class StoredBlob:
    """A blob to be read once, from its beginning."""

    def __init__(self, client: Any, key: str, reader: "_Reader", turns: asyncio.Semaphore) -> None:
        self._redis = client
        self._turns = turns
        self._key = key
        self._reader = reader
        self.n_bytes = reader.n_bytes
        self.sha256 = reader.wanted

    @property
    def held_bytes(self) -> int:
        """The most of the blob that is in memory: two chunks here, and one on its way to whoever takes them."""
        return 3 * max(min(self.n_bytes, RESULT_CHUNK_BYTES), -(-self.n_bytes // max(self._reader.n_chunks, 1)))

    async def chunks(self) -> AsyncIterator[bytes]:
        """Chunk by chunk, the last one only after the digest of all has been found right; raises `BrokenBlob`."""
        reader, last = self._reader, b""
        for i in range(reader.n_chunks):
            async with self._turns:
                chunk = await _hashed(reader.chunk, await self._redis.hget(self._key, str(i)))
            if last:
                yield last
            last = chunk
        reader.check()
        yield last


class GrowingBlob:
    """A blob to be read once, from its beginning, while it is written. What is not there yet is no fault."""

    def __init__(self, client: Any, key: str, name: str, turns: asyncio.Semaphore) -> None:
        self._redis = client
        self._key = key
        self._name = name
        self._turns = turns
        self._read = _Writer()
        """The header that the blob should have after the chunks that were read."""
        self.is_whole = False
        """Whether all of it has been read, and found right."""

    async def chunks(self) -> AsyncIterator[bytes]:
        """The chunks that have come since this was asked last. Raises `BrokenBlob` in place of a last one that is not
        what was written. One chunk is in memory."""
        while not self.is_whole:
            async with self._turns:
                *found, chunk = await self._redis.hmget(self._key, *HEADER, str(self._read.n_chunks))
            if chunk is not None:
                await _hashed(self._read.chunk, chunk)
            self._check(found)
            if chunk is None:
                return
            yield chunk

    def _check(self, found: list[bytes | None]) -> None:
        """Hold what was read against the header, if it is there and says that this is all."""
        n_chunks, *_ = found
        if n_chunks is None or (n_chunks.isdigit() and int(n_chunks) > self._read.n_chunks):
            return
        if [str(value).encode() for value in self._read.header().values()] != found:
            raise BrokenBlob(f"blob {self._name} is not what was written")
        self.is_whole = True


T = TypeVar("T")


async def _hashed(act: Callable[[Any], T], piece: bytes | None) -> T:
    if piece is None or len(piece) <= HASHED_HERE_BYTES:
        return act(piece)
    return await asyncio.to_thread(act, piece)


def _chunks(pieces: Iterable[bytes], chunk_bytes: int) -> Iterator[bytes]:
    """The bytes of all pieces in chunks of ``chunk_bytes``, the last one shorter."""
    gathered = bytearray()
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), chunk_bytes):
            gathered += view[start : start + chunk_bytes]
            if len(gathered) >= chunk_bytes:
                yield bytes(gathered[:chunk_bytes])
                del gathered[:chunk_bytes]
    if gathered:
        yield bytes(gathered)


class _Writer:
    """Makes the hash fields to write, chunk by chunk, the header last: without it a blob does not exist."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.n_chunks = 0
        self.n_bytes = 0

    def chunk(self, piece: bytes) -> dict[str, Any]:
        self._digest.update(piece)
        self.n_chunks += 1
        self.n_bytes += len(piece)
        return {str(self.n_chunks - 1): piece}

    def header(self) -> dict[str, Any]:
        return {"chunks": self.n_chunks, "bytes": self.n_bytes, "sha256": self._digest.hexdigest()}


class _Reader:
    """Checks what is read against the header, which the caller read from the same key."""

    def __init__(self, name: str, header: list[bytes | None]) -> None:
        self._name = name
        if None in header:
            raise BrokenBlob(f"blob {name} is not there or not complete")
        try:
            chunks, n_bytes, self.wanted = ((value or b"").decode() for value in header)
            self.n_chunks, self.n_bytes = int(chunks), int(n_bytes)
        except ValueError:
            raise BrokenBlob(f"blob {name} is not what was written") from None
        self._digest = hashlib.sha256()
        self._left = self.n_bytes

    def chunk(self, piece: bytes | None) -> bytes:
        if piece is None:
            raise BrokenBlob(f"blob {self._name} has lost a chunk")
        self._digest.update(piece)
        self._left -= len(piece)
        if self._left < 0:
            raise BrokenBlob(f"blob {self._name} is not what was written")
        return piece

    def check(self) -> None:
        """Check the length and the digest of all, after the last chunk."""
        if self._left or self._digest.hexdigest() != self.wanted:
            raise BrokenBlob(f"blob {self._name} is not what was written")
