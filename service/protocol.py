"""What API processes and workers say to each other, through Redis.

A `Command` goes to the stream of the worker that owns the graph; it is also a job, under the same id. The worker
answers with a `Reply` on the stream the command names, and leaves the same reply in the job's record.
Headers are JSON; bulk bytes (a packed edge list, a long result) travel beside them, or as a blob in chunks. What the
API has to know about a result is said in its `Envelope`.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Protocol, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PrivateAttr

JSON_TYPE: Final = "application/json"
NPZ_TYPE: Final = "application/x-npz"
ARROW_TYPE: Final = "application/vnd.apache.arrow.stream"
LINES_TYPE: Final = "application/x-ndjson"
"""Answers of several rows: a line of JSON that says what they are about, one for each row, and one that ends them."""

Encoding: TypeAlias = Literal["json", "npz", "arrow"]
ENCODINGS: Final[Mapping[str, Encoding]] = MappingProxyType({JSON_TYPE: "json", NPZ_TYPE: "npz", ARROW_TYPE: "arrow"})
"""In which forms a worker writes an answer with columns, by media type."""

MEDIA_TYPES: Final[Mapping[Encoding, str]] = MappingProxyType({form: media for media, form in ENCODINGS.items()})
Rounding: TypeAlias = Literal["error", "nearest", "down", "up"]
"""The names of `gpu_engine.networks.rounding`, which this module may not import."""

Wanted: TypeAlias = int | str | list[int | str]
"""Versions that a graph may be at: ``7`` of any graph that has the name, ``"9f3c02aa-7"`` of one load of it."""

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
    PATCH_COSTS = "patch-costs"
    DRY_RUN = "dry-run"
    DRY_RUN_COSTS = "dry-run-costs"
    RESTORE = "restore"
    MAX_FLOW = "max-flow"
    MIN_CUT = "min-cut"
    """The same question, asked by its other name."""
    MATCHING = "matching"
    MIN_COST_FLOW = "min-cost-flow"
    WHAT_IF = "what-if"
    CAPACITIES = "capacities"
    EXPORT = "export"
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
    """The length of the blob, by which the worker guesses how long the load takes."""
    if_match: Wanted | None = None
    """Load only if the graph is at this version, at one of these, or (``*``) at any; ``absent``: if there is none;
    ``new``: the same for a copy, which is refused in other words."""


class DeleteArgs(Message):
    if_match: Wanted | None = None


class Operation(Message):
    """One operation of a PATCH; exactly one of `edges` or `tail` with `head`."""

    op: Literal["set", "add", "scale", "close", "reopen"]
    edges: list[int] | list[str] | None = None
    tail: list[int] | list[str] | None = None
    head: list[int] | list[str] | None = None
    amounts: list[str] | None = None
    """Decimal literals as the caller wrote them ("4", "1.5", "inf"), for set, add and scale."""
    packed: str | None = None
    """Stands in place of the four members above when they are long (`service.packed`)."""


class PatchArgs(Message):
    batch: list[Operation]
    on_missing: Literal["error", "skip"] = "error"
    rounding: Rounding = "error"
    """What becomes of results of set, add and scale that have more decimals than the graph keeps."""
    if_match: Wanted | None = None
    solve: Literal["all", "none"] = "all"


class RestoreArgs(Message):
    version: int
    """The next version is to have the capacities, the closed edges and the costs of this one."""
    if_match: Wanted | None = None
    solve: Literal["all", "none"] = "all"


class QuestionArgs(Message):
    """Of a question whose answer has columns."""

    encoding: Encoding = "json"
    """In which form the worker writes its answer."""

    def to_json(self) -> bytes:
        """Without an encoding of JSON, so that workers of the release before can read it."""
        return self.model_dump_json(exclude={"encoding"} if self.encoding == "json" else None).encode()


class MaxFlowArgs(QuestionArgs):
    sources: list[int] | list[str] | None = None
    sinks: list[int] | list[str] | None = None
    supply: list[str] | None = None
    demand: list[str] | None = None
    rounding: Rounding = "error"
    """What becomes of caps that have more decimals than the graph keeps."""
    fields: Annotated[frozenset[Literal["value", "cut", "flow", "terminals", "paths"]], InOrder] = frozenset({"value"})
    zeros: bool = False
    acyclic: bool = True
    top: int = 100
    """Paths that are listed at most."""
    min_version: int | None = None
    time_limit_s: float | None = None


class MatchingArgs(QuestionArgs):
    left: list[int] | list[str] | None = None
    fields: Annotated[frozenset[Literal["size", "edges", "cover"]], InOrder] = frozenset({"size", "edges", "cover"})
    min_version: int | None = None
    time_limit_s: float | None = None


class MinCostFlowArgs(QuestionArgs):
    sources: list[int] | list[str] | None = None
    sinks: list[int] | list[str] | None = None
    supply: list[str] | None = None
    demand: list[str] | None = None
    value: str | None = None
    """Decimal literal; None: as much as can flow."""
    rounding: Rounding = "error"
    """What becomes of caps and of a value with more decimals than the graph keeps."""
    fields: Annotated[frozenset[Literal["value", "cost", "flow", "terminals", "dual", "paths"]], InOrder] = frozenset(
        {"value"}
    )
    zeros: bool = False
    top: int = 100
    """Paths that are listed at most."""
    min_version: int | None = None
    time_limit_s: float | None = None


class Scenario(Message):
    """What is otherwise than it is. Members that are None are as the question has them."""

    id: int | str | None = None
    """The caller's name for it."""
    batch: list[Operation] | None = None
    sources: list[int] | list[str] | None = None
    sinks: list[int] | list[str] | None = None
    supply: list[str] | None = None
    demand: list[str] | None = None


