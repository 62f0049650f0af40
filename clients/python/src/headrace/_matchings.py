"""Answers of matching, as frozen dataclasses. Fields a newer service adds are ignored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from headrace._results import Certificate, EdgeId, Json, Vertex, no_member, timings
from headrace._sequences import Names


@dataclass(frozen=True, slots=True)
class Matching:
    """The matched edges with their ends, row by row."""

    edges: Names[EdgeId]
    left: Names[Vertex]
    """The left ends of `edges`, one by one."""
    right: Names[Vertex]

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(Names.of(body["edges"]), Names.of(body["left"]), Names.of(body["right"]))


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
    matching: Matching | None = None
    cover: Cover | None = None

    if not TYPE_CHECKING:  # so that type checkers refuse unknown names

        def __getattr__(self, name):
            raise no_member(self, name, {old: f"matching.{old}" for old in ("edges", "left", "right")})

    lower: str | None = None
    """Lower bounds are "ignored", where edges have some: this keeps none."""

    _pairs: dict[Vertex, Vertex] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def pairs(self) -> dict[Vertex, Vertex]:
        """The right partner of each matched left vertex, made when it is first asked for; {} if `matching` was not."""
        if not self._pairs and self.matching:
            self._pairs.update(zip(self.matching.left, self.matching.right, strict=True))
        return self._pairs

    @classmethod
    def from_json(cls, body: Json) -> Self:
        matching, cover = body.get("matching"), body.get("cover")
        return cls(
            **{name: body[name] for name in ("graph", "version", "size", "mode", "engine")},
            reason=body.get("reason") or "",
            certificate=Certificate.from_json(body["certificate"]),
            counters=dict(body.get("counters") or {}),
            timings_ms=timings(body),
            matching=Matching.from_json(matching) if matching else None,
            cover=Cover.from_json(cover) if cover else None,
            lower=body.get("lower"),
        )
