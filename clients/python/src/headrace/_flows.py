"""Answers of max-flow and min-cut, as frozen dataclasses. Fields a newer service adds are ignored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, overload

import numpy as np
from numpy.typing import NDArray

from headrace._amounts import Exact, exact
from headrace._bottlenecks import Bottlenecks
from headrace._errors import UnexpectedAnswer
from headrace._results import Certificate, EdgeId, Json, Vertex, no_member, timings
from headrace._sequences import AmountColumn, Column, Names, Side


@dataclass(frozen=True, slots=True)
class Cut:
    """A minimum cut: its edges lead from the source side to the sink side."""

    value: Exact
    """All that is paid; it is the value of the flow."""
    edges: Names[EdgeId]
    source_side: Side[Vertex]
    """The vertices on this side; `mask` has them as an array."""
    sink_side: Side[Vertex]
    unique: bool | None
    """Whether no other minimum cut exists; None if not examined."""
    pays: AmountColumn
    """The capacity of each of `edges`; with `vertex_pays`, `source_pays` and `sink_pays` they add up to `value`."""
    sources: Names[Vertex]
    """Capped sources beyond the cut, which pays their whole supply."""
    source_pays: AmountColumn
    sinks: Names[Vertex]
    """Capped sinks before the cut, which pays their whole demand."""
    sink_pays: AmountColumn
    vertices: Names[Vertex] = field(default_factory=lambda: Names.of([]))
    """Vertices whose capacity is paid, on the source side; where vertices of the graph have capacities."""
    vertex_pays: AmountColumn = field(default_factory=lambda: AmountColumn.of([], 0))

    @property
    def mask(self) -> NDArray[np.bool_]:
        """bool[n]: for each vertex, by its index, whether it is on the source side.

        Raises `UnexpectedAnswer` if the service answered in JSON, as for rows of several, which names the vertices and
        not their indices; or if the sides were left out by `sides=False`.
        """
        if self.source_side.mask is None:
            if not self.source_side and not self.sink_side:
                raise UnexpectedAnswer("the cut came without its sides, as `sides=False` asks for")
            raise UnexpectedAnswer("the answer came as lists of names, which say nothing of the order of vertices")
        return self.source_side.mask

    if not TYPE_CHECKING:  # so that type checkers refuse unknown names

        def __getattr__(self, name):
            raise no_member(self, name, {"capacity": "value"})

    @classmethod
    def from_json(cls, body: Json, decimals: int = 0) -> Self:
        source_side, sink_side = _sides(body)
        return cls(
            value=exact(body["value"]),
            edges=Names.of(body["edges"]),
            source_side=source_side,
            sink_side=sink_side,
            unique=body.get("unique"),
            pays=AmountColumn.of(body.get("pays"), decimals),
            sources=Names.of(body.get("sources")),
            source_pays=AmountColumn.of(body.get("source_pays"), decimals),
            sinks=Names.of(body.get("sinks")),
            sink_pays=AmountColumn.of(body.get("sink_pays"), decimals),
            vertices=Names.of(body.get("limited" if "n_vertices" in body else "vertices")),
            vertex_pays=AmountColumn.of(body.get("vertex_pays"), decimals),
        )


@dataclass(frozen=True, slots=True)
class Flow:
    """Flow per edge, row by row; edges without flow are left out unless `zeros` was asked for.

    The flow of an undirected edge is positive from its `tail` to its `head`, as they were sent, and negative from its
    head to its tail. That of a directed edge is never negative.
    """

    edges: Names[EdgeId]
    amount: AmountColumn
    """Negative: an undirected edge used from head to tail."""
    acyclic: bool = False
    """Nothing of it goes round in a cycle."""

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            raise no_member(self, name, {"flow": "amount"})

    @classmethod
    def from_json(cls, body: Json, decimals: int = 0) -> Self:
        return cls(Names.of(body["edges"]), AmountColumn.of(body["amount"], decimals), body.get("acyclic", False))


@dataclass(frozen=True, slots=True)
class TerminalAmounts:
    """What a flow takes from sources and brings to sinks; those without a cap are left out where that is nothing."""

    sources: Names[Vertex]
    supplied: AmountColumn
    sinks: Names[Vertex]
    delivered: AmountColumn

    @classmethod
    def from_json(cls, body: Json, decimals: int = 0) -> Self:
        supplied, delivered = (AmountColumn.of(body[name], decimals) for name in ("supplied", "delivered"))
        return cls(Names.of(body["sources"]), supplied, Names.of(body["sinks"]), delivered)


@dataclass(frozen=True, slots=True)
class Path:
    """What goes one way from one source to one sink."""

    source: Vertex
    sink: Vertex
    amount: Exact
    edges: Sequence[EdgeId]
    """In order, from the source to the sink."""


@dataclass(frozen=True, slots=True)
class Paths(Sequence[Path]):
    """The paths of a flow that carry most, the largest amount first: a sequence of `Path`, kept as columns."""

    source: Names[Vertex]
    sink: Names[Vertex]
    amount: AmountColumn
    offsets: Column[int]
    """Path i has `edges[offsets[i]:offsets[i + 1]]`."""
    edges: Names[EdgeId]
    of: int
    """How many paths the whole flow consists of."""
    rest: Exact
    """What those that are not listed carry."""

    def __len__(self) -> int:
        return len(self.amount)

    @overload
    def __getitem__(self, i: int) -> Path: ...

    @overload
    def __getitem__(self, i: slice) -> Sequence[Path]: ...

    def __getitem__(self, i: int | slice) -> Path | Sequence[Path]:
        if isinstance(i, slice):
            return [self[at] for at in range(*i.indices(len(self)))]
        at = range(len(self))[i]
        edges = self.edges[self.offsets[at] : self.offsets[at + 1]]
        return Path(self.source[at], self.sink[at], self.amount[at], edges)

    @classmethod
    def from_json(cls, body: Json, decimals: int = 0) -> Self:
        return cls(
            source=Names.of(body["source"]),
            sink=Names.of(body["sink"]),
            amount=AmountColumn.of(body["amount"], decimals),
            offsets=Column(np.asarray(body["offsets"], np.int64)),
            edges=Names.of(body["edges"]),
            of=body["of"],
            rest=exact(body["rest"]),
        )


@dataclass(frozen=True, slots=True)
class MaxFlowResult:
    """A max flow and what was asked for with it."""

    graph: str
    version: int
    """The version of the graph this is the answer for."""
    value: Exact
    mode: str
    """How it was found: "cold", "warm" or "unchanged"."""
    engine: str
    reason: str
    certificate: Certificate
    counters: Mapping[str, int] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    cut: Cut | None = None
    flow: Flow | None = None
    terminals: TerminalAmounts | None = None
    """Comes with `flow` and `paths` too."""
    paths: Paths | None = None
    bottlenecks: Bottlenecks | None = None
    lower: str | None = None
    """Lower bounds are "ignored", where edges have some: this keeps none."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        cut, flow, terminals, paths = (body.get(name) for name in ("cut", "flow", "terminals", "paths"))
        decimals, limits = body.get("decimals", 0), body.get("bottlenecks")
        return cls(
            graph=body["graph"],
            version=body["version"],
            value=exact(body["value"]),
            mode=body["mode"],
            engine=body["engine"],
            reason=body.get("reason") or "",
            certificate=Certificate.from_json(body["certificate"]),
            counters=dict(body.get("counters") or {}),
            timings_ms=timings(body),
            cut=Cut.from_json(cut, decimals) if cut else None,
            flow=Flow.from_json(flow, decimals) if flow else None,
            terminals=TerminalAmounts.from_json(terminals, decimals) if terminals else None,
            paths=Paths.from_json(paths, decimals) if paths else None,
            bottlenecks=Bottlenecks.from_json(limits, decimals) if limits else None,
            lower=body.get("lower"),
        )


def _sides(body: Json) -> tuple[Side[Vertex], Side[Vertex]]:
    """Source side and sink side: of bits, or of two lists."""
    if "source_side" not in body:
        return Side(Names.of([]).array), Side(Names.of([]).array)
    if "n_vertices" not in body:
        return Side(Names.of(body["source_side"]).array), Side(Names.of(body["sink_side"]).array)
    mask = np.unpackbits(body["source_side"], count=body["n_vertices"], bitorder="little").view(np.bool_)
    labels = body.get("vertices")
    if isinstance(labels, np.ndarray):
        labels = labels.astype(np.int64)
    other = ~mask
    if "sink_side" in body:  # vertices that were deleted are on neither side
        other = np.unpackbits(body["sink_side"], count=body["n_vertices"], bitorder="little").view(np.bool_)
    return Side.of_mask(mask, labels), Side.of_mask(other, labels)
