"""Incremental breadth-first search: shortest augmenting paths between two forests that are mended, not grown anew.

The excesses are the roots of one forest and the deficits those of the other. Both grow breadth first, a layer at a
time. Where they touch, flow is pushed along the path through the touching arc. A vertex whose arc to its parent is
saturated by that, or a root that is used up, is an orphan. It takes another parent on the layer before, or moves to a
later layer, or leaves the forest; so do all that hang below it. What the searches have found stays, so many paths of
unlike lengths cost little more than one search, where phases (`gpu_engine.cpu.smallcut`) begin again each time.

Why it ends with a cut. A vertex on layer d is d residual arcs from its nearest root, or more where the search has not
come back to it; layers only grow. A forest whose outermost layer is empty reaches all that its roots can reach, and no
vertex of the other one. So no residual arc leads on, as at the end of `smallcut`.

Why mending ends. First all orphans, nearest layer first, that find no parent on the layer before let go of their
children: nothing hangs on them then. They are given the least layers that vertices still in the forest offer, and are
attached layer by layer, each offering the next one to those left. So each is handled once: O(arcs of all detached).

O(n^2 m), in practice a few times the network's size; the search gives up beyond its limit. Where the residual that
decides is that of the arc itself, and not of its reverse, it is looked at before the vertex at the other end: rows lie
in the cache one after the other, other ends anywhere.

Goldberg, Hed, Kaplan, Tarjan, Werneck, "Maximum flows by incremental breadth-first search", ESA 2011; mending in three
passes: Goldberg, Hed, Kaplan, Kohli, Tarjan, Werneck, "Faster and more dynamic maximum flow by incremental
breadth-first search", ESA 2015.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import ARCS_SCANNED, CANCEL, ORDINARY, PUSHES, Index, Pseudoflow, against, along
from gpu_engine.types import BoolArray


class Forests(NamedTuple):
    """Working memory of a search; contents mean nothing before it."""

    node: NDArray[np.int32]
    """int32[n, 4], a quarter of a cache line a vertex: the columns below."""
    heap: NDArray[np.int32]
    """int32[n + 2]: the first orphan of each layer, NONE without one."""
    link: NDArray[np.int32]
    """int32[n]: the next orphan of the same layer."""
    detached: Index
    """uint32[n]: orphans that found no parent on the layer before."""
    offered: Index
    """uint32[n]: those that were offered an earlier layer than they had."""
    layers: NDArray[np.uint32]
    """uint32[4, n]: the outermost layer of either forest, and the next one. Some may have left since."""


FOREST: Final = 0
LAYER: Final = 1
PARENT: Final = 2  # the arc of its row to the parent; ROOT; or ORPHAN
CURRENT: Final = 3  # no arc of its row before this one leads to the layer before

NEITHER: Final = 0
AHEAD: Final = 1
BEHIND: Final = 2
OUTSIDE: Final = 3

NONE: Final = -1
ROOT: Final = -1
ORPHAN: Final = -2

POLL_EACH: Final = 255
"""Vertices of a layer are scanned between two looks at the caller's cancel, and at the limit, less one."""

GAVE_UP: Final = -1


@njit(nogil=True, cache=True, inline="always")
def orphan(f: Forests, span: NDArray[np.int64], v: int) -> None:
    """Put v, which has lost its parent, on the heap. ``span`` int64[2]: the nearest and the farthest layer there."""
    layer = f.node[v, LAYER]
    f.node[v, PARENT] = ORPHAN
    f.link[v] = f.heap[layer]
    f.heap[layer] = v
    span[0] = min(span[0], layer)
    span[1] = max(span[1], layer)


@njit(nogil=True, cache=True)
def detach(
    flow: Pseudoflow, f: Forests, span: NDArray[np.int64], own: int, last: int, mirror: int | None
) -> tuple[int, int]:
    """Give each orphan another parent on the layer before, or list it in `Forests.detached` and make its children
    orphans. Returns how many are listed, and the work done.

    One on the outermost layer, ``last``, has no children, and no other layer to go to: it leaves the forest at once.
    """
    node, count, work, layer = f.node, 0, 0, span[0]
    while layer <= span[1]:
        v = f.heap[layer]
        if v == NONE:
            layer += 1
            continue
        f.heap[layer] = f.link[v]
        row, end, found = flow.row_offsets[v], flow.row_offsets[v + 1], NONE
        if layer > 0:
            for a in range(node[v, CURRENT], end):
                if mirror is not None and flow.residual[a] == 0:
                    continue
                u = flow.head[a]
                if node[u, LAYER] != layer - 1 or node[u, FOREST] != own or node[u, PARENT] == ORPHAN:
                    continue
                if flow.residual[against(flow, a, mirror)] > 0:
                    found = a
                    break
            work += 1
        if found != NONE:
            node[v, PARENT] = found
            node[v, CURRENT] = found
            continue
        if layer == last:
            node[v, FOREST] = NEITHER
            continue
        f.detached[count] = v
        count += 1
        work += end - row
        for a in range(row, end):
            if mirror is None and flow.residual[a] == 0:
                continue
            u = flow.head[a]
            if node[u, FOREST] == own and node[u, PARENT] == flow.reverse_arc[a]:
                orphan(f, span, u)
    span[0], span[1] = len(f.heap), NONE
    return count, work


