"""The question for a flow with lower bounds, and what the service answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, TypedDict

from headrace._amounts import Amount, Amounts, Exact, amount_column, exact
from headrace._bodies import json_body
from headrace._calls import WAITING, Call, Caps, Ids, Rounding, Terminals, capped, ends, graph_path
from headrace._columns import as_column
from headrace._errors import InvalidInput
from headrace._files_of_columns import ACCEPT
from headrace._flows import Flow, TerminalAmounts
from headrace._mistakes import n_rows, one_or_many, refuse_set
from headrace._options import check_options
from headrace._results import EdgeId, Json, Vertex, timings
from headrace._sequences import AmountColumn, Names

Way: TypeAlias = Literal["enter", "leave", "carry"]


class CirculationOptions(TypedDict, total=False):
    """Keyword arguments of `circulation`."""

    lower: Amounts | Mapping[EdgeId, Amount]
    """At least this much along each of `edges`; or a mapping, of the edges it names. All others: 0."""
    edges: Ids
    """The edges that `lower` is for, unless it is a mapping."""
    min_supply: Caps
    """At least this much out of each source; as a mapping, of the sources it names, which need not be named again."""
    min_demand: Caps
    """At least this much into each sink; or a mapping, as for `min_supply`."""
    supply: Caps
    """At most this much out of each source; or a mapping."""
    demand: Caps
    """At most this much into each sink; or a mapping."""
    rounding: Rounding
    """What becomes of amounts with more decimals than the graph's: refused by default."""
    fields: Literal["flow"] | Sequence[Literal["flow"]]
    """"flow" for the flow and what terminals supply and take."""
    zeros: bool
    """List edges without flow too."""
    min_version: int
    """Refuse to answer for an older version of the graph."""
    time_limit_s: float
    """Stop the solver after so many seconds."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Why there is no flow: `must` is more than `can`. More must enter the vertices than can enter them, or leave them;
    or without vertices, the edges must carry more than they can."""

    way: Way
    must: Exact
    can: Exact
    vertices: Names[Vertex]
    edges: Names[EdgeId]
    """Those whose capacities are part of `can`, beside the caps of terminals among the vertices."""
    capacity: AmountColumn
    bound_edges: Names[EdgeId]
    """Those whose lower bounds are part of `must`, beside what terminals among the vertices must move."""
    lower: AmountColumn

    @classmethod
    def from_json(cls, body: Json, decimals: int = 0) -> Self:
        ways: tuple[Way, ...] = ("enter", "leave", "carry")
        way = next(one for one in ways if body.get(f"must_{one}") is not None)
        return cls(
            way=way,
            must=exact(body[f"must_{way}"]),
            can=exact(body[f"can_{way}"]),
            vertices=Names.of(body["vertices"]),
            edges=Names.of(body["edges"]),
            capacity=AmountColumn.of(body["capacity"], decimals),
            bound_edges=Names.of(body["bound_edges"]),
            lower=AmountColumn.of(body["lower"], decimals),
        )


@dataclass(frozen=True, slots=True)
class CirculationResult:
    """Whether there is a flow within all bounds, and what shows it."""

    graph: str
    version: int
    """The version of the graph this is the answer for."""
    feasible: bool
    mode: str
    engine: str
    reason: str
    valid: bool
    """Whether the flow or the proof passed its check, apart from the solver."""
    counters: Mapping[str, int] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    proof: Barrier | None = None
    """What stands in the way, unless it is feasible."""
    flow: Flow | None = None
    """Some flow within the bounds, which may lead round in cycles; if it was asked for."""
    terminals: TerminalAmounts | None = None
    """Comes with `flow`."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        proof, flow, terminals = (body.get(name) for name in ("proof", "flow", "terminals"))
        decimals = body.get("decimals", 0)
        return cls(
            graph=body["graph"],
            version=body["version"],
            feasible=body["feasible"],
            mode=body["mode"],
            engine=body["engine"],
            reason=body.get("reason") or "",
            valid=body["certificate"]["valid"],
            counters=dict(body.get("counters") or {}),
            timings_ms=timings(body),
            proof=Barrier.from_json(proof, decimals) if proof else None,
            flow=Flow.from_json(flow, decimals) if flow else None,
            terminals=TerminalAmounts.from_json(terminals, decimals) if terminals else None,
        )


def question(
    name: str, source: Terminals | None, sink: Terminals | None, options: CirculationOptions
) -> Call[CirculationResult]:
    check_options("circulation()", options, CirculationOptions.__annotations__, WAITING)
    sources = _of_mappings(source, options.get("supply"), options.get("min_supply"))
    sinks = _of_mappings(sink, options.get("demand"), options.get("min_demand"))
    body = ends(sources, sinks, options.get("supply"), options.get("demand"))
    _, supply = capped(sources, options.get("min_supply"), "min_supply", 0)
    _, demand = capped(sinks, options.get("min_demand"), "min_demand", 0)
    body |= {key: least for key, least in (("min_supply", supply), ("min_demand", demand)) if least is not None}
    body |= _lower(options.get("edges"), options.get("lower"))
    for key in ("rounding", "min_version", "time_limit_s"):
        if options.get(key) is not None:
            body[key] = options[key]
    wanted = one_or_many(options.get("fields") or ())
    if wanted:
        body["fields"] = wanted
    if "zeros" in options:
        body["flow"] = {"zeros": options["zeros"]}
    return Call("POST", graph_path(name) + "/circulation", CirculationResult.from_json, json_body(body), headers=ACCEPT)


def _of_mappings(given: Terminals | None, *amounts: Caps | None) -> Terminals | None:
    """The terminals that mappings name, unless they are given beside them."""
    mappings = [each for each in amounts if isinstance(each, Mapping)]
    return list(dict.fromkeys(vertex for each in mappings for vertex in each)) if given is None and mappings else given


def _lower(edges: Ids | None, lower: Any) -> dict[str, object]:
    if isinstance(lower, Mapping):
        if edges is not None:
            raise InvalidInput("a mapping of lower= names its edges: leave edges= out")
        return {"edges": [*lower], "lower": [*lower.values()]}
    if edges is None and lower is None:
        return {}
    if edges is None or lower is None:
        raise InvalidInput("lower= goes with edges=, or is a mapping of edges to amounts")
    refuse_set(edges, "edges")
    refuse_set(lower, "lower")
    column = as_column(edges)
    return {"edges": column, "lower": amount_column(as_column(lower), n_rows(column, "edges"), "lower")}
