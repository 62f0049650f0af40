"""Answers of matching, as frozen dataclasses. Fields a newer service adds are ignored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from headrace._results import Certificate, EdgeId, Json, Vertex, timings
from headrace._sequences import Names


@dataclass(frozen=True, slots=True)
class Cover:
    """Vertices that touch every open edge: as many as edges match, so no matching is larger."""

    left: Names[Vertex]
    right: Names[Vertex]

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(Names.of(body["left"]), Names.of(body["right"]))


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
    edges: Names[EdgeId] | None = None
    left: Names[Vertex] | None = None
    """The left ends of `edges`, one by one."""
    right: Names[Vertex] | None = None
    cover: Cover | None = None

    @property
    def pairs(self) -> dict[Vertex, Vertex]:
        """The right partner of each matched left vertex; {} if `edges` was not asked for."""
        return dict(zip(self.left or (), self.right or (), strict=True))

    @classmethod
    def from_json(cls, body: Json) -> Self:
        columns: list[Names[Any] | None] = [
            None if body.get(name) is None else Names.of(body[name]) for name in ("edges", "left", "right")
        ]
        edges, left, right = columns
        cover = body.get("cover")
        return cls(
            **{name: body[name] for name in ("graph", "version", "size", "mode", "engine")},
            reason=body.get("reason") or "",
            certificate=Certificate.from_json(body["certificate"]),
            counters=dict(body.get("counters") or {}),
            timings_ms=timings(body),
            edges=edges,
            left=left,
            right=right,
            cover=Cover.from_json(cover) if cover else None,
        )
