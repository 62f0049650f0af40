"""Proof that a smaller network has the flows and the cuts of a whole one between certain vertices.

A proof in the smaller network alone then holds in the whole one, so that it need not be written out there. Looked at
are the two networks and which chain of arcs each arc of the smaller one stands for; how they were found does not
matter.

Flows: each chain leads from the vertex of its tail to that of its head, is nowhere narrower than its arc, and shares no
arc with another. So what flows in the smaller network flows in the whole one along the chains. Cuts: a vertex within a
chain belongs to it and to the chain back, which has the same links, and to no other; so each pair of chains that a cut
of the smaller network divides can be divided at its narrowest arc, which is as wide as the arc. What is in no chain
hangs on a single vertex and goes with it: among the other links no two vertices of chains or of the smaller network
are connected.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray

NOT_IN_A_CHAIN: Final = -1


class Rows(NamedTuple):
    """A bidirectional CSR."""

    row_offsets: ArcArray
    head: VertexArray
    reverse_arc: ArcArray
    capacity: UnitArray


class Chains(NamedTuple):
    """The part of the whole network for which each arc and vertex of the smaller one stands."""

    offsets: ArcArray
    """int32[arcs + 1]: the chain of arc a of the smaller network is ``chain[offsets[a]:offsets[a + 1]]``."""
    chain: ArcArray
    """int32[...]: arcs of the whole network."""
    number: VertexArray
    """int32[n]: the vertex of the smaller network that each vertex is, less than 0 for none."""


@njit(cache=True, nogil=True)
def is_reduction(whole: Rows, small: Rows, chains: Chains) -> bool:
    """Whether the smaller network has the flows and the cuts of the whole one between all vertices that have a number.
    O(n + m) but for union-find."""
    head, reverse_arc, capacity = whole.head, whole.reverse_arc, whole.capacity
    offsets, chain, number = chains
    n, n_small = len(number), len(small.row_offsets) - 1
    vertex = np.full(n_small, -1, np.int32)
    for v in range(n):
        if number[v] >= n_small or (number[v] >= 0 and vertex[number[v]] >= 0):
            return False
        if number[v] >= 0:
            vertex[number[v]] = v
    owner = np.full(
        n, NOT_IN_A_CHAIN, np.int32
    )  # of a vertex within a chain: the lesser arc of the chain and the one back
    used = np.zeros(len(head), np.bool_)
    for x in range(n_small):
        if vertex[x] < 0:
            return False
        for a in range(small.row_offsets[x], small.row_offsets[x + 1]):
            b = small.reverse_arc[a]
            first, end = offsets[a], offsets[a + 1]
            if a == b or small.reverse_arc[b] != a or small.head[b] != x or offsets[b + 1] - offsets[b] != end - first:
                return False
            at, narrowest = vertex[x], capacity[chain[first]] if end > first else np.int64(-1)
            for i in range(first, end):
                arc = chain[i]
                back = reverse_arc[arc]
                if used[arc] or head[back] != at or chain[offsets[b + 1] - 1 - (i - first)] != back:
                    return False
                used[arc] = True
                narrowest = min(narrowest, capacity[arc])
                at = head[arc]
                if i == end - 1:
                    break
                if number[at] >= 0 or (owner[at] != NOT_IN_A_CHAIN if a < b else owner[at] != b):
                    return False
                owner[at] = min(a, b)
            if at != vertex[small.head[a]] or narrowest != small.capacity[a]:
                return False
    return hang_on_one(whole, used, owner, number)


@njit(cache=True, nogil=True)
def hang_on_one(whole: Rows, used: BoolArray, owner: VertexArray, number: VertexArray) -> bool:
    """Whether links that are in no chain connect no two vertices that are in one or have a number."""
    row_offsets, head, reverse_arc = whole.row_offsets, whole.head, whole.reverse_arc
    n = len(owner)
    root = np.arange(n).astype(np.int32)
    held = np.empty(n, np.bool_)
    for v in range(n):
        held[v] = number[v] >= 0 or owner[v] >= 0
    for v in range(n):
        for a in range(row_offsets[v], row_offsets[v + 1]):
            if used[a] or head[a] < v:
                if not used[a] and used[reverse_arc[a]]:
                    return False
                continue
            x, y = find(root, v), find(root, head[a])
            if x == y:
                continue
            if held[x] and held[y]:
                return False
            root[x] = y
            held[y] = held[x] or held[y]
    return True


@njit(cache=True, nogil=True)
def find(root: VertexArray, v: int) -> int:
    """The representative of v; paths are halved."""
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v
