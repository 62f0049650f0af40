"""What-if questions: scenarios, and what the service answers of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypedDict

from headrace._amounts import Exact, exact
from headrace._bodies import json_body
from headrace._bottlenecks import Bottlenecks
from headrace._calls import (
    WAITING,
    Call,
    Caps,
    End,
    FlowField,
    Ids,
    Rounding,
    Terminals,
    Update,
    ends,
    graph_path,
    updates_of,
)
from headrace._codes import api_error
from headrace._errors import ApiError
from headrace._flows import Cut, Flow, Paths, TerminalAmounts
from headrace._mistakes import one_or_many, refuse_others
from headrace._options import check_options, suggesting
from headrace._results import Certificate, Json
from headrace._rows import Rows
from headrace._shown import shown


class WhatIfOptions(TypedDict, total=False):
    """Keyword arguments of `what_if`."""

    supply: Caps
    """At most this much out of each source; as a mapping, of the sources it names, which need not be named again."""
    demand: Caps
    """At most this much into each sink; or a mapping, as for `supply`."""
    rounding: Rounding
    """What becomes of amounts with more decimals than the graph's: refused by default."""
    on_missing: Literal["error", "skip"]
    """"skip": an unknown edge is left out of its scenario, else ("error") that has no answer."""
    fields: FlowField | Sequence[FlowField]
    """What each row has beside its value: "cut", "flow", "terminals", "paths", "bottlenecks"."""
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


@suggesting
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario:
    """What is otherwise than it is: capacities, terminals, or both."""

    id: int | str | None = None
    """Your name for it, which its row has."""
    close: Ids | None = None
    """Edges that let nothing through."""
    reopen: Ids | None = None
    updates: Sequence[Update] = ()
    """Further changes of capacities, of edges or of vertices, made after `close` and `reopen`. A vertex is closed by 0;
    one without a capacity is unlimited before."""
    source: Terminals | None = None
    """In place of those of the question; without `supply` they have no cap."""
    sink: Terminals | None = None
    supply: Caps | None = None
    demand: Caps | None = None

    def as_json(self, source: Terminals | None, sink: Terminals | None) -> dict[str, object]:
        """`source` and `sink` are those of the question, whose caps may be others here."""
        closed = [Update(edges=self.close, op="close")] if self.close is not None else []
        reopened = [Update(edges=self.reopen, op="reopen")] if self.reopen is not None else []
        named: dict[str, object] = {} if self.id is None else {"id": self.id}
        updates = [*closed, *reopened, *updates_of(self.updates, "a scenario")]
        for member, of_vertices in (("batch", False), ("vertex_batch", True)):
            if batch := [update.as_json() for update in updates if (update.vertices is not None) is of_vertices]:
                named[member] = batch
        sources = source if self.source is None and self.supply is not None else self.source
        sinks = sink if self.sink is None and self.demand is not None else self.sink
        return named | ends(sources, sinks, self.supply, self.demand)


@dataclass(frozen=True, slots=True)
class WhatIfRow:
    """The answer in one scenario. `error` says why there is none; then all else is None."""

    row: int
    """Which scenario, from 0."""
    id: int | str | None
    value: Exact | None = None
    change: Exact | None = None
    """`value` less what it is without the scenario."""
    mode: str | None = None
    certificate: Certificate | None = None
    cut: Cut | None = None
    flow: Flow | None = None
    terminals: TerminalAmounts | None = None
    paths: Paths | None = None
    error: ApiError | None = None
    bottlenecks: Bottlenecks | None = None

    @classmethod
    def from_json(cls, body: Json) -> Self:
        if error := body.get("error"):
            told = api_error(
                error["code"], error.get("status", 0), error["detail"], error.get("rows") or (), where=error
            )
            return cls(body["row"], body.get("id"), error=told)
        cut, flow, terminals, paths = (body.get(name) for name in ("cut", "flow", "terminals", "paths"))
        limits = body.get("bottlenecks")
        return cls(
            row=body["row"],
            id=body.get("id"),
            value=exact(body["value"]),
            change=exact(body["change"]),
            mode=body["mode"],
            certificate=Certificate.from_json(body["certificate"]),
            cut=Cut.from_json(cut) if cut else None,
            flow=Flow.from_json(flow) if flow else None,
            terminals=TerminalAmounts.from_json(terminals) if terminals else None,
            paths=Paths.from_json(paths) if paths else None,
            bottlenecks=Bottlenecks.from_json(limits) if limits else None,
        )


@dataclass(frozen=True, slots=True)
class WhatIfResult(Rows[WhatIfRow]):
    """A row for each scenario, in order; all are about one version of the graph, which none has changed."""

    graph: str
    version: int
    value: Exact
    """Without any scenario."""
    mode: str
    """How that was found."""
    engine: str
    certificate: Certificate
    rows: tuple[WhatIfRow, ...]
    lower: str | None = None
    """Lower bounds are "ignored", where edges have some: this keeps none."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        base = body["base"]
        return cls(
            graph=body["graph"],
            version=body["version"],
            value=exact(base["value"]),
            mode=base["mode"],
            engine=base["engine"],
            certificate=Certificate.from_json(base["certificate"]),
            rows=tuple(map(WhatIfRow.from_json, body["answers"])),
            lower=body.get("lower"),
        )


def question(
    name: str,
    scenarios: Sequence[Scenario],
    source: Terminals | None,
    sink: Terminals | None,
    options: WhatIfOptions,
) -> Call[WhatIfResult]:
    check_options("what_if()", options, WhatIfOptions.__annotations__, ("scenarios", *WAITING))
    body = ends(source, sink, options.get("supply"), options.get("demand"))
    given = [scenarios] if isinstance(scenarios, Scenario) else list(scenarios)
    refuse_others(given, Scenario, "what_if() takes scenarios, as in Scenario(close=[3])")
    body["scenarios"] = [scenario.as_json(source, sink) for scenario in given]
    for key in ("rounding", "on_missing", "min_version", "time_limit_s"):
        if options.get(key) is not None:
            body[key] = options[key]
    if options.get("fields") is not None:
        body["fields"] = one_or_many(options["fields"])
    body |= shown(options)
    return Call("POST", graph_path(name) + "/what-if", WhatIfResult.from_json, json_body(body))
