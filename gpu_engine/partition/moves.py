"""Moves of vertices between parts, on the host: gains, the partition with its sums, and what brings parts below their
limit.

A part is a number below k. The number k itself is the pseudo-partition of iG-kway, in which vertices wait for a part.
`NOWHERE` stands for vertices that do not exist. A link with one end in the pseudo-partition counts as cut.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.partition.buckets import Buckets
from gpu_engine.types import BoolArray, UnitArray, VertexArray

NOWHERE: Final = -1
POLL: Final = 1 << 14
"""The cancel flag is read after each so many vertices."""


class Books(NamedTuple):
    """A partition with its sums, which kernels change in place."""

    part: VertexArray
    """int32[n]: the part of each vertex."""
    vertex_weight: UnitArray
    """int64[n]: what each vertex weighs."""
    part_weight: UnitArray
    """int64[k + 1]: what each part weighs; the last is the pseudo-partition."""
    cut: UnitArray
    """int64[1]: the weight of all links between parts."""
    limit: UnitArray
    """int64[1]: what a part may weigh."""


class Gains(NamedTuple):
    """Scratch columns: the weight of the links from one vertex to each part."""

    to: UnitArray
    """int64[k + 1]: the weight of the links to each part; zero between two uses."""
    seen: VertexArray
    """int32[k + 1]: the parts to which links lead, in the order found."""


def gains_for(k: int) -> Gains:
    """Scratch columns for partitions into k parts."""
    return Gains(np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int32))


@njit(cache=True, nogil=True)
def look(buckets: Buckets, part: VertexArray, gains: Gains, v: int) -> int:
    """Add up the weights of the links from v to each part in ``gains``. Returns how many parts links lead to, which the
    caller passes to `clear` afterwards. O(degree)."""
    count = 0
    for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
        p = part[buckets.head[a]]
        if gains.to[p] == 0:
            gains.seen[count] = p
            count += 1
        gains.to[p] += buckets.weight[a]
    return count


@njit(cache=True, nogil=True)
def clear(gains: Gains, count: int) -> None:
    """Set the first ``count`` parts of `Gains.seen` back to zero."""
    for i in range(count):
        gains.to[gains.seen[i]] = 0


@njit(cache=True, nogil=True)
def move(buckets: Buckets, books: Books, v: int, to: int) -> None:
    """Put v into part ``to``, which is another than its own, and bring all sums up to date. O(degree)."""
    old = books.part[v]
    for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
        p = books.part[buckets.head[a]]
        if p == old:
            books.cut[0] += buckets.weight[a]
        elif p == to:
            books.cut[0] -= buckets.weight[a]
    books.part_weight[old] -= books.vertex_weight[v]
    books.part_weight[to] += books.vertex_weight[v]
    books.part[v] = to


@njit(cache=True, nogil=True)
def lightest(books: Books) -> int:
    """The part that weighs least, the first of equal ones. O(k)."""
    best = 0
    for p in range(1, len(books.part_weight) - 1):
        if books.part_weight[p] < books.part_weight[best]:
            best = p
    return best


@njit(cache=True, nogil=True)
def best_part(books: Books, gains: Gains, count: int, v: int, but: int, lightest_part: int) -> int:
    """The part with room for v that the heaviest links lead to; of equal ones the lightest, then the one with the
    lowest number. Returns -1 where no part has room."""
    k = len(books.part_weight) - 1
    w = books.vertex_weight[v]
    best = -1
    if lightest_part != but and books.part_weight[lightest_part] + w <= books.limit[0]:
        best = lightest_part
    for i in range(count):
        p = gains.seen[i]
        own = p == k or p == but  # Numba has no ``p in (k, but)`` here
        if own or books.part_weight[p] + w > books.limit[0]:
            continue
        if best < 0:
            best = p
        elif gains.to[p] != gains.to[best]:
            if gains.to[p] > gains.to[best]:
                best = p
        elif books.part_weight[p] != books.part_weight[best]:
            if books.part_weight[p] < books.part_weight[best]:
                best = p
        elif p < best:
            best = p
    return best


@njit(cache=True, nogil=True)
def improve(
    buckets: Buckets, books: Books, gains: Gains, queue: VertexArray, queued: BoolArray, steps: int, slots: UnitArray
) -> None:
    """Move vertices, first those in ``queue`` and then their neighbours, to parts where the cut shrinks, or where it
    stays the same and the weights of the two parts come closer to each other, as long as the limit holds. At most
    ``steps`` vertices are looked at.

    ``queued`` is a scratch column bool[n], all false before and after. ``slots`` holds the cancel flag. The queue is a
    ring of int32[n].
    """
    n, k = len(books.part), len(books.part_weight) - 1
    ring = np.empty(max(n, 1), np.int32)
    first = 0
    waiting = 0
    for v in queue:
        if not queued[v] and 0 <= books.part[v] < k:
            queued[v] = True
            ring[waiting] = v
            waiting += 1
    looked = 0
    while waiting:
        v = ring[first]
        first = first + 1 if first + 1 < n else 0
        waiting -= 1
        queued[v] = False
        looked += 1
        if looked > steps or (looked % POLL == 0 and slots[0]):
            continue  # the rest of the loop only empties the ring
        old = books.part[v]
        count = look(buckets, books.part, gains, v)
        own = gains.to[old]
        best = -1
        if count > 1 or (count == 1 and own == 0):
            best = best_part(books, gains, count, v, old, old)
        if best >= 0:
            gain = gains.to[best] - own
            w = books.vertex_weight[v]
            evens = w > 0 and books.part_weight[best] + w < books.part_weight[old]
            if gain > 0 or (gain == 0 and evens):
                books.cut[0] -= gain
                books.part_weight[old] -= w
                books.part_weight[best] += w
                books.part[v] = best
                for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
                    u = buckets.head[a]
                    if not queued[u] and books.part[u] < k:
                        queued[u] = True
                        at = first + waiting
                        ring[at if at < n else at - n] = u
                        waiting += 1
        clear(gains, count)


@njit(cache=True, nogil=True)
def leavers(
    buckets: Buckets, books: Books, gains: Gains, p: int, most: int, inside: bool
) -> tuple[VertexArray, UnitArray]:
    """At most ``most`` vertices of part p that can go to a part with room, int32[j], and by how much the cut grows if
    each goes, int64[j]. Unless ``inside``, these are only vertices with links to other parts, or with no links at
    all."""
    n = len(books.part)
    found = np.empty(most, np.int32)
    loss = np.empty(most, np.int64)
    j = 0
    light = lightest(books)
    for v in range(n):
        if books.part[v] != p or books.vertex_weight[v] == 0:
            continue
        if not inside:
            outside = False
            for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
                if books.part[buckets.head[a]] != p:
                    outside = True
                    break
            if not outside and buckets.used[v]:
                continue
        count = look(buckets, books.part, gains, v)
        best = best_part(books, gains, count, v, p, light)
        if best >= 0:
            found[j] = v
            loss[j] = gains.to[p] - gains.to[best]
            j += 1
        clear(gains, count)
        if j == most:
            break
    return found[:j], loss[:j]


@njit(cache=True, nogil=True)
def leave(buckets: Buckets, books: Books, gains: Gains, p: int, vertices: VertexArray, order: NDArray[np.int64]) -> int:
    """Move vertices out of part p, in this order, until it is within the limit. Returns how many were moved."""
    gone = 0
    for i in order:
        if books.part_weight[p] <= books.limit[0]:
            break
        v = vertices[i]
        count = look(buckets, books.part, gains, v)
        best = best_part(books, gains, count, v, p, lightest(books))
        clear(gains, count)
        if best >= 0:
            move(buckets, books, v, best)
            gone += 1
    return gone


@njit(cache=True, nogil=True)
def fill_up(books: Books, vertices: VertexArray) -> None:
    """Put each vertex into the part that is the lightest by then; the cut is not brought up to date. O(k) for each."""
    k = len(books.part_weight) - 1
    light = lightest(books)
    for v in vertices:
        w = books.vertex_weight[v]
        books.part_weight[books.part[v]] -= w
        books.part_weight[light] += w
        books.part[v] = light
        if w:
            for p in range(k):
                if books.part_weight[p] < books.part_weight[light]:
                    light = p


@njit(cache=True, nogil=True)
def boundary(buckets: Buckets, part: VertexArray) -> VertexArray:
    """int32[j]: the vertices with a neighbour in another part. O(n + slots)."""
    found = np.zeros(len(part), np.bool_)
    for v in range(len(part)):
        for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
            if part[buckets.head[a]] != part[v]:
                found[v] = True
                break
    return np.flatnonzero(found).astype(np.int32)


@njit(cache=True, nogil=True)
def count_up(buckets: Buckets, books: Books) -> None:
    """Compute all sums from ``part``. O(n + slots)."""
    books.part_weight[:] = 0
    twice = 0
    for v in range(len(books.part)):
        p = books.part[v]
        if p == NOWHERE:
            continue
        books.part_weight[p] += books.vertex_weight[v]
        for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
            if books.part[buckets.head[a]] != p:
                twice += buckets.weight[a]
    books.cut[0] = twice // 2
