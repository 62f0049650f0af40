"""Vertices that no finite cut separates, since undirected edges without limit join them."""

import numpy as np
from numba import njit

from gpu_engine.networks.network import Network
from gpu_engine.types import ArcArray, BoolArray, VertexArray


def joined_without_limit(network: Network) -> VertexArray:
    """int32[n]: equal for vertices that are joined by unlimited arcs that lead both ways. O(n + m)."""
    if not network.n_infinite:
        return np.arange(network.n_vertices, dtype=np.int32)
    return _spread(network.row_offsets, network.head, network.reverse_arc, network.infinite_arcs())


@njit(cache=True, nogil=True)
def _spread(row_offsets: ArcArray, head: VertexArray, reverse_arc: ArcArray, infinite: BoolArray) -> VertexArray:
    n = len(row_offsets) - 1
    found = np.full(n, -1, np.int32)
    stack = np.empty(n, np.int32)
    for root in range(n):
        if found[root] >= 0:
            continue
        found[root] = root
        stack[0] = root
        waiting = 1
        while waiting > 0:
            waiting -= 1
            v = stack[waiting]
            for a in range(row_offsets[v], row_offsets[v + 1]):
                w = head[a]
                if found[w] < 0 and infinite[a] and infinite[reverse_arc[a]]:
                    found[w] = root
                    stack[waiting] = w
                    waiting += 1
    return found
