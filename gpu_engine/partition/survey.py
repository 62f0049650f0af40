"""What has changed since a partition was brought up to date: columns of now held against those of then."""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow
from gpu_engine.partition.moves import NOWHERE, Books
from gpu_engine.types import MAX_TOTAL, BoolArray, EdgeArray, UnitArray, VertexArray


BLOCK: Final = 256
"""Vertices that are held against one another at once: mostly all of them are as they were."""

WORD: Final = 8
"""Flags that are looked at together."""


def changed_edges(before: NDArray[np.integer], now: NDArray[np.integer]) -> EdgeArray:
    """Rows of the edges that weigh something else now; those beyond ``before`` weighed nothing. O(m)."""
    m = len(before)
    differ = np.zeros(-(-m // WORD) * WORD, np.bool_)
    np.not_equal(now[:m], before, out=differ[:m])
    words = np.flatnonzero(differ.view(np.int64))
    places = (words[:, None] * WORD + np.arange(WORD)).ravel()
    return np.concatenate([places[differ[places]], m + np.flatnonzero(now[m:])])


def changed_vertices(
    part: VertexArray, before: UnitArray, deleted: BoolArray, weight: UnitArray
) -> tuple[VertexArray, int]:
    """Vertices that are not as they were, and what all together weigh now. ``part`` is `NOWHERE` for those that were not
    there, ``before`` int64 what they weighed; ``deleted`` bool[n], or bool[0] where none is; ``weight`` int64[n], of
    which those of deleted vertices do not count. Raises `CapacityOverflow` where the sum is more than `MAX_TOTAL`.
    O(n)."""
    changed, high, low = _survey(part, before, deleted, weight)
    total = (int(high) << 32) + int(low)
    if total > MAX_TOTAL:
        raise CapacityOverflow(f"the vertices weigh {total} together; the limit is {MAX_TOTAL}", field="/vertex_weight")
    return changed, total


@njit(cache=True, nogil=True)
def _survey(
    part: VertexArray, before: UnitArray, deleted: BoolArray, weight: UnitArray
) -> tuple[VertexArray, int, int]:
    changed = np.empty(len(weight), np.int32)  # pages that nothing is written to cost nothing
    count = 0
    high = 0
    low = 0
    for begin in range(0, len(weight), BLOCK):
        end = min(begin + BLOCK, len(weight))
        same, above, below = _as_before(part, before, deleted, weight, begin, end)
        if same:
            high += above
            low += below
            continue
        for v in range(begin, end):
            there = not (len(deleted) and deleted[v])
            own = weight[v] if there else 0
            high += own >> 32
            low += own & 0xFFFFFFFF
            was_there = v < len(part) and part[v] != NOWHERE
            if there != was_there or (v < len(part) and own != before[v]):
                changed[count] = v
                count += 1
    return changed[:count].copy(), high, low


@njit(cache=True, nogil=True)
def _as_before(
    part: VertexArray, before: UnitArray, deleted: BoolArray, weight: UnitArray, begin: int, end: int
) -> tuple[bool, int, int]:
    """Whether nothing has changed of these vertices, and then the upper and the lower halves of what they weigh. Without
    a branch, so that several are looked at in one instruction."""
    if end > len(part):
        return False, 0, 0
    weight, before, part = weight[begin:end], before[begin:end], part[begin:end]  # no index is negative then
    differ = np.int64(0)
    above = np.uint64(0)
    below = np.uint64(0)
    if len(deleted):
        deleted = deleted[begin:end]
        for i in range(len(weight)):
            own = weight[i] * np.int64(not deleted[i])
            differ |= (own ^ before[i]) | np.int64(deleted[i] != (part[i] < 0))
            above += np.uint64(own) >> np.uint64(32)
            below += np.uint64(own) & np.uint64(0xFFFFFFFF)
    else:
        for i in range(len(weight)):
            differ |= (weight[i] ^ before[i]) | np.int64(part[i] < 0)
            above += np.uint64(weight[i]) >> np.uint64(32)
            below += np.uint64(weight[i]) & np.uint64(0xFFFFFFFF)
    return differ == 0, np.int64(above), np.int64(below)


@njit(cache=True, nogil=True)
def enter_vertices(
    books: Books, changed: VertexArray, deleted: BoolArray, weight: UnitArray
) -> tuple[VertexArray, int]:
    """Enter what `changed_vertices` has found: who comes is in the pseudo-partition then, and who is gone is nowhere
    and has no links. Returns those that came, and how many have come or gone. O(changed)."""
    k = len(books.part_weight) - 1
    come = np.empty(len(changed), np.int32)
    n_come = 0
    n_gone = 0
    for v in changed:
        there = not (len(deleted) and deleted[v])
        own = weight[v] if there else 0
        if books.part[v] != NOWHERE:
            books.part_weight[books.part[v]] -= books.vertex_weight[v]
        if not there and books.part[v] != NOWHERE:
            books.part[v] = NOWHERE
            n_gone += 1
        elif there and books.part[v] == NOWHERE:
            books.part[v] = k
            come[n_come] = v
            n_come += 1
        if there:
            books.part_weight[books.part[v]] += own
        books.vertex_weight[v] = own
    return come[:n_come].copy(), n_come + n_gone


@njit(cache=True, nogil=True)
def touched_vertices(part: VertexArray, tail: VertexArray, head: VertexArray, come: VertexArray) -> VertexArray:
    """Each vertex once that an edge has changed at or that has come, if it is there."""
    marked = np.zeros(len(part), np.bool_)
    found = np.empty(2 * len(tail) + len(come), np.int32)
    count = 0
    for column in (tail, head, come):
        for v in column:
            if not marked[v] and part[v] != NOWHERE:
                marked[v] = True
                found[count] = v
                count += 1
    return found[:count]


@njit(cache=True, nogil=True)
def n_moved(before: VertexArray, now: VertexArray) -> int:
    """How many vertices have another part now, or none, that had one before."""
    count = 0
    for v in range(len(before)):
        count += before[v] != now[v] and before[v] != NOWHERE
    return count
