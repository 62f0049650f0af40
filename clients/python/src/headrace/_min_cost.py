"""The question for a cheapest flow, and what the service answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias, TypedDict

from headrace._amounts import Amount, Exact, exact
from headrace._bodies import json_body
from headrace._calls import WAITING, Call, Caps, Rounding, Terminals, ends, graph_path
from headrace._files_of_columns import ACCEPT
from headrace._flows import Flow, Paths, TerminalAmounts
from headrace._mistakes import one_or_many
from headrace._options import check_options
from headrace._results import Json, Vertex, timings
from headrace._sequences import AmountColumn, Names
from headrace._shown import refuse_top

CostField: TypeAlias = Literal["value", "cost", "flow", "terminals", "dual", "paths"]


class MinCostOptions(TypedDict, total=False):
    """Keyword arguments of `min_cost_flow`."""

    value: Amount
    """What is to flow; by default as much as can."""
    supply: Caps
    """At most this much out of each source; as a mapping, of the sources it names, which need not be named again."""
    demand: Caps
    """At most this much into each sink; or a mapping, as for `supply`."""
    rounding: Rounding
    """What becomes of the value and of caps with more decimals than the graph's: refused by default."""
    lower: Literal["ignore"]
    """The flow need not keep the lower bounds of edges, with which it is refused as `HasLowerBounds` else."""
    fields: CostField | Sequence[CostField]
    """What to answer beside value, cost and certificate: "flow", "terminals", "dual", "paths"."""
    zeros: bool
    """List edges without flow too."""
    top: int
    """How many paths are listed at most, those that carry most first; 100 by default."""
    min_version: int
    """Refuse to answer for an older version of the graph."""
    time_limit_s: float
    """Stop the solver after so many seconds."""


@dataclass(frozen=True, slots=True)
class CostCertificate:
    """Proof of a cheapest flow, computed apart from the solver: it costs what potentials prove that each flow of its
    value costs at least."""

    valid: bool
    value: Exact
    cost: Exact
    dual_bound: Exact
    flow_across_cut: Exact | None
    """The capacity of a minimum cut, which proves the maximum; None where the flow has no bound."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        across = body.get("flow_across_cut")
        return cls(
            valid=body["valid"],
            value=exact(body["value"]),
            cost=exact(body["cost"]),
            dual_bound=exact(body["dual_bound"]),
            flow_across_cut=None if across is None else exact(across),
        )


@dataclass(frozen=True, slots=True)
class Dual:
    """Potentials that prove a cheapest flow, 0 before the sources: an edge that could carry more costs at least what
    the potential rises along it, and one that carries flow at most that."""

    vertices: Names[Vertex]
    potential: AmountColumn
    beyond: Exact
    """The potential beyond the sinks."""

    @classmethod
    def from_json(cls, body: Json, cost_decimals: int = 0) -> Self:
        potential = AmountColumn.of(body["potential"], cost_decimals)
        return cls(Names.of(body["vertices"]), potential, exact(body["beyond"]))


@dataclass(frozen=True, slots=True)
class MinCostFlowResult:
    """A cheapest flow and what was asked for with it."""

    graph: str
    version: int
    """The version of the graph this is the answer for."""
    value: Exact
    maximum: Exact | None
    """The most that can flow; None where that has no bound."""
    cost: Exact
    mode: str
    engine: str
    reason: str
    certificate: CostCertificate
    counters: Mapping[str, int] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    flow: Flow | None = None
    """Not acyclic in general: a cycle that costs less than nothing pays."""
    terminals: TerminalAmounts | None = None
    """Comes with `flow` and `paths` too."""
    dual: Dual | None = None
    paths: Paths | None = None
    cycles: Flow | None = None
    """Comes with `paths`: what goes round, as it costs less than nothing, or nothing. With all paths it is the flow."""
    lower: str | None = None
    """Lower bounds are "ignored", where edges have some: this keeps none."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        flow, terminals, dual, maximum = (body.get(name) for name in ("flow", "terminals", "dual", "maximum"))
        paths, cycles = body.get("paths"), body.get("cycles")
        decimals = body.get("decimals", 0)
        return cls(
            graph=body["graph"],
            version=body["version"],
            value=exact(body["value"]),
            maximum=None if maximum is None else exact(maximum),
            cost=exact(body["cost"]),
            mode=body["mode"],
            engine=body["engine"],
            reason=body.get("reason") or "",
            certificate=CostCertificate.from_json(body["certificate"]),
            counters=dict(body.get("counters") or {}),
            timings_ms=timings(body),
            flow=Flow.from_json(flow, decimals) if flow else None,
            terminals=TerminalAmounts.from_json(terminals, decimals) if terminals else None,
            dual=Dual.from_json(dual, body.get("cost_decimals", 0)) if dual else None,
            paths=Paths.from_json(paths, decimals) if paths else None,
            cycles=Flow.from_json(cycles, decimals) if cycles else None,
            lower=body.get("lower"),
        )


def question(
    name: str, source: Terminals | None, sink: Terminals | None, options: MinCostOptions
) -> Call[MinCostFlowResult]:
    check_options("min_cost_flow()", options, MinCostOptions.__annotations__, WAITING)
    body = ends(source, sink, options.get("supply"), options.get("demand"))
    for key in ("value", "min_version", "time_limit_s", "rounding", "lower"):
        if options.get(key) is not None:
            body[key] = options[key]
    wanted = one_or_many(options.get("fields") or ())
    if wanted:
        body["fields"] = wanted
    if "zeros" in options:
        body["flow"] = {"zeros": options["zeros"]}
    refuse_top(options)
    if "top" in options:
        body["paths"] = {"top": options["top"]}
    headers = ACCEPT if set(wanted) - {"value", "cost"} else {}
    path = graph_path(name) + "/min-cost-flow"
    return Call("POST", path, MinCostFlowResult.from_json, json_body(body), headers=headers)
