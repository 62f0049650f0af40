"""What the service answers, as frozen dataclasses. Fields a newer service adds are ignored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self, TypeAlias, overload

from headrace._amounts import Exact, exact

Vertex: TypeAlias = int | str
"""The index of a vertex, or its label if the graph was loaded with labels."""

EdgeId: TypeAlias = int | str
"""The caller's edge id, or the row number in the order sent."""

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """A resident graph."""

    name: str
    version: int
    """1 after a load, one more with each accepted update."""
    n_vertices: int
    n_edges: int
    n_arcs: int
    decimals: int
    """Decimal places its amounts are exact to."""
    bytes: int
    """Host memory it takes on its worker."""
    created_at: datetime
    updated_at: datetime
    engine: str
    worker: str
    source: Vertex | None
    sink: Vertex | None
    flow_states: int
    """How many terminal sets are kept solved."""
    device_bytes: int = 0
    """Device memory it takes."""
    replaced: bool = False
    """Whether the load that this answers took the place of another graph."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(
            **{name: body[name] for name in ("name", "version", "n_vertices", "n_edges", "n_arcs", "decimals")},
            bytes=body["bytes"],
            created_at=datetime.fromisoformat(body["created_at"]),
            updated_at=datetime.fromisoformat(body["updated_at"]),
            engine=body["engine"],
            worker=body["worker"],
            source=body.get("source"),
            sink=body.get("sink"),
            flow_states=body.get("flow_states", 0),
            device_bytes=body.get("device_bytes", 0),
            replaced=body.get("replaced", False),
        )


@dataclass(frozen=True, slots=True)
class Certificate:
    """Proof of a max flow, computed apart from the solver: a feasible flow equal to the capacity of a cut."""

    valid: bool
    value: Exact
    flow_across_cut: Exact
    complete: bool = True
    """False: only what has changed since the last complete check was looked at."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(body["valid"], exact(body["value"]), exact(body["flow_across_cut"]), body.get("complete", True))


@dataclass(frozen=True, slots=True)
class Cut:
    """A minimum cut: its edges lead from the source side to the sink side."""

    capacity: Exact
    edges: tuple[EdgeId, ...]
    source_side: tuple[Vertex, ...]
    sink_side: tuple[Vertex, ...]
    unique: bool | None
    """Whether no other minimum cut exists; None if not examined."""
    pays: tuple[Exact, ...] = ()
    """The capacity of each of `edges`; with `source_pays` and `sink_pays` they add up to `capacity`."""
    sources: tuple[Vertex, ...] = ()
    """Capped sources beyond the cut, which pays their whole supply."""
    source_pays: tuple[Exact, ...] = ()
    sinks: tuple[Vertex, ...] = ()
    """Capped sinks before the cut, which pays their whole demand."""
    sink_pays: tuple[Exact, ...] = ()

    @classmethod
    def from_json(cls, body: Json) -> Self:
        source_side, sink_side, sources, sinks = (
            tuple(body.get(name) or ()) for name in ("source_side", "sink_side", "sources", "sinks")
        )
        pays, source_pays, sink_pays = (
            tuple(map(exact, body.get(name) or ())) for name in ("pays", "source_pays", "sink_pays")
        )
        return cls(
            capacity=exact(body["capacity"]),
            edges=tuple(body["edges"]),
            source_side=source_side,
            sink_side=sink_side,
            unique=body.get("unique"),
            pays=pays,
            sources=sources,
            source_pays=source_pays,
            sinks=sinks,
            sink_pays=sink_pays,
        )


