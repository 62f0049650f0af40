"""Incremental breadth-first search: shortest augmenting paths between two forests that are mended, not grown anew.

The excesses are the roots of one forest and the deficits those of the other. Both grow breadth first, a layer at a
time. Where they touch, flow is pushed along the path through the touching arc. A vertex whose arc to its parent is
saturated by that, or a root that is used up, is an orphan. It takes another parent on the layer before, or moves to a
later layer, or leaves the forest; so do all that hang below it. What the searches have found stays, so many paths of
unlike lengths cost little more than one search, where phases (`gpu_engine.cpu.smallcut`) begin again each time.

Why it ends with a cut. A vertex on layer d is d residual arcs from its nearest root, or more where the search has not
come back to it; layers only grow. A forest whose outermost layer is empty reaches all that its roots can reach, and no
vertex of the other one. So no residual arc leads on, as at the end of `smallcut`.

O(n^2 m), in practice a few times the network's size; the search gives up beyond its limit. How forests are mended is in
`gpu_engine.cpu.forests`.

Goldberg, Hed, Kaplan, Tarjan, Werneck, "Maximum flows by incremental breadth-first search", ESA 2011.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.forests import (
    AHEAD,
    BEHIND,
    CURRENT,
    FOREST,
    LAYER,
    NEITHER,
    NONE,
    OUTSIDE,
    PARENT,
    ROOT,
    Forests,
    mend,
    orphan,
)
from gpu_engine.cpu.pseudoflow import ARCS_SCANNED, CANCEL, ORDINARY, PUSHES, Pseudoflow, against, along
from gpu_engine.types import BoolArray

POLL_EACH: Final = 255
"""Vertices of a layer are scanned between two looks at the caller's cancel, and at the limit, less one."""

GAVE_UP: Final = -1


@njit(nogil=True, cache=True)
def climb(flow: Pseudoflow, f: Forests, v: int, amount: int, mirror: int | None) -> tuple[int, int, int]:
    """From v to its root: the least of ``amount`` and the residuals on the way, the root, and how far it is."""
    steps = 0
    while f.node[v, PARENT] != ROOT:
        a = f.node[v, PARENT]
        amount = min(amount, flow.residual[against(flow, a, mirror)])
        v = int(flow.head[a])
        steps += 1
    return amount, v, steps


@njit(nogil=True, cache=True)
def push(flow: Pseudoflow, f: Forests, span: NDArray[np.int64], v: int, amount: int, mirror: int | None) -> None:
    """Push between v and its root; who loses its parent by that is an orphan, as is a root that is used up."""
    while f.node[v, PARENT] != ROOT:
        a = f.node[v, PARENT]
        forward, back = against(flow, a, mirror), along(flow, a, mirror)
        flow.residual[forward] -= amount
        flow.residual[back] += amount
        if flow.residual[forward] == 0:
            orphan(f, span, v)
        v = int(flow.head[a])
    flow.excess[v] += amount if mirror is not None else -amount
    if flow.excess[v] == 0:
        orphan(f, span, v)


