"""state.cu: residuals at zero flow, the arcs' capacities, and the saturated cut that a cold solve starts from."""

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array, State, Topology, residuals
from gpu_engine.cuda.launch.grid import launch_strided


def zero_flow(topology: Topology, state: State) -> None:
    """Set residuals and pair sums to the capacities. O(n + m)."""
    n_arcs, wide = len(state.arcs), state.wide
    launch_strided("state.cu", "clear_residuals", n_arcs, wide, np.int32(n_arcs), state.arcs)
    _add_capacities(topology, state, residuals(state.arcs, wide), 3 if wide else 4)
    launch_strided("state.cu", "sum_pairs", n_arcs, wide, np.int32(n_arcs), state.arcs)


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


def saturate(state: State) -> None:
    """Fill every arc from S to T."""
    n_arcs = len(state.arcs)
    arguments = (np.int32(n_arcs), state.arcs, state.excess, state.source_side)
    launch_strided("state.cu", "saturate", n_arcs, state.wide, *arguments)
