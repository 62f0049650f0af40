"""Vertices and amounts of a question: labels and decimal literals to rows and units."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpu_engine.errors import ROWS_SHOWN, EngineError, InvalidNetwork, InvalidTerminals
from gpu_engine.networks.network import Network
from gpu_engine.networks.refused import unknown_vertices
from gpu_engine.networks.rounding import Rounding
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.units import read_amounts
from gpu_engine.networks.updates import vertices_named
from gpu_engine.networks.validate import twice
from gpu_engine.text.literals import read_literals
from gpu_engine.types import INFINITE, UnitArray, VertexArray
from service.protocol import MaxFlowArgs, MinCostFlowArgs, TerminalArgs


def read_terminals(
    network: Network, args: MaxFlowArgs | MinCostFlowArgs | TerminalArgs, *, may_be_empty: bool = False
) -> Terminals:
    """The terminals that a question names, or else those of the graph. Each side ``may_be_empty``, or must not.

    Raises `InvalidTerminals`, `SourceIsSink` or InvalidNetwork, naming vertices as the caller does.
    """
    sources = _side(network, args.sources, network.source, "source", may_be_empty)
    sinks = _side(network, args.sinks, network.sink, "sink", may_be_empty)
    supply = _caps(network, args.supply, args.sources, "supply", args.rounding)
    demand = _caps(network, args.demand, args.sinks, "demand", args.rounding)
    try:
        return Terminals.of(sources, sinks, supply, demand, may_be_empty=may_be_empty)
    except EngineError as error:  # it knows indices only
        names = network.vertex_labels.of(np.array(error.where.vertices, np.int64))
        told = f"{error.message}: {', '.join(map(repr, names))}" if names else error.message
        raise type(error)(told, error.rows, vertices=names, field=error.where.field) from None


def read_vertices(network: Network, given: Sequence[int] | Sequence[str], kind: str, field: str) -> VertexArray:
    """int32[k]: the vertices of these names. Raises `UnknownVertex` with those the graph does not have."""
    rows = vertices_named(network, given)
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        first = unknown[:ROWS_SHOWN].tolist()
        names = [given[i] for i in first]
        raise unknown_vertices(network, names, first, kind=kind, count=len(unknown), field=field)
    return rows.astype(np.int32)


def read_distinct_vertices(
    network: Network, given: Sequence[int] | Sequence[str], kind: str, field: str
) -> VertexArray:
    """As `read_vertices`. Raises `InvalidTerminals` for a vertex that is named twice."""
    rows = read_vertices(network, given, kind, field)
    at = twice(rows)
    if at:
        names = [given[at[0]]]
        raise InvalidTerminals(f"{names[0]!r} is named twice", at, field=field, vertices=names)
    return rows


def read_units(network: Network, literals: Sequence[str], rounding: Rounding, field: str) -> UnitArray:
    """int64[k]: the amounts of a column of the body. Raises `InvalidNetwork` and `CapacityOverflow` with its rows."""
    decimals = network.decimals
    try:
        return read_literals(literals, decimals, lambda i: read_amounts([literals[i]], decimals, [i], rounding)[0])
    except EngineError as error:
        raise type(error)(error.message, error.rows, field=field) from None


def read_unit(network: Network, literal: str, rounding: Rounding, field: str) -> int:
    """One finite amount of the body, in units. Raises `InvalidNetwork` and `CapacityOverflow`, which name no row."""
    try:
        (units,) = read_amounts([literal], network.decimals, [None], rounding)
        if units == INFINITE:
            raise InvalidNetwork('this amount is a number, not "inf"')
    except EngineError as error:
        raise type(error)(error.message, field=field) from None
    return int(units)


def read_least(
    network: Network,
    literals: Sequence[str] | None,
    given: Sequence[int] | Sequence[str] | None,
    terminals: VertexArray,
    kind: str,
    rounding: Rounding,
) -> UnitArray | None:
    """int64[terminals]: what is asked for at least of each of the rising ``terminals``, which are ``given`` in any
    order. Raises as `read_terminals`."""
    amounts = _caps(network, literals, given, kind, rounding)
    if amounts is None or given is None:
        return None
    least = np.empty_like(amounts)
    least[np.searchsorted(terminals, vertices_named(network, given))] = amounts
    return least


def _side(
    network: Network,
    given: Sequence[int] | Sequence[str] | None,
    default: int | None,
    kind: str,
    may_be_empty: bool,
) -> VertexArray | list[int]:
    if given is not None:
        return read_vertices(network, given, kind, f"/{kind}s")
    if default is None and may_be_empty:
        return []
    if default is None:
        detail = (
            f"no {kind} is given and the graph has none of its own: name one in `{kind}s`, "
            f"as {kind}= in Python or by --{kind} in the shell"
        )
        raise InvalidTerminals(detail, field=f"/{kind}s")
    return [default]


def _caps(
    network: Network,
    literals: Sequence[str] | None,
    vertices: Sequence[int] | Sequence[str] | None,
    kind: str,
    rounding: Rounding,
) -> UnitArray | None:
    if literals is None:
        return None
    if vertices is None or len(vertices) != len(literals):
        side = "sources" if kind.endswith("supply") else "sinks"
        count = "which are not named" if vertices is None else f"not {len(literals)} for {len(vertices)}"
        raise InvalidTerminals(f"there is one amount for each of `{side}`, {count}", field=f"/{kind}")
    decimals, given = network.decimals, vertices
    try:
        return read_literals(literals, decimals, lambda i: read_amounts([literals[i]], decimals, [i], rounding)[0])
    except EngineError as error:
        at = [row for row in error.rows if isinstance(row, int)]
        error.where = replace(error.where, vertices=[given[row] for row in at], field=f"/{kind}")
        raise
