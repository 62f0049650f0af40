"""What the service says about itself, its jobs, snapshots and room, as frozen dataclasses."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Self

from headrace._results import Json

FINISHED = frozenset({"succeeded", "failed", "cancelled"})
"""The states a job does not leave."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a graph would take of one kind of memory, and what the worker with most room has left of it."""

    bytes: int
    """Of the graph at rest, without flow states."""
    bytes_per_flow_state: int
    scratch_bytes: int
    """While a flow state is solved."""
    fits: bool
    free_bytes: int

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(**{field.name: body[field.name] for field in fields(Memory)})


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a graph would need, before it is sent: of host memory on the CPU engine, and of a device's memory."""

    host: Memory
    device: Memory

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(Memory.from_json(body["host"]), Memory.from_json(body["device"]))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A graph as written to the store, to restart from."""

    version: int
    bytes: int
    created_at: datetime | None

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(body["version"], body["bytes"], _moment(body.get("created_at")))


@dataclass(frozen=True, slots=True)
class JobInfo:
    """A piece of work, at the moment it was asked about."""

    id: str
    kind: str
    graph: str
    status: str
    """queued, running, succeeded, failed or cancelled."""
    cancelling: bool
    """It was cancelled in time: nothing of it is or will be applied, and it is about to end."""
    position: int | None
    """How many wait before it in the queue."""
    progress: Json
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    result: Json | None
    """The body the waiting call would have got."""
    error: Json | None

    @property
    def finished(self) -> bool:
        return self.status in FINISHED

    @property
    def has_file(self) -> bool:
        """The answer is no JSON: `result` says what it is."""
        return self.status == "succeeded" and "media_type" in (self.result or {})

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(
            **{name: body[name] for name in ("id", "kind", "graph", "status")},
            cancelling=bool(body.get("cancelling")),
            position=body.get("position"),
            progress=dict(body.get("progress") or {}),
            created_at=_moment(body.get("created_at")),
            started_at=_moment(body.get("started_at")),
            finished_at=_moment(body.get("finished_at")),
            result=body.get("result"),
            error=body.get("error"),
        )


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One event of a job: `progress` with counters, or `done`."""

    id: str | None
    name: str
    data: Json


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The service at a glance; `details` is the whole answer, also what this client does not know by name."""

    version: str
    workers: tuple[Json, ...]
    details: Json

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(body["version"], tuple(body["workers"]), body)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
