"""What has changed since a partition was brought up to date: columns of then compared with those of now."""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow
from gpu_engine.networks.marks import Marks
from gpu_engine.partition.moves import NOWHERE, Books
from gpu_engine.types import MAX_TOTAL, BoolArray, EdgeArray, UnitArray, VertexArray

BLOCK: Final = 512
"""So many items are compared in one block, most of which has not changed."""


def changed_marks(before: Marks, now: Marks) -> EdgeArray:
    """int64[k], rising: items that were added or deleted between ``before`` and ``now``. Raises ValueError if there
    were more items before. O(changes), or O(n) where the marks no longer know what has changed."""
    m = _may_grow(before.n, now.n)
    rows = now.touched_since(before)
    if rows is not None:
        return _marked_otherwise(rows, before.column, now.column, m, now.n)
    if len(before.column) and len(now.column):
        rows = _differing(before.column, now.column[:m])
    else:
        rows = np.flatnonzero(before.column if len(before.column) else now.column[:m])
    new = np.arange(m, now.n)
    return np.concatenate([rows, new[~now.of(new)]])


@njit(cache=True, nogil=True)
def _marked_otherwise(rows: EdgeArray, before: BoolArray, now: BoolArray, m: int, n: int) -> EdgeArray:
    """int64[k]: those of ``rows`` below ``m`` that are marked in one column only, and those from ``m`` to ``n`` that
    are not marked now. A column of no length has no marks."""
    found = np.empty(len(rows) + n - m, np.int64)
    count = 0
    for row in rows:
        if row < m and (len(before) > 0 and before[row]) != (len(now) > 0 and now[row]):
            found[count] = row
            count += 1
    for row in range(m, n):
        if not (len(now) > 0 and now[row]):
            found[count] = row
            count += 1
    return found[:count]


def changed_items(before: UnitArray, now: NDArray[np.integer]) -> EdgeArray:
    """int64[k], rising: places where two columns differ; what ``before`` lacks at its end counts as zeros. Raises
    ValueError if it is the longer one. O(n)."""
    m = _may_grow(len(before), len(now))
    return np.concatenate([np.flatnonzero(now[:m] != before), m + np.flatnonzero(now[m:])])


def _may_grow(before: int, now: int) -> int:
    if now < before:
        raise ValueError(f"{before} items have become {now}: numbers of vertices and edges are never taken back")
    return before


def _differing(before: BoolArray, now: BoolArray) -> EdgeArray:
    """int64[k], rising: places where two columns of one length differ. Eight items are compared as one number."""
    whole = len(now) // 8 * 8
    words = before[:whole].view(np.int64), now[:whole].view(np.int64)
    rows: EdgeArray = _differing_bytes(*words, before.view(np.uint8), now.view(np.uint8))
    return rows


@njit(cache=True, nogil=True)
def _differing_bytes(
    words_before: UnitArray, words: UnitArray, before: NDArray[np.uint8], now: NDArray[np.uint8]
) -> EdgeArray:
    n = len(now)
    found = np.empty(n, np.int64)  # pages that nothing is written to cost nothing
    count = 0
    for begin in range(0, len(words), BLOCK // 8):
        end = min(begin + BLOCK // 8, len(words))
        differ = np.int64(0)
        for i in range(begin, end):  # no branch, so that one instruction compares several
            differ |= words_before[i] ^ words[i]
        if differ == 0:
            continue
        for i in range(begin, end):
            if words_before[i] != words[i]:
                for j in range(8 * i, 8 * i + 8):
                    if before[j] != now[j]:
                        found[count] = j
                        count += 1
    for j in range(8 * len(words), n):
        if before[j] != now[j]:
            found[count] = j
            count += 1
    return found[:count].copy()


def changed_vertices(books: Books, deleted: BoolArray, weight: UnitArray) -> tuple[VertexArray, int]:
    """Vertices that are not as the books have them, int32[j], and what all vertices weigh together now. ``deleted`` is
    bool[n], or bool[0] where none is; ``weight`` is int64[n], of which those of deleted vertices do not count. Raises
    `CapacityOverflow` where the sum is more than `MAX_TOTAL`. O(n)."""
    changed, high, low = _survey(books.part, books.vertex_weight, deleted, weight)
    return changed, _total(high, low)


def _total(high: int | np.int64, low: int | np.int64) -> int:
    """The sum of weights whose upper halves, of 32 bits, have the sum ``high`` and whose lower halves ``low``: neither
    of these overflows an int64."""
    total = (int(high) << 32) + int(low)
    if total > MAX_TOTAL:
        raise CapacityOverflow(f"the vertices weigh {total} together; the limit is {MAX_TOTAL}", field="/vertex_weight")
    return total


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
"""Stands in a column of weights for a vertex that does not exist."""


def changed_weights(before: UnitArray, deleted: BoolArray, weight: UnitArray) -> tuple[VertexArray, int]:
    """`changed_vertices` where only a column is known of then: ``before``, int64, with `ABSENT` for vertices that did
    not exist. Raises the same errors. O(n)."""
    changed, high, low = _changed_weights(before, deleted if len(deleted) else np.zeros(BLOCK, np.bool_), weight)
    return changed, _total(high, low)


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
        for i in range(known):  # no branch, so that one instruction compares several
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
    """Enter vertices that have ``changed``, int32[j], into the books: whether each exists now, bool[j], and what it
    weighs, int64[j]. A new vertex is put into the pseudo-partition. A deleted one is `NOWHERE`; it has no links any
    more. Returns the new vertices, int32[...], and how many are new, deleted or weigh something else, without those
    that have come and gone since the last answer. O(j)."""
    k = len(books.part_weight) - 1
    come = np.empty(len(changed), np.int32)
    n_come = 0
    n_other = 0
    for i in range(len(changed)):
        v = changed[i]
        own = weight[i] if there[i] else 0
        n_other += there[i] or books.part[v] != NOWHERE
        if books.part[v] != NOWHERE:
            books.part_weight[books.part[v]] -= books.vertex_weight[v]
        if not there[i] and books.part[v] != NOWHERE:
            books.part[v] = NOWHERE
        elif there[i] and books.part[v] == NOWHERE:
            books.part[v] = k
            come[n_come] = v
            n_come += 1
        if there[i]:
            books.part_weight[books.part[v]] += own
        books.vertex_weight[v] = own
    return come[:n_come].copy(), n_other


@njit(cache=True, nogil=True)
def touched_vertices(part: VertexArray, tail: VertexArray, head: VertexArray, come: VertexArray) -> VertexArray:
    """int32[...]: the ends of changed edges and the new vertices, each once, if they exist."""
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
    """How many vertices had a part before and have another one now. Deleted vertices have none and do not count."""
    count = 0
    for v in range(len(before)):
        count += before[v] != now[v] and before[v] != NOWHERE and now[v] != NOWHERE
    return count
