"""The flow of each edge, read from a solved state on the host, which is not changed.

A solved state may hold back excess on its source side and lack some on its sink side. Both are taken back along the
flow itself, cycles and detours are taken out, and each link's flow is given to its edges. Where few links carry flow,
as between two vertices of a large network, all of this is done on these links alone.
"""

import numpy as np

from gpu_engine.control import Control
from gpu_engine.cpu import sides
from gpu_engine.cpu.carried import Carried, Part, carried_by, part_of
from gpu_engine.cpu.decompose import add_returned, distribute, flow_residual
from gpu_engine.cpu.derive import Ends, Solved, go_on
from gpu_engine.cpu.drain import drain
from gpu_engine.cpu.routes import is_dense, straighten, straighten_used
from gpu_engine.cpu.scratch import SCRATCH
from gpu_engine.networks.free import free_vertices, route_free_flow
from gpu_engine.networks.network import Network
from gpu_engine.types import INFINITE, Links, UnitArray


def edge_flow(
    network: Network, state: Solved, capacity: UnitArray, control: Control | None = None, *, acyclic: bool = True
) -> UnitArray:
    """int64[m]: see `gpu_engine.engine.Engine.flow`. ``capacity`` int64[arcs]. About a solve, or, where few links carry
    flow, a look at each arc and edge. Raises `Cancelled`."""
    control = control or Control()
    if may_be_few(network, capacity, acyclic=acyclic):
        few = carried_by(network, capacity, state.residual)
        if few is not None:
            return flow_of_few(network, state, few, control, acyclic=acyclic)
    free = free_vertices(network, state.terminals)
    residual, excess = state.residual.copy(), state.excess.copy()
    for deficits in (False, True):
        _return(network, state, capacity, residual, excess, control, deficits)
    route_free_flow(network, free, residual, excess)
    go_on(control)
    np.subtract(capacity, residual, out=residual)
    del excess, free
    if acyclic:
        straighten(network, state.terminals, capacity, residual, state.value, control)
    return distribute(network, residual)


def may_be_few(network: Network, capacity: UnitArray, *, acyclic: bool) -> bool:
    """Whether the flow of few links can be read from these alone: no infinite edge passes any on, and no shorter way is
    to be looked for among links that carry nothing."""
    if network.n_infinite:
        return False
    return not acyclic or is_dense(int(np.count_nonzero(capacity)), network.n_vertices, network.n_arcs)


def flow_of_few(network: Network, state: Ends, few: Carried, control: Control, *, acyclic: bool) -> UnitArray:
    """int64[m]: `edge_flow` where all that flows is ``few``; no edge may be infinite. O(n) and a solve on these links.
    Raises `Cancelled`."""
    part = part_of(network, state.terminals, few)
    own = _EndsOfPart(part, state)
    residual = part.capacity - part.flow
    for deficits in (False, True):
        _return(part, own, part.capacity, residual, own.excess, control, deficits)
    flow = part.capacity - residual
    if acyclic:
        size = network.n_vertices, network.n_arcs
        straighten_used(part, own.terminals, part.capacity, flow, own.value, control, size)
    return part.by_edge(network, flow)


class _EndsOfPart:
    """What a state says of the vertices of a part, by their numbers there."""

    def __init__(self, part: Part, state: Ends) -> None:
        self.terminals, self.value = part.terminals, state.value
        self.role, self.source_side = state.role[part.vertices], state.source_side[part.vertices]
        self.excess = state.excess[part.vertices]


def _return(
    links: Links,
    state: Ends,
    capacity: UnitArray,
    residual: UnitArray,
    excess: UnitArray,
    control: Control,
    deficits: bool,
) -> None:
    """Send the excess of S back to sources, or (``deficits``) draw what T lacks from sinks.

    Only flow at hand is cancelled: a drain over arcs whose residual is the flow of their reverse.
    """
    caps = state.terminals
    vertices, amounts = (caps.sinks, caps.demand) if deficits else (caps.sources, caps.supply)
    capped = amounts != INFINITE
    shift = np.zeros_like(excess)  # an unused supply or demand may stay where it is
    shift[vertices[capped]] = amounts[capped] * (-1 if deficits else 1)
    role = sides.drain_roles(state.role, state.source_side, not deficits)
    excess -= shift
    if sides.holds_any(role, excess, deficits):
        back = flow_residual(links.reverse_arc, capacity, residual)
        go_on(control)
        drain(links, back, excess, role, control, SCRATCH, mirrored=deficits, exact=True)
        go_on(control)
        add_returned(links.reverse_arc, capacity, residual, back)
    excess += shift
