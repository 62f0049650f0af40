"""What limits a flow: the edges and caps that some minimum cut pays, and those that every minimum cut pays.

Picard and Queyranne, "On the structure of all minimum cuts in a network and applications", Mathematical Programming
Study 13 (1980): the source sides of minimum cuts are the sets that no residual arc leaves, with every excess and
source inside and every deficit and sink outside. The least of them that holds a vertex u is all that u reaches, and the
least one. So an edge from u to v is cut by some minimum cut if and only if u reaches neither v nor a deficit or sink,
and v is not in the least source side. A full edge lets v reach u, hence u reaches v where both are in one strongly
connected component, and nowhere else.

A path between two vertices that lie between the least and the greatest source side stays between them. So components
are looked for there alone: in most networks, nowhere.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import CANCEL, POLL_MASK
from gpu_engine.types import ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray

BEYOND, BETWEEN, LEAST = 0, 1, 2
"""Where a vertex lies: on the sink side of every minimum cut, on that of some, or on that of none."""


@njit(cache=True, nogil=True)
def components(
    row_offsets: ArcArray,
    head: VertexArray,
    residual: UnitArray,
    place: NDArray[np.int8],
    slots: NDArray[np.int64],
) -> NDArray[np.int32]:
    """int32[n]: the strongly connected component of each vertex that is `BETWEEN`, by residual arcs; -1 elsewhere.

    Tarjan, "Depth-first search and linear graph algorithms" (1972). O(n + m), and 24 bytes a vertex. SciPy's function
    keeps the interpreter's lock and cannot be stopped. Breaks off when ``slots`` (`Control.slots`) say cancel.
    """
    n = len(place)
    component, rank, low = np.full(n, -1, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32)
    current, path, stack = row_offsets[:n].copy(), np.empty(n, np.int32), np.empty(n, np.int32)
    ranked, count, height, steps = 0, 0, 0, 0
    for root in range(n):
        if place[root] != BETWEEN or rank[root] != 0:
            continue
        path[0] = root
        depth = 1
        while depth > 0:
            v = path[depth - 1]
            steps += 1
            if steps & POLL_MASK == 0 and slots[CANCEL] != 0:
                return component
            if rank[v] == 0:
                ranked += 1
                rank[v] = low[v] = ranked
                stack[height] = v
                height += 1
            deeper = False
            while current[v] < row_offsets[v + 1]:
                a = current[v]
                current[v] += 1
                w = head[a]
                if residual[a] == 0 or place[w] != BETWEEN:
                    continue
                if rank[w] == 0:
                    path[depth] = w
                    depth += 1
                    deeper = True
                    break
                if component[w] < 0:
                    low[v] = min(low[v], rank[w])
            if deeper:
                continue
            depth -= 1
            if depth > 0:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[v])
            if low[v] == rank[v]:
                while True:
                    height -= 1
                    component[stack[height]] = count
                    if stack[height] == v:
                        break
                count += 1
    return component


@njit(cache=True, nogil=True)
def cut_edges(
    edge_arc: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    undirected: BoolArray,
    residual: UnitArray,
    place: NDArray[np.int8],
    component: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> tuple[EdgeArray, BoolArray]:
    """Rows of the edges with capacity that some minimum cut pays, int64[...] rising, and for each whether every one
    does. ``place`` int8[n]: `BEYOND`, `BETWEEN` or `LEAST`; ``component`` int32[n], or int32[0] where nothing lies
    between; then ``undirected`` bool[m], or bool[1] when all edges agree. O(m). Breaks off when ``slots`` say cancel.
    """
    found, every = np.empty(len(edge_arc), np.int32), np.empty(len(edge_arc), np.bool_)
    count, same = 0, len(undirected) == 1
    for row in range(len(edge_arc)):
        if row & POLL_MASK == 0 and slots[CANCEL] != 0:
            break
        if edge_arc[row] < 0 or capacity[row] == 0:
            continue
        ahead = edge_arc[row]
        for turn in range(2 if undirected[0 if same else row] else 1):
            arc, back = (ahead, reverse_arc[ahead]) if turn == 0 else (reverse_arc[ahead], ahead)
            tail, end = head[back], head[arc]
            if residual[arc] != 0 or place[tail] == BEYOND or place[end] == LEAST:
                continue
            if place[tail] == BETWEEN and place[end] == BETWEEN and component[tail] == component[end]:
                continue
            found[count] = row
            every[count] = place[tail] == LEAST and place[end] == BEYOND
            count += 1
            break
    return found[:count].astype(np.int64), every[:count].copy()
