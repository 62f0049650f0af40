"""The vertices and edges of a minimum cut, and whether it is the only one.

There is a least and a greatest minimum cut, all others lie between them, and a maximum flow shows both: Ford and
Fulkerson, "Flows in Networks" (1962), chapter I, section 5. A pseudoflow shows them as well: Hochbaum, "The pseudoflow
algorithm: a new algorithm for the maximum-flow problem", Operations Research 56 (2008), section 4.

They do not depend on the flow: the capacity of a cut is a constant, plus what the residual arcs across it could still
carry, less the excess on its source side. So the minimum ones are those that all residual arcs across leave empty and
that have every excess on the source side and every deficit on the other.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import CANCEL, POLL_MASK
from gpu_engine.networks.free import ORDINARY
from gpu_engine.types import ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray

REACHES: Final = 1
"""The mark of vertices that are known to reach a deficit or sink."""

LOOKS: Final = 8
"""A search looks at all vertices once more than one vertex in this many was found and waits in its queue. Therefore it
does so about this many times at most."""


@njit(cache=True, nogil=True)
def least_source_side(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    residual: UnitArray,
    excess: UnitArray,
    role: NDArray[np.int8],
    source_side: BoolArray,
    slots: NDArray[np.int64],
) -> BoolArray:
    """bool[n]: the vertices that the excesses and sources of S reach by residual arcs. O(n + m).

    Breaks off when ``slots`` (`Control.slots`) say cancel.
    """
    found = np.empty(len(source_side), np.bool_)
    for v in range(len(source_side)):
        found[v] = source_side[v] and (role[v] != ORDINARY or excess[v] > 0)
    _find_all(row_offsets, head, reverse_arc, residual, source_side, True, found, slots, None)
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
    source side. O(n + m). Breaks off when ``slots`` (`Control.slots`) say cancel."""
    found = np.empty(len(source_side), np.bool_)
    for v in range(len(source_side)):
        found[v] = not source_side[v] and (role[v] != ORDINARY or excess[v] < 0)
    _find_all(row_offsets, head, reverse_arc, residual, source_side, False, found, slots, 0)
    return found


@njit(cache=True, nogil=True)
def _find_all(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    residual: UnitArray,
    source_side: BoolArray,
    within: bool,
    found: BoolArray,
    slots: NDArray[np.int64],
    mirror: int | None,
) -> None:
    """Add to ``found`` what it reaches by residual arcs, or (``mirror`` is an integer, see `gpu_engine.cpu.pseudoflow`)
    what reaches it. No such arc leads from one side of the cut to the other: ``within`` says on which one it is.

    The search is breadth first as long as few vertices wait in its queue. When there are more (`LOOKS`), it reads the
    row of each vertex that was not found, up to the first arc that joins it to a vertex that was; most vertices have
    such an arc near the beginning of their row, so most arcs are not read. Beamer, Asanovic and Patterson,
    "Direction-optimizing breadth-first search" (2012). Unlike theirs, such a pass uses what it has found itself, and
    it is repeated while it finds many. Along arcs, those of the row without residual are looked at first: their
    reverses, which lie anywhere in memory, often have some. O(n + m).
    """
    n, turns = len(source_side), 2 if mirror is None else 1
    queue = np.empty(n, np.uint32)
    end, k = 0, 0
    for v in range(n):
        if found[v]:
            queue[end] = v
            end += 1
    while k < end:
        if (end - k) * LOOKS > n:
            k = end
            for v in range(n):
                if v & POLL_MASK == 0 and slots[CANCEL] != 0:
                    return
                if found[v] or source_side[v] != within:
                    continue
                for turn in range(turns):
                    full = mirror is None and turn == 0
                    for i in range(row_offsets[v], row_offsets[v + 1]):
                        a = np.uint64(i)
                        if (residual[a] == 0) != full or not found[np.uint64(head[a])]:
                            continue
                        if mirror is not None or residual[np.uint64(reverse_arc[a])] > 0:
                            found[v] = True
                            break
                    if found[v]:
                        queue[end] = v
                        end += 1
                        break
            continue
        v = queue[k]
        k += 1
        if k & POLL_MASK == 0 and slots[CANCEL] != 0:
            return
        for i in range(row_offsets[v], row_offsets[v + 1]):
            a = np.uint64(i)
            w = np.uint64(head[a])  # unsigned, as an index below 0 would count from the end
            if not found[w] and residual[a if mirror is None else np.uint64(reverse_arc[a])] > 0:
                found[w] = True
                queue[end] = w
                end += 1


