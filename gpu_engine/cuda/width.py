"""Whether residuals fit int32: half the bytes of a search, and most networks have small capacities."""

from typing import Final

import cupy

from gpu_engine.cuda import launch
from gpu_engine.cuda.launch import Topology
from gpu_engine.cuda.memory import DeviceFull
from gpu_engine.networks.network import Network

NARROW_LIMIT: Final = 1 << 30
"""Pair sums below this fit int32 residuals."""


def needs_wide(network: Network, topology: Topology) -> bool:
    """Narrow if every pair sum and the whole flow stay below 2**30. O(m) only where the totals do not decide."""
    if network.finite_total < NARROW_LIMIT:
        return False
    if network.n_infinite:
        return True
    # A pair sum has the capacities of two arcs, twice where edges are undirected. Mostly this bound will do.
    try:
        if 4 * launch.largest_sum(topology, cupy.asarray(network.edge_arc)) < NARROW_LIMIT:
            return False
    except DeviceFull:
        pass  # the host has room to look closer
    capacity = network.arc_capacity()
    pairs = capacity + capacity[network.reverse_arc]
    return int(pairs.max(initial=0)) >= NARROW_LIMIT
