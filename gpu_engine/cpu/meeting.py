"""Searches for the next way from one vertex: from that vertex alone, or from both ends of the way at once.

A way is found level by level. From both ends each search has about half as far to go: on a map it looks
at half of the vertices, and in a network in which the number of vertices grows with each step, at the square root of
them. Pohl, "Bi-directional search", Machine Intelligence 6 (1971).
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import CANCEL, POLL_MASK
from gpu_engine.networks.free import ORDINARY
from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray

NOWHERE: Final = -1
PUT_OFF: Final = -2


class Rows(NamedTuple):
    """The network as bidirectional CSR."""

    row_offsets: ArcArray
    head: VertexArray
    reverse_arc: ArcArray


class Flow(NamedTuple):
    """The arrays of a flow state, changed in place."""

    residual: UnitArray
    excess: UnitArray
    role: NDArray[np.int8]
    source_side: BoolArray


class Search(NamedTuple):
    """Working memory of searches, int32[n] each."""

    stamp: NDArray[np.int32]
    """The number of the last search that reached the vertex."""
    via: ArcArray
    """The arc by which that search reached it."""
    queue: VertexArray
    """The vertices in the order reached."""


@njit(cache=True, nogil=True, inline="always")
def nearest(
    rows: Rows,
    flow: Flow,
    memory: Search,
    x: int,
    deficits: bool,
    epoch: int,
    reach: int,
    slots: NDArray[np.int64],
    targets: VertexArray,
) -> tuple[int, int, int]:
    """Breadth-first search on x's side; return (target, vertices visited, arcs scanned). The target is NOWHERE if
    there is none, PUT_OFF if ``reach`` arcs were scanned first, or the search is cancelled.

    Those of ``targets`` int32[...] that can end the search look for x meanwhile: the ways of both sides meet, and
    ``via`` leads from what is returned to x, if not by a shortest way. The side that has scanned fewer arcs goes on.
    When the targets' side has no more to look at, x's goes on by itself, as only what x has reached may be moved.
    Takes this epoch, and the next for what the targets have reached.
    """
    row_offsets, head, reverse_arc = rows
    residual, excess, role, source_side = flow
    stamp, via, queue = memory
    stamp[x] = epoch
    queue[0] = x
    tail, k, scanned = 1, 0, 0
    last = len(queue)  # the targets' queue lies at the end of the same memory: no vertex is in both
    for t in targets:
        ends = role[t] != ORDINARY or (excess[t] > 0 if deficits else excess[t] < 0)
        if ends and source_side[t] == deficits and stamp[t] < epoch:
            last -= 1
            queue[last], via[t], stamp[t] = t, NOWHERE, epoch + 1
    j, looked = len(queue) - 1, 0
    while k < tail:
        if scanned + looked > reach or ((k + j) & POLL_MASK == 0 and slots[CANCEL] != 0):
            return PUT_OFF, tail, scanned + looked
        if looked < scanned and j >= last:
            v = queue[j]
            j -= 1
            looked += row_offsets[v + 1] - row_offsets[v]
            for a in range(row_offsets[v], row_offsets[v + 1]):
                w = head[a]
                if source_side[w] != deficits or stamp[w] == epoch + 1:
                    continue
                if residual[a if deficits else reverse_arc[a]] == 0:
                    continue
                if stamp[w] == epoch:
                    return _joined(rows, via, v, reverse_arc[a]), tail, scanned + looked
                last -= 1
                queue[last], via[w], stamp[w] = w, a, epoch + 1
            continue
        v = queue[k]
        k += 1
        scanned += row_offsets[v + 1] - row_offsets[v]
        for a in range(row_offsets[v], row_offsets[v + 1]):
            w = head[a]
            if stamp[w] == epoch or source_side[w] != deficits:
                continue
            if residual[reverse_arc[a] if deficits else a] == 0:
                continue
            if stamp[w] == epoch + 1:
                return _joined(rows, via, w, a), tail, scanned + looked
            stamp[w] = epoch
            via[w] = a
            if role[w] != ORDINARY or (excess[w] > 0 if deficits else excess[w] < 0):
                return w, tail, scanned + looked
            queue[tail] = w
            tail += 1
    return NOWHERE, tail, scanned + looked


@njit(cache=True, nogil=True)
def _joined(rows: Rows, via: ArcArray, v: int, arc: int) -> int:
    """Turn round the way from a target to ``v``, which x's side has reached by ``arc``; returns the target."""
    head, reverse_arc = rows.head, rows.reverse_arc
    while True:
        before, via[v] = via[v], arc
        if before == NOWHERE:
            return v
        arc = reverse_arc[before]
        v = head[arc]
