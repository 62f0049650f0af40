"""Many pairs, Gomory-Hu trees and global minimum cuts: what is asked, and what the service answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypedDict

from headrace._amounts import Exact, exact
from headrace._bodies import json_body
from headrace._calls import WAITING, Call, End, FlowField, Ids, graph_path
from headrace._codes import api_error
from headrace._columns import as_column
from headrace._errors import ApiError, InvalidInput
from headrace._flows import Cut, Flow, Paths, TerminalAmounts
from headrace._mistakes import flag, one_or_many, refuse_set
from headrace._options import check_options
from headrace._results import Certificate, EdgeId, Json, Vertex, timings
from headrace._rows import Rows
from headrace._sequences import Names
from headrace._shown import shown

PAIR_WAYS = ("source", "sink", "sources", "sinks", "among")


class PairsOptions(TypedDict, total=False):
    """Keyword arguments of `pairs`."""

    fields: Sequence[FlowField]
    """What each row has beside its value: "cut", "flow", "terminals", "paths"."""
    near: End
    """Of several minimum cuts show the one nearest the "sources" (default) or the one nearest the "sinks"."""
    sides: bool
    """False: cuts come without the vertices on either side, so that `source_side` and `sink_side` are empty."""
    zeros: bool
    """List edges without flow too."""
    acyclic: bool
    """False: the flow as it was found, with its cycles and detours."""
    top: int
    """How many paths are listed at most, those that carry most first; 100 by default."""
    min_version: int
    """Refuse to answer for an older version of the graph."""
    time_limit_s: float
    """Stop after so many seconds, whichever rows are done."""


class CutTreeOptions(TypedDict, total=False):
    """Keyword arguments of `gomory_hu_tree`."""

    groups: bool
    """Say as well with which terminal each other vertex goes."""
    min_version: int
    """Refuse to answer for an older version of the graph."""
    time_limit_s: float
    """Stop after so many seconds."""


class GlobalCutOptions(TypedDict, total=False):
    """Keyword arguments of `global_min_cut`."""

    fields: Sequence[Literal["value", "cut"]]
    """Both by default."""
    min_version: int
    """Refuse to answer for an older version of the graph."""
    time_limit_s: float
    """Stop after so many seconds."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The maximum flow of one pair. `error` says why there is none; then all else is None."""

    row: int
    source: Vertex
    sink: Vertex
    value: Exact | None = None
    certificate: Certificate | None = None
    """With other fields than the value. Without, each value was proven too, or it is an error."""
    cut: Cut | None = None
    flow: Flow | None = None
    terminals: TerminalAmounts | None = None
    paths: Paths | None = None
    error: ApiError | None = None

    @classmethod
    def from_json(cls, body: Json) -> Self:
        ends = body["row"], body["source"], body["sink"]
        if error := body.get("error"):
            told = api_error(
                error["code"], error.get("status", 0), error["detail"], error.get("rows") or (), where=error
            )
            return cls(*ends, error=told)
        proof, cut, flow, terminals, paths = (
            body.get(name) for name in ("certificate", "cut", "flow", "terminals", "paths")
        )
        return cls(
            *ends,
            value=exact(body["value"]),
            certificate=Certificate.from_json(proof) if proof else None,
            cut=Cut.from_json(cut) if cut else None,
            flow=Flow.from_json(flow) if flow else None,
            terminals=TerminalAmounts.from_json(terminals) if terminals else None,
            paths=Paths.from_json(paths) if paths else None,
        )


@dataclass(frozen=True, slots=True)
class PairsResult(Rows[Pair]):
    """A row for each pair, in order; all are about one version of the graph."""

    graph: str
    version: int
    rows: tuple[Pair, ...]
    lower: str | None = None
    """Lower bounds are "ignored", where edges have some: this keeps none."""
    _values: dict[tuple[Vertex, Vertex], Exact] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(body["graph"], body["version"], tuple(map(Pair.from_json, body["answers"])), body.get("lower"))

    @property
    def values(self) -> dict[tuple[Vertex, Vertex], Exact]:
        """The value of each pair that has one, by source and sink, made when it is first asked for."""
        if not self._values:
            self._values.update({(row.source, row.sink): row.value for row in self.rows if row.value is not None})
        return self._values


