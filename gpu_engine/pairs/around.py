"""Networks around the slots of a Gomory-Hu tree that grows: all vertices beyond a link of a slot are contracted to one.

So a cut of a slot costs as much as the network around it. A network that is long and narrow would list half of its
vertices for each cut otherwise. The contractions are proven to be right (`gpu_engine.checks.contractions`).

Gomory, Hu, "Multi-terminal network flows", Journal of SIAM 9 (1961).
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.checks.contractions import Around
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.pairs.forest import SLOTS, Forest
from gpu_engine.pairs.values import Whole
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, BoolArray, UnitArray, VertexArray

MOST: Final = 2
"""Networks around slots are made only if all of them together have at most so many times the arcs of the whole
network."""


class Edges(NamedTuple):
    """Edges around all slots that hold several terminals, slot by slot."""

    around: Around
    offsets: UnitArray
    """int64[k + 1]: the edges around slot z are those from ``offsets[z]`` up to ``offsets[z + 1]``."""


def edges_around(whole: Whole, forest: Forest) -> Edges | None:
    """The edges around all slots that hold several terminals; None if these are more than `MOST` allows. O(n + arcs +
    edges)."""
    k, arcs = int(forest.counts[SLOTS]), len(whole.head)
    up, wanted = forest.up[:k], forest.members[:k] > 1
    depth = depths(up)
    count = np.zeros(k + 1, np.int64)
    nothing = np.empty(0, np.int32)
    none = Around(nothing, nothing, nothing, nothing)
    if walk(whole, forest.slot, up, depth, wanted, count, none, False, MOST * arcs) > MOST * arcs:
        return None
    offsets = np.concatenate([[0], np.cumsum(count[:k])])
    around = Around(*(np.empty(offsets[-1], np.int32) for _ in range(4)))
    walk(whole, forest.slot, up, depth, wanted, offsets[:-1].copy(), around, True, MOST * arcs)
    return Edges(around, offsets)


class Drawn(NamedTuple):
    """The network around a slot."""

    network: Network
    end: VertexArray
    """int32[vertices], rising: what each vertex stands for. -1 - y is all that lies beyond the link of slot y; other
    numbers are vertices of the whole network."""


def drawn_around(whole: Whole, edges: Edges, slot: int) -> Drawn:
    """The network around a slot, without vertices of degree zero. O(e log e)."""
    own = slice(edges.offsets[slot], edges.offsets[slot + 1])
    tail, head = edges.around.tail[own], edges.around.head[own]
    end, place = np.unique(np.concatenate((tail, head)), return_inverse=True)
    units = whole.capacity[edges.around.arc[own]]
    capacity = np.where(units >= INFINITE_RESIDUAL, INFINITE, units)
    ends = place.astype(np.int32)
    return Drawn(Network(EdgeList(len(end), ends[: len(tail)], ends[len(tail) :], capacity, True)), end)


@njit(cache=True, nogil=True)
def depths(up: VertexArray) -> VertexArray:
    """int32[k]: how many links lie above each slot."""
    depth, stack = np.full(len(up), -1, np.int32), np.empty(len(up), np.int32)
    for z in range(len(up)):
        y, waiting = z, 0
        while y >= 0 and depth[y] < 0:
            stack[waiting] = y
            waiting += 1
            y = up[y]
        at = -1 if y < 0 else depth[y]
        while waiting > 0:
            waiting -= 1
            at += 1
            depth[stack[waiting]] = at
    return depth


@njit(cache=True, nogil=True)
def walk(
    whole: Whole,
    slot: VertexArray,
    up: VertexArray,
    depth: VertexArray,
    wanted: BoolArray,
    place: UnitArray,
    around: Around,
    fills: bool,
    most: int,
) -> int:
    """Walk along the tree from end to end of each edge, and count the edge at each slot that is wanted, or write it
    there where ``fills``. Returns the number of steps, and stops after more than ``most``."""
    steps = 0
    for v in range(len(slot)):
        for a in range(whole.row_offsets[v], whole.row_offsets[v + 1]):
            if whole.head[a] < v or whole.capacity[a] == 0:
                continue
            x, w = slot[v], slot[whole.head[a]]
            tail, head = v, int(whole.head[a])
            while x != w:
                steps += 1
                if steps > most:
                    return steps
                if depth[x] >= depth[w]:
                    if wanted[x]:
                        note(around, place, fills, x, a, tail, -1 - x)
                    tail, x = -1 - int(x), up[x]
                else:
                    if wanted[w]:
                        note(around, place, fills, w, a, -1 - w, head)
                    head, w = -1 - int(w), up[w]
            if wanted[x] and tail != head:
                note(around, place, fills, x, a, tail, head)
    return steps


@njit(cache=True, nogil=True)
def note(around: Around, place: UnitArray, fills: bool, slot: int, arc: int, tail: int, head: int) -> None:
    """Count one edge at a slot, or write it there."""
    if fills:
        i = place[slot]
        around.slot[i], around.arc[i], around.tail[i], around.head[i] = slot, arc, tail, head
    place[slot] += 1
