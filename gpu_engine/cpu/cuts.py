"""The vertices and edges of a minimum cut, and whether it is the only one.

There is a least and a greatest minimum cut, all others lie between them, and a maximum flow shows both: Ford and
Fulkerson, "Flows in Networks" (1962), chapter I, section 5. A pseudoflow shows them as well (`reachable` says why):
Hochbaum, "The pseudoflow algorithm: a new algorithm for the maximum-flow problem", Operations Research 56 (2008),
section 4.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import CANCEL, POLL_MASK
from gpu_engine.networks.free import ORDINARY
from gpu_engine.types import ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray


@njit(cache=True, nogil=True)
def reachable(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    residual: UnitArray,
    excess: UnitArray,
    role: NDArray[np.int8],
    source_side: BoolArray,
    forward: bool,
    slots: NDArray[np.int64],
) -> BoolArray:
    """bool[n]: the vertices that the excesses and sources of S reach by residual arcs, or (not ``forward``) those that
    reach the deficits and sinks of T. The first are the source side of the least minimum cut, the others the sink side
    of the greatest; between them they cover all vertices if the minimum cut is unique.

    They do not depend on the flow: the capacity of a cut is a constant, plus what the residual arcs across it could
    still carry, less the excess on its source side. So the minimum ones are those that all residual arcs across leave
    empty and that have every excess on the source side and every deficit on the other. O(n + m). Breaks off when
    ``slots`` (`Control.slots`) say cancel.
    """
    n = len(source_side)
    found = np.zeros(n, np.bool_)
    queue = np.empty(n, np.int32)
    tail, k = 0, 0
    for v in range(n):
        if source_side[v] == forward and (role[v] != ORDINARY or (excess[v] > 0 if forward else excess[v] < 0)):
            found[v] = True
            queue[tail] = v
            tail += 1
    while k < tail:
        v = queue[k]
        k += 1
        if k & POLL_MASK == 0 and slots[CANCEL] != 0:
            break
        for a in range(row_offsets[v], row_offsets[v + 1]):
            w = head[a]
            if not found[w] and residual[a if forward else reverse_arc[a]] > 0:
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
    least: BoolArray,
    greatest: BoolArray,
    slots: NDArray[np.int64],
) -> tuple[EdgeArray, bool]:
    """Rows of the edges with capacity that lead out of ``least``, int64[...] rising, and whether the same ones lead out
    of ``greatest``. ``undirected`` is bool[m], or bool[1] when all edges agree. O(m). Breaks off when ``slots[0]``
    (cancel) is raised.
    """
    count, unique = 0, True
    for row in range(len(edge_arc)):
        if row & POLL_MASK == 0 and slots[CANCEL] != 0:
            break
        arc = edge_arc[row]
        if arc < 0 or capacity[row] == 0:
            continue
        tail, end = head[reverse_arc[arc]], head[arc]
        either = undirected[row if len(undirected) > 1 else 0]
        leads_out = _leads_out(least, tail, end, either)
        count += leads_out
        unique &= leads_out == _leads_out(greatest, tail, end, either)
    found = np.empty(count, np.int64)
    at = 0
    for row in range(len(edge_arc)):
        if at == count:
            break
        arc = edge_arc[row]
        if arc < 0 or capacity[row] == 0:
            continue
        if _leads_out(least, head[reverse_arc[arc]], head[arc], undirected[row if len(undirected) > 1 else 0]):
            found[at] = row
            at += 1
    return found, unique


@njit(cache=True, nogil=True)
def _leads_out(side: BoolArray, tail: int, end: int, either: bool) -> bool:
    return (side[tail] and not side[end]) or (either and side[end] and not side[tail])
