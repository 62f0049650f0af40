"""An independent proof that a flow by edge keeps to the capacities of vertices; it knows no split network."""

import numpy as np
from numba import njit

from gpu_engine.networks.network import Network
from gpu_engine.types import ArcArray, UnitArray, VertexArray


def prove_throughput(network: Network, flow: UnitArray, vertices: VertexArray, capacity: UnitArray) -> list[str]:
    """What is wrong with a feasible flow, int64[m] along each edge: at most one line; [] for nothing.

    ``capacity`` int64[k] is that of the ``vertices``. O(n + m); 16 bytes a vertex.
    """
    passing = throughput(network, flow)[vertices]
    return [f"{passing[i]} units pass vertex {vertices[i]}" for i in np.flatnonzero(passing > capacity)[:1].tolist()]


def throughput(network: Network, flow: UnitArray) -> UnitArray:
    """int64[n]: what of a feasible flow, int64[m] along each edge, passes each vertex.

    That is what comes in and what it supplies, or, if more goes out than comes in, what goes out. O(n + m).
    """
    into, out_of = np.zeros(network.n_vertices, np.int64), np.zeros(network.n_vertices, np.int64)
    _add_up(network.edge_arc, network.reverse_arc, network.head, flow, into, out_of)
    return np.maximum(into, out_of, out=into)


@njit(cache=True, nogil=True)
def _add_up(
    edge_arc: ArcArray,
    reverse_arc: ArcArray,
    head: VertexArray,
    flow: UnitArray,
    into: UnitArray,
    out_of: UnitArray,
) -> None:
    for row in range(len(edge_arc)):
        arc, units = edge_arc[row], flow[row]
        if arc < 0 or units == 0:
            continue
        begin, end = head[reverse_arc[arc]], head[arc]
        if units < 0:
            begin, end = end, begin
        into[end] += abs(units)
        out_of[begin] += abs(units)