@njit(nogil=True, cache=True)
def grow(
    flow: Pseudoflow,
    f: Forests,
    span: NDArray[np.int64],
    counts: NDArray[np.int64],
    depths: NDArray[np.int64],
    rows: NDArray[np.int64],
    limit: float,
    slots: NDArray[np.int64],
    mirror: int | None,
    opposite: int | None,
) -> int:
    """Scan the outermost layer of one forest, and push wherever it touches the other. Returns the work, or GAVE_UP.

    ``depths`` and ``rows`` int64[2]: the outermost layer of the excesses' forest and of the deficits', and the rows of
    `Forests.layers` that have them; the next one stands in the row beside. ``opposite`` is the other of None and 0.
    """
    node, side, work = f.node, 0 if mirror is None else 1, 0
    own, depth, row, beside = AHEAD + side, depths[side], rows[side], rows[side] ^ 1
    other_depth, other_row = depths[1 - side], rows[1 - side]
    for i in range(min(counts[row], f.layers.shape[1])):
        if i & POLL_EACH == 0 and (slots[CANCEL] != 0 or work > limit):
            return GAVE_UP
        v = int(f.layers[row, i])
        if node[v, FOREST] != own or node[v, LAYER] != depth:
            continue
        a, end = int(flow.row_offsets[v]), flow.row_offsets[v + 1]
        work += end - a
        while a < end:
            if mirror is None and flow.residual[a] == 0:
                a += 1
                continue
            w = int(flow.head[a])
            found = node[w, FOREST]
            forward = along(flow, a, mirror)
            if found in (own, OUTSIDE) or flow.residual[forward] == 0:
                a += 1
                continue
            if found == NEITHER:
                node[w, FOREST], node[w, LAYER] = own, depth + 1
                node[w, PARENT], node[w, CURRENT] = flow.reverse_arc[a], flow.row_offsets[w]
                if counts[beside] < f.layers.shape[1]:
                    f.layers[beside, counts[beside]] = w
                counts[beside] += 1
                a += 1
                continue
            amount, x, here = climb(flow, f, v, flow.residual[forward], mirror)
            amount, y, there = climb(flow, f, w, amount, opposite)
            amount = min(amount, min(abs(flow.excess[x]), abs(flow.excess[y])))
            flow.residual[forward] -= amount
            flow.residual[flow.reverse_arc[forward]] += amount
            push(flow, f, span, v, amount, mirror)
            work += mend(flow, f, span, counts, own, depth + 1, beside, mirror)
            push(flow, f, span, w, amount, opposite)
            work += mend(flow, f, span, counts, AHEAD + BEHIND - own, other_depth, other_row, opposite)
            work += here + there
            slots[PUSHES] += here + there + 1
            if slots[CANCEL] != 0 or work > limit:
                return GAVE_UP
            if node[v, FOREST] != own or node[v, LAYER] != depth:
                break
    return work


@njit(nogil=True, cache=True)
def search(flow: Pseudoflow, f: Forests, side: BoolArray, limit: float, slots: NDArray[np.int64]) -> bool:
    """Move all excess that can reach a deficit there; ``side`` bool[n] is then the excesses' side of a minimum cut.

    False if that is cancelled, or costs more than about ``limit`` arcs scanned: then ``side`` is not written, and the
    flow is one from which another solver can go on.
    """
    n, work = len(flow.role), 0
    counts, depths, rows = np.zeros(4, np.int64), np.zeros(2, np.int64), np.array([0, 2])
    span, spent = np.array([n + 2, NONE]), np.zeros(2, np.int64)
    f.heap[:] = NONE
    for v in range(n):
        sign = 0 if flow.excess[v] == 0 else 1 if flow.excess[v] > 0 else 2
        f.node[v, FOREST] = sign if flow.role[v] == ORDINARY else OUTSIDE
        f.node[v, LAYER], f.node[v, PARENT], f.node[v, CURRENT] = 0, ROOT, flow.row_offsets[v]
        if sign != 0 and flow.role[v] == ORDINARY:
            row = 2 * (sign - 1)
            f.layers[row, counts[row]] = v
            counts[row] += 1
    while counts[rows[0]] > 0 and counts[rows[1]] > 0:
        ahead = spent[0] + counts[rows[0]] <= spent[1] + counts[rows[1]]
        grown = 0 if ahead else 1
        counts[rows[grown] ^ 1] = 0
        if ahead:
            steps = grow(flow, f, span, counts, depths, rows, limit - work, slots, None, 0)
        else:
            steps = grow(flow, f, span, counts, depths, rows, limit - work, slots, 0, None)
        if steps == GAVE_UP or counts.max() > f.layers.shape[1]:
            slots[ARCS_SCANNED] += max(work, 0)
            return False
        work += steps
        spent[grown] += steps
        depths[grown] += 1
        rows[grown] ^= 1
    slots[ARCS_SCANNED] += work
    exhausted = counts[rows[0]] == 0
    for v in range(n):
        found = f.node[v, FOREST]
        side[v] = found == AHEAD if exhausted else flow.role[v] == ORDINARY and found != BEHIND
    return True