@dataclass(frozen=True, slots=True)
class Flow:
    """Flow per edge, row by row; edges without flow are left out unless `zeros` was asked for.

    The flow of an undirected edge is positive from its `tail` to its `head`, as they were sent, and negative from its
    head to its tail. That of a directed edge is never negative.
    """

    edges: tuple[EdgeId, ...]
    flow: tuple[Exact, ...]
    """Negative: an undirected edge used from head to tail."""
    acyclic: bool = False
    """Nothing of it goes round in a cycle."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(tuple(body["edges"]), tuple(map(exact, body["flow"])), body.get("acyclic", False))


@dataclass(frozen=True, slots=True)
class TerminalAmounts:
    """What a flow takes from sources and brings to sinks; those without a cap are left out where that is nothing."""

    sources: tuple[Vertex, ...]
    supplied: tuple[Exact, ...]
    sinks: tuple[Vertex, ...]
    delivered: tuple[Exact, ...]

    @classmethod
    def from_json(cls, body: Json) -> Self:
        supplied, delivered = (tuple(map(exact, body[name])) for name in ("supplied", "delivered"))
        return cls(tuple(body["sources"]), supplied, tuple(body["sinks"]), delivered)


@dataclass(frozen=True, slots=True)
class Path:
    """What goes one way from one source to one sink."""

    source: Vertex
    sink: Vertex
    amount: Exact
    edges: tuple[EdgeId, ...]
    """In order, from the source to the sink."""


@dataclass(frozen=True, slots=True)
class Paths(Sequence[Path]):
    """The paths of a flow that carry most, the largest amount first: a sequence of `Path`, kept as columns."""

    source: tuple[Vertex, ...]
    sink: tuple[Vertex, ...]
    amount: tuple[Exact, ...]
    offsets: tuple[int, ...]
    """Path i has `edges[offsets[i]:offsets[i + 1]]`."""
    edges: tuple[EdgeId, ...]
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
    def from_json(cls, body: Json) -> Self:
        columns = {name: tuple(body[name]) for name in ("source", "sink", "offsets", "edges")}
        return cls(**columns, amount=tuple(map(exact, body["amount"])), of=body["of"], rest=exact(body["rest"]))


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

    @classmethod
    def from_json(cls, body: Json) -> Self:
        cut, flow, terminals, paths = (body.get(name) for name in ("cut", "flow", "terminals", "paths"))
        return cls(
            graph=body["graph"],
            version=body["version"],
            value=exact(body["value"]),
            mode=body["mode"],
            engine=body["engine"],
            reason=body.get("reason") or "",
            certificate=Certificate.from_json(body["certificate"]),
            counters=dict(body.get("counters") or {}),
            timings_ms=_timings(body),
            cut=Cut.from_json(cut) if cut else None,
            flow=Flow.from_json(flow) if flow else None,
            terminals=TerminalAmounts.from_json(terminals) if terminals else None,
            paths=Paths.from_json(paths) if paths else None,
        )


@dataclass(frozen=True, slots=True)
class Cover:
    """Vertices that touch every open edge: as many as edges match, so no matching is larger."""

    left: tuple[Vertex, ...]
    right: tuple[Vertex, ...]

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(tuple(body["left"]), tuple(body["right"]))


@dataclass(frozen=True, slots=True)
class MatchingResult:
    """A maximum matching and what was asked for with it."""

    graph: str
    version: int
    """The version of the graph this is the answer for."""
    size: int
    mode: str
    """How it was found: "cold", "warm" or "unchanged"."""
    engine: str
    reason: str
    certificate: Certificate
    counters: Mapping[str, int] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    edges: tuple[EdgeId, ...] | None = None
    left: tuple[Vertex, ...] | None = None
    """The left ends of `edges`, one by one."""
    right: tuple[Vertex, ...] | None = None
    cover: Cover | None = None

    @property
    def pairs(self) -> dict[Vertex, Vertex]:
        """The right partner of each matched left vertex; {} if `edges` was not asked for."""
        return dict(zip(self.left or (), self.right or (), strict=True))

    @classmethod
    def from_json(cls, body: Json) -> Self:
        edges, left, right = (
            None if body.get(name) is None else tuple(body[name]) for name in ("edges", "left", "right")
        )
        cover = body.get("cover")
        return cls(
            **{name: body[name] for name in ("graph", "version", "size", "mode", "engine")},
            reason=body.get("reason") or "",
            certificate=Certificate.from_json(body["certificate"]),
            counters=dict(body.get("counters") or {}),
            timings_ms=_timings(body),
            edges=edges,
            left=left,
            right=right,
            cover=Cover.from_json(cover) if cover else None,
        )


@dataclass(frozen=True, slots=True)
class GraphPage:
    """Some of the graphs, by name."""

    graphs: tuple[GraphInfo, ...]
    next: str | None
    """The last name of this page if there are others behind it."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(tuple(map(GraphInfo.from_json, body["graphs"])), body.get("next"))


@dataclass(frozen=True, slots=True)
class FlowState:
    """What an update did to one terminal set that is kept solved."""

    sources: tuple[Vertex, ...]
    """The first 100 of `n_sources`. None are listed for a matching, nor are its sinks."""
    sinks: tuple[Vertex, ...]
    old_value: Exact | None
    value: Exact | None
    """None if its solve was cancelled (`mode` is "pending"), or if it has no bound any more ("unbounded")."""
    mode: str | None
    certificate: Certificate | None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    kind: str = "max-flow"
    """Or "matching": then the values are its sizes."""
    n_sources: int = 0
    n_sinks: int = 0

    @classmethod
    def from_json(cls, body: Json) -> Self:
        old_value, value, certificate = (body.get(name) for name in ("old_value", "value", "certificate"))
        return cls(
            sources=tuple(body["sources"]),
            sinks=tuple(body["sinks"]),
            old_value=None if old_value is None else exact(old_value),
            value=None if value is None else exact(value),
            mode=body.get("mode"),
            certificate=Certificate.from_json(certificate) if certificate else None,
            timings_ms=_timings(body),
            kind=body.get("kind", "max-flow"),
            n_sources=body.get("n_sources", len(body["sources"])),
            n_sinks=body.get("n_sinks", len(body["sinks"])),
        )


@dataclass(frozen=True, slots=True)
class PatchResult:
    """An accepted update: it is in the log, and `version` is durable as the service's log is."""

    version: int
    applied: int
    skipped: int
    """Edges the graph does not have, with `on_missing="skip"`."""
    unchanged: int
    flow_states: tuple[FlowState, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(
            version=body["version"],
            applied=body["applied"],
            skipped=body["skipped"],
            unchanged=body["unchanged"],
            flow_states=tuple(map(FlowState.from_json, body.get("flow_states") or ())),
            timings_ms=_timings(body),
        )


@dataclass(frozen=True, slots=True)
class Capacities:
    """A page of edges, in the order they were sent."""

    version: int
    edge_ids: tuple[EdgeId, ...]
    tail: tuple[Vertex, ...]
    head: tuple[Vertex, ...]
    capacity: tuple[Exact, ...]
    """The edge's own capacity, also while it is closed; infinity where it never limits."""
    closed: tuple[bool, ...]
    undirected: tuple[bool, ...] = ()

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(
            version=body["version"],
            edge_ids=tuple(body["edge_ids"]),
            tail=tuple(body["tail"]),
            head=tuple(body["head"]),
            capacity=tuple(map(exact, body["capacity"])),
            closed=tuple(body["closed"]),
            undirected=tuple(body.get("undirected") or [False] * len(body["closed"])),
        )


def _timings(body: Json) -> Mapping[str, float]:
    return {name: float(value) for name, value in (body.get("timings_ms") or {}).items() if value is not None}
