"""Vertices and amounts of a question: labels and decimal literals to rows and units."""

from collections.abc import Sequence

import numpy as np

from gpu_engine.errors import InvalidTerminals
from gpu_engine.networks.network import Network
from gpu_engine.networks.rounding import Rounding
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.units import read_amounts
from gpu_engine.networks.updates import rows_of
from gpu_engine.text.literals import read_literals
from gpu_engine.types import UnitArray, VertexArray
from service.protocol import MaxFlowArgs


def read_terminals(network: Network, args: MaxFlowArgs) -> Terminals:
    """Raises `InvalidTerminals`, `SourceIsSink` or InvalidNetwork, naming vertices as the caller does."""
    sources = _side(network, args.sources, network.source, "source")
    sinks = _side(network, args.sinks, network.sink, "sink")
    supply = _caps(network, args.supply, args.sources, "supply", args.rounding)
    demand = _caps(network, args.demand, args.sinks, "demand", args.rounding)
    return Terminals.of(sources, sinks, supply, demand)


def read_vertices(network: Network, given: Sequence[int] | Sequence[str], kind: str) -> VertexArray:
    """int32[k]: the vertices of these names. Raises `InvalidTerminals` with those the graph does not have."""
    rows = rows_of(network.vertex_labels, given)
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        raise InvalidTerminals(f"{len(unknown)} unknown {kind} vertices", [given[i] for i in unknown[:10].tolist()])
    return rows.astype(np.int32)


def _side(
    network: Network, given: Sequence[int] | Sequence[str] | None, default: int | None, kind: str
) -> VertexArray | list[int]:
    if given is not None:
        return read_vertices(network, given, kind)
    if default is None:
        raise InvalidTerminals(f"no {kind} is given and the graph has none of its own")
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
        raise InvalidTerminals(f"{len(literals)} amounts of {kind} need as many vertices")
    decimals, given = network.decimals, vertices
    return read_literals(literals, decimals, lambda i: read_amounts([literals[i]], decimals, [given[i]], rounding)[0])
