"""What the queue says about jobs, workers and Redis."""

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from service.protocol import Kind, Problem, Status


class JobInfo(BaseModel):
    """A job as docs/api.md shows it, and its result as the worker wrote it."""

    id: str
    kind: Kind
    graph: str
    status: Status
    cancelling: bool = False
    """It was cancelled in time: nothing of it is or will be done, and it is about to end."""
    position: int | None = None
    """Jobs of the same worker that were there before; None once it runs."""
    progress: dict[str, Any] | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    result: dict[str, Any] | None = None
    """Not filled in here: `result_json` is the text to pass on, or `result_blob` names the blob where it lies."""
    error: Problem | None = None
    result_json: str | None = None
    result_blob: str | None = None


class JobEvent(BaseModel):
    """One server-sent event: `progress` with counters, or `done` with the job's status."""

    id: str
    event: str
    data: dict[str, Any]


class WorkerReport(BaseModel):
    """What a worker says of itself with each heartbeat."""

    name: str
    pid: int
    ready: bool
    engine: str
    graphs: int
    bytes: int
    """Of host memory, held by its graphs and their flow states."""
    budget_bytes: int = 0
    device_bytes: int = 0
    device_budget_bytes: int = 0
    """0: it has no device."""
    beat_at: float
    """Unix seconds."""
    ready_since: float = 0.0
    """The same; of this process."""
    counters: dict[str, int] = {}
    """Since the process started, for metrics."""
    notes: list[str] = []
    """Graphs that could not be restored as they should, and why."""


class WorkerInfo(WorkerReport):
    """The same, as an API process sees it."""

    alive: bool
    """Its lease has not expired."""
    heartbeat_age_s: float
    waiting: int
    """Commands not yet done."""
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
    ping_ms: float = 0.0


def at(seconds: bytes | None) -> datetime | None:
    """A time stamp out of a hash."""
    return None if seconds is None else datetime.fromtimestamp(float(seconds), UTC)
