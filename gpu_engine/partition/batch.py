"""The changes of links that one update makes, sorted by vertex, so that one thread can apply those of a vertex."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.networks.network import Network
from gpu_engine.types import ArcArray, EdgeArray, UnitArray, VertexArray

PLACE_BITS: Final = 32
"""A key holds a place in a batch in this many low bits, and a vertex above them."""


class Batch(NamedTuple):
    """Changes of links, each in the rows of both its ends. The changes of one vertex lie together, in any order."""

    vertex: VertexArray
    """int32[rows], rising: the vertices whose rows change."""
    first: VertexArray
    """int32[rows + 1]: the changes of row i are those from ``first[i]`` to ``first[i + 1]``."""
    neighbour: VertexArray
    change: UnitArray


def batch_of(network: Network, edges: EdgeArray, change: UnitArray) -> Batch:
    """The batch for these edges, int64[k], whose weights have changed by ``change``, int64[k]. Loops are left out. O(k
    log k)."""
    key, end = _keys(edges, network.edge_arc, network.reverse_arc, network.head)
    key.sort()  # numbers alone, which is several times faster than places by numbers
    return Batch(*_rows(key, end, change))


@njit(cache=True, nogil=True)
def _keys(
    edges: EdgeArray, edge_arc: ArcArray, reverse_arc: ArcArray, head: VertexArray
) -> tuple[UnitArray, VertexArray]:
    """Keys and ends. A key, int64[2 edges at most], holds an end of an edge that is no loop, and below it the place of
    that end among all ends. The ends, int32[2 edges], have those of an edge beside each other, and -1 for those of a
    loop."""
    k = len(edges)
    arc, end = np.empty(k, np.int32), np.empty(2 * k, np.int32)
    for i in range(k):  # a loop for each column, so that many of its items are on their way from memory at once
        arc[i] = edge_arc[edges[i]]
    for i in range(k):
        end[2 * i], end[2 * i + 1] = (reverse_arc[arc[i]], head[arc[i]]) if arc[i] >= 0 else (-1, -1)
    for i in range(k):
        if end[2 * i] >= 0:
            end[2 * i] = head[end[2 * i]]
    key = np.empty(2 * k, np.int64)
    count = 0
    for place in range(2 * k):
        key[count] = np.int64(end[place]) << PLACE_BITS | place
        count += end[place] >= 0
    return key[:count], end


@njit(cache=True, nogil=True)
def _rows(
    key: UnitArray, end: VertexArray, change: UnitArray
) -> tuple[VertexArray, VertexArray, VertexArray, UnitArray]:
    """The columns of a `Batch`, from keys that rise."""
    count = len(key)
    vertex, first = np.empty(count, np.int32), np.empty(count + 1, np.int32)
    neighbour, changes = np.empty(count, np.int32), np.empty(count, np.int64)
    rows, before = 0, np.int64(-1)
    for i in range(count):
        own, place = key[i] >> PLACE_BITS, key[i] & ((1 << PLACE_BITS) - 1)
        if own != before:
            vertex[rows], first[rows] = own, i
            rows, before = rows + 1, own
        neighbour[i], changes[i] = end[place ^ 1], change[place >> 1]
    first[rows] = count
    return vertex[:rows], first[: rows + 1], neighbour, changes
