"""Cycles of a flow cancelled exactly, so that what is left is acyclic and of the same value."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import POLL_MASK
from gpu_engine.types import ArcArray, UnitArray, VertexArray

UNSEEN, DONE = 0, -1


@njit(cache=True, nogil=True)
def cancel_cycles(
    row_offsets: ArcArray, head: VertexArray, reverse_arc: ArcArray, flow: UnitArray, slots: NDArray[np.int64]
) -> None:
    """Take the cycles out of ``flow`` int64[arcs], which is antisymmetric: positive on the arcs that carry it.

    A depth-first walk along arcs with flow (Ahuja, Magnanti, Orlin: Network Flows, section 3.5). Where it comes back to
    its own path, the cycle gives up the least of its flows, which empties an arc for good. A vertex whose arcs are all
    empty or lead to such vertices lies on no cycle any more. No arc is looked at again once it was passed over, so the
    time is O(n + m) and the length of each cycle that there is, in practice close to linear; at worst O(nm), where
    Sleator and Tarjan (1983) reach O(m log n) with dynamic trees. 12 bytes a vertex. Breaks off when ``slots[0]``
    (cancel) is raised.
    """
    n = len(row_offsets) - 1
    place = np.zeros(n, np.int32)  # on the path: its distance from the beginning, and one
    present = row_offsets[:n].copy()
    path = np.empty(n, np.int32)
    steps = 0
    for root in range(n):
        if place[root] != UNSEEN:
            continue
        v, depth = root, 0
        place[root] = 1
        while True:
            steps += 1
            if steps & POLL_MASK == 0 and slots[0] != 0:
                return
            a = present[v]
            if a == row_offsets[v + 1]:
                place[v] = DONE
                if depth == 0:
                    break
                depth -= 1
                v = head[reverse_arc[path[depth]]]
                continue
            w = head[a]
            if flow[a] <= 0 or place[w] == DONE:
                present[v] += 1
            elif place[w] == UNSEEN:
                path[depth] = a
                depth += 1
                place[w] = depth + 1
                v = w
            else:
                start = place[w] - 1
                path[depth] = a
                emptied = _cancel(reverse_arc, flow, path, start, depth)
                for i in range(emptied, depth):
                    place[head[path[i]]] = UNSEEN
                depth = emptied
                v = head[reverse_arc[path[depth]]]
                steps += place[v]


@njit(cache=True, nogil=True)
def _cancel(reverse_arc: ArcArray, flow: UnitArray, path: ArcArray, first: int, last: int) -> int:
    """Empty the cycle of ``path[first]`` .. ``path[last]`` by its least flow; returns the first place without any."""
    amount = flow[path[first]]
    for i in range(first + 1, last + 1):
        amount = min(amount, flow[path[i]])
    emptied = last
    for i in range(last, first - 1, -1):
        a = path[i]
        flow[a] -= amount
        flow[reverse_arc[a]] += amount
        if flow[a] == 0:
            emptied = i
    return emptied
