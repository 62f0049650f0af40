"""Two search forests, and how they are mended when vertices have lost their parents (`gpu_engine.cpu.ibfs`).

First all orphans, nearest layer first, that find no parent on the layer before let go of their children: nothing hangs
on them then. They are given the least layers that vertices still in the forest offer, and are attached layer by layer,
each offering the next one to those left. So each is handled once: O(arcs of all detached).

Where the residual that decides is that of the arc itself, and not of its reverse, it is looked at before the vertex at
the other end: rows lie in the cache one after the other, other ends anywhere.

Mending in three passes: Goldberg, Hed, Kaplan, Kohli, Tarjan, Werneck, "Faster and more dynamic maximum flow by
incremental breadth-first search", ESA 2015.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import Index, Pseudoflow, against, along


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
