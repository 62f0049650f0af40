"""The weighted undirected graph that is partitioned, in bucket lists that change in place (Lee et al., iG-kway, V.A).

Each vertex has a row of slots, a multiple of `SLOTS`, of which the first ``used`` hold its neighbours and the weights
of the links to them. All edges between two vertices are one link, with the sum of their weights; a link without weight
is none. A row that is full moves to the end of the list with twice the room; once there is no end left, all is packed
anew. A change of k links costs O(k times the degree), and looks at nothing else.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.partition.columns import lengthened
from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray

SLOTS: Final = 4
"""A row has a multiple of this many slots: a cache line holds four of them with their weights."""

HEADROOM: Final = 8
"""A list has an eighth more slots than its rows, for rows that move."""


class Buckets(NamedTuple):
    """The arrays that kernels work on."""

    start: UnitArray
    """int64[n]: where the row of each vertex begins."""
    used: NDArray[np.int32]
    room: NDArray[np.int32]
    head: VertexArray
    """int32[slots]: the neighbours."""
    weight: UnitArray
    """int64[slots], positive where used."""
    end: UnitArray
    """int64[1]: how many slots were given to rows, those included that rows have left."""

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self)

    @property
    def n_slots_used(self) -> int:
        """How many slots hold a neighbour: two for each link. O(n)."""
        return int(self.used.sum(dtype=np.int64))


def bucket_bytes(n_vertices: int, n_arcs: int) -> int:
    """Bytes that buckets of so many vertices and arcs take at most, and as many again while they are packed anew."""
    slots = n_arcs + (SLOTS - 1) * n_vertices
    return 2 * (12 * (slots + slots // HEADROOM + SLOTS) + 16 * n_vertices + 8) + 8 * n_arcs


def bucketed(row_offsets: ArcArray, head: VertexArray, weight: UnitArray) -> Buckets:
    """Buckets of a graph in compressed rows with the weight of each arc, int64[arcs]. O(n + arcs)."""
    n = len(row_offsets) - 1
    used = _weighted(row_offsets, weight)
    return _fill(_laid_out(n, used), row_offsets[:-1].astype(np.int64), np.diff(row_offsets), head, weight)


def packed_anew(buckets: Buckets, n_vertices: int, n_more: int) -> Buckets:
    """New buckets with the same links, with room for ``n_vertices`` and for at least ``n_more`` slots at the end. O(n +
    slots)."""
    more = n_vertices - len(buckets.start)
    used = np.concatenate([buckets.used, np.zeros(more, np.int32)])
    start = np.concatenate([buckets.start, np.zeros(more, np.int64)])
    return _fill(_laid_out(n_vertices, used, n_more), start, used, buckets.head, buckets.weight)


def with_vertices(buckets: Buckets, more: int) -> Buckets:
    """Buckets with so many more vertices, which have no links and no slots yet. The buckets given must not be used any
    more. O(more), or O(n) where columns have to be copied."""
    n = len(buckets.start) + more
    used, room = lengthened(buckets.used, n), lengthened(buckets.room, n)
    return buckets._replace(start=lengthened(buckets.start, n), used=used, room=room)


def _laid_out(n: int, used: NDArray[np.int32], n_more: int = 0) -> Buckets:
    room = -(-used // SLOTS) * SLOTS
    start = np.zeros(n, np.int64)
    np.cumsum(room[:-1], out=start[1:])
    end = int(room.sum(dtype=np.int64))
    slots = end + max(end // HEADROOM + SLOTS, n_more)
    empty = np.zeros(n, np.int32)
    return Buckets(start, empty, room, np.zeros(slots, np.int32), np.zeros(slots, np.int64), np.array([end], np.int64))


@njit(cache=True, nogil=True)
def _weighted(row_offsets: ArcArray, weight: UnitArray) -> NDArray[np.int32]:
    n = len(row_offsets) - 1
    used = np.zeros(n, np.int32)
    for v in range(n):
        for a in range(row_offsets[v], row_offsets[v + 1]):
            if weight[a] > 0:
                used[v] += 1
    return used


@njit(cache=True, nogil=True)
def _fill(into: Buckets, start: UnitArray, count: NDArray[np.int32], head: VertexArray, weight: UnitArray) -> Buckets:
    for v in range(len(start)):
        at = into.start[v]
        for a in range(start[v], start[v] + count[v]):
            if weight[a] > 0:
                into.head[at] = head[a]
                into.weight[at] = weight[a]
                at += 1
        into.used[v] = at - into.start[v]
    return into


@njit(cache=True, nogil=True)
def link_weights(n_arcs: int, edge_arc: ArcArray, reverse_arc: ArcArray, weight: NDArray[np.integer]) -> UnitArray:
    """int64[arcs]: the sum of the weights of all edges of a link, on both of its arcs. O(m)."""
    total = np.zeros(n_arcs, np.int64)
    for e in range(len(edge_arc)):
        a = edge_arc[e]
        if a >= 0:
            total[a] += weight[e]
            total[reverse_arc[a]] += weight[e]
    return total


@njit(cache=True, nogil=True)
def _slot(buckets: Buckets, u: int, v: int) -> int:
    """The slot of v in the row of u, -1 if it has none."""
    for a in range(buckets.start[u], buckets.start[u] + buckets.used[u]):
        if buckets.head[a] == v:
            return a
    return -1


@njit(cache=True, nogil=True)
def _add(buckets: Buckets, u: int, v: int, delta: int) -> bool:
    """Add ``delta`` to the weight of the link to v in the row of u. Returns False, and changes nothing, where there is
    no room for the row."""
    a = _slot(buckets, u, v)
    if a < 0:
        if buckets.used[u] == buckets.room[u]:
            room = 2 * buckets.room[u] if buckets.room[u] else SLOTS
            begin = buckets.end[0]
            if begin + room > len(buckets.head):
                return False
            for i in range(buckets.used[u]):
                buckets.head[begin + i] = buckets.head[buckets.start[u] + i]
                buckets.weight[begin + i] = buckets.weight[buckets.start[u] + i]
            buckets.start[u] = begin
            buckets.room[u] = room
            buckets.end[0] = begin + room
        a = buckets.start[u] + buckets.used[u]
        buckets.used[u] += 1
        buckets.head[a] = v
        buckets.weight[a] = 0
    buckets.weight[a] += delta
    if buckets.weight[a] == 0:
        last = buckets.start[u] + buckets.used[u] - 1
        buckets.head[a] = buckets.head[last]
        buckets.weight[a] = buckets.weight[last]
        buckets.used[u] -= 1
    return True


@njit(cache=True, nogil=True)
def change_links(
    buckets: Buckets,
    tail: VertexArray,
    head: VertexArray,
    delta: UnitArray,
    first: int,
    part: VertexArray,
    cut: UnitArray,
) -> int:
    """Change the weights of links from row ``first`` of the columns on, and ``cut``, int64[1], with them. Returns the
    first row that was not applied because there is no room: the caller packs the buckets anew and passes it as
    ``first``. Returns the number of rows once all are applied."""
    for i in range(first, len(tail)):
        u, v = tail[i], head[i]
        if u == v or delta[i] == 0:
            continue
        if not _add(buckets, u, v, delta[i]):
            return i
        if not _add(buckets, v, u, delta[i]):
            _add(buckets, u, v, -delta[i])
            return i
        if part[u] != part[v]:
            cut[0] += delta[i]
    return len(tail)


@njit(cache=True, nogil=True)
def change_cost(buckets: Buckets, tail: VertexArray, head: VertexArray) -> int:
    """About how many slots `change_links` looks at. Vertices that are new to the buckets have none."""
    n = len(buckets.used)
    total = 2 * len(tail)
    for i in range(len(tail)):
        if tail[i] < n:
            total += buckets.used[tail[i]]
        if head[i] < n:
            total += buckets.used[head[i]]
    return total


@njit(cache=True, nogil=True)
def compressed(
    buckets: Buckets, kept: BoolArray
) -> tuple[NDArray[np.int64], NDArray[np.int64], UnitArray, VertexArray]:
    """The graph of the vertices that are ``kept``, bool[n], numbered by rank: row offsets int64[j + 1], heads and
    weights int64[...], and the vertices themselves, int32[j]. All neighbours of a kept vertex have to be kept. O(n +
    slots)."""
    n = len(kept)
    rank = np.full(n, -1, np.int64)
    vertices = np.flatnonzero(kept).astype(np.int32)
    offsets = np.zeros(len(vertices) + 1, np.int64)
    for j in range(len(vertices)):
        rank[vertices[j]] = j
        offsets[j + 1] = offsets[j] + buckets.used[vertices[j]]
    head = np.empty(offsets[-1], np.int64)
    weight = np.empty(offsets[-1], np.int64)
    for j in range(len(vertices)):
        at = offsets[j]
        v = vertices[j]
        for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
            head[at] = rank[buckets.head[a]]
            weight[at] = buckets.weight[a]
            at += 1
    return offsets, head, weight, vertices
