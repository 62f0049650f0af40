"""From link flows to edge flows."""

import numpy as np
from numba import njit

from gpu_engine.networks.network import Network
from gpu_engine.types import ArcArray, BoolArray, UnitArray


@njit(cache=True, nogil=True)
def flow_residual(reverse_arc: ArcArray, capacity: UnitArray, residual: UnitArray) -> UnitArray:
    """Residuals that allow nothing but cancelling: on each arc, the flow its reverse carries. int64[arcs]."""
    back = np.zeros(len(residual), np.int64)
    for a in range(len(residual)):
        flow = capacity[a] - residual[a]
        if flow > 0:
            back[reverse_arc[a]] = flow
    return back


@njit(cache=True, nogil=True)
def add_returned(reverse_arc: ArcArray, capacity: UnitArray, residual: UnitArray, back: UnitArray) -> None:
    """Change ``residual`` by what has become of `flow_residual` of it, ``back``: from the arc of each pair that carries
    flow, as the others are as they were."""
    for a in range(len(residual)):
        flow = capacity[a] - residual[a]
        if flow > 0:
            r = reverse_arc[a]
            residual[a] += back[a]
            residual[r] += back[r] - flow


def distribute(network: Network, arc_flow: UnitArray) -> UnitArray:
    """Give each link's net flow to its edges: int64[m] along each edge.

    ``arc_flow`` int64[arcs] is antisymmetric, and used up. Edges that can carry the flow in its direction take it in
    row order, each filled before the next; the others carry nothing.
    """
    undirected = np.array(np.broadcast_to(network.undirected, (network.n_edges,)))
    return distribute_edges(network.edge_arc, network.reverse_arc, network.capacity, undirected, arc_flow)


@njit(cache=True, nogil=True)
def distribute_edges(
    edge_arc: ArcArray, reverse_arc: ArcArray, capacity: UnitArray, undirected: BoolArray, left: UnitArray
) -> UnitArray:
    """`distribute` for the edges whose arcs are ``edge_arc`` int32[k]; ``undirected`` bool[k]."""
    flow = np.zeros(len(edge_arc), np.int64)
    for edge in range(len(edge_arc)):
        a = edge_arc[edge]
        if a < 0:
            continue
        r = reverse_arc[a]
        if left[a] > 0:
            flow[edge] = min(left[a], capacity[edge])
            left[a] -= flow[edge]
        elif undirected[edge] and left[r] > 0:
            flow[edge] = -min(left[r], capacity[edge])
            left[r] += flow[edge]
    return flow
