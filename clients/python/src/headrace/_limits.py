"""What limits a flow: bottlenecks, the value against a factor, and the cheapest way to let more flow."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from numbers import Number
from typing import Any, Literal, Self, TypeAlias, TypedDict

import numpy as np

from headrace._amounts import Amount, Amounts, Exact, amount_column, exact
from headrace._bodies import json_body
from headrace._calls import WAITING, Call, Caps, Ids, Rounding, Terminals, ends, graph_path
from headrace._columns import as_column
from headrace._errors import InvalidInput
from headrace._files_of_columns import ACCEPT
from headrace._min_cost import CostCertificate
from headrace._mistakes import n_rows, refuse_set
from headrace._options import check_options
from headrace._results import EdgeId, Json, timings
from headrace._sequences import AmountColumn, Names

Factor: TypeAlias = int | float | Decimal | Fraction | str
"""A number that is not negative, or a fraction as text: "7/6"."""


class ParametricOptions(TypedDict, total=False):
    """Keyword arguments of `parametric`."""

    edges: Ids
    """The factor multiplies the capacities of these."""
    scale: Literal["supply", "demand"]
    """Or all caps of one side."""
    start: Factor
    """Where the curve begins, 0 by default."""
    to: Factor
    """Where it ends."""
    max_segments: int
    """Stop after so many, 10,000 at most and by default."""
    supply: Caps
    """At most this much out of each source; as a mapping, of the sources it names, which need not be named again."""
    demand: Caps
    """At most this much into each sink; or a mapping, as for `supply`."""
    rounding: Rounding
    """What becomes of caps with more decimals than the graph's: refused by default."""
    min_version: int
    """Refuse to answer for an older version of the graph."""
    time_limit_s: float
    """Stop after so many seconds."""


class ExpansionOptions(TypedDict, total=False):
    """Keyword arguments of `capacity_expansion`."""

    edges: Ids
    """The edges that may be widened."""
    price: Amounts
    """Of a unit more, 0 or more: one for all of `edges`, or one each."""
    max_add: Amounts
    """How much may be added: one amount for all of `edges`, or one each; any amount by default."""
    supply: Caps
    """At most this much out of each source; as a mapping, of the sources it names, which need not be named again."""
    demand: Caps
    """At most this much into each sink; or a mapping, as for `supply`."""
    rounding: Rounding
    """What becomes of amounts with more decimals than the graph's: refused by default."""
    min_version: int
    """Refuse to answer for an older version of the graph."""
    time_limit_s: float
    """Stop the solver after so many seconds."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Between `start` and `to` the value is ``constant + rate * factor``."""

    start: Fraction
    to: Fraction
    constant: Exact
    rate: Exact

    def at(self, factor: Factor) -> Fraction:
        return Fraction(self.constant) + Fraction(self.rate) * _exactly(factor)


@dataclass(frozen=True, slots=True)
class ParametricResult:
    """The maximum flow as a concave function of a factor, in segments from left to right."""

    graph: str
    version: int
    """The version of the graph this is the answer for."""
    value: Exact
    """At factor 1: the graph as it is."""
    segments: tuple[Segment, ...]
    complete: bool
    """False: the last segment ends before `to`, as there are more than were asked for."""
    engine: str
    valid: bool
    """Whether flows prove the value at both ends of each segment."""
    flows: int
    """How many flows were proven."""
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    lower: str | None = None
    """Lower bounds are "ignored", where edges have some: this keeps none."""

    def at(self, factor: Factor) -> Fraction:
        """The value at a factor, exact; a float is its shortest decimal. Raises `InvalidInput` outside of the curve."""
        wanted = _exactly(factor)
        if not self.segments[0].start <= wanted <= self.segments[-1].to:
            raise InvalidInput(f"the curve is from {self.segments[0].start} to {self.segments[-1].to}, not at {wanted}")
        return self.segments[bisect_left(self.segments, wanted, key=lambda one: one.to)].at(wanted)

    @classmethod
    def from_json(cls, body: Json) -> Self:
        columns = [body["segments"][name] for name in ("from", "to", "constant", "rate")]
        segments = (
            Segment(Fraction(start), Fraction(to), exact(constant), exact(rate))
            for start, to, constant, rate in zip(*columns, strict=True)
        )
        return cls(
            graph=body["graph"],
            version=body["version"],
            value=exact(body["value"]),
            segments=tuple(segments),
            complete=body["complete"],
            engine=body["engine"],
            valid=body["certificate"]["valid"],
            flows=body["certificate"]["flows"],
            timings_ms=timings(body),
            lower=body.get("lower"),
        )


