"""Proof that what flows between two vertices of a contracted network flows between them in the whole one.

A tree of slots divides the vertices of a network. Around one slot, all that lies beyond each link of the tree is one
vertex. That is right if each link is a minimum cut of two vertices on its two sides (Gomory and Hu's lemma: drawing
one side of a minimum cut together leaves all minimum cuts of vertices on the other side, and the other links stay
minimum cuts). A link is one if a flow as large as its cut was proven between two vertices that it divides. The
contracted network may have fewer edges than that, but none that is not one of the whole one, and each once.

Gomory, Hu, "Multi-terminal network flows", Journal of SIAM 9 (1961), lemma 1.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gpu_engine.checks.cut_trees import leaves_first, subtree_cuts
from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray


class Slots(NamedTuple):
    """A tree of k slots."""

    slot: VertexArray
    """int32[n]: the slot in which each vertex lies."""
    up: VertexArray
    """int32[k]: the slot on which each slot hangs, -1 for the root."""
    flow: UnitArray
    """int64[k, 3]: for the link of each slot two vertices, and the proven value of their maximum flow."""


class Around(NamedTuple):
    """Edges of networks around slots."""

    slot: VertexArray
    """int32[e]: the slot in whose network each edge is."""
    arc: ArcArray
    """int32[e]: the arc of the whole network that each edge is."""
    tail: VertexArray
    """int32[e]: the tail, a vertex of the slot; or -1 - y for what lies beyond the link of slot y."""
    head: VertexArray


def contraction_failures(
    head: VertexArray, reverse_arc: ArcArray, capacity: UnitArray, slots: Slots, around: Around
) -> tuple[str, ...]:
    """What is wrong with networks around slots of a network whose edges are undirected; () if nothing is. O((n + m) log
    n + e log e)."""
    k = len(slots.up)
    order = leaves_first(slots.up, np.arange(k, dtype=np.int32))
    if len(order) < k or (slots.up < 0).sum() != 1:
        return ("the slots are no tree",)
    tail = head[reverse_arc]
    once = (tail < head) & (slots.slot[tail] != slots.slot[head])
    cut, limitless = subtree_cuts(slots.up, order, slots.slot[tail[once]], slots.slot[head[once]], capacity[once])
    begins, ends = spans(slots.up, order)
    linked = np.flatnonzero(slots.up >= 0)
    beyond = [
        (begins[linked] <= begins[slots.slot[end]]) & (begins[slots.slot[end]] < ends[linked])
        for end in (slots.flow[linked, 0], slots.flow[linked, 1])
    ]
    failures = []
    wrong = (cut[linked] != slots.flow[linked, 2]) | (limitless[linked] > 0) | (beyond[0] == beyond[1])
    if wrong.any():
        failures.append(f"{wrong.sum()} links are not shown to be minimum cuts")
    keys = around.slot.astype(np.int64) * (len(head) + 1) + np.minimum(around.arc, reverse_arc[around.arc])
    if len(np.unique(keys)) < len(keys):
        failures.append("an edge stands twice in a network around a slot")
    for end, vertex in ((around.tail, tail[around.arc]), (around.head, head[around.arc])):
        misplaced = ~lies_there(slots, begins, ends, around.slot, end, vertex)
        if misplaced.any():
            failures.append(f"{misplaced.sum()} edges end elsewhere")
    return tuple(failures)


def lies_there(
    slots: Slots, begins: VertexArray, ends: VertexArray, around: VertexArray, end: VertexArray, vertex: VertexArray
) -> BoolArray:
    """bool[e]: whether a vertex is this end of an edge of the network around a slot."""
    within = end >= 0
    y = np.where(within, around, -1 - end)
    place = begins[slots.slot[vertex]]
    below = (begins[y] <= place) & (place < ends[y])
    itself = within & (end == vertex) & (slots.slot[vertex] == around)
    child = ~within & (slots.up[y] == around) & below
    parent = ~within & (y == around) & ~below
    found: BoolArray = itself | child | parent
    return found


@njit(cache=True, nogil=True)
def spans(up: VertexArray, order: VertexArray) -> tuple[VertexArray, VertexArray]:
    """int32[k] each: numbers of the slots, of one tree or several, so that those below y are from ``begins[y]`` up to
    ``ends[y]``."""
    k = len(up)
    size, begins, ends = np.ones(k, np.int32), np.zeros(k, np.int32), np.zeros(k, np.int32)
    for y in order:
        if up[y] >= 0:
            size[up[y]] += size[y]
    free, used = np.ones(k, np.int32), 0
    for i in range(k - 1, -1, -1):
        y = order[i]
        if up[y] >= 0:
            begins[y] = begins[up[y]] + free[up[y]]
            free[up[y]] += size[y]
        else:
            begins[y] = used
            used += size[y]
        ends[y] = begins[y] + size[y]
    return begins, ends
