"""A Gomory-Hu tree while it grows: vertices lie in slots, which cuts divide until each holds one terminal.

Gomory and Hu's step: any two terminals of a slot are cut from each other by a minimum cut, and the slot is divided as
the cut divides its vertices. A slot that hung on it, and its parent, hang on the part with which one vertex beyond the
link goes, that was itself cut off by this link; so no cut has to be free of crossings, nor anything be drawn together
(Gusfield). Which two are cut is free to choose. Here one is cut from the terminal that is nearest to it, so that what
flows between them mostly stays near them; and those come first that least leads to, which are mostly cut off alone.

A step costs what its search looks at, and no more than its cut lists.

Gomory, Hu, "Multi-terminal network flows", Journal of SIAM 9 (1961). Gusfield, "Very simple methods for all pairs
network flow analysis", SIAM Journal on Computing 19 (1990), section 3.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import ARCS_SCANNED, CANCEL
from gpu_engine.pairs.reduced import Reduced
from gpu_engine.pairs.solver import PairSolver
from gpu_engine.pairs.values import NO_LIMIT, OPEN, Desk, Whole, list_side, solve_pair
from gpu_engine.types import MAX_TOTAL, BoolArray, UnitArray, VertexArray

NONE: Final = -1

BLOCK_ARCS: Final = 1 << 22
"""The kernel returns to its caller after so many arcs scanned, which take some ten milliseconds."""

DONE, CANCELLED, UNSOLVED, SEEN, UNLIMITED = range(5)
"""How a block of steps ends: each terminal lies in a slot of its own; the question was cancelled; a pair took too long;
`BLOCK_ARCS` are scanned; a pair has no finite cut."""


class Forest(NamedTuple):
    """The tree. Slot 0 holds all vertices at first; each step divides a slot and so makes a new one."""

    slot: VertexArray
    """int32[n]: in which slot a vertex lies."""
    up: VertexArray
    """int32[k]: the slot that a slot hangs on, `NONE` for that of the root."""
    below: VertexArray
    """int32[k]: a vertex of the slot for which the cut of its link is a minimum cut from some vertex beyond it."""
    above: VertexArray
    """int32[k]: such a vertex on the other side of that link; the root for the slot of the root."""
    value: UnitArray
    """int64[k]: the value of the cut of the link between a slot and the one it hangs on."""
    made: VertexArray
    """int32[k]: the row of `pairs` that the cut of the link was found for."""
    members: VertexArray
    """int32[k]: how many terminals lie in a slot."""
    order: VertexArray
    """int32[k]: the terminals, the last ones first to be cut off."""
    is_member: BoolArray
    """bool[n]: which vertices are terminals."""
    pairs: UnitArray
    """int64[k, 3]: row i has the two terminals whose cut made slot i, and the proven value of their maximum flow."""
    inside: BoolArray
    """bool[n]: a scratch column, false between two steps."""
    mark: NDArray[np.int32]
    """int32[vertices of the reduced network]: the number of the last search that found a vertex."""
    queue: VertexArray
    back: VertexArray
    """int32[vertices of the reduced network]: the vertex of the whole network for which each stands."""
    counts: UnitArray
    """int64[5]: how many slots there are, how many terminals of `order` are left, the number of the last search, and
    the two terminals that are cut from each other."""


SLOTS, LEFT, SEARCHES, SOURCE, SINK = range(5)


def forest(solver: PairSolver, terminals: VertexArray, root: int) -> Forest:
    """The tree of ``terminals`` that lie in the reduced network, all of them in the slot of the ``root``. O(n log n +
    arcs)."""
    small, n = solver.small, len(solver.whole.row_offsets) - 1
    k, n_small = len(terminals), len(small.row_offsets) - 1
    is_member, back = np.zeros(n, np.bool_), np.full(n_small, NONE, np.int32)
    is_member[terminals] = True
    there = small.number >= 0
    back[small.number[there]] = np.flatnonzero(there)
    made = Forest(
        slot=np.zeros(n, np.int32),
        up=np.full(k, NONE, np.int32),
        below=np.full(k, root, np.int32),
        above=np.full(k, root, np.int32),
        value=np.zeros(k, np.int64),
        made=np.zeros(k, np.int32),
        members=np.zeros(k, np.int32),
        order=in_order(small, terminals),
        is_member=is_member,
        pairs=np.zeros((k, 3), np.int64),
        inside=np.zeros(n, np.bool_),
        mark=np.zeros(n_small, np.int32),
        queue=np.empty(n_small, np.int32),
        back=back,
        counts=np.array([1, k, 0, -1, -1]),
    )
    made.members[0] = k
    return made


def in_order(small: Reduced, terminals: VertexArray) -> VertexArray:
    """The terminals in the order in which they are taken, from the last one on: the one to which arcs of the least
    capacity lead is last. Equal ones are mixed, so that cuts between them leave parts of like sizes."""
    widths = np.concatenate([[0], np.cumsum(np.minimum(small.capacity, MAX_TOTAL), dtype=np.float64)])
    degree = np.diff(widths[small.row_offsets])[small.number[terminals]]
    mixed = np.arange(len(terminals), dtype=np.uint32) * np.uint32(2654435769)
    return terminals[np.lexsort((mixed, -degree))].astype(np.int32)


@njit(cache=True, nogil=True)
def part(whole: Whole, desk: Desk, forest: Forest, root: int) -> None:
    """Put vertices of other components than that of the root into slots of their own. O(n + arcs)."""
    seen = np.zeros(len(forest.slot), np.bool_)
    for i in range(-1, len(forest.order)):
        v = root if i < 0 else int(forest.order[i])
        if seen[v]:
            continue
        n_side = list_side(whole, desk, 0, v, False)
        for w in desk.side[:n_side]:
            seen[w] = True
        if i >= 0:
            split(forest, v, root, 0, desk.side[:n_side], False)


@njit(cache=True, nogil=True)
def grow_some(whole: Whole, small: Reduced, desk: Desk, forest: Forest, slots: NDArray[np.int64], most: int) -> int:
    """Divide slots until one of the outcomes above, which is returned: `SEEN` after about ``most`` arcs scanned."""
    counts, begun = forest.counts, slots[ARCS_SCANNED]
    while counts[LEFT] > 0:
        counts[SOURCE] = forest.order[counts[LEFT] - 1]
        while forest.members[forest.slot[counts[SOURCE]]] > 1:
            if slots[ARCS_SCANNED] - begun > most:
                return SEEN
            counts[SINK] = nearest(small, forest, counts[SOURCE], slots)
            source, sink = counts[SOURCE], counts[SINK]
            value, n_side, holds_sink = solve_pair(whole, small, desk, source, sink, slots)
            if slots[CANCEL] != 0:
                return CANCELLED
            if value in (OPEN, NO_LIMIT):
                return UNSOLVED if value == OPEN else UNLIMITED
            split(forest, source, sink, value, desk.side[:n_side], holds_sink)
        counts[LEFT] -= 1
    return DONE


@njit(cache=True, nogil=True)
def nearest(small: Reduced, forest: Forest, source: int, slots: NDArray[np.int64]) -> int:
    """The terminal of the same slot that the fewest arcs lead to."""
    counts, mark, queue = forest.counts, forest.mark, forest.queue
    counts[SEARCHES] += 1
    epoch, own = counts[SEARCHES], forest.slot[source]
    queue[0] = small.number[source]
    mark[queue[0]] = epoch
    i, end = 0, 1
    while i < end:
        v = queue[i]
        i += 1
        slots[ARCS_SCANNED] += small.row_offsets[v + 1] - small.row_offsets[v]
        for a in range(small.row_offsets[v], small.row_offsets[v + 1]):
            w = small.head[a]
            if mark[w] == epoch or small.capacity[a] == 0:
                continue
            mark[w] = epoch
            x = forest.back[w]
            if forest.slot[x] == own and forest.is_member[x]:
                return int(x)
            queue[end] = w
            end += 1
    return -1


@njit(cache=True, nogil=True)
def split(forest: Forest, source: int, sink: int, value: int, side: VertexArray, holds_sink: bool) -> None:
    """Divide the slot of two terminals by their minimum cut, of which ``side`` lists one side. O(side)."""
    slot, up, below, above, inside = forest.slot, forest.up, forest.below, forest.above, forest.inside
    here, new = slot[source], forest.counts[SLOTS]
    forest.counts[SLOTS] += 1
    pair = forest.pairs[new]
    pair[0], pair[1], pair[2] = source, sink, value
    apart, other = (sink, source) if holds_sink else (source, sink)
    moved = 0
    for v in side:
        inside[v] = True
        if slot[v] == here:
            slot[v] = new
            moved += forest.is_member[v]
        elif up[slot[v]] == here and below[slot[v]] == v:
            up[slot[v]] = new
    forest.members[new] = moved
    forest.members[here] -= moved
    if inside[above[here]]:  # the parent of the slot lies on the side of the new one
        up[new], above[new] = up[here], above[here]
        forest.value[new], forest.made[new] = forest.value[here], forest.made[here]
        below[new] = below[here] if inside[below[here]] else apart
        up[here], above[here], below[here] = new, apart, other
        forest.value[here], forest.made[here] = value, new
    else:
        up[new], above[new], below[new] = here, other, apart
        forest.value[new], forest.made[new] = value, new
        if inside[below[here]]:
            below[here] = other
    for v in side:
        inside[v] = False