@njit(cache=True, nogil=True)
def all_reach_deficits(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    residual: UnitArray,
    excess: UnitArray,
    role: NDArray[np.int8],
    source_side: BoolArray,
    least: BoolArray,
    starts: VertexArray,
    slots: NDArray[np.int64],
) -> bool:
    """Whether each of ``starts`` int32[k], all outside the ``least`` source side, reaches a deficit or sink of T by
    residual arcs.

    Two searches by turns, a vertex each: from a start, and from all deficits and sinks against arcs. Where they meet,
    the path is known to reach one, and the next start, which is often near, has only to reach that path. So it reads
    few rows where `least_sink_side` looks at all of T. That function answers once the search has read 2 n arcs.
    O(n + m). Breaks off when ``slots`` (`Control.slots`) say cancel.
    """
    n = len(source_side)
    mark, found_by = np.zeros(n, np.int32), np.empty(n, np.int32)
    ahead, behind = np.empty(n, np.int32), np.empty(n, np.int32)
    next_behind, end, read = 0, 0, 0
    for v in range(n):
        if not source_side[v] and (role[v] != ORDINARY or excess[v] < 0):
            mark[v] = REACHES
            behind[end] = v
            end += 1
    for k in range(len(starts)):
        start, own = starts[k], REACHES + 1 + k
        if mark[start] == REACHES:
            continue
        mark[start] = own
        ahead[0] = start
        first, last = 0, 1
        while mark[start] != REACHES:
            if first == last or (first & POLL_MASK == 0 and slots[CANCEL] != 0):
                return False
            if read > 2 * n:
                reaches = least_sink_side(row_offsets, head, reverse_arc, residual, excess, role, source_side, slots)
                return bool(np.all(reaches[starts]))
            v = ahead[first]
            first += 1
            read += row_offsets[v + 1] - row_offsets[v]
            met, last = _look_ahead(v, row_offsets, head, residual, least, mark, own, found_by, ahead, last)
            if met < 0 and next_behind < end:
                v = behind[next_behind]
                next_behind += 1
                read += row_offsets[v + 1] - row_offsets[v]
                met, end = _look_behind(v, row_offsets, head, reverse_arc, residual, mark, own, behind, end)
            while met >= 0 and mark[start] != REACHES:
                mark[met] = REACHES
                met = found_by[met]
    return True


@njit(cache=True, nogil=True)
def _look_ahead(
    v: int,
    row_offsets: ArcArray,
    head: VertexArray,
    residual: UnitArray,
    least: BoolArray,
    mark: VertexArray,
    own: int,
    found_by: VertexArray,
    queue: VertexArray,
    last: int,
) -> tuple[int, int]:
    """Queue what v reaches by an arc and has no mark of its ``own``. Returns v if it reaches a vertex marked `REACHES`,
    else -1, and the end of the queue."""
    for i in range(row_offsets[v], row_offsets[v + 1]):
        w = np.uint64(head[i])
        if residual[np.uint64(i)] == 0 or mark[w] == own or least[w]:
            continue
        if mark[w] == REACHES:
            return v, last
        mark[w] = own
        found_by[w] = v
        queue[last] = w
        last += 1
    return -1, last


@njit(cache=True, nogil=True)
def _look_behind(
    v: int,
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    residual: UnitArray,
    mark: VertexArray,
    own: int,
    queue: VertexArray,
    end: int,
) -> tuple[int, int]:
    """Mark and queue what reaches v by an arc. Returns a vertex of them that the search ahead had found, else -1, and
    the end of the queue."""
    for i in range(row_offsets[v], row_offsets[v + 1]):
        w = np.uint64(head[i])
        if mark[w] == REACHES or residual[np.uint64(reverse_arc[i])] == 0:
            continue
        if mark[w] == own:
            return int(head[i]), end
        mark[w] = REACHES
        queue[end] = w
        end += 1
    return -1, end


@njit(cache=True, nogil=True)
def leaving(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    edge_arc: ArcArray,
    capacity: UnitArray,
    undirected: BoolArray,
    source_side: BoolArray,
    slots: NDArray[np.int64],
) -> EdgeArray:
    """Rows of the edges with capacity that lead out of ``source_side``, int64[...] rising. ``undirected`` is bool[m],
    or bool[1] when all edges agree. O(n + m), most of it for the arcs of the smaller side. Where no edge is undirected,
    only arcs that lead out are marked for the edges.

    Breaks off when ``slots`` (`Control.slots`) say cancel.
    """
    n = len(source_side)
    smaller = 2 * source_side.sum() <= n
    crosses, one_way = np.zeros(len(head), np.bool_), len(undirected) == 1 and not undirected[0]
    found = np.empty(len(edge_arc), np.int32)
    count = 0
    for v in range(n):
        if v & POLL_MASK == 0 and slots[CANCEL] != 0:
            return np.empty(0, np.int64)
        if source_side[v] != smaller:
            continue
        for i in range(row_offsets[v], row_offsets[v + 1]):
            if source_side[np.uint64(head[i])] != smaller:
                crosses[i if smaller else reverse_arc[i]] = True
                if not one_way:
                    crosses[reverse_arc[i] if smaller else i] = True
                count += 1
    if count == 0:
        return np.empty(0, np.int64)
    count, same = 0, len(undirected) == 1
    for row in range(len(edge_arc)):
        if row & POLL_MASK == 0 and slots[CANCEL] != 0:
            break
        a = edge_arc[row]
        if a < 0 or not crosses[np.uint64(a)] or capacity[row] == 0:
            continue
        if source_side[head[a]] and not undirected[0 if same else row]:
            continue
        found[count] = row
        count += 1
    return found[:count].astype(np.int64)
