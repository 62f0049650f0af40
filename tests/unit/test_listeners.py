"""The connections of an API process for reads that block: as many as are needed, and few once nobody needs them."""

import asyncio
import gc
import os

import redis.asyncio

from service.settings import Settings
from service.store.connection import IDLE_LISTENERS, connect_async, connect_listeners

AT_ONCE = 5 * IDLE_LISTENERS
PATIENCE_S = 20.0


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def read(listeners: redis.asyncio.Redis, stream: str) -> None:
    ((_, entries),) = await listeners.xread({stream: "0"}, block=60_000)
    assert len(entries) == 1


def test_few_connections_are_kept_once_nobody_listens(settings: Settings) -> None:
    """All stayed open for as long as the process lived."""
    streams = [f"{settings.redis_prefix}{number}" for number in range(AT_ONCE)]
    gc.collect()  # files that other tests have left open are not to be closed while those of this one are counted

    async def listen() -> None:
        async with connect_async(settings) as client, connect_listeners(settings) as listeners:
            await client.xadd(settings.redis_prefix, {"what": "came"})
            await read(listeners, settings.redis_prefix)
            before = open_files() - 1
            reads = [asyncio.create_task(read(listeners, stream)) for stream in streams]
            while open_files() < before + AT_ONCE:
                await asyncio.sleep(0.01)
            for stream in streams:
                await client.xadd(stream, {"what": "came"})
            await asyncio.gather(*reads)
            async with asyncio.timeout(PATIENCE_S):
                while open_files() > before + IDLE_LISTENERS:
                    await asyncio.sleep(0.01)
            kept = open_files()
            assert kept > before
            for stream in streams:  # one after the other, on what is there
                await read(listeners, stream)
                assert open_files() == kept

    asyncio.run(listen())
