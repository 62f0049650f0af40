"""The question for parts of about equal weight, and what the service answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypedDict

import numpy as np

from headrace._amounts import Exact, exact
from headrace._bodies import json_body
from headrace._calls import WAITING, Call, graph_path
from headrace._columns import as_column
from headrace._errors import InvalidInput
from headrace._files_of_columns import ACCEPT
from headrace._mistakes import one_or_many
from headrace._options import check_options
from headrace._results import EdgeId, Json, Vertex, timings
from headrace._sequences import AmountColumn, Column, Names


class PartitionOptions(TypedDict, total=False):
    """Keyword arguments of `partition`."""

    epsilon: float
    """By how much a part may be heavier than the k-th part of all: 0.03 by default."""
    weights: Literal["capacity", "one"]
    """What an edge between parts costs: its capacity (default), or 1."""
    vertex_weight: Mapping[Any, int]
    """What the vertices that it names weigh, as whole numbers; all others weigh 1."""
    seed: int
    """Another one has another partition from nothing."""
    fields: Literal["parts", "cut"] | Sequence[Literal["parts", "cut"]]
    """"parts" (default) for the part of each vertex, "cut" for the edges between parts."""
    min_version: int
    """Refuse to answer for an older version of the graph."""
    time_limit_s: float
    """Stop after so many seconds."""


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """The vertices in k parts."""

    graph: str
    version: int
    """The version of the graph this is the answer for."""
    k: int
    value: Exact
    """The weight of all edges between parts."""
    cut_edges: int
    """How many edges that is."""
    part_weight: tuple[int, ...]
    n_vertices: tuple[int, ...]
    """Of each part."""
    limit: int
    """What a part may weigh."""
    balanced: bool
    """Whether all parts keep the limit: vertices that weigh very much may make that impossible."""
    mode: str
    """How it was found: "full", "incremental" or "unchanged"."""
    reason: str
    moved: int
    """Vertices that have another part than at the last answer; 0 where this one was from nothing."""
    valid: bool
    """Whether cut and weights were counted anew from the edges, and agree."""
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    vertices: Names[Vertex] | None = None
    part: Column[int] | None = None
    """The part of each of `vertices`, from 0 to k - 1."""
    edges: Names[EdgeId] | None = None
    """Edges between parts, if they were asked for."""
    weight: AmountColumn | None = None
    """Of each of `edges`."""
    _part_of: dict[Vertex, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def part_of(self) -> dict[Vertex, int]:
        """The part of each vertex by name, made when it is first asked for; {} if parts were not asked for."""
        if not self._part_of and self.vertices is not None and self.part is not None:
            self._part_of.update(zip(self.vertices, map(int, self.part), strict=True))
        return self._part_of

    @classmethod
    def from_json(cls, body: Json) -> Self:
        parts, cut = body.get("parts") or {}, body.get("cut") or {}
        decimals = body.get("decimals", 0) if body.get("weights", "capacity") == "capacity" else 0
        own = ("graph", "version", "k", "cut_edges", "limit", "balanced", "mode", "moved")
        return cls(
            **{name: body[name] for name in own},
            value=exact(body["value"]),
            part_weight=tuple(body["part_weight"]),
            n_vertices=tuple(body["n_vertices"]),
            reason=body.get("reason") or "",
            valid=body["certificate"]["valid"],
            timings_ms=timings(body),
            vertices=Names.of(parts["vertices"]) if parts else None,
            part=Column(np.asarray(parts["part"], np.int64)) if parts else None,
            edges=Names.of(cut["edges"]) if cut else None,
            weight=AmountColumn.of(cut["weight"], decimals) if cut else None,
        )


def question(name: str, k: int, options: PartitionOptions) -> Call[PartitionResult]:
    check_options("partition()", options, PartitionOptions.__annotations__, WAITING)
    body: dict[str, object] = {"k": k}
    for key in ("epsilon", "weights", "seed", "min_version", "time_limit_s"):
        if options.get(key) is not None:
            body[key] = options[key]
    weighed = options.get("vertex_weight")
    if weighed is not None:
        if not isinstance(weighed, Mapping):
            raise InvalidInput("vertex_weight= is a mapping of vertices to whole numbers")
        body |= {"vertices": as_column([*weighed]), "vertex_weight": [_whole(each) for each in weighed.values()]}
    if "fields" in options:
        body["fields"] = one_or_many(options["fields"])
    return Call("POST", graph_path(name) + "/partition", PartitionResult.from_json, json_body(body), headers=ACCEPT)


def _whole(weight: Any) -> int:
    try:
        whole = int(weight)
    except (TypeError, ValueError, OverflowError):
        whole = None
    if whole is None or whole != weight:
        raise InvalidInput(f"a vertex weighs a whole number, not {weight!r}")
    return whole
