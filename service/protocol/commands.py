"""Commands, which are jobs too, and what is answered to them."""

from enum import StrEnum
from typing import Any, Self

from pydantic import ConfigDict, Field, PrivateAttr

from service.protocol.media import JSON_TYPE
from service.protocol.message import Arguments, Message
from service.protocol.questions import (
    CapacitiesArgs,
    CapacityExpansionArgs,
    CirculationArgs,
    ClosureStudyArgs,
    CutTreeArgs,
    ExportArgs,
    GlobalCutArgs,
    MatchingArgs,
    MaxFlowArgs,
    MinCostFlowArgs,
    PairsArgs,
    ParametricArgs,
    PartitionArgs,
    VerticesArgs,
    WhatIfArgs,
)
from service.protocol.updates import (
    DeleteArgs,
    EdgesArgs,
    EmptyArgs,
    LoadArgs,
    MoveArgs,
    PatchArgs,
    RestoreArgs,
    UnwatchArgs,
    WatchArgs,
)


class Kind(StrEnum):
    """What a worker can be asked to do."""

    LOAD = "load"
    DELETE = "delete"
    PATCH = "patch"
    PATCH_COSTS = "patch-costs"
    PATCH_VERTICES = "patch-vertices"
    PATCH_EDGES = "patch-edges"
    PATCH_LOWER = "patch-lower"
    DRY_RUN = "dry-run"
    DRY_RUN_COSTS = "dry-run-costs"
    DRY_RUN_VERTICES = "dry-run-vertices"
    DRY_RUN_EDGES = "dry-run-edges"
    DRY_RUN_LOWER = "dry-run-lower"
    RESTORE = "restore"
    MAX_FLOW = "max-flow"
    MIN_CUT = "min-cut"
    """The same question, asked by its other name."""
    MATCHING = "matching"
    MIN_COST_FLOW = "min-cost-flow"
    WHAT_IF = "what-if"
    CLOSURE_STUDY = "closure-study"
    PAIRS = "pairs"
    GOMORY_HU_TREE = "gomory-hu-tree"
    GLOBAL_MIN_CUT = "global-min-cut"
    PARAMETRIC = "parametric"
    CAPACITY_EXPANSION = "capacity-expansion"
    CIRCULATION = "circulation"
    PARTITION = "partition"
    CAPACITIES = "capacities"
    VERTICES = "vertices"
    EXPORT = "export"
    SNAPSHOT = "snapshot"
    MOVE = "move"
    WATCH = "watch"
    UNWATCH = "unwatch"


class Status(StrEnum):
    """The life of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL_STATUSES = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})


ARGS: dict[Kind, type[Message]] = {
    Kind.LOAD: LoadArgs,
    Kind.DELETE: DeleteArgs,
    Kind.PATCH: PatchArgs,
    Kind.PATCH_COSTS: PatchArgs,
    Kind.PATCH_VERTICES: PatchArgs,
    Kind.PATCH_EDGES: EdgesArgs,
    Kind.PATCH_LOWER: PatchArgs,
    Kind.DRY_RUN: PatchArgs,
    Kind.DRY_RUN_COSTS: PatchArgs,
    Kind.DRY_RUN_VERTICES: PatchArgs,
    Kind.DRY_RUN_EDGES: EdgesArgs,
    Kind.DRY_RUN_LOWER: PatchArgs,
    Kind.RESTORE: RestoreArgs,
    Kind.MAX_FLOW: MaxFlowArgs,
    Kind.MIN_CUT: MaxFlowArgs,
    Kind.MATCHING: MatchingArgs,
    Kind.MIN_COST_FLOW: MinCostFlowArgs,
    Kind.WHAT_IF: WhatIfArgs,
    Kind.CLOSURE_STUDY: ClosureStudyArgs,
    Kind.PAIRS: PairsArgs,
    Kind.GOMORY_HU_TREE: CutTreeArgs,
    Kind.GLOBAL_MIN_CUT: GlobalCutArgs,
    Kind.PARAMETRIC: ParametricArgs,
    Kind.CAPACITY_EXPANSION: CapacityExpansionArgs,
    Kind.CIRCULATION: CirculationArgs,
    Kind.PARTITION: PartitionArgs,
    Kind.CAPACITIES: CapacitiesArgs,
    Kind.VERTICES: VerticesArgs,
    Kind.EXPORT: ExportArgs,
    Kind.SNAPSHOT: EmptyArgs,
    Kind.MOVE: MoveArgs,
    Kind.WATCH: WatchArgs,
    Kind.UNWATCH: UnwatchArgs,
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
    _in_batch: bool = PrivateAttr(default=False)

    def carrying(self, args: Arguments, *, in_batch: bool = False) -> Self:
        """Give the command other arguments. They are written as they stand, since they may be megabytes of JSON."""
        self._carried, self._in_batch = args, in_batch
        return self

    @property
    def carried(self) -> Arguments | None:
        """The arguments that were given to it."""
        return self._carried

    @property
    def in_batch(self) -> bool:
        """Whether its caller has operations in a `batch`, be it one. No worker is told: it does the same."""
        return self._in_batch

    @property
    def n_bytes(self) -> int:
        """Of the packed edges that a load is about to bring; 0 of what brings none."""
        return self._carried.n_bytes if isinstance(self._carried, LoadArgs) else 0

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

    def in_batch(self) -> Self:
        """The same for a caller with a `batch`: of one with a single operation a worker tells as of a body that is
        that operation."""
        if self.field is None or self.field.startswith("/batch/"):
            return self
        return self.model_copy(update={"operation": 0, "field": f"/batch/0{self.field}"})


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
    unchanged: bool = False
    """Whether nothing was solved for it: asked again at this version, the same is the answer."""


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
