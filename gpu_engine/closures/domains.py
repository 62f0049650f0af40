"""Vertices that residual arcs lead to through one vertex only: those behind an edge that nothing leads round.

If the flow on an edge cannot go another way, then no other residual path leads from its tail to its head. Both lie in
one strongly connected component, unless the edge is full. Whatever vertex the component is looked at from, the edge is
the only way into all that its head dominates, or out of all that its tail dominates the other way round (Italiano,
Laura, Santaroni, "Finding strong bridges and strong articulation points in linear time", Theoretical Computer Science
447 (2012), section 4). What such sets of vertices show is proven by `gpu_engine.checks.domains`.

Lengauer, Tarjan, "A fast algorithm for finding dominators in a flowgraph", ACM Transactions on Programming Languages
and Systems 1 (1979), by path compression alone: O(m log n).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from gpu_engine.control import Control
from gpu_engine.cpu.pseudoflow import CANCEL, POLL_MASK
from gpu_engine.errors import Cancelled
from gpu_engine.networks.network import Network
from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray

VERTEX_BYTES = 90
ARC_BYTES = 30
"""Bytes for each arc, and for each vertex, that `domains` takes at most, with the proof of what they show."""


def domains(network: Network, flow: UnitArray, level: VertexArray, control: Control) -> Iterator[VertexArray]:
    """int32[n] twice: what dominates each vertex from one in its component, ``level``, by residual arcs of a flow
    int64[m], and by these turned round; -1 for the vertices looked at from. Raises `Cancelled`."""
    residual, reverse = residual_arcs(network, flow), network.reverse_arc
    is_open = residual > 0
    for ahead, behind in ((is_open, is_open[reverse]), (is_open[reverse], is_open)):
        found = dominators(network.row_offsets, network.head, ahead, behind, level, control.slots)
        if control.cancelled:
            raise Cancelled("cancelled while edges are looked for that nothing leads round")
        yield found


def residual_arcs(network: Network, flow: UnitArray) -> UnitArray:
    """int64[arcs]: the capacity of each arc that a flow, int64[m], leaves free. O(n + m)."""
    rows = np.flatnonzero(network.edge_arc >= 0)
    residual, net = network.arc_capacity(), np.zeros(network.n_arcs, np.int64)
    np.add.at(net, network.edge_arc[rows], flow[rows])
    residual += net[network.reverse_arc] - net
    return residual


class Grown(NamedTuple):
    """Vertices in the order in which a search finds them, and what is known of each by this number."""

    vertex: VertexArray
    parent: VertexArray
    """The number of the parent in the search, -1 where a search begins."""
    semi: VertexArray
    best: VertexArray
    """The vertex with the least `semi` of those between a vertex and `above`."""
    above: VertexArray
    """The vertex to which the path of a vertex has been shortened, -1 while the vertex is not linked."""


@njit(cache=True, nogil=True)
def dominators(
    row_offsets: ArcArray, head: VertexArray, ahead: BoolArray, behind: BoolArray, level: VertexArray, slots: UnitArray
) -> VertexArray:
    """int32[n]: immediate dominators, by arcs that are open ``ahead`` bool[arcs] and stay on a level; ``behind``
    bool[arcs]: whose reverse arcs are open so. Breaks off when ``slots`` (`Control.slots`) say cancel."""
    n = len(level)
    number, made = searched(row_offsets, head, ahead, level)
    bucket, following = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    over, stack = np.full(n, -1, np.int32), np.empty(n, np.int32)
    for i in range(n - 1, -1, -1):
        if i & POLL_MASK == 0 and slots[CANCEL] != 0:
            break
        p = made.parent[i]
        if p < 0:
            continue
        v = made.vertex[i]
        for a in range(row_offsets[v], row_offsets[v + 1]):
            w = head[a]
            if behind[a] and level[w] == level[v]:
                made.semi[i] = min(made.semi[i], made.semi[least_above(made, number[w], stack)])
        following[i] = bucket[made.semi[i]]
        bucket[made.semi[i]] = i
        made.above[i] = p
        j = bucket[p]
        while j >= 0:
            u = least_above(made, j, stack)
            over[j] = u if made.semi[u] < made.semi[j] else p
            j = following[j]
        bucket[p] = -1
    found = np.full(n, -1, np.int32)
    for i in range(n):
        if made.parent[i] >= 0:
            if over[i] != made.semi[i]:
                over[i] = over[over[i]]
            found[made.vertex[i]] = made.vertex[over[i]]
    return found


@njit(cache=True, nogil=True)
def searched(
    row_offsets: ArcArray, head: VertexArray, ahead: BoolArray, level: VertexArray
) -> tuple[VertexArray, Grown]:
    """int32[n]: the number of each vertex in a depth first search of each level."""
    n = len(level)
    number, current = np.full(n, -1, np.int32), row_offsets[:n].copy()
    itself = np.arange(n).astype(np.int32)
    made = Grown(np.empty(n, np.int32), np.full(n, -1, np.int32), itself, itself.copy(), np.full(n, -1, np.int32))
    count = 0
    for root in range(n):
        if number[root] >= 0:
            continue
        v = root
        number[v] = count
        made.vertex[count] = v
        count += 1
        while v >= 0:
            if current[v] == row_offsets[v + 1]:
                p = made.parent[number[v]]
                v = -1 if p < 0 else made.vertex[p]
                continue
            a = current[v]
            current[v] += 1
            w = head[a]
            if ahead[a] and level[w] == level[v] and number[w] < 0:
                number[w] = count
                made.vertex[count] = w
                made.parent[count] = number[v]
                count += 1
                v = w
    return number, made


@njit(cache=True, nogil=True)
def least_above(made: Grown, i: int, stack: VertexArray) -> int:
    """The vertex with the least `semi` of i and of the linked ones above it, except the uppermost; the path is
    shortened."""
    above, best, semi = made.above, made.best, made.semi
    if above[i] < 0:
        return i
    waiting = 0
    while above[above[i]] >= 0:
        stack[waiting] = i
        waiting += 1
        i = above[i]
    while waiting > 0:
        upper = i
        waiting -= 1
        i = stack[waiting]
        if semi[best[upper]] < semi[best[i]]:
            best[i] = best[upper]
        above[i] = above[upper]
    return int(best[i])
