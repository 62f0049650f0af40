"""Graphs in which groups of vertices are contracted to one vertex each.

Groups are grown greedily to a handful of vertices each, as the constrained coarsening of iG-kway bounds them (Lee et
al., section IV), so a few levels take a million vertices to some thousands. A partition of the small graph is one of
the large graph with the same cut and the same weights.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.partition.buckets import Buckets
from gpu_engine.types import BoolArray, UnitArray, VertexArray

GROUP: Final = 12
"""The most vertices of a group as it grows. A vertex that is left over joins the group that most links it to, which has
up to twice as many then."""

ALONE: Final = 0.7
"""No level is made that has more than this share of the vertices of the one before."""


class Level(NamedTuple):
    """A graph, and which of its vertices are one vertex of the next level."""

    buckets: Buckets
    vertex_weight: UnitArray
    group: VertexArray
    """int32[n]: the vertex of the next level that stands for each vertex, -1 for vertices that do not exist."""


def drawn_together(
    buckets: Buckets, vertex_weight: UnitArray, there: BoolArray, few: int, heaviest: int
) -> tuple[list[Level], Buckets, UnitArray]:
    """Contract the graph of the vertices that are ``there``, bool[n], until one has at most ``few`` vertices, or cannot
    be made much smaller without vertices that weigh more than ``heaviest``. Returns the levels above it, that graph,
    and what its vertices weigh, int64. O(n + slots)."""
    levels: list[Level] = []
    while int(np.count_nonzero(there)) > few:
        group, count = groups(buckets, there, vertex_weight, heaviest)
        if count > ALONE * len(there):
            break
        levels.append(Level(buckets, vertex_weight, group))
        buckets, vertex_weight = contracted(buckets, vertex_weight, group, count)
        there = np.ones(count, np.bool_)
    return levels, buckets, vertex_weight


def contract_bytes(n_vertices: int, n_arcs: int) -> int:
    """Bytes that `drawn_together` takes at most: each level has half of the vertices of the one before, or fewer."""
    return 2 * (24 * n_arcs + 64 * n_vertices)


@njit(cache=True, nogil=True)
def parts_of(part: VertexArray, group: VertexArray) -> VertexArray:
    """int32[n]: for each vertex the part that its group is in, -1 where it has no group."""
    found = np.full(len(group), -1, np.int32)
    for v in range(len(group)):
        if group[v] >= 0:
            found[v] = part[group[v]]
    return found


@njit(cache=True, nogil=True)
def groups(buckets: Buckets, kept: BoolArray, vertex_weight: UnitArray, heaviest: int) -> tuple[VertexArray, int]:
    """The group of each vertex, int32[n], -1 for those that are not ``kept``, bool[n]; and how many groups there are.
    No group of several vertices weighs more than ``heaviest``. O(n + slots)."""
    n = len(kept)
    group = np.full(n, -1, np.int32)
    size = np.zeros(n, np.int32)
    weight = np.zeros(n, np.int64)
    member = np.empty(GROUP, np.int32)
    count = 0
    for v in range(n):
        if not kept[v] or group[v] >= 0:
            continue
        member[0] = v
        group[v] = count
        members = 1
        total = vertex_weight[v]
        at = 0
        while at < members and members < GROUP:
            u = member[at]
            at += 1
            for a in range(buckets.start[u], buckets.start[u] + buckets.used[u]):
                w = buckets.head[a]
                if members < GROUP and group[w] < 0 and total + vertex_weight[w] <= heaviest:
                    member[members] = w
                    members += 1
                    group[w] = count
                    total += vertex_weight[w]
        best = -1
        if members == 1:
            most = 0
            for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
                c = group[buckets.head[a]]
                if c != count and size[c] < 2 * GROUP and weight[c] + total <= heaviest and buckets.weight[a] > most:
                    best = c
                    most = buckets.weight[a]
        if best >= 0:
            group[v] = best
            size[best] += 1
            weight[best] += total
        else:
            size[count] = members
            weight[count] = total
            count += 1
    return group, count


@njit(cache=True, nogil=True)
def contracted(buckets: Buckets, vertex_weight: UnitArray, group: VertexArray, count: int) -> tuple[Buckets, UnitArray]:
    """The graph in which each of ``count`` groups is one vertex, without room for changes; and what its vertices weigh,
    int64[count]. O(n + slots)."""
    n = len(group)
    first = np.zeros(count + 1, np.int64)
    total = np.zeros(count, np.int64)
    slots = 0
    for v in range(n):
        if group[v] >= 0:
            first[group[v] + 1] += 1
            total[group[v]] += vertex_weight[v]
            slots += buckets.used[v]
    for c in range(count):
        first[c + 1] += first[c]
    member = np.empty(first[count], np.int32)
    place = first[:-1].copy()
    for v in range(n):
        if group[v] >= 0:
            member[place[group[v]]] = v
            place[group[v]] += 1
    start = np.empty(count, np.int64)
    used = np.empty(count, np.int32)
    head = np.empty(slots, np.int32)
    weight = np.empty(slots, np.int64)
    seen = np.full(count, -1, np.int64)
    end = 0
    for c in range(count):
        begin = end
        for i in range(first[c], first[c + 1]):
            v = member[i]
            for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
                d = group[buckets.head[a]]
                if d == c:
                    continue
                if seen[d] < begin:
                    seen[d] = end
                    head[end] = d
                    weight[end] = 0
                    end += 1
                weight[seen[d]] += buckets.weight[a]
        start[c] = begin
        used[c] = end - begin
    limits = np.array([end], np.int64)
    return Buckets(start, used, used.copy(), head[:end], weight[:end], limits), total
