"""Nested cuts of a flow: levels of vertices, so that those up to each level are the source side of a cut.

Two kinds, each found in one search of the network: the minimum cuts, in an order in which no residual arc leads up
(Picard and Queyranne, "On the structure of all minimum cuts in a network and applications", Mathematical Programming
Study 13 (1980)); and where all ways from the source to the sink pass one vertex or one edge, the cuts behind these
(Hopcroft and Tarjan, "Algorithm 447: efficient algorithms for graph manipulation", Communications of the ACM 16
(1973)). What they show is proven by `gpu_engine.checks.levels`.
"""

from collections.abc import Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.closures.domains import residual_arcs
from gpu_engine.control import Control
from gpu_engine.cpu.bottlenecks import BETWEEN, components
from gpu_engine.errors import Cancelled
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import ArcArray, UnitArray, VertexArray

LEVEL_BYTES_ARC = 24
LEVEL_BYTES_VERTEX = 40
"""Bytes for each vertex that `levels` takes at most."""


def levels(network: Network, terminals: Terminals, flow: UnitArray, control: Control) -> Iterator[VertexArray]:
    """int32[n] each, from 0 on, of a maximum flow int64[m]. O(n + m). Raises `Cancelled`."""
    arcs = network.row_offsets, network.head
    if len(terminals.sources) == len(terminals.sinks) == 1:
        capacity = network.arc_capacity()
        is_open = (capacity > 0) | (capacity[network.reverse_arc] > 0)
        yield between(*arcs, is_open, int(terminals.sources[0]), int(terminals.sinks[0]))
    residual = residual_arcs(network, flow)
    everywhere = np.full(network.n_vertices, BETWEEN, np.int8)
    found = components(*arcs, residual, everywhere, control.slots)
    if control.cancelled:
        raise Cancelled("cancelled while minimum cuts are put in order")
    yield found


@njit(cache=True, nogil=True)
def between(
    row_offsets: ArcArray, head: VertexArray, is_open: NDArray[np.bool_], source: int, sink: int
) -> VertexArray:
    """int32[n]: through how many vertices and edges, after one another, each way from the source leads that goes on to
    the sink; 0 everywhere if none does. Depth first, with the earliest vertex that each subtree is linked with."""
    n = len(row_offsets) - 1
    rank, low, parent = np.zeros(n, np.int32), np.zeros(n, np.int32), np.full(n, -1, np.int32)
    current, order, level = row_offsets[:n].copy(), np.empty(n, np.int32), np.zeros(n, np.int32)
    rank[source] = low[source] = 1
    order[0] = source
    ranked, v = 1, source
    while v >= 0:
        if current[v] == row_offsets[v + 1]:
            if parent[v] >= 0:
                low[parent[v]] = min(low[parent[v]], low[v])
            v = parent[v]
            continue
        a = current[v]
        current[v] += 1
        w = int(head[a])
        if not is_open[a]:
            continue
        if rank[w] > 0:
            low[v] = min(low[v], rank[w] if w != parent[v] else rank[v])
            continue
        parent[w] = v
        order[ranked] = w
        ranked += 1
        rank[w] = low[w] = ranked
        v = w
    on_way = np.zeros(n, np.bool_)
    v = sink if rank[sink] > 0 else -1
    while v >= 0:
        on_way[v] = True
        v = int(parent[v])
    for i in range(1, ranked):
        v = int(order[i])
        level[v] = level[parent[v]] + (on_way[v] and low[v] >= rank[parent[v]])
    return level