class WhatIfArgs(MaxFlowArgs):
    """A maximum flow, and what it would be in each of some scenarios."""

    scenarios: list[Scenario]
    on_missing: Literal["error", "skip"] = "error"
    lines: bool = False
    """Answer as `LINES_TYPE`."""


class CapacitiesArgs(QuestionArgs):
    offset: int = 0
    limit: int = 10_000
    if_match: Wanted | None = None
    """The version that the page is to be of; None: whatever there is."""

    def to_json(self) -> bytes:
        """Without what is not asked for, so that workers of the release before can read it."""
        left_out = set() if self.encoding != "json" else {"encoding"}
        return self.model_dump_json(exclude_none=True, exclude=left_out).encode()


class ExportArgs(Message):
    format: Literal["npz", "arrow", "dimacs", "dimacs-min", "packed"] = "npz"
    """``packed`` is the form in which a load has its edges (gpu_engine.formats.pack)."""
    version: int | None = None
    """The version whose capacities and closed edges the file is to hold; None: the present one."""


class EmptyArgs(Message):
    """The arguments of kinds that need none: snapshot."""


ARGS: dict[Kind, type[Message]] = {
    Kind.LOAD: LoadArgs,
    Kind.DELETE: DeleteArgs,
    Kind.PATCH: PatchArgs,
    Kind.PATCH_COSTS: PatchArgs,
    Kind.DRY_RUN: PatchArgs,
    Kind.DRY_RUN_COSTS: PatchArgs,
    Kind.RESTORE: RestoreArgs,
    Kind.MAX_FLOW: MaxFlowArgs,
    Kind.MIN_CUT: MaxFlowArgs,
    Kind.MATCHING: MatchingArgs,
    Kind.MIN_COST_FLOW: MinCostFlowArgs,
    Kind.WHAT_IF: WhatIfArgs,
    Kind.CAPACITIES: CapacitiesArgs,
    Kind.EXPORT: ExportArgs,
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
    """The id of the request that asked for the command, for the logs."""
    traceparent: str | None = None
    """W3C trace context of the span that asked for it."""

    _carried: Arguments | None = PrivateAttr(default=None)

    def carrying(self, args: Arguments) -> Self:
        """Give the command other arguments. They are written as they stand, since they may be megabytes of JSON."""
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
    lines: list[Any] = Field(default_factory=list)
    edges: list[Any] = Field(default_factory=list)
    vertices: list[Any] = Field(default_factory=list)
    field: str | None = None
    operation: int | None = None

    @property
    def where(self) -> dict[str, Any]:
        """What is at fault, as `gpu_engine.errors.Where` has it."""
        return self.model_dump(exclude={"code", "detail"})


class Envelope(Message):
    """What the worker says about a result, beside it: the API passes the result on unread."""

    model_config = ConfigDict(extra="ignore", frozen=True)  # a worker of a later release may say more

    version: int | None = None
    """The graph's version that the result is about; None: it is about none."""
    generation: str | None = None
    """Of the load that the version counts from; None: an earlier release did not say it."""
    replaced: bool | None = None
    """Whether a load replaced a graph of the same name; None for the results of other commands."""
    media_type: str = JSON_TYPE


class Reply(Message):
    """The end of a command: a result or a problem. On its way and in the job, its last five fields stand beside it."""

    id: str
    status: Status
    problem: Problem | None = None
    result_json: str | None = Field(default=None, exclude=True)
    """JSON body the caller gets, as the worker wrote it: its numbers are exact, so it is never parsed on the way."""
    result_blob: str | None = Field(default=None, exclude=True)
    """The name of the blob where a long result lies; `result_json` is then None."""
    file: bytes | None = Field(default=None, exclude=True)
    """The body the caller gets, if it is no JSON; `result_json` says what there is."""
    file_blob: str | None = Field(default=None, exclude=True)
    """The name of the blob where a long file lies; `file` is then None."""
    envelope: Envelope = Field(default=Envelope(), exclude=True)
    """What the API has to know about the result. A problem has an empty envelope."""
