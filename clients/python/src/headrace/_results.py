"""What the service answers about graphs and updates, as frozen dataclasses. Fields a newer service adds are ignored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Self, TypeAlias

import numpy as np

from headrace._amounts import Exact, exact
from headrace._sequences import AmountColumn, Column, Names, flags

Vertex: TypeAlias = int | str
"""The index of a vertex, or its label if the graph was loaded with labels."""

EdgeId: TypeAlias = int | str
"""The caller's edge id, or the row number in the order sent."""

Json: TypeAlias = Mapping[str, Any]


def no_member(result: object, name: str, renamed: Mapping[str, str]) -> AttributeError:
    """What a name says that a result does not have. ``renamed``: names it had before version 1, and those of today."""
    hint = f"; what was {name!r} is called {renamed[name]!r}" if name in renamed else ""
    return AttributeError(f"{type(result).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=result)


@dataclass(frozen=True, slots=True)
class Rounded:
    """What rounding has changed of the amounts that were sent."""

    rows: int
    """Amounts that were rounded."""
    largest: Decimal
    """The most that one of them has changed, up or down; exact."""

    @classmethod
    def from_json(cls, body: Json | None) -> Self | None:
        return None if body is None else cls(body["rows"], Decimal(body["largest"]))


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
    generation: str | None = None
    """What tells this load from others of the name: each counts its versions from 1."""
    cost_decimals: int | None = None
    """Decimal places its costs are exact to; None: its edges have no costs."""
    coordinates: str | None = None
    """What x and y of its vertices are, as in "EPSG:4326"; None: they have none."""
    rounded: Rounded | None = None
    """Of the load that this answers: what rounding has changed of its capacities; None: nothing."""
    rounded_costs: Rounded | None = None
    measured_at: datetime | None = None
    """When its worker last told `bytes`, `device_bytes`, `flow_states` and `engine`; None: the service does not say."""

    @property
    def etag(self) -> str:
        """This version of this load, for `if_version`."""
        return f"{self.generation}-{self.version}" if self.generation else str(self.version)

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
            generation=body.get("generation"),
            cost_decimals=body.get("cost_decimals"),
            coordinates=body.get("coordinates"),
            rounded=Rounded.from_json(body.get("rounded")),
            rounded_costs=Rounded.from_json(body.get("rounded_costs")),
            measured_at=None if (told := body.get("measured_at")) is None else datetime.fromisoformat(told),
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
    kind: str = "flow"
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
            timings_ms=timings(body),
            kind=body.get("kind", "flow"),
            n_sources=body.get("n_sources", len(body["sources"])),
            n_sinks=body.get("n_sinks", len(body["sinks"])),
        )


@dataclass(frozen=True, slots=True)
class PatchResult:
    """An accepted update: it is in the log, and `version` is durable as the service's log is. After a dry run, what it
    would have been."""

    version: int
    applied: int
    skipped: int
    """Edges the graph does not have, with `on_missing="skip"`."""
    unchanged: int
    flow_states: tuple[FlowState, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    dry_run: bool = False
    """True: nothing was changed."""
    rounded: Rounded | None = None
    """What rounding has changed of the results; None: nothing."""
    generation: str | None = None
    """Names the load of the graph that `version` counts from; None from a service of an earlier release."""
    lower: str | None = None
    """"ignored" where edges have lower bounds, which the flows do not keep."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(
            version=body["version"],
            generation=body.get("generation"),
            lower=body.get("lower"),
            applied=body["applied"],
            skipped=body["skipped"],
            unchanged=body["unchanged"],
            flow_states=tuple(map(FlowState.from_json, body.get("flow_states") or ())),
            timings_ms=timings(body),
            dry_run=body.get("dry_run", False),
            rounded=Rounded.from_json(body.get("rounded")),
        )


@dataclass(frozen=True, slots=True)
class Capacities:
    """A page of edges, in the order they were sent."""

    version: int
    edge_ids: Names[EdgeId]
    tail: Names[Vertex]
    head: Names[Vertex]
    capacity: AmountColumn
    """The edge's own capacity, also while it is closed; infinity where it never limits."""
    closed: Column[bool]
    undirected: Column[bool] = field(default_factory=lambda: flags(()))
    cost: AmountColumn | None = None
    """What a unit of flow costs on each edge; None for a graph without costs."""
    next: int | None = None
    """The `offset` of the next page; None: this is the last one."""
    lower: AmountColumn | None = None
    """What each edge carries at least in a circulation; None for a graph without lower bounds."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        closed, cost, lower = flags(body["closed"]), body.get("cost"), body.get("lower")
        return cls(
            next=body.get("next"),
            version=body["version"],
            edge_ids=Names.of(body["edge_ids"]),
            tail=Names.of(body["tail"]),
            head=Names.of(body["head"]),
            capacity=AmountColumn.of(body["capacity"], body.get("decimals", 0), body.get("unlimited")),
            closed=closed,
            undirected=flags(body.get("undirected", np.zeros(len(closed)))),
            cost=None if cost is None else AmountColumn.of(cost, body.get("cost_decimals", 0)),
            lower=None if lower is None else AmountColumn.of(lower, body.get("decimals", 0)),
        )


def timings(body: Json) -> Mapping[str, float]:
    """Milliseconds by phase, those that are known."""
    return {name: float(value) for name, value in (body.get("timings_ms") or {}).items() if value is not None}
