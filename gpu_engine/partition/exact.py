"""The best partition of a graph with few vertices, by branch and bound.

A local search on five vertices in three parts is easily stuck: every move breaks the limit. So few vertices are better
divided in all ways, but for those that cannot cut less than the best way found so far: each vertex that has no part yet
loses at least its links to all parts but the one that it is linked to most (Karisch, Rendl and Clausen, Solving Graph
Bisection Problems with Semidefinite Programming, section 2, call that the combinatorial bound).
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.partition import moves
from gpu_engine.partition.buckets import Buckets
from gpu_engine.partition.moves import NOWHERE, Books
from gpu_engine.types import UnitArray, VertexArray

MOST_VERTICES: Final = 32
"""Graphs with more vertices are left as they are."""

MOST_TRIED: Final = 100_000
"""The search ends after it has given a vertex a part this many times, at most 50 ms, and keeps the best partition so
far."""


def divide(buckets: Buckets, books: Books) -> None:
    """Replace the partition by one that keeps the limit and cuts less, or by one that keeps the limit where the one at
    hand does not. A part keeps the number that most of its vertices have.

    A graph of more than `MOST_VERTICES` vertices is left as it is, which takes O(n) to see. With more than about a
    dozen vertices the search may end before it has seen all partitions.
    """
    if _are_more(books.part, MOST_VERTICES):
        return
    vertices = np.flatnonzero(books.part != NOWHERE).astype(np.int32)
    if len(vertices) < 2:
        return
    link = _links(buckets, vertices, len(books.part))
    order = _strongest_first(link)
    weight = books.vertex_weight[vertices[order]]
    k = min(len(books.part_weight) - 1, len(vertices))
    kept = books.part_weight.max() <= books.limit[0]
    at_most = int(books.cut[0]) if kept else int(link.sum()) // 2 + 1
    found = _search(link[np.ix_(order, order)], weight, k, int(books.limit[0]), at_most, MOST_TRIED)
    if found[0] < 0:
        return
    books.part[vertices[order]] = _as_before(books.part[vertices[order]], found, len(books.part_weight) - 1)
    moves.count_up(buckets, books)


@njit(cache=True, nogil=True)
def _are_more(part: VertexArray, than: int) -> bool:
    """Whether more than so many vertices exist."""
    for v in range(len(part)):
        than -= part[v] != NOWHERE
        if than < 0:
            return True
    return False


def _links(buckets: Buckets, vertices: VertexArray, n: int) -> NDArray[np.int64]:
    """int64[j, j]: the weights of the links between these ``j`` vertices of ``n``."""
    position = np.full(n, -1, np.int64)
    position[vertices] = np.arange(len(vertices))
    link = np.zeros((len(vertices), len(vertices)), np.int64)
    for i, v in enumerate(vertices.tolist()):
        slots = slice(buckets.start[v], buckets.start[v] + buckets.used[v])
        link[i, position[buckets.head[slots]]] = buckets.weight[slots]
    np.fill_diagonal(link, 0)
    return link


def _strongest_first(link: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[j]: an order of the vertices, in which each is the one with the heaviest links to those before it, so that
    the search sees early what a part costs."""
    order = [int(np.argmax(link.sum(axis=1)))]
    linked = link[order[0]].astype(np.float64)
    while len(order) < len(link):
        linked[order] = -1.0
        order.append(int(np.argmax(linked)))
        linked += link[order[-1]]
    return np.array(order)


def _as_before(before: VertexArray, found: VertexArray, k: int) -> VertexArray:
    """The parts found, int32[n], each with the number below k that most of its vertices had ``before``, if no other
    part has it."""
    shared = np.zeros((k, found.max() + 1), np.int64)
    old = before < k
    np.add.at(shared, (before[old], found[old]), 1)
    number = np.full(shared.shape[1], -1, np.int32)
    for _ in number:
        was, part = np.unravel_index(int(shared.argmax()), shared.shape)
        number[part] = was
        shared[was] = shared[:, part] = -1
    return number[found]


@njit(cache=True, nogil=True)
def _search(
    link: NDArray[np.int64], weight: UnitArray, k: int, limit: int, at_most: int, most_tried: int
) -> VertexArray:
    """int32[n]: the parts, below k, that cut the least of all that were tried, cut less than ``at_most`` and weigh at
    most ``limit``; -1 for every vertex where none does. Parts have no order, so a part is opened only after all parts
    of lower numbers."""
    n = len(weight)
    best = np.full(n, -1, np.int32)
    part = np.full(n, -1, np.int32)
    used = np.zeros(n + 1, np.int32)  # how many parts are in use before each vertex is given its own
    cut = np.zeros(n + 1, np.int64)
    load = np.zeros(k, np.int64)
    to = np.zeros((n, k), np.int64)  # what links each vertex to the vertices of each part
    ahead = 0
    v = 0
    while v >= 0:
        p = part[v]
        if p >= 0:  # the search comes back to v: all with v in p were tried
            load[p] -= weight[v]
            for u in range(v + 1, n):
                to[u, p] -= link[v, u]
        p += 1
        while p < k and p <= used[v] and load[p] + weight[v] > limit:
            p += 1
        if p >= k or p > used[v] or ahead >= most_tried:
            part[v] = -1
            v -= 1
            continue
        ahead += 1
        part[v] = p
        load[p] += weight[v]
        cut[v + 1] = cut[v]
        for q in range(k):
            if q != p:
                cut[v + 1] += to[v, q]
        least = cut[v + 1]
        for u in range(v + 1, n):
            to[u, p] += link[v, u]
            total = 0
            most = 0
            for q in range(k):
                total += to[u, q]
                most = max(most, to[u, q])
            least += total - most
        if least >= at_most:
            continue  # v tries its next part
        if v == n - 1:
            at_most = least
            best[:] = part
            continue
        used[v + 1] = max(used[v], p + 1)
        v += 1
    return best
