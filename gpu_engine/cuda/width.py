"""Whether residuals fit int32: half the bytes of a search, and most networks have small capacities."""

from collections.abc import Iterable

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array, Topology
from gpu_engine.cuda.layout import NARROW_LIMIT
from gpu_engine.cuda.memory import DeviceFull
from gpu_engine.cuda.state import CudaFlowState
from gpu_engine.networks.network import Network


def needs_wide(network: Network, topology: Topology) -> bool:
    """Narrow if every pair sum and the whole flow stay below 2**30. O(m) only where the totals do not decide."""
    if network.finite_total < NARROW_LIMIT:
        return False
    if network.n_infinite:
        return True
    # A pair sum has the capacities of two arcs, twice where edges are undirected. Mostly this bound will do.
    try:
        if 4 * _largest_sum(topology, cupy.asarray(network.edge_arc)) < NARROW_LIMIT:
            return False
    except DeviceFull:
        pass  # the host has the memory to look closer
    capacity = network.arc_capacity()
    pairs = capacity + capacity[network.reverse_arc]
    return int(pairs.max(initial=0)) >= NARROW_LIMIT


def _largest_sum(topology: Topology, edge_arc: Array) -> int:
    """The largest sum of the edges of one direction of a link, all finite. Scratch: 8 bytes an arc."""
    sums = cupy.zeros(topology.n_arcs, np.int64)
    kept = edge_arc >= 0
    cupy.add.at(sums, edge_arc[kept], topology.capacity[kept])
    return int(sums.max()) if len(sums) else 0


def widen(network: Network, topology: Topology, states: Iterable[CudaFlowState]) -> None:
    """Make states wide after an update where they have to be: those that are not solved, and all of them if an edge is
    infinite."""
    if network.finite_total < NARROW_LIMIT:
        return
    narrow = [state for state in states if not state.wide and (not state.solved or network.n_infinite)]
    if narrow and needs_wide(network, topology):
        for state in narrow:
            state.widen()
