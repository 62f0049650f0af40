"""What the queue says about workers and Redis."""

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel

from service.store.keys import Keys
from service.store.unreadable import readable


class CompilingReport(BaseModel):
    """How far a worker that starts is with its kernels."""

    done: int
    of: int
    """All kernels that there are; those that were compiled before are read, and not among those done."""
    seconds: float


FORGOTTEN_AFTER_S: Final = 86_400.0
"""A worker that has been silent for so long, and has nothing any more, is not shown, and forgotten by the others."""


class WorkerReport(BaseModel):
    """What a worker says of itself with each heartbeat."""

    name: str
    version: str = ""
    """Of the service's package; empty: a release that did not say it."""
    pid: int
    ready: bool
    ready_soon: bool = False
    """Not ready, but it has neither kernels to compile nor graphs to restore: it will be within seconds."""
    compiling: CompilingReport | None = None
    """None: all are compiled."""
    engine: str
    device: str = ""
    """The GPU it solves on, with its number if the worker is bound to it; empty: none."""
    graphs: int
    bytes: int
    """Bytes of host memory that its graphs and their flow states hold."""
    budget_bytes: int = 0
    device_bytes: int = 0
    device_budget_bytes: int = 0
    """0: it has no device."""
    beat_at: float
    """Unix seconds."""
    ready_since: float = 0.0
    """When this process became ready, in unix seconds."""
    counters: dict[str, int] = {}
    """Events since the process started, for the metrics."""
    notes: list[str] = []
    """Graphs that could not be restored as they should, and why."""


def read_reports(rows: Mapping[bytes, bytes], keys: Keys) -> list[WorkerReport]:
    """The reports of all workers, by name, without rows that are none."""
    return list(readable(sorted(rows.items()), keys.workers, read_report))


def read_report(worker: str, row: bytes) -> WorkerReport:
    """The report of one worker. Raises ValueError for what is none, or is that of another one."""
    report = WorkerReport.model_validate_json(row)
    if report.name != worker:
        raise ValueError("the report is that of another worker")
    return report


class WorkerInfo(WorkerReport):
    """A worker's report, and what an API process sees of the worker."""

    alive: bool
    """Whether its lease is held."""
    draining: bool = False
    """Whether it gives its graphs away, and gets no new ones."""
    heartbeat_age_s: float
    waiting: int
    """Commands for the worker that are not done yet."""
    oldest_s: float = 0.0
    """Age of the oldest of them."""


class RedisInfo(BaseModel):
    version: str
    appendonly: bool | None
    """None if the server does not tell."""
    fsync: str | None
    used_memory_bytes: int
    maxmemory_bytes: int = 0
    """0: no limit."""
    maxmemory_policy: str | None = None
    """Any but `noeviction` loses graphs once that limit is reached. None if the server does not tell."""
    ping_ms: float = 0.0
    data_gone: bool = False
    """Its files were removed or replaced while it runs: what it has is lost when it ends."""


class Drained(BaseModel):
    """Whether a worker is drained, and how far that is."""

    worker: str
    draining: bool
    graphs_left: int
    """Graphs that it serves."""


class WorkerList(BaseModel):
    """All workers."""

    workers: list[WorkerInfo]
