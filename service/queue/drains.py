"""Which workers are drained: they give their graphs away, and get none, until that is taken back."""

import time
from typing import Any, Final

import redis.asyncio

from service.errors import ServiceError
from service.queue.models import Drained, WorkerInfo
from service.queue.watch import Watch, away
from service.store.connection import AWAY
from service.store.keys import LEAVING, Keys

EXPECTED_LEASES: Final = 6
"""A worker that is away is expected back for so many leases after its last heartbeat: its supervisor starts it again
within some seconds, and it reads its kernels then."""


class Drains:
    """Reads and writes it for API processes. Methods raise ServiceError only."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys, watch: Watch, lease_s: float) -> None:
        self._redis: Any = client
        self._keys = keys
        self._watch = watch
        self._lease_s = lease_s

    async def set(self, worker: str, drained: bool) -> Drained:
        """Drain a worker, or take that back, and say how many graphs it still serves.

        Its next heartbeat begins it. Raises unknown_worker; worker_drained where nobody else could have a graph, and
        worker_unavailable while somebody is about to.
        """
        keys, workers = self._keys, {info.name: info for info in await self._watch.workers()}
        if worker not in workers:
            raise ServiceError("unknown_worker", f"there is no worker {worker!r}")
        others = [info for info in workers.values() if info.name != worker]
        may_have_graphs = any(info.alive and info.ready and not info.draining for info in others)
        try:
            if drained and not workers[worker].draining and not may_have_graphs:
                left = await self._left()
                is_expected = any(self._is_there_or_expected(info, info.name in left) for info in others)
                detail = f"no worker but {worker} may have graphs now: they could go nowhere, nor could new ones"
                raise ServiceError("worker_unavailable" if is_expected else "worker_drained", detail)
            owners = await self._redis.hvals(keys.owners)
            if drained:
                await self._redis.hset(keys.draining, worker, f"{time.time():.0f} drain")
            else:
                await self._redis.hdel(keys.draining, worker)
        except AWAY as error:
            raise away(error) from error
        return Drained(worker=worker, draining=drained, graphs_left=owners.count(worker.encode()))

    async def _left(self) -> frozenset[str]:
        """The workers that were told to end, and nobody has drained: they may have graphs as soon as they are there
        again."""
        drained: dict[bytes, bytes] = await self._redis.hgetall(self._keys.draining)
        return frozenset(name.decode(errors="replace") for name, said in drained.items() if said.endswith(LEAVING))

    def _is_there_or_expected(self, info: WorkerInfo, has_left: bool) -> bool:
        """Whether a worker may have graphs, or will soon: one between two processes has no lease."""
        is_expected = info.heartbeat_age_s < EXPECTED_LEASES * self._lease_s
        return (has_left or not info.draining) and (info.alive or is_expected)
