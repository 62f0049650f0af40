"""Closure studies: which edges cost most if they are closed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, TypedDict

import numpy as np

from headrace._amounts import Exact, exact
from headrace._bodies import json_body
from headrace._calls import WAITING, Call, Caps, Ids, Rounding, Terminals, ends, graph_path
from headrace._errors import InvalidInput
from headrace._options import check_options
from headrace._results import Certificate, EdgeId, Json
from headrace._rows import Rows

Candidates: TypeAlias = Literal["cut", "all"] | Ids | Sequence[Ids]
"""Edges, or vertices, one by one or in lists of those that are closed together."""


class ClosureOptions(TypedDict, total=False):
    """Keyword arguments of `closure_study`."""

    close: Literal["edges", "vertices"]
    """What the candidates are: edges (default), or vertices, each closed with all of its edges."""
    top: int | None
    """How many are answered, those that cost most, 10 by default; None: all."""
    supply: Caps
    """At most this much out of each source; as a mapping, of the sources it names, which need not be named again."""
    demand: Caps
    """At most this much into each sink; or a mapping, as for `supply`."""
    rounding: Rounding
    """What becomes of supply and demand with more decimals than the graph's: refused by default."""
    min_version: int
    """Refuse to answer for an older version of the graph."""
    time_limit_s: float
    """Stop after so many seconds."""


@dataclass(frozen=True, slots=True)
class Closure:
    """A candidate, and what is left of the flow without it."""

    row: int
    """Which candidate, from 0."""
    edges: list[EdgeId]
    """Empty where vertices were closed."""
    value: Exact
    loss: Exact
    """How much less that is."""
    mode: str | None
    """None, as `certificate`: the flow does not use it, which the certificate of the study proves."""
    certificate: Certificate | None
    vertices: list[EdgeId] = field(default_factory=list)

    @classmethod
    def from_json(cls, body: Json) -> Self:
        proof = body.get("certificate")
        return cls(
            row=body["row"],
            edges=body.get("edges", []),
            value=exact(body["value"]),
            loss=exact(body["loss"]),
            mode=body.get("mode"),
            certificate=None if proof is None else Certificate.from_json(proof),
            vertices=body.get("vertices", []),
        )


@dataclass(frozen=True, slots=True)
class ClosureStudy(Rows[Closure]):
    """The candidates that cost most, the worst first; the graph has changed for none."""

    graph: str
    version: int
    value: Exact
    """With nothing closed."""
    certificate: Certificate
    candidates: int
    solved: int
    skipped: int
    """Candidates that need not be solved, as the flow shows that they do not matter."""
    skipped_at_most: Exact
    """The most that any of those can cost which are not known."""
    rows: tuple[Closure, ...]
    lower: str | None = None
    """Lower bounds are "ignored", where edges have some: this keeps none."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(
            graph=body["graph"],
            version=body["version"],
            value=exact(body["base"]["value"]),
            certificate=Certificate.from_json(body["base"]["certificate"]),
            candidates=body["candidates"],
            solved=body["solved"],
            skipped=body["skipped"],
            skipped_at_most=exact(body["skipped_at_most"]),
            rows=tuple(map(Closure.from_json, body["answers"])),
            lower=body.get("lower"),
        )


def question(
    name: str, candidates: Candidates, source: Terminals | None, sink: Terminals | None, options: ClosureOptions
) -> Call[ClosureStudy]:
    check_options("closure_study()", options, ClosureOptions.__annotations__, ("candidates", *WAITING))
    body = ends(source, sink, options.get("supply"), options.get("demand"))
    body["candidates"] = _named(candidates)
    if "top" in options:
        body["top"] = options["top"]
    for key in ("close", "rounding", "min_version", "time_limit_s"):
        if options.get(key) is not None:
            body[key] = options[key]
    return Call("POST", graph_path(name) + "/closure-study", ClosureStudy.from_json, json_body(body))


def _named(candidates: Any) -> object:
    if isinstance(candidates, str):
        return candidates
    if not isinstance(candidates, Iterable):
        raise InvalidInput(f'candidates is "all", "cut" or a list, as in candidates=[{candidates!r:.80}]')
    return [_plain(each) for each in candidates]


def _plain(name: Any) -> object:
    """One edge, or a list of them, as JSON has it."""
    if isinstance(name, str):
        return name
    if isinstance(name, np.generic | np.ndarray):
        return name.tolist()
    return [_plain(each) for each in name] if isinstance(name, Sequence) else name
