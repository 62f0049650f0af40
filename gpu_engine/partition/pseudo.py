"""Incremental refinement by a pseudo-partition, after Lee et al., "iG-kway: Incremental k-way Graph Partitioning on
GPU", Algorithms 3 and 4, for links and vertices with weights.

Vertices that a change has touched leave their parts if more links them to other parts than to their own, as do their
neighbours then. They come back in rounds. In each, those that have no neighbour of a lower rank in the
pseudo-partition, so that no two are adjacent, choose the part with room that most links them to; for each part the
longest sequence of choices, the strongest first, that keeps it within the limit is applied. So a round has one outcome
however many threads compute it.

Two things differ from the paper. Ranks are mixed from the numbers of vertices and not these themselves: a chain of new
vertices, whose numbers rise, would take a round for each. And a part that is full ends its own sequence, not all.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.partition.buckets import Buckets
from gpu_engine.partition.moves import NOWHERE, Books, Gains, best_part, clear, lightest, look, move
from gpu_engine.types import BoolArray, UnitArray, VertexArray


@njit(cache=True, nogil=True)
def _rank(v: int) -> int:
    """A number that no other vertex has. The bits of v are mixed, so that neighbours are in no order."""
    mixed = np.uint64(v)
    mixed = (mixed ^ (mixed >> np.uint64(16))) * np.uint64(0x45D9F3B)
    mixed = (mixed ^ (mixed >> np.uint64(16))) * np.uint64(0x45D9F3B)
    return int((mixed << np.uint64(31) | np.uint64(v)) & np.uint64(0x7FFFFFFFFFFFFFFF))


@njit(cache=True, nogil=True)
def _pull(buckets: Buckets, part: VertexArray, v: int) -> tuple[int, int]:
    """The weight of the links from v to other parts, and to its own."""
    outward = 0
    inward = 0
    for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
        if part[buckets.head[a]] == part[v]:
            inward += buckets.weight[a]
        else:
            outward += buckets.weight[a]
    return outward, inward


@njit(cache=True, nogil=True)
def gather(buckets: Buckets, books: Books, touched: VertexArray, marked: BoolArray) -> tuple[VertexArray, VertexArray]:
    """Algorithm 3: put the affected vertices into the pseudo-partition. Returns all vertices that are in it then,
    int32[...]; and others for which a move could pay, int32[...]: neighbours of those, and such of ``touched`` as have
    a neighbour in another part.

    ``touched`` has each vertex once; those without a part yet are in the pseudo-partition. ``marked`` is a scratch
    column bool[n], all false before and after.
    """
    k = len(books.part_weight) - 1
    found = np.empty(len(touched), np.int32)
    count = 0
    border = np.empty(len(touched), np.int32)
    n_border = 0
    for v in touched:
        if books.part[v] == NOWHERE:
            continue
        outward, inward = (1, 0) if books.part[v] == k else _pull(buckets, books.part, v)
        if outward > inward:
            found[count] = v
            count += 1
        elif outward:
            border[n_border] = v
            n_border += 1
    for i in range(count):
        if books.part[found[i]] != k:
            move(buckets, books, found[i], k)
    near_count = 0
    for i in range(count):
        near_count += buckets.used[found[i]]
    near = np.empty(near_count, np.int32)
    near_count = 0
    for i in range(count):
        for a in range(buckets.start[found[i]], buckets.start[found[i]] + buckets.used[found[i]]):
            u = buckets.head[a]
            if not marked[u] and books.part[u] != k:
                marked[u] = True
                near[near_count] = u
                near_count += 1
    leaving = np.empty(near_count, np.int32)
    n_leaving = 0
    for i in range(near_count):
        marked[near[i]] = False
        outward, inward = _pull(buckets, books.part, near[i])
        if outward > inward:
            leaving[n_leaving] = near[i]
            n_leaving += 1
    for i in range(n_leaving):
        move(buckets, books, leaving[i], k)
    pseudo = np.concatenate((found[:count], leaving[:n_leaving]))
    return pseudo, np.concatenate((near[:near_count], border[:n_border]))


@njit(cache=True, nogil=True)
def choose(
    buckets: Buckets, books: Books, gains: Gains, pseudo: VertexArray
) -> tuple[NDArray[np.int64], VertexArray, UnitArray]:
    """The choices of one round: places in ``pseudo``, the part that the vertex at each chooses, and the weight of its
    links to that part. A vertex for which no part has room chooses the lightest."""
    k = len(books.part_weight) - 1
    light = lightest(books)
    who = np.empty(len(pseudo), np.int64)
    to = np.empty(len(pseudo), np.int32)
    strength = np.empty(len(pseudo), np.int64)
    count = 0
    for i in range(len(pseudo)):
        v = pseudo[i]
        mine = _rank(v)
        waits = False
        for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
            u = buckets.head[a]
            if books.part[u] == k and _rank(u) < mine:
                waits = True
                break
        if waits:
            continue
        parts = look(buckets, books.part, gains, v)
        best = best_part(books, gains, parts, v, k, light)
        who[count] = i
        to[count] = light if best < 0 else best
        strength[count] = gains.to[to[count]]
        clear(gains, parts)
        count += 1
    return who[:count], to[:count], strength[:count]


@njit(cache=True, nogil=True)
def place(
    buckets: Buckets,
    books: Books,
    pseudo: VertexArray,
    who: NDArray[np.int64],
    to: VertexArray,
    order: NDArray[np.int64],
) -> None:
    """Apply for each part the longest sequence of choices in this order that keeps its limit, and at least one choice
    of all."""
    full = np.zeros(len(books.part_weight), np.bool_)
    placed = False
    for i in order:
        v = pseudo[who[i]]
        if full[to[i]] or books.part_weight[to[i]] + books.vertex_weight[v] > books.limit[0]:
            full[to[i]] = True
            continue
        move(buckets, books, v, to[i])
        placed = True
    if not placed:
        move(buckets, books, pseudo[who[order[0]]], to[order[0]])


def settle(buckets: Buckets, books: Books, gains: Gains, pseudo: VertexArray) -> None:
    """Algorithm 4: place vertices round by round until none is in the pseudo-partition any more.

    There is at most one round for each vertex, mostly a handful in all: each places the vertices that it can, and at
    least one.
    """
    k = len(books.part_weight) - 1
    while len(pseudo):
        who, to, strength = choose(buckets, books, gains, pseudo)
        order = np.lexsort((pseudo[who], -strength))
        place(buckets, books, pseudo, who, to, order)
        pseudo = pseudo[books.part[pseudo] == k]
