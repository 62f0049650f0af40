"""state.cu: residuals at zero flow, the arcs' capacities, the saturated cut that a cold solve starts from, and the
edges of a cut."""

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array, State, Topology, residuals
from gpu_engine.cuda.launch.grid import launch_strided
from gpu_engine.footprint import HUB_ROW


def zero_flow(topology: Topology, state: State) -> None:
    """Set residuals to the capacities, and pair sums if the state does not keep them. O(n + m)."""
    n_arcs, wide = len(state.arcs), state.wide
    launch_strided("state.cu", "clear_residuals", n_arcs, wide, np.int32(n_arcs), state.arcs)
    _add_capacities(topology, state, residuals(state.arcs, wide), 3 if wide else 4)
    if not state.keeps_pair_sums:
        launch_strided("state.cu", "sum_pairs", n_arcs, wide, np.int32(n_arcs), state.arcs)
        state.keeps_pair_sums = True


def arc_capacity(topology: Topology, state: State) -> Array:
    """The arcs' capacities in the units of the records, an infinite one as the state holds it. O(n + m)."""
    capacity = cupy.zeros(len(state.arcs), np.int64 if state.wide else np.int32)
    _add_capacities(topology, state, capacity, 1)
    return capacity


def _add_capacities(topology: Topology, state: State, out: Array, stride: int) -> None:
    """Sum the edges' capacities up in ``out``, zero before, whose items are ``stride`` apart; infinite edges last."""
    m = len(topology.capacity)
    edge_arc, *undirected = topology.edges(state)
    for infinite in (False, True):
        edges = (np.int32(m), edge_arc, topology.capacity, *undirected, np.bool_(infinite))
        launch_strided("state.cu", "add_capacities", m, state.wide, *edges, state.arcs, out, np.int32(stride))


def saturate(topology: Topology, state: State) -> None:
    """Fill every arc from S to T. O(n + arcs of S)."""
    n, wide, flow = topology.n, state.wide, (state.arcs, state.excess, state.source_side)
    most = topology.n_arcs // HUB_ROW + 1
    hubs = cupy.empty(most + 1, np.int32)
    hubs[most:].fill(0)
    listed = hubs[:most], hubs[most:]
    launch_strided("state.cu", "saturate", n, wide, np.int32(n), topology.row_offsets, *flow, *listed)
    if most > 1:
        launch_strided("state.cu", "saturate_hubs", topology.n_arcs, wide, topology.row_offsets, *flow, *listed)


def leaving(topology: Topology, state: State, side: Array, reached: Array, *, inside: bool) -> tuple[Array, bool]:
    """The edges with capacity that lead out of ``side`` bool[n], int64[...] rising, and whether ``reached`` bool[n] has
    the end of each that lies ``inside`` it, or else the other one. O(m)."""
    m = len(topology.capacity)
    leaves = cupy.empty(m, np.bool_)
    astray = cupy.empty(1, np.bool_)
    astray.fill(0)
    edge_arc, *undirected = topology.edges(state)
    edges = (np.int32(m), edge_arc, topology.capacity, *undirected, state.arcs, side, reached, np.bool_(inside))
    launch_strided("state.cu", "find_leaving", m, state.wide, *edges, leaves, astray)
    return cupy.flatnonzero(leaves), not astray.get()[0]
