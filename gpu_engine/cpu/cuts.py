"""The vertices and edges of a minimum cut, and whether it is the only one.

There is a least and a greatest minimum cut, all others lie between them, and a maximum flow shows both: Ford and
Fulkerson, "Flows in Networks" (1962), chapter I, section 5. A pseudoflow shows them as well: Hochbaum, "The pseudoflow
algorithm: a new algorithm for the maximum-flow problem", Operations Research 56 (2008), section 4.

They do not depend on the flow: the capacity of a cut is a constant, plus what the residual arcs across it could still
carry, less the excess on its source side. So the minimum ones are those that all residual arcs across leave empty and
that have every excess on the source side and every deficit on the other.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import CANCEL, POLL_MASK
from gpu_engine.networks.free import ORDINARY
from gpu_engine.types import ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray

BEYOND, BETWEEN, LEAST = 0, 1, 2
"""Where a vertex lies: on the sink side of every minimum cut, on that of some, or on that of none."""


@njit(cache=True, nogil=True)
def least_source_side(
    row_offsets: ArcArray,
    head: VertexArray,
    residual: UnitArray,
    excess: UnitArray,
    role: NDArray[np.int8],
    source_side: BoolArray,
    slots: NDArray[np.int64],
) -> BoolArray:
    """bool[n]: the vertices that the excesses and sources of S reach by residual arcs. O(n + m).

    Breaks off when ``slots`` (`Control.slots`) say cancel.
    """
    n = len(source_side)
    found = np.zeros(n, np.bool_)
    queue = np.empty(n, np.uint32)
    tail, k = 0, 0
    for v in range(n):
        if source_side[v] and (role[v] != ORDINARY or excess[v] > 0):
            found[v] = True
            queue[tail] = v
            tail += 1
    while k < tail:
        v = queue[k]
        k += 1
        if k & POLL_MASK == 0 and slots[CANCEL] != 0:
            break
        for i in range(row_offsets[v], row_offsets[v + 1]):
            a, w = np.uint64(i), np.uint64(head[i])  # unsigned, as an index below 0 would count from the end
            if not found[w] and residual[a] > 0:
                found[w] = True
                queue[tail] = w
                tail += 1
    return found


@njit(cache=True, nogil=True)
def least_sink_side(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    residual: UnitArray,
    excess: UnitArray,
    role: NDArray[np.int8],
    source_side: BoolArray,
    slots: NDArray[np.int64],
) -> BoolArray:
    """bool[n]: the vertices that reach the deficits and sinks of T by residual arcs, which no minimum cut has on its
    source side. O(n + m). Breaks off when ``slots`` (`Control.slots`) say cancel.

    Most of them are one arc from another: a look along their own rows, which lie in order in memory, finds these. The
    search against arcs, for the rest, then reads few residuals.
    """
    n = len(source_side)
    found = np.zeros(n, np.bool_)
    for v in range(n):
        found[v] = not source_side[v] and (role[v] != ORDINARY or excess[v] < 0)
    for v in range(n):
        if v & POLL_MASK == 0 and slots[CANCEL] != 0:
            return found
        if source_side[v] or found[v]:
            continue
        for i in range(row_offsets[v], row_offsets[v + 1]):
            if found[np.uint64(head[i])] and residual[np.uint64(i)] > 0:
                found[v] = True
                break
    queue = np.empty(n, np.uint32)
    tail, k = 0, 0
    for v in range(n):
        if found[v]:
            queue[tail] = v
            tail += 1
    while k < tail:
        v = queue[k]
        k += 1
        if k & POLL_MASK == 0 and slots[CANCEL] != 0:
            break
        for i in range(row_offsets[v], row_offsets[v + 1]):
            w = np.uint64(head[i])
            if not found[w] and residual[np.uint64(reverse_arc[i])] > 0:
                found[w] = True
                queue[tail] = w
                tail += 1
    return found


@njit(cache=True, nogil=True)
def crossing(
    edge_arc: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    undirected: BoolArray,
    place: NDArray[np.int8],
    greatest: bool,
    slots: NDArray[np.int64],
) -> tuple[EdgeArray, bool]:
    """Rows of the edges with capacity that lead out of the least source side, or out of the ``greatest``, int64[...]
    rising, and whether the same ones lead out of the other. ``place`` int8[n]: `BEYOND`, `BETWEEN` or `LEAST`.
    ``undirected`` is bool[m], or bool[1] when all edges agree. O(m). Breaks off when ``slots[0]`` (cancel) is raised.
    """
    found = np.empty(len(edge_arc), np.int32)
    count, unique = 0, True
    same = len(undirected) == 1
    for row in range(len(edge_arc)):
        if row & POLL_MASK == 0 and slots[CANCEL] != 0:
            break
        if edge_arc[row] < 0:
            continue
        a = np.uint64(edge_arc[row])
        source, sink = place[np.uint64(head[np.uint64(reverse_arc[a])])], place[np.uint64(head[a])]
        if undirected[0 if same else row] and source < sink:
            source, sink = sink, source
        if source <= sink or capacity[row] == 0:
            continue
        found[count] = row
        count += sink == BEYOND if greatest else source == LEAST
        unique &= source == LEAST and sink == BEYOND
    return found[:count].astype(np.int64), unique
