"""Which workers are drained: they give their graphs away, and get none, until that is taken back."""

import time
from typing import Any

import redis.asyncio

from service.errors import ServiceError
from service.queue.models import Drained
from service.queue.watch import Watch, away
from service.store.connection import AWAY
from service.store.keys import Keys


class Drains:
    """Reads and writes it for API processes. Methods raise ServiceError only."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys, watch: Watch) -> None:
        self._redis: Any = client
        self._keys = keys
        self._watch = watch

    async def set(self, worker: str, drained: bool) -> Drained:
        """Drain a worker, or take that back, and say how many graphs it still serves.

        Its next heartbeat begins it. Raises unknown_worker; worker_drained where nobody else could have a graph, and
        worker_unavailable while somebody is about to.
        """
        keys, workers = self._keys, {info.name: info for info in await self._watch.workers()}
        if worker not in workers:
            raise ServiceError("unknown_worker", f"there is no worker {worker!r}")
        others = [info for info in workers.values() if info.name != worker and info.alive and not info.draining]
        if drained and not workers[worker].draining and not any(info.ready for info in others):
            detail = f"no worker but {worker} may have graphs now: they could go nowhere, nor could new ones"
            raise ServiceError("worker_unavailable" if others else "worker_drained", detail)
        try:
            owners = await self._redis.hvals(keys.owners)
            if drained:
                await self._redis.hset(keys.draining, worker, f"{time.time():.0f} drain")
            else:
                await self._redis.hdel(keys.draining, worker)
        except AWAY as error:
            raise away(error) from error
        return Drained(worker=worker, draining=drained, graphs_left=owners.count(worker.encode()))