@njit(nogil=True, cache=True)
def choose(
    flow: Pseudoflow, f: Forests, span: NDArray[np.int64], count: int, own: int, last: int, mirror: int | None
) -> int:
    """Give each detached vertex the least layer that a parent offers, ``last`` + 1 without one; returns the work."""
    node, work = f.node, 0
    for i in range(count):
        v = f.detached[i]
        row, end, least, found = flow.row_offsets[v], flow.row_offsets[v + 1], last, NONE
        work += end - row
        for a in range(row, end):
            if mirror is not None and flow.residual[a] == 0:
                continue
            u = flow.head[a]
            if node[u, FOREST] != own or node[u, PARENT] == ORPHAN or node[u, LAYER] >= least:
                continue
            if flow.residual[against(flow, a, mirror)] > 0:
                least, found = node[u, LAYER], a
                if least == node[v, LAYER]:  # a parent nearer than itself would have kept it from being detached
                    break
        node[v, LAYER] = least + 1
        node[v, CURRENT] = found
    for i in range(count):
        v = f.detached[i]
        if node[v, CURRENT] != NONE:
            orphan(f, span, v)
    return work


@njit(nogil=True, cache=True)
def attach(
    flow: Pseudoflow,
    f: Forests,
    span: NDArray[np.int64],
    counts: NDArray[np.int64],
    own: int,
    last: int,
    outermost: int,
    mirror: int | None,
) -> int:
    """Attach detached vertices layer by layer, each offering the next layer to others; returns the work done.

    ``last``: the outermost layer there may be, whose vertices stand in the row ``outermost`` of `Forests.layers`.
    """
    node, work, layer = f.node, 0, span[0]
    first, end = 0, 0
    while layer <= span[1] or first < end:
        if first < end and node[f.offered[first], LAYER] == layer:
            v = int(f.offered[first])
            first += 1
        else:
            v = int(f.heap[layer])
            if v == NONE:
                layer += 1
                continue
            f.heap[layer] = f.link[v]
            if node[v, PARENT] != ORPHAN:
                continue  # on an earlier layer, which it was offered
        node[v, PARENT] = node[v, CURRENT]
        node[v, CURRENT] = flow.row_offsets[v]  # others of its parent's layer may stand before that one
        if layer == last:
            if counts[outermost] < f.layers.shape[1]:
                f.layers[outermost, counts[outermost]] = v
            counts[outermost] += 1
            continue
        work += flow.row_offsets[v + 1] - flow.row_offsets[v]
        for a in range(flow.row_offsets[v], flow.row_offsets[v + 1]):
            if mirror is None and flow.residual[a] == 0:
                continue
            u = flow.head[a]
            if node[u, PARENT] != ORPHAN or node[u, FOREST] != own or node[u, LAYER] <= layer + 1:
                continue
            if flow.residual[along(flow, a, mirror)] > 0:
                node[u, LAYER] = layer + 1
                node[u, CURRENT] = flow.reverse_arc[a]
                f.offered[end] = u
                end += 1
    span[0], span[1] = len(f.heap), NONE
    return work


@njit(nogil=True, cache=True)
def mend(
    flow: Pseudoflow,
    f: Forests,
    span: NDArray[np.int64],
    counts: NDArray[np.int64],
    own: int,
    last: int,
    outermost: int,
    mirror: int | None,
) -> int:
    """Every orphan of one forest has a parent again, or has left it. Returns the work done; see `attach`."""
    count, work = detach(flow, f, span, own, last, mirror)
    if count == 0:
        return work
    work += choose(flow, f, span, count, own, last, mirror)
    work += attach(flow, f, span, counts, own, last, outermost, mirror)
    for i in range(count):
        v = f.detached[i]
        if f.node[v, PARENT] == ORPHAN:
            f.node[v, FOREST] = NEITHER
    return work


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
