"""What clients asked, what they were answered, and when."""

import itertools
import json
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

LOAD_UNIT: Final = 10**9
"""Edge 0 carries ``load number * LOAD_UNIT`` from source to sink: every answer names the load it is about."""

CRS: Final = "local"
"""What the coordinates of all graphs are said to be."""

BATCH_UNIT: Final = 10**4
"""Edge 1 carries ``batch number * BATCH_UNIT``, set by every batch: every answer names the last batch in it."""

SOURCE: Final = 0

SIDED_VERTICES: Final = 8
"""Of a small graph that has matchings: who asks for one names the same vertices at all times."""

SPARE: Final = 6
"""Vertices that may be deleted of a graph that loses some, as it is loaded."""

PAGE_ROWS: Final = 100_000
"""Edges of a page of capacities, the most there may be."""


@dataclass(slots=True)
class Edges:
    """A graph as a client sent it; edges 0 and 1 are the two marks."""

    n_vertices: int
    tail: list[int]
    head: list[int]
    capacity: list[int]
    closed: list[bool] | None = None
    """Edges that let nothing through, which only a copy begins with."""
    cost: list[int] | None = None
    """What a unit of flow costs on each edge; None for a graph without costs."""
    ids: list[int] | None = None
    """What edges are named by where they are not numbered: in a copy of a graph from which edges were deleted."""
    sink: int = -1
    """The last vertex, if it is not said."""
    limits: dict[int, int] = field(default_factory=dict)
    """The capacities of vertices that have one, which only a copy begins with."""
    lower: list[int] | None = None
    """What each edge is to carry at least; None for a graph without lower bounds."""
    x: list[float] | None = None
    y: list[float] | None = None
    """Where each vertex lies; None for a graph without coordinates."""

    def __post_init__(self) -> None:
        self.sink %= self.n_vertices

    def body(self) -> dict[str, Any]:
        members = {name: value for name, value in asdict(self).items() if value is not None and name != "limits"}
        return members | {"source": SOURCE} | ({} if self.x is None else {"crs": CRS})


@dataclass(frozen=True, slots=True)
class Shape:
    """What all graphs of one name have in common."""

    kind: Literal["any", "two-sided", "left to right"] = "any"
    """"two-sided": each edge joins an even and an odd vertex; "left to right": it leads from the even one."""
    n_edges: int = 0
    """0: a few."""
    is_priced: bool = False
    """Its edges have costs. That of edge 1 is the number of the last batch of costs."""

    is_limited: bool = False
    """Its vertices get capacities. What does not know these is not asked of it."""

    is_bounded: bool = False
    """Its edges get lower bounds."""

    is_placed: bool = False
    """Its vertices have coordinates."""

    is_pruned: bool = False
    """Its vertices are deleted, those that were inserted and those that it is loaded with for that. It is not copied:
    a copy may call its vertices otherwise."""

    @property
    def is_large(self) -> bool:
        return self.n_edges > 0


def spare_vertices(shape: Shape) -> range:
    """Vertices that every graph of this shape is loaded with, and that may be deleted: behind all others."""
    first = shape.n_edges // 5 if shape.is_large else SIDED_VERTICES
    return range(first, first + (SPARE if shape.is_pruned else 0))


@dataclass(slots=True)
class Look:
    """One answer about a question, beside its own."""

    status: int
    body: Any
    answered_at: float