@dataclass(frozen=True, slots=True)
class CutTree:
    """A tree of vertices: a row removed splits it into the two sides of a minimum cut of the row's ends."""

    graph: str
    version: int
    tail: Names[Vertex]
    head: Names[Vertex]
    value: tuple[Exact, ...]
    proven: bool
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[Vertex, Vertex] | None = None
    """With which vertex of the tree each other one goes, if that was asked for."""

    def __len__(self) -> int:
        """How many rows it has."""
        return len(self.value)

    def __iter__(self) -> Iterator[tuple[Vertex, Vertex, Exact]]:
        """Row by row, as `networkx.Graph.add_weighted_edges_from` takes them."""
        return zip(self.tail, self.head, self.value, strict=True)

    def min_cut_value(self, source: Vertex, sink: Vertex) -> Exact:
        """The minimum cut of two vertices of the tree: its least row between them. Raises `KeyError`."""
        beside: dict[Vertex, list[tuple[Vertex, Exact]]] = {}
        for tail, head, value in self:
            beside.setdefault(tail, []).append((head, value))
            beside.setdefault(head, []).append((tail, value))
        if source == sink or sink not in beside:
            raise KeyError(sink)
        least: dict[Vertex, Exact | None] = {source: None}
        waiting = [source]
        while sink not in least:
            at = waiting.pop()
            so_far = least[at]
            for other, value in beside[at]:
                if other not in least:
                    least[other] = value if so_far is None else min(so_far, value)
                    waiting.append(other)
        found = least[sink]
        assert found is not None
        return found

    @classmethod
    def from_json(cls, body: Json) -> Self:
        tree, groups = body["tree"], body.get("groups")
        return cls(
            graph=body["graph"],
            version=body["version"],
            tail=Names.of(tree["tail"]),
            head=Names.of(tree["head"]),
            value=tuple(map(exact, tree["value"])),
            proven=body["certificate"]["valid"],
            timings_ms=timings(body),
            groups=groups and dict(zip(groups["vertices"], groups["terminal"], strict=True)),
        )


@dataclass(frozen=True, slots=True)
class GlobalCut:
    """The least cut of all. All but `value` is None if only that was asked for."""

    graph: str
    version: int
    value: Exact
    proven: bool
    edges: Names[EdgeId] | None = None
    pays: tuple[Exact, ...] | None = None
    """The capacity of each of `edges`."""
    source_side: Names[Vertex] | None = None
    sink_side: Names[Vertex] | None = None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None
    """Why the cut is 0."""
    lower: str | None = None
    """Lower bounds are "ignored", where edges have some: this keeps none."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        cut: Mapping[str, Any] | None = body.get("cut")
        facts = body["graph"], body["version"], exact(body["value"]), body["certificate"]["valid"]
        told: dict[str, Any] = {"timings_ms": timings(body), "reason": body.get("reason"), "lower": body.get("lower")}
        if cut is None:
            return cls(*facts, **told)
        return cls(
            *facts,
            edges=Names.of(cut["edges"]),
            pays=tuple(map(exact, cut["pays"])),
            source_side=Names.of(cut["source_side"]),
            sink_side=Names.of(cut["sink_side"]),
            **told,
        )


def _refuse_rows_of_pairs(ends: Mapping[str, Ids | None]) -> None:
    """Raise `InvalidInput` for pairs in place of the column of their sources."""
    given = ends["source"]
    if isinstance(given, list | tuple) and given and ends["sink"] is None and isinstance(given[0], list | tuple):
        raise InvalidInput("pairs are two columns, their sources and their sinks: source, sink = zip(*pairs)")


def pairs(name: str, ends: Mapping[str, Ids | None], options: PairsOptions) -> Call[PairsResult]:
    check_options("pairs()", options, PairsOptions.__annotations__, (*PAIR_WAYS, *WAITING))
    for row_by_row in ("source", "sink"):
        refuse_set(ends[row_by_row], row_by_row)
    _refuse_rows_of_pairs(ends)
    body: dict[str, object] = {side: as_column(given) for side, given in ends.items() if given is not None}
    for key in ("min_version", "time_limit_s"):
        if key in options:
            body[key] = options[key]
    if "fields" in options:
        body["fields"] = one_or_many(options["fields"])
    body |= shown(options)
    return Call("POST", graph_path(name) + "/pairs", PairsResult.from_json, json_body(body))


def gomory_hu_tree(name: str, terminals: Ids | None, options: CutTreeOptions) -> Call[CutTree]:
    check_options("gomory_hu_tree()", options, CutTreeOptions.__annotations__, ("terminals", *WAITING))
    body: dict[str, object] = {} if terminals is None else {"terminals": as_column(terminals)}
    if flag(options.get("groups", False), "groups"):
        body["fields"] = ["tree", "groups"]
    for key in ("min_version", "time_limit_s"):
        if key in options:
            body[key] = options[key]
    return Call("POST", graph_path(name) + "/gomory-hu-tree", CutTree.from_json, json_body(body))


def global_min_cut(name: str, options: GlobalCutOptions) -> Call[GlobalCut]:
    check_options("global_min_cut()", options, GlobalCutOptions.__annotations__, WAITING)
    body: dict[str, object] = {**options}
    if "fields" in options:
        body["fields"] = one_or_many(options["fields"])
    return Call("POST", graph_path(name) + "/global-min-cut", GlobalCut.from_json, json_body(body))
