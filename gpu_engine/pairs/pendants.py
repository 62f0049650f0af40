"""Vertices that hang on one other: their link is their minimum cut, and no other cut is changed by them.

Once they are gone others hang on one vertex alone, so that of a tree, or of a path of parallel edges, nothing is left.
"""

import numpy as np
from numba import njit

from gpu_engine.networks.network import Network
from gpu_engine.types import MAX_TOTAL, ArcArray, BoolArray, UnitArray, VertexArray


def pendants(network: Network, terminals: VertexArray) -> VertexArray:
    """int32[n]: the vertex that each vertex hangs on, -1 if it stays; of an undirected network.

    Both are terminals, the link has a limit, and the first of the ``terminals`` stays. O(n + m).
    """
    may_go = np.zeros(network.n_vertices, np.bool_)
    may_go[terminals] = True
    return _peeled(network.row_offsets, network.head, network.arc_capacity(), may_go, int(terminals[0]))


@njit(cache=True, nogil=True)
def _peeled(row_offsets: ArcArray, head: VertexArray, capacity: UnitArray, may_go: BoolArray, root: int) -> VertexArray:
    n = len(may_go)
    onto, neighbours, stack = np.full(n, -1, np.int32), np.zeros(n, np.int32), np.empty(n, np.int32)
    waiting = 0
    for v in range(n):
        for a in range(row_offsets[v], row_offsets[v + 1]):
            neighbours[v] += capacity[a] > 0
        if neighbours[v] == 1:
            stack[waiting] = v
            waiting += 1
    while waiting > 0:
        waiting -= 1
        v = stack[waiting]
        if v == root or not may_go[v] or neighbours[v] != 1:
            continue
        link = row_offsets[v]
        while capacity[link] == 0 or onto[head[link]] == v:
            link += 1
        beside = head[link]
        if capacity[link] > MAX_TOTAL or not may_go[beside]:
            continue
        onto[v] = beside
        neighbours[v] = 0
        neighbours[beside] -= 1
        if neighbours[beside] == 1:
            stack[waiting] = beside
            waiting += 1
    return onto
