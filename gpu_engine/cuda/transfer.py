"""Flow states between the device, where each has an order of the arcs of its own, and the host."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cpu.carried import FEW, Carried
from gpu_engine.cpu.derive import HostCopy
from gpu_engine.cpu.routes import is_dense
from gpu_engine.cuda.launch.arrays import Array, State, Topology, heads_and_reverses, residuals
from gpu_engine.cuda.launch.state import arc_capacity, zero_flow
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, BoolArray, UnitArray


class SolvedState(State, Protocol):
    """A `State` with what it was solved for."""

    terminals: Terminals
    value: int


@dataclass(slots=True)
class HostEnds:
    """The `gpu_engine.cpu.derive.Ends` of a state on the device."""

    terminals: Terminals
    role: NDArray[np.int8]
    excess: UnitArray
    source_side: BoolArray
    value: int


def ends_on_host(state: SolvedState) -> HostEnds:
    """What the state says of vertices: 10 bytes each."""
    return HostEnds(state.terminals, state.role.get(), state.excess.get(), state.source_side.get(), state.value)


def host_copy(network: Network, topology: Topology, state: SolvedState) -> HostCopy:
    """The state in the network's order, for `gpu_engine.cpu.derive`."""
    ends = ends_on_host(state)
    residual = residual_on_host(network, topology, state)
    return HostCopy(ends.terminals, ends.role, residual, ends.excess, ends.source_side, ends.value)


def few_on_host(network: Network, topology: Topology, state: State, *, acyclic: bool) -> Carried | None:
    """What flows, by edge, if few links carry flow and it can be read from these alone
    (`gpu_engine.cpu.edge_flows.may_be_few`). The rest stays on the device."""
    if network.n_infinite or not network.n_arcs:
        return None
    flow = arc_capacity(topology, state)
    if acyclic and not is_dense(int(cupy.count_nonzero(flow)), network.n_vertices, network.n_arcs):
        return None
    flow -= residuals(state.arcs, state.wide)
    by_edge = flow[cupy.maximum(state.edge_arc, 0)]
    by_edge[state.edge_arc < 0] = 0
    rows = cupy.flatnonzero(by_edge)
    if len(rows) > network.n_edges // FEW:
        return None
    return Carried(rows.get(), by_edge[rows].get().astype(np.int64))


def residual_on_host(network: Network, topology: Topology, state: State) -> UnitArray:
    """int64[arcs] in the network's order, in the CPU engine's terms for infinite arcs."""
    own = residuals(state.arcs, state.wide)
    if network.n_infinite:
        own = own - arc_capacity(topology, state)
    given = cupy.empty(len(own), own.dtype)
    for there, here in _places(network, state):
        given[there] = own[here]
    residual: UnitArray = given.get().astype(np.int64)
    if network.n_infinite:
        residual += network.arc_capacity()
    return residual


def flow_on_host(network: Network, topology: Topology, state: State) -> UnitArray:
    """int64[arcs] in the network's order."""
    return network.arc_capacity() - residual_on_host(network, topology, state)


def put_flow(network: Network, topology: Topology, state: State, flow: UnitArray) -> None:
    """Give the state the residuals of a flow, int64[arcs] in the network's order. ValueError for another size."""
    zero_flow(topology, state)
    column = residuals(state.arcs, state.wide)
    if flow.shape != column.shape:
        raise ValueError(f"flow of {len(flow)} arcs")
    capacity, sent = column.copy(), cupy.asarray(flow.astype(column.dtype))
    for there, here in _places(network, state):
        column[here] = capacity[here] - sent[there]


def _places(network: Network, state: State) -> Iterator[tuple[Array, Array]]:
    """Index arrays of arcs in the network and of these arcs in the state: those with edges, then their reverses."""
    given = cupy.asarray(network.edge_arc)
    kept = given >= 0
    there, here = given[kept], state.edge_arc[kept]
    yield there, here
    yield cupy.asarray(network.reverse_arc)[there], heads_and_reverses(state.arcs)[1][here]


def own_supply(n_vertices: int, terminals: Terminals) -> Array:
    """`gpu_engine.checks.certificate.own_supply` on the device, int64[n]: a vector of zeros need not be sent there."""
    own = cupy.zeros(n_vertices, np.int64)
    for vertices, caps in ((terminals.sources, terminals.supply), (terminals.sinks, -terminals.demand)):
        capped = np.abs(caps) != INFINITE
        if capped.any():
            own[cupy.asarray(vertices[capped])] += cupy.asarray(caps[capped])
    return own
