"""Reading a solved state on the host: its cut, and what limits its flow. The state is not changed."""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_engine.control import Control
from gpu_engine.cpu import bottlenecks, cuts
from gpu_engine.engine import Bottlenecks, Cut
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import COMPONENT_BYTES, Footprint, Room
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, ArcArray, BoolArray, End, UnitArray, VertexArray

MANY: Final = 512
"""Where a cut has more ends than one for this many vertices of the network, one search of the whole sink side takes no
longer than a search from each end."""


class Ends(Protocol):
    """What a flow state says of vertices, on the host: see `gpu_engine.cpu.repair` for what holds of it."""

    terminals: Terminals
    role: NDArray[np.int8]
    excess: UnitArray
    source_side: BoolArray
    value: int


class Solved(Ends, Protocol):
    """A flow state whose arrays are on the host."""

    residual: UnitArray


@dataclass(slots=True)
class HostCopy:
    """A `Solved` that was copied from elsewhere."""

    terminals: Terminals
    role: NDArray[np.int8]
    residual: UnitArray
    excess: UnitArray
    source_side: BoolArray
    value: int


def cut(network: Network, state: Solved, control: Control | None = None, near: End = "sources") -> Cut:
    """The minimum cut nearest this end, and whether it is the only one. O(n + m). Raises `Cancelled`.

    A minimum cut is the only one if each edge that it pays for leads from inside the least source side to outside the
    greatest one, and its capped terminals lie likewise: then every other minimum cut pays for all of these as well, and
    for nothing else, since both cost the same.
    """
    slots = (control or Control()).slots
    solved = _solved(network, state)
    least = cuts.least_source_side(*solved, slots)
    side = least if near == "sources" else ~cuts.least_sink_side(*solved, slots)
    edges = cuts.leaving(*solved[:3], network.edge_arc, network.capacity, network.undirected, side, slots)
    paid = state.terminals.paid_by(side)
    ends = np.concatenate([*network.edge_ends(edges), paid.sources, paid.sinks])
    beyond = ends[~side[ends]]
    if near == "sources" and len(beyond) * MANY > network.n_vertices:
        unique = bool(cuts.least_sink_side(*solved, slots)[beyond].all())
    elif near == "sources":
        unique = cuts.all_reach_deficits(*solved, least, beyond, slots)
    else:
        unique = bool(least[ends[side[ends]]].all())
    go_on(control)
    return Cut(side, edges, state.value, unique)


def limits(network: Network, state: Solved, room: Room, control: Control | None = None) -> Bottlenecks:
    """What some minimum cut pays, and what all do. O(n + m). ``room`` is asked for 24 bytes a vertex, if there are
    several minimum cuts. Raises `Cancelled`."""
    slots = (control or Control()).slots
    least, greatest = _least_and_greatest(network, state, slots)
    go_on(control)
    place = least.view(np.int8) + greatest.view(np.int8)
    component = np.empty(0, np.int32)
    if (place == bottlenecks.BETWEEN).any():
        room(Footprint(COMPONENT_BYTES * network.n_vertices))
        component = bottlenecks.components(network.row_offsets, network.head, state.residual, place, slots)
    links = network.edge_arc, network.head, network.reverse_arc, network.capacity, network.undirected
    edges, in_every = bottlenecks.cut_edges(*links, state.residual, place, component, slots)
    go_on(control)
    ends = state.terminals
    sources = ends.sources[(ends.supply != INFINITE) & (ends.supply > 0) & ~least[ends.sources]]
    sinks = ends.sinks[(ends.demand != INFINITE) & (ends.demand > 0) & greatest[ends.sinks]]
    return Bottlenecks(edges, in_every, sources, ~greatest[sources], sinks, least[sinks])


def _least_and_greatest(network: Network, state: Solved, slots: NDArray[np.int64]) -> tuple[BoolArray, BoolArray]:
    """bool[n] each: the least and the greatest source side of all minimum cuts."""
    solved = _solved(network, state)
    return cuts.least_source_side(*solved, slots), ~cuts.least_sink_side(*solved, slots)


def _solved(
    network: Network, state: Solved
) -> tuple[ArcArray, VertexArray, ArcArray, UnitArray, UnitArray, NDArray[np.int8], BoolArray]:
    """What the kernels of `gpu_engine.cpu.cuts` take, in their order."""
    rows = network.row_offsets, network.head, network.reverse_arc
    return *rows, state.residual, state.excess, state.role, state.source_side


def go_on(control: Control | None) -> None:
    """Between passes over all arcs: raises `Cancelled` if the flag is up."""
    if control is not None and control.cancelled:
        raise Cancelled("cancelled between two passes over the arcs")
