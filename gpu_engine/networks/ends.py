"""Edges by their ends: which edges lead from one vertex to another."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.networks.network import Network
from gpu_engine.types import NO_ARC, ArcArray, BoolArray, EdgeArray, VertexArray


class EndIndex:
    """Edge rows by their arcs, and self-loops by their vertices. 12 bytes an edge. O(m log m) to make."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._edges: EdgeArray = network.live(np.argsort(network.edge_arc, kind="stable"))
        self._arcs: ArcArray = network.edge_arc[self._edges]
        loops = network.live(np.flatnonzero(network.edge_arc == NO_ARC))
        vertices = network.edge_tail(loops)
        order = np.argsort(vertices, kind="stable")
        self._loops, self._loop_vertices = loops[order], vertices[order]

    @property
    def nbytes(self) -> int:
        return self._edges.nbytes + self._arcs.nbytes + self._loops.nbytes + self._loop_vertices.nbytes

    def find(self, tails: NDArray[np.int64], heads: NDArray[np.int64]) -> tuple[EdgeArray, NDArray[np.int64]]:
        """int64[k] each: an edge row from each tail to its head, -1 if there is none, and how many there are.

        An undirected edge is found in either orientation. A negative vertex has no edges. O(k log m).
        """
        network = self._network
        columns = network.row_offsets, network.head, network.reverse_arc, self._arcs, self._edges, network.undirected
        found, counts = _find(tails, heads, *columns)
        same = np.flatnonzero((tails == heads) & (tails >= 0))
        if len(same) and len(self._loops):
            first = np.searchsorted(self._loop_vertices, tails[same])
            counts[same] = np.searchsorted(self._loop_vertices, tails[same], side="right") - first
            found[same] = np.where(counts[same] > 0, self._loops[np.minimum(first, len(self._loops) - 1)], -1)
        return found, counts

    def all(self, tail: int, head: int) -> EdgeArray:
        """All edge rows from a tail to a head."""
        network = self._network
        if tail == head:
            loops: EdgeArray = self._loops[self._loop_vertices == tail]
            return loops
        first, last = network.row_offsets[tail], network.row_offsets[tail + 1]
        arc = int(first + np.searchsorted(network.head[first:last], head))
        along, against = self._of_arc(arc), self._of_arc(int(network.reverse_arc[arc]))
        return np.concatenate([along, against[network.is_undirected(against)]])

    def _of_arc(self, arc: int) -> EdgeArray:
        first, last = np.searchsorted(self._arcs, (arc, arc + 1))
        return self._edges[first:last]


@njit(cache=True, nogil=True)
def _find(
    tails: NDArray[np.int64],
    heads: NDArray[np.int64],
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    arcs: ArcArray,
    edges: EdgeArray,
    undirected: BoolArray,
) -> tuple[EdgeArray, NDArray[np.int64]]:
    found, counts = np.full(len(tails), -1, np.int64), np.zeros(len(tails), np.int64)
    for i in range(len(tails)):
        if tails[i] < 0 or heads[i] < 0:
            continue
        first, last = row_offsets[tails[i]], row_offsets[tails[i] + 1]
        arc = first + np.searchsorted(head[first:last], heads[i])
        if arc >= last or head[arc] != heads[i]:
            continue
        for against in (False, True):
            way = reverse_arc[arc] if against else arc
            place = np.searchsorted(arcs, way)
            while place < len(arcs) and arcs[place] == way:
                edge = edges[place]
                if not against or undirected[edge if len(undirected) > 1 else 0]:
                    found[i] = edge if counts[i] == 0 else found[i]
                    counts[i] += 1
                place += 1
    return found, counts
