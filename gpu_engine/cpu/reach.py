"""A search from both sides: the vertices that excesses reach, those that reach deficits, and the paths between them.

Two breadth-first searches, from all excesses along residual arcs and from all deficits against them, grow layer by
layer until they meet. Each vertex they reach has a level, the arc by which it was found, and a current arc, from which
its row is read round for arcs one level down. From a meeting arc a path leads down both sides, by depth-first search
over current arcs: to an excess on one side and to a deficit on the other.

Kernels take `mirror` as in `gpu_engine.cpu.pseudoflow`: None grows from the excesses, an integer from the deficits.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import CANCEL, ORDINARY, POLL_MASK, Index, Pseudoflow, against, along


class Reach(NamedTuple):
    """Working memory of a search; contents mean nothing before it."""

    node: NDArray[np.int32]
    """int32[n, 4], a quarter of a cache line a vertex: the columns below."""
    ahead: Index
    """uint32[n]: vertices that the excesses reach, in the order found."""
    behind: Index
    """uint32[n]: vertices that reach the deficits, in the order found."""
    excesses: Index
    """uint32[n]: vertices with excess when the attempt began, those used up taken out at each phase."""
    deficits: Index
    """uint32[n]"""
    trail: Index
    """uint32[2 n]: the arcs of a path, each in the row of the vertex it was found from."""
    meeting: Index
    """uint32[n]: arcs from a vertex ahead to a vertex behind."""


MARK: Final = 0
LEVEL: Final = 1  # hops to the nearest excess or deficit of its side
FOUND_BY: Final = 2  # arc of its row, to the vertex that found it
CURRENT: Final = 3  # no arc from FOUND_BY round to here leads on

OUTSIDE_MARK: Final = 2**31 - 1
"""The mark of vertices that are not ordinary."""
DEAD: Final = -1
"""A current arc of this value says that no arc leads on."""
USED_UP: Final = -2
"""A level of this value says that the excess or deficit is gone."""


class Side(NamedTuple):
    """One of the two searches: its queue (`Reach.ahead` or `Reach.behind`), its mark and that of the other one."""

    queue: Index
    mark: int
    other: int


class Layer(NamedTuple):
    """How far one side has come."""

    first: int
    """Where its outermost layer begins in its queue."""
    end: int
    arcs: int
    """Arcs of the outermost layer."""


class Ends(NamedTuple):
    """Ordinary vertices with excess and with a deficit: how many, and their sums."""

    n_excesses: int
    n_deficits: int
    up: float
    down: float


@njit(nogil=True, cache=True)
def list_ends(flow: Pseudoflow, reach: Reach) -> Ends:
    """Fill `Reach.excesses` and `Reach.deficits`."""
    n_excesses, n_deficits = 0, 0
    up, down = 0.0, 0.0
    for v in range(len(flow.role)):
        if flow.role[v] != ORDINARY or flow.excess[v] == 0:
            continue
        if flow.excess[v] > 0:
            reach.excesses[n_excesses] = v
            n_excesses += 1
            up += flow.excess[v]
        else:
            reach.deficits[n_deficits] = v
            n_deficits += 1
            down -= flow.excess[v]
    return Ends(n_excesses, n_deficits, up, down)


@njit(nogil=True, cache=True)
def clear_marks(flow: Pseudoflow, node: NDArray[np.int32]) -> None:
    """Mark all vertices as not reached; those that are not ordinary never will be."""
    for v in range(len(flow.role)):
        node[v, MARK] = 0 if flow.role[v] == ORDINARY else OUTSIDE_MARK


@njit(nogil=True, cache=True)
def begin(
    flow: Pseudoflow, node: NDArray[np.int32], live: Index, count: int, queue: Index, own: int, sign: int
) -> Layer:
    """Start layer 0 with the vertices of ``live`` whose excess or deficit is not used up; others leave the list."""
    kept, arcs = 0, 0
    for i in range(count):
        v = live[i]
        if sign * flow.excess[v] > 0:
            live[kept] = v
            queue[kept] = v
            kept += 1
            node[v, MARK] = own
            node[v, LEVEL] = 0
            arcs += flow.row_offsets[v + 1] - flow.row_offsets[v]
    return Layer(0, kept, arcs)


@njit(nogil=True, cache=True)
def grow(
    flow: Pseudoflow,
    reach: Reach,
    side: Side,
    layer: Layer,
    met: int,
    bounding: bool,
    slots: NDArray[np.int64],
    mirror: int | None,
) -> tuple[Layer, int, float]:
    """Search the next layer of one side. Returns it, how many meeting arcs there are now, and (if ``bounding``) the sum
    of the residuals out of the layers that were there: an upper bound of the flow. A cancelled layer is unfinished."""
    node, queue, own, meeting = reach.node, side.queue, side.mark, reach.meeting
    end, arcs, leaving = layer.end, 0, 0.0
    for i in range(layer.first, layer.end):
        if i & POLL_MASK == 0 and slots[CANCEL] != 0:
            break
        v = queue[i]
        level = node[v, LEVEL] + 1
        for a in range(flow.row_offsets[v], flow.row_offsets[v + 1]):
            if mirror is None and flow.residual[a] == 0:
                continue
            w = flow.head[a]
            mark = node[w, MARK]
            if mark == OUTSIDE_MARK or (mark == own and not (bounding and node[w, LEVEL] == level)):
                continue
            forward = along(flow, a, mirror)
            if flow.residual[forward] == 0:
                continue
            leaving += flow.residual[forward]
            if mark == own:
                continue
            if mark == side.other:
                if met < len(meeting):
                    meeting[met] = forward
                    met += 1
                continue
            back = flow.reverse_arc[a]
            node[w, MARK] = own
            node[w, LEVEL] = level
            node[w, FOUND_BY] = back
            node[w, CURRENT] = back
            queue[end] = w
            end += 1
            arcs += flow.row_offsets[w + 1] - flow.row_offsets[w]
    return Layer(layer.end, end, arcs), met, leaving


@njit(nogil=True, cache=True)
def follow(
    v: int, flow: Pseudoflow, node: NDArray[np.int32], own: int, trail: Index, start: int, mirror: int | None
) -> tuple[int, int, int]:
    """Find a path from v down to level 0 of its side, its arcs in ``trail`` from ``start`` on.

    Returns where it ends in the trail (DEAD if v leads nowhere), the vertex of level 0, and the work done.
    """
    head, row_offsets = flow.head, flow.row_offsets
    length, work = start, 0
    x = v
    while node[x, LEVEL] > 0:
        below = node[x, LEVEL] - 1
        a = node[x, CURRENT]
        found = DEAD
        if a != DEAD:
            row = row_offsets[x]
            end = row_offsets[x + 1]
            last = node[x, FOUND_BY]
            while a != DEAD:
                work += 1
                w = head[a]
                if node[w, LEVEL] == below and node[w, MARK] == own and flow.residual[against(flow, a, mirror)] > 0:
                    found = a
                    break
                a += 1
                if a == end:
                    a = row
                if a == last:
                    a = DEAD
            node[x, CURRENT] = a
        if found != DEAD:
            trail[length] = found
            length += 1
            x = head[found]
            continue
        if length == start:
            return DEAD, x, work
        length -= 1  # back to the vertex that led here, which goes on to its next arc
        a = trail[length]
        x = head[flow.reverse_arc[a]]
        a += 1
        if a == row_offsets[x + 1]:
            a = row_offsets[x]
        node[x, CURRENT] = DEAD if a == node[x, FOUND_BY] else a
    if node[x, LEVEL] == USED_UP:
        return DEAD, x, work
    return length, x, work
