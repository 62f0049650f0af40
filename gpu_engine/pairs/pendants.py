"""Vertices that hang on one other, and rings that hang on one vertex: their cuts are known, and change no other cut.

The link of a vertex that hangs on one other is its minimum cut. In a ring, a minimum cut of two neighbours is of their
link and the lightest of all others; so the ring without its lightest link is its tree. Once they are gone others hang
on one vertex alone: of a network that is a tree, or a tree of rings, nothing is left. What hangs on one vertex only is
a block of the network (Hopcroft and Tarjan, "Algorithm 447: efficient algorithms for graph manipulation",
Communications of the ACM 16 (1973)); the blocks are looked at from the leaves of their tree.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gpu_engine.networks.network import Network
from gpu_engine.types import MAX_TOTAL, ArcArray, BoolArray, UnitArray, VertexArray


class Peeled(NamedTuple):
    """What need not be cut."""

    onto: VertexArray
    """int32[n]: the vertex that each vertex hangs on, -1 if it stays."""
    rings: VertexArray
    """int32[...]: the vertices of all rings that hang on one vertex, which is the first of each, in their order."""
    offsets: UnitArray
    """int64[rings + 1]: ring i is ``rings[offsets[i] : offsets[i + 1]]``."""


def pendants(network: Network, terminals: VertexArray) -> Peeled:
    """Of an undirected network: terminals only, on links with limits; the first of them stays. O(n + m)."""
    may_go = np.zeros(network.n_vertices, np.bool_)
    may_go[terminals] = True
    return Peeled(*_peeled(network.row_offsets, network.head, network.arc_capacity(), may_go, int(terminals[0])))


@njit(cache=True, nogil=True)
def _peeled(
    row_offsets: ArcArray, head: VertexArray, capacity: UnitArray, may_go: BoolArray, root: int
) -> tuple[VertexArray, VertexArray, UnitArray]:
    n = len(may_go)
    rank, low, parent = np.zeros(n, np.int32), np.zeros(n, np.int32), np.full(n, -1, np.int32)
    current, onto = row_offsets[:n].copy(), np.full(n, -1, np.int32)
    stays = ~may_go  # no terminals, and what more than peeled blocks hangs on
    links, block = np.zeros(n, np.int32), np.full(n, -1, np.int32)
    waiting, ring, width = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n + 1, np.int64)
    rings, offsets = np.empty(2 * n, np.int32), np.zeros(n + 1, np.int64)
    ranked, height, n_rings, n_blocks = 0, 0, 0, 0
    for i in range(-1, n):
        v = root if i < 0 else i
        if rank[v] > 0:
            continue
        ranked += 1
        rank[v] = low[v] = ranked
        while v >= 0:
            if current[v] < row_offsets[v + 1]:
                a = current[v]
                current[v] += 1
                w = int(head[a])
                if capacity[a] == 0:
                    continue
                links[v] += 1
                if rank[w] > 0:
                    low[v] = min(low[v], rank[w] if w != parent[v] else rank[v])
                    continue
                parent[w] = v
                ranked += 1
                rank[w] = low[w] = ranked
                waiting[height] = w
                height += 1
                v = w
                continue
            top = int(parent[v])
            if top < 0:
                break
            if low[v] < rank[top]:
                low[top] = min(low[top], low[v])
                v = top
                continue
            begin = height - 1  # the block of v and its top
            while waiting[begin] != v:
                begin -= 1
            block[top] = n_blocks
            for k in range(begin, height):
                block[waiting[k]] = n_blocks
            size = _round(row_offsets, head, capacity, block, stays, links, waiting[begin:height], top, ring, width)
            height = begin
            n_blocks += 1
            if not may_go[top]:
                size = 0
            if size == 0:
                stays[top] = True
            if size == 2:
                onto[v] = top
            elif size > 2:
                _opened(ring[:size], width[:size], onto)
                end = offsets[n_rings] + size
                rings[offsets[n_rings] : end] = ring[:size]
                n_rings += 1
                offsets[n_rings] = end
            v = top
    return onto, rings[: offsets[n_rings]].copy(), offsets[: n_rings + 1].copy()


@njit(cache=True, nogil=True)
def _round(
    row_offsets: ArcArray,
    head: VertexArray,
    capacity: UnitArray,
    block: VertexArray,
    stays: BoolArray,
    links: VertexArray,
    members: VertexArray,
    top: int,
    ring: VertexArray,
    width: UnitArray,
) -> int:
    """How many vertices a block has, if it is one link or a ring and all ``members`` may go, else 0. They stand in
    ``ring``, from ``top`` on, and the capacities between each and the next one in ``width``. Its links at the top are
    taken off ``links``."""
    number, size, at_top, good = block[top], len(members) + 1, 0, True
    for x in members:
        good = good and not stays[x] and links[x] == min(size - 1, 2)
        for a in range(row_offsets[x], row_offsets[x + 1]):
            if capacity[a] > 0 and block[head[a]] == number:
                at_top += head[a] == top
                good = good and capacity[a] <= MAX_TOTAL
    links[top] -= at_top
    if not good:
        return 0
    before, x = top, int(members[0])
    ring[0] = top
    for i in range(1, size):
        ring[i] = x
        following = top
        for a in range(row_offsets[x], row_offsets[x + 1]):
            w = int(head[a])
            if capacity[a] == 0 or block[w] != number:
                continue
            if w == before:
                width[i - 1] = capacity[a]
            else:
                following = w
            if w == top and i == size - 1:
                width[i] = capacity[a]
        before, x = x, following
    return size


@njit(cache=True, nogil=True)
def _opened(ring: VertexArray, width: UnitArray, onto: VertexArray) -> None:
    """Let a ring hang on its first vertex by all links but the lightest."""
    lightest = np.argmin(width)
    for i in range(1, len(ring)):
        onto[ring[i]] = ring[i - 1] if i <= lightest else ring[(i + 1) % len(ring)]
