"""growing.cu: the rows of flow states with new arcs at their ends."""

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array, State, Topology
from gpu_engine.cuda.launch.grid import launch_strided
from gpu_engine.networks.rows import Inserted


def new_rows(count: int, like: Array) -> Array:
    """An array of so many rows, otherwise as ``like``. Lengths in memory come in steps of up to a 32nd: one that grows
    by little finds the memory of the one before the last in CuPy's pool, which gives no block to who needs more."""
    step = 1 << max(0, count.bit_length() - 6)
    return cupy.empty((-(-count // step) * step, *like.shape[1:]), like.dtype)[:count]


def with_zeros(column: Array, more: int) -> Array:
    """The column with so many zeros behind it; itself if there are none."""
    if not more:
        return column
    longer = new_rows(len(column) + more, column)
    longer[: len(column)], longer[len(column) :] = column, 0
    return longer


def inserted_bytes(inserted: Inserted) -> int:
    """Bytes that `InsertedArcs` takes on a device."""
    return 16 * len(inserted.keys) + 12 * len(inserted.tail) + 4


class InsertedArcs:
    """Inserted edges on a device whose rows are still as they were before."""

    def __init__(self, inserted: Inserted, before: Topology) -> None:
        self.k = len(inserted.keys)
        """The number of new arcs."""
        self._before = before
        self._tail, self._head = cupy.asarray(inserted.arc_tail), cupy.asarray(inserted.arc_head)
        self._reverse = cupy.asarray(inserted.reverse.astype(np.int32))
        self._ends = before.row_offsets[cupy.minimum(self._tail, before.n - 1) + 1]
        """int32[k], rising: where the row of each one's tail ended; that of an inserted vertex is behind all others."""
        self._edges = tuple(cupy.asarray(a.astype(np.int32)) for a in (inserted.tail, inserted.head, inserted.arc))
        """Tail, head and `Inserted.arc` of each edge."""

    def moved_rows(self, n: int) -> Array:
        """int32[n+1]: where the arcs of each vertex begin. O(n log k)."""
        offsets = new_rows(n + 1, self._before.row_offsets)
        before = np.int32(self._before.n), self._before.row_offsets
        new = np.int32(self.k), self._tail
        launch_strided("growing.cu", "move_rows", n + 1, False, np.int32(n), *before, *new, offsets)
        return offsets

    def moved(self, state: State, row_offsets: Array) -> tuple[Array, Array]:
        """The arcs and ``edge_arc`` of a state, with those that are new. ``row_offsets`` are those of now. Waits.

        Costs O((n + m) log k), and for an edge at a link that was there before the shorter row of its ends.
        """
        arcs = new_rows(len(state.arcs) + self.k, state.arcs)
        m, wide = len(state.edge_arc), state.wide
        edge_arc = new_rows(m + len(self._edges[0]), state.edge_arc)
        new, missed = (np.int32(self.k), self._ends), cupy.zeros(1, np.int32)
        of_arcs = np.int32(len(state.arcs)), state.arcs, *new, arcs
        launch_strided("growing.cu", "move_arcs", len(state.arcs), wide, *of_arcs)
        launch_strided("growing.cu", "place_arcs", self.k, wide, *new, self._head, self._reverse, arcs)
        launch_strided("growing.cu", "move_edges", m, wide, np.int32(m), state.edge_arc, *new, edge_arc)
        count = len(edge_arc) - m
        of_edges = np.int32(count), *self._edges, self._ends, row_offsets, arcs, edge_arc[m:], missed
        launch_strided("growing.cu", "place_edges", 32 * count, wide, *of_edges)
        if int(missed.get()[0]):
            raise RuntimeError("a link of the network is missing in a flow state")
        return arcs, edge_arc
