"""Which workers are drained: they give their graphs away, and get none, until that is taken back."""

import time
from typing import Any

import redis.asyncio

from service.errors import ServiceError
from service.queue.models import Drained
from service.queue.watch import away
from service.store.connection import AWAY
from service.store.keys import Keys


class Drains:
    """Reads and writes it for API processes. Methods raise ServiceError only."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys

    async def set(self, worker: str, drained: bool) -> Drained:
        """Drain a worker, or take that back, and say how many graphs it still serves.

        Its next heartbeat begins it. Raises unknown_worker.
        """
        keys = self._keys
        try:
            async with self._redis.pipeline() as pipe:
                pipe.hexists(keys.workers, worker)
                pipe.hvals(keys.owners)
                is_known, owners = await pipe.execute()
            if not is_known:
                raise ServiceError("unknown_worker", f"there is no worker {worker!r}")
            if drained:
                await self._redis.hset(keys.draining, worker, f"{time.time():.0f} drain")
            else:
                await self._redis.hdel(keys.draining, worker)
        except AWAY as error:
            raise away(error) from error
        return Drained(worker=worker, draining=drained, graphs_left=owners.count(worker.encode()))
