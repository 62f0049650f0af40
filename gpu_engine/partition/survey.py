"""What has changed since a partition was brought up to date: columns of now held against those of then."""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow
from gpu_engine.partition.moves import NOWHERE, Books
from gpu_engine.types import MAX_TOTAL, BoolArray, EdgeArray, UnitArray, VertexArray

WORD: Final = 8


def changed_items(before: NDArray[np.integer], now: NDArray[np.integer]) -> EdgeArray:
    """Places where two columns differ, both int64 or both int8; behind its end ``before`` counts as zeros. Raises
    ValueError if it is the longer one. O(n)."""
    m = len(before)
    if len(now) < m:
        raise ValueError(f"{m} items have become {len(now)}: numbers of vertices and edges are never taken back")
    whole = m // WORD * WORD if before.itemsize == now.itemsize == 1 else 0  # eight of them are one number
    words = np.flatnonzero(now[:whole].view(np.int64) != before[:whole].view(np.int64))
    rows = (words[:, None] * WORD + np.arange(WORD)).ravel()
    others = whole + np.flatnonzero(now[whole:m] != before[whole:])
    return np.concatenate([rows[now[rows] != before[rows]], others, m + np.flatnonzero(now[m:])])


def changed_vertices(books: Books, deleted: BoolArray, weight: UnitArray) -> tuple[VertexArray, int]:
    """Vertices that are not as the books have them, and what all together weigh now. ``deleted`` bool[n], or bool[0]
    where none is; ``weight`` int64[n], of which those of deleted vertices do not count. Raises `CapacityOverflow` where
    the sum is more than `MAX_TOTAL`. O(n)."""
    changed, high, low = _survey(books.part, books.vertex_weight, deleted, weight)
    total = (int(high) << 32) + int(low)
    if total > MAX_TOTAL:
        raise CapacityOverflow(f"the vertices weigh {total} together; the limit is {MAX_TOTAL}", field="/vertex_weight")
    return changed, total


@njit(cache=True, nogil=True)
def _survey(
    part: VertexArray, before: UnitArray, deleted: BoolArray, weight: UnitArray
) -> tuple[VertexArray, int, int]:
    n = len(weight)
    changed = np.empty(n, np.int32)  # pages that nothing is written to cost nothing
    count = 0
    high = 0
    low = 0
    for v in range(n):
        there = not (len(deleted) and deleted[v])
        own = weight[v] if there else 0
        high += own >> 32
        low += own & 0xFFFFFFFF
        was_there = v < len(part) and part[v] != NOWHERE
        if there != was_there or (v < len(part) and own != before[v]):
            changed[count] = v
            count += 1
    return changed[:count].copy(), high, low


ABSENT: Final = -1
"""In place of what a vertex weighs that is not there."""

BLOCK: Final = 512
"""Vertices that are held against one another at once: mostly all of them are as they were."""


def changed_weights(before: UnitArray, deleted: BoolArray, weight: UnitArray) -> tuple[VertexArray, int]:
    """`changed_vertices` where nothing but a column is known of then: ``before`` int64, `ABSENT` for vertices that were
    not there. Raises as that does. O(n)."""
    changed, high, low = _changed_weights(before, deleted if len(deleted) else np.zeros(BLOCK, np.bool_), weight)
    total = (int(high) << 32) + int(low)
    if total > MAX_TOTAL:
        raise CapacityOverflow(f"the vertices weigh {total} together; the limit is {MAX_TOTAL}", field="/vertex_weight")
    return changed, total


@njit(cache=True, nogil=True)
def _changed_weights(
    before: UnitArray, deleted: BoolArray, weight: UnitArray
) -> tuple[VertexArray, np.int64, np.int64]:
    n, n_before, nobody = len(weight), len(before), len(deleted) < len(weight)
    changed = np.empty(n, np.int32)
    count = 0
    high = np.uint64(0)
    low = np.uint64(0)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        gone = deleted[: end - begin] if nobody else deleted[begin:end]
        own = weight[begin:end]
        known = min(max(n_before - begin, 0), end - begin)
        was = before[begin : begin + known]
        differ = np.int64(0)
        for i in range(known):  # no branch, so several are looked at in one instruction
            differ |= (own[i] | -np.int64(gone[i])) ^ was[i]
        for i in range(len(own)):
            there = np.uint64(own[i]) & (np.uint64(gone[i]) - np.uint64(1))
            high += there >> np.uint64(32)
            low += there & np.uint64(0xFFFFFFFF)
        if differ == 0 and known == end - begin:
            continue
        for i in range(len(own)):
            now = np.int64(ABSENT) if gone[i] else own[i]
            if now != (was[i] if i < known else np.int64(ABSENT)):
                changed[count] = begin + i
                count += 1
    return changed[:count].copy(), np.int64(high), np.int64(low)


@njit(cache=True, nogil=True)
def enter_vertices(books: Books, changed: VertexArray, there: BoolArray, weight: UnitArray) -> tuple[VertexArray, int]:
    """Enter vertices that are not as they were: which of them are ``there`` and what they weigh, bool and int64 for
    each one ``changed``. Who comes is in the pseudo-partition then, and who is gone is nowhere and has no links.
    Returns those that came, and how many have come or gone. O(changed)."""
    k = len(books.part_weight) - 1
    come = np.empty(len(changed), np.int32)
    n_come = 0
    n_gone = 0
    for i in range(len(changed)):
        v = changed[i]
        own = weight[i] if there[i] else 0
        if books.part[v] != NOWHERE:
            books.part_weight[books.part[v]] -= books.vertex_weight[v]
        if not there[i] and books.part[v] != NOWHERE:
            books.part[v] = NOWHERE
            n_gone += 1
        elif there[i] and books.part[v] == NOWHERE:
            books.part[v] = k
            come[n_come] = v
            n_come += 1
        if there[i]:
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