@dataclass(slots=True)
class Op:
    """One question of one client, over all its retries."""

    client: int
    kind: str
    graph: str
    """What it asks about; what a copy makes."""
    invoked_at: float
    number: int = 0
    """Of the load, copy, batch of capacities, costs or structure, or restore; 0 for what makes no version."""
    request: str = ""
    """The request id of all its tries, which no other question has."""
    edges: Edges | None = None
    batch: list[dict[str, Any]] | None = None
    skips: bool = False
    """The batch passes over edges that there are not."""
    source: str | None = None
    """The graph that a copy is made of."""
    target: int | None = None
    """The version that a restore leads back to."""
    format: str | None = None
    """Of an export."""
    key: str | None = None
    if_match: int | None = None
    min_version: int | None = None
    limit_s: float | None = None
    """The question's `time_limit_s`."""
    value: int | None = None
    """That the cheapest flow was asked for; None: as much as can flow."""
    lower: list[int] | None = None
    """Of a circulation; None: the graph's own lower bounds count."""
    watch: str | None = None
    """The name of a watch that is put or dropped."""
    on: list[str] | None = None
    """What the watch is to tell."""
    answered_at: float = float("inf")
    tries: int = 0
    status: int | None = None
    """Of the last answer; None if there was none: the outcome is unknown."""
    body: Any = None
    jobs: list[str] = field(default_factory=list)
    """Ids that its 202s named, in order; one, unless a job ended so that the key was free again."""
    views: list[Look] = field(default_factory=list)
    """What was said of its last job, from the first time that it had ended on."""
    cancels: list[Look] = field(default_factory=list)
    """What was said to each request for its end."""
    again: list[Look] = field(default_factory=list)
    """What the same request with the same key was answered after it had been answered, or while it ran."""
    unanswered: list[float] = field(default_factory=list)
    """When such a request came to nothing: its connection broke, and what it asked for may be done all the same."""

    @property
    def acknowledged(self) -> bool:
        return self.status is not None and self.status < 300

    @property
    def code(self) -> str | None:
        return self.body.get("code") if isinstance(self.body, dict) else None

    @property
    def unknown(self) -> bool:
        """It may or may not have been done."""
        return self.status is None or (self.status in (202, 503, 504) and self.code != "timeout")

    @property
    def stopped(self) -> bool:
        """A cancel was accepted."""
        return any(look.body["cancelling"] for look in self.cancels)


@dataclass(slots=True)
class Told:
    """One event that a follower was sent."""

    id: str
    type: str
    data: str
    at: float


@dataclass(slots=True)
class Cut:
    """The append-only file lost its end: what was acknowledged before may be gone."""

    began_at: float
    ended_at: float = float("inf")


@dataclass
class History:
    """Of one seed. Clients add to it from their threads."""

    seed: int
    ops: list[Op] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    began: list[float] = field(default_factory=list)
    """When each of them did."""
    cuts: list[Cut] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    """By graph."""
    twins: dict[str, str] = field(default_factory=dict)
    """By graph: the name of its copies. A copy's twin is the graph that it was made of."""
    told: dict[str, list[Told]] = field(default_factory=lambda: defaultdict(list))
    """By graph: what who has followed its events from the first one on was sent, through all faults."""
    followed_to: dict[str, str] = field(default_factory=dict)
    """By graph: the last event that there was when nothing more was asked."""
    statuses: Counter[int] = field(default_factory=Counter)
    """Of every answer, retries included."""
    certificate_failures: int = 0
    """Answers that a worker could not prove."""
    started: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def number(self) -> int:
        """A number that no other change of this history has."""
        with self._lock:
            return next(self._numbers)

    def answered(self, status: int) -> None:
        with self._lock:
            self.statuses[status] += 1

    def begin(self, **fields: Any) -> Op:
        op = Op(invoked_at=time.monotonic(), request=uuid.uuid4().hex, **fields)
        with self._lock:
            self.ops.append(op)
        self.started.release()
        return op

    def survives(self, op: Op) -> bool:
        """Whether what was acknowledged must still be there: no cut of the log came after."""
        return all(op.invoked_at > cut.ended_at for cut in self.cuts)

    def asked_anew(self, op: Op) -> bool:
        """Whether a cut may have taken the command with its key: whoever asked again then had it done by another job,
        whatever had become of the first one."""
        taking = [cut for cut in self.cuts if op.invoked_at <= cut.ended_at]
        ends = [*(look.answered_at for look in op.again), *op.unanswered]
        return any(end >= cut.began_at for cut in taking for end in ends)

    def outages(self) -> Iterator[tuple[str, float]]:
        """Each fault, and seconds from its beginning to the first answer to a question asked since."""
        for name, began in zip(self.faults, self.began, strict=True):
            answered = [op.answered_at for op in self.ops if op.acknowledged and op.invoked_at > began]
            if answered:
                yield name, min(answered) - began

    def save(self, path: Path) -> None:
        """For people: one line for each question, in order of asking."""
        lines = [json.dumps({"seed": self.seed, "faults": self.faults, "cuts": [asdict(cut) for cut in self.cuts]})]
        lines += [json.dumps(asdict(op)) for op in self.ops]
        lines += [json.dumps({"events": name} | asdict(told)) for name, events in self.told.items() for told in events]
        path.write_text("\n".join(lines) + "\n")