@dataclass(frozen=True, slots=True)
class ExpansionResult:
    """What to add to which edges; nothing of it is done. ``graph.patch(edges=found.edges, add=found.add)`` does it."""

    graph: str
    version: int
    """The version of the graph this is the answer for."""
    value: Exact
    """What can flow then."""
    maximum: Exact
    """What can flow today."""
    price: Exact
    """Of all that is added; nothing cheaper lets so much flow."""
    edges: Names[EdgeId]
    add: AmountColumn
    engine: str
    certificate: CostCertificate
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    lower: str | None = None
    """Lower bounds are "ignored", where edges have some: this keeps none."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        return cls(
            graph=body["graph"],
            version=body["version"],
            value=exact(body["value"]),
            maximum=exact(body["maximum"]),
            price=exact(body["price"]),
            edges=Names.of(body["edges"]),
            add=AmountColumn.of(body["add"], body.get("decimals", 0)),
            engine=body["engine"],
            certificate=CostCertificate.from_json(body["certificate"]),
            timings_ms=timings(body),
            lower=body.get("lower"),
        )


def parametric(
    name: str, source: Terminals | None, sink: Terminals | None, options: ParametricOptions
) -> Call[ParametricResult]:
    check_options("parametric()", options, ParametricOptions.__annotations__, WAITING)
    body = _body(source, sink, options, ("scale", "max_segments"))
    if "edges" in options:
        body["edges"] = as_column(options["edges"])
    if "start" in options:
        body["from"] = _factor(options["start"], "start")
    if "to" in options:
        body["to"] = _factor(options["to"], "to")
    return Call("POST", graph_path(name) + "/parametric", ParametricResult.from_json, json_body(body))


def expansion(
    name: str, raise_by: Amount, source: Terminals | None, sink: Terminals | None, options: ExpansionOptions
) -> Call[ExpansionResult]:
    check_options("capacity_expansion()", options, ExpansionOptions.__annotations__, ("raise_by", *WAITING))
    for needed in ("edges", "price"):
        if needed not in options:
            raise TypeError(f"capacity_expansion() needs {needed}=")
    for column, amounts in (("price", options["price"]), ("max_add", options.get("max_add"))):
        if amounts is not None and not isinstance(amounts, Number):  # one for all may go with edges in any order
            refuse_set(options["edges"], "edges")
            refuse_set(amounts, column)
    edges: Any = as_column(options["edges"])
    body = _body(source, sink, options, ()) | {"raise_by": raise_by, "edges": edges}
    body["price"] = amount_column(as_column(options["price"]), n_rows(edges, "edges"), "price")
    if "max_add" in options:
        body["max_add"] = amount_column(as_column(options["max_add"]), n_rows(edges, "edges"), "max_add")
    path = graph_path(name) + "/capacity-expansion"
    return Call("POST", path, ExpansionResult.from_json, json_body(body), headers=ACCEPT)


def _body(
    source: Terminals | None, sink: Terminals | None, options: Mapping[str, Any], others: Sequence[str]
) -> dict[str, object]:
    body = ends(source, sink, options.get("supply"), options.get("demand"))
    named = ("rounding", "min_version", "time_limit_s", *others)
    return body | {key: options[key] for key in named if options.get(key) is not None}


def _factor(given: Factor, name: str) -> object:
    """A factor as it is sent, exact."""
    if isinstance(given, str | Fraction):
        return str(given)
    if isinstance(given, int | float | Decimal | np.generic) and not isinstance(given, bool):
        return given
    raise InvalidInput(f"{name}={given!r} is no factor: that is a number, a Fraction, or text such as '7/6'")


def _exactly(factor: Factor) -> Fraction:
    """The factor that the service reads in what is sent: 0.1 is one tenth. Raises `InvalidInput`."""
    try:
        return Fraction(str(_factor(factor, "factor")))
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(f"{factor!r} is no factor: that is a number, a Fraction, or text such as '7/6'") from None
