"""What workers say of themselves, as other workers read it, and which of them are drained."""

import time
from typing import Any

import redis

from service.queue.models import WorkerReport, read_reports
from service.store.keys import LEAVING, Keys
from service.store.unreadable import figure


class Workers:
    """Reads the reports of workers. Raises RedisError."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys

    def report(self, worker: str) -> WorkerReport | None:
        """Its last report; None for a worker that was never seen."""
        row = self._redis.hget(self._keys.workers, worker)
        return None if row is None else next(iter(read_reports({worker.encode(): row}, self._keys)), None)

    def is_alive(self, worker: str) -> bool:
        return bool(self._redis.exists(self._keys.lease(worker)))

    def is_draining(self, worker: str) -> bool:
        return bool(self._redis.hexists(self._keys.draining, worker))

    def size_of(self, graph_id: str) -> int:
        """The memory that a graph takes at rest, on host and device together."""
        figures = self._redis.hmget(self._keys.graph(graph_id), "bytes", "device_bytes")
        return sum(map(figure, figures))

    def others(self, worker: str) -> list[WorkerReport]:
        """Workers that may get graphs of this one: alive, ready and not drained."""
        reports = read_reports(self._redis.hgetall(self._keys.workers), self._keys)
        ready = [report for report in reports if report.ready and report.name != worker]
        if not ready:
            return []
        with self._redis.pipeline(transaction=False) as pipe:
            for report in ready:
                pipe.exists(self._keys.lease(report.name))
            pipe.hkeys(self._keys.draining)
            *alive, draining = pipe.execute()
        return [
            report for report, there in zip(ready, alive, strict=True) if there and report.name.encode() not in draining
        ]

    def leave(self, worker: str) -> None:
        """Let nobody give graphs to a worker that is about to stop. One that an operator has drained stays so."""
        self._redis.hsetnx(self._keys.draining, worker, f"{time.time():.0f} {LEAVING.decode()}")

    def arrive(self, worker: str) -> None:
        """A worker that had left is there again."""
        said = self._redis.hget(self._keys.draining, worker)
        if said is not None and said.endswith(LEAVING):
            self._redis.hdel(self._keys.draining, worker)


def budget_of(report: WorkerReport) -> int:
    """Bytes that a worker may hold, on host and device together, at least 1."""
    return max(report.budget_bytes + report.device_budget_bytes, 1)
