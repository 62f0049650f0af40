"""What API processes and workers say to each other, through Redis.

A `Command` goes to the stream of the worker that owns the graph; it is also a job, under the same id. The worker
answers with a `Reply` on the stream the command names, and leaves the same reply in the job's hash.
Headers are JSON; bulk bytes (a packed edge list, a long result) travel beside them, or as a blob in chunks.
"""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PrivateAttr

InOrder: Final = PlainSerializer(sorted, return_type=list[str])
"""Writes a set sorted: the order a process keeps its strings in differs from that of every other process."""


class Message(BaseModel):
    """Written by any process, an equal message is the same JSON text: fields as declared, sets sorted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def to_json(self) -> bytes:
        return self.model_dump_json().encode()


class Arguments(Protocol):
    """A `Message`, or the JSON of one that another process has checked and written."""

    def to_json(self) -> bytes: ...


class Kind(StrEnum):
    """What a worker can be asked to do."""

    LOAD = "load"
    DELETE = "delete"
    PATCH = "patch"
    MAX_FLOW = "max-flow"
    MATCHING = "matching"
    CAPACITIES = "capacities"
    SNAPSHOT = "snapshot"


class Status(StrEnum):
    """The life of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL_STATUSES = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})


class LoadArgs(Message):
    blob: str
    """Name of the stored blob: a packed edge list (gpu_engine.formats.pack)."""
    n_bytes: int = 0
    """Of the blob, by which the worker guesses how long the load takes."""
    if_match: int | list[int] | Literal["*", "absent"] | None = None
    """Only in place of a graph at this version, or at one of these, or (``*``) at any; ``absent``: of none."""


class DeleteArgs(Message):
    if_match: int | list[int] | Literal["*"] | None = None


class Operation(Message):
    """One operation of a PATCH; exactly one of `edges` or `tail` with `head`."""

    op: Literal["set", "add", "scale", "close", "reopen"]
    edges: list[int] | list[str] | None = None
    tail: list[int] | list[str] | None = None
    head: list[int] | list[str] | None = None
    amounts: list[str] | None = None
    """Decimal literals as the caller wrote them ("4", "1.5", "inf"), for set, add and scale."""
    packed: str | None = None
    """In place of these four, when they are long (`service.packed`)."""


class PatchArgs(Message):
    batch: list[Operation]
    on_missing: Literal["error", "skip"] = "error"
    rounding: Literal["exact", "down"] = "exact"
    if_match: int | list[int] | None = None
    solve: Literal["all", "none"] = "all"


class MaxFlowArgs(Message):
    sources: list[int] | list[str] | None = None
    sinks: list[int] | list[str] | None = None
    supply: list[str] | None = None
    demand: list[str] | None = None
    fields: Annotated[frozenset[Literal["value", "cut", "flow", "terminals", "paths"]], InOrder] = frozenset({"value"})
    zeros: bool = False
    acyclic: bool = True
    top: int = 100
    """Paths that are listed at most."""
    min_version: int | None = None
    time_limit_s: float | None = None


class MatchingArgs(Message):
    left: list[int] | list[str] | None = None
    fields: Annotated[frozenset[Literal["size", "edges", "cover"]], InOrder] = frozenset({"size", "edges", "cover"})
    min_version: int | None = None
    time_limit_s: float | None = None


class CapacitiesArgs(Message):
    offset: int = 0
    limit: int = 10_000


class EmptyArgs(Message):
    """For kinds that need nothing more: snapshot."""


ARGS: dict[Kind, type[Message]] = {
    Kind.LOAD: LoadArgs,
    Kind.DELETE: DeleteArgs,
    Kind.PATCH: PatchArgs,
    Kind.MAX_FLOW: MaxFlowArgs,
    Kind.MATCHING: MatchingArgs,
    Kind.CAPACITIES: CapacitiesArgs,
    Kind.SNAPSHOT: EmptyArgs,
}


class Command(Message):
    """One piece of work for the owner of a graph."""

    id: str
    kind: Kind
    graph: str
    args: dict[str, Any] = Field(default_factory=dict)
    """Validated against `ARGS[kind]` on both sides."""
    reply_to: str
    """Stream of the API process that waits."""
    idempotency_key: str | None = None
    body_digest: str | None = None
    """SHA-256 of the canonical body: the same key with another digest is refused."""
    created_at: float
    """Unix seconds."""
    request_id: str | None = None
    """Of the request that asked for it, for the logs."""
    traceparent: str | None = None
    """W3C trace context of the span that asked for it."""

    _carried: Arguments | None = PrivateAttr(default=None)

    def carrying(self, args: Arguments) -> Self:
        """The same with other arguments, which are written as they stand: it may be megabytes of JSON."""
        self._carried = args
        return self

    def to_json(self) -> bytes:
        if self._carried is None:
            return super().to_json()
        rest = self.model_dump_json(exclude={"args"}).encode()
        # The last of two equal members counts: whatever the arguments hold, all else is what this process says.
        return b"".join([b'{"args":', self._carried.to_json(), b",", rest[1:]])


class Problem(Message):
    """A refusal as it will reach the caller."""

    code: str
    detail: str
    rows: list[Any] = Field(default_factory=list)


class Reply(Message):
    """The end of a command: a result or a problem."""

    id: str
    status: Status
    result_json: str | None = None
    """JSON body the caller gets, as the worker wrote it: its numbers are exact, so it is never parsed on the way."""
    result_blob: str | None = None
    """In place of `result_json`, the name of the blob where a long result lies."""
    problem: Problem | None = None
