"""However many callers read long results, few pieces of them are on their way from Redis at a time."""

import asyncio
from typing import Any

from service.store.blobs import READ_AT_ONCE, AsyncBlobs, _Writer
from service.store.keys import Keys

CALLERS = 50


class Slow:
    """A client of Redis that holds one blob, and counts how many of its pieces are asked for at once."""

    def __init__(self, pieces: list[bytes]) -> None:
        writer = _Writer()
        self.fields: dict[str, Any] = {}
        for piece in pieces:
            self.fields |= writer.chunk(piece)
        self.fields |= writer.header()
        self.now = self.most = 0

    async def hmget(self, key: str, names: tuple[str, ...]) -> list[bytes]:
        return [str(self.fields[name]).encode() for name in names]

    async def hget(self, key: str, name: str) -> bytes:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        piece: bytes = self.fields[name]
        return piece


def test_few_pieces_are_read_at_once_and_every_caller_gets_all() -> None:
    client: Any = Slow([b"first", b"second", b"third"])
    blobs = AsyncBlobs(client, Keys("test:"))

    async def read() -> bytes:
        return b"".join([piece async for piece in (await blobs.open("b")).chunks()])

    async def all_of_them() -> list[bytes]:
        gone = (await blobs.open("b")).chunks()
        await anext(gone)
        await gone.aclose()  # a caller who goes away keeps nobody waiting
        return await asyncio.gather(*(read() for _ in range(CALLERS)))

    assert asyncio.run(all_of_them()) == CALLERS * [b"firstsecondthird"]
    assert client.most == READ_AT_ONCE
