"""Bucket lists on the device: made from a network's rows, and changed in place by batches."""

from typing import Final, NamedTuple

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array
from gpu_engine.cuda.launch.partition import LINKS, Rows, by_tile, strided
from gpu_engine.partition.buckets import HEADROOM, SLOTS
from gpu_engine.types import UnitArray, VertexArray

SHARE: Final = 16
"""Columns by vertex have this part of their length as room behind them."""


class Batch(NamedTuple):
    """Changes of links by rows: those of a vertex together, each of its neighbours once."""

    vertex: VertexArray
    """int32[rows], rising."""
    first: VertexArray
    """int32[rows + 1]: where the changes of each row begin."""
    neighbour: VertexArray
    change: UnitArray


def batch_of(tail: VertexArray, head: VertexArray, change: UnitArray) -> Batch:
    """From edges whose weights have changed by so much; loops and what adds up to nothing are left out.
    O(k log k)."""
    kept = (tail != head) & (change != 0)
    tail, head, change = tail[kept], head[kept], change[kept]
    key = np.concatenate([tail, head]).astype(np.int64) << 32 | np.concatenate([head, tail])
    order = np.argsort(key)
    key = key[order]
    begins = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.empty(0, np.int64)
    total = np.add.reduceat(np.concatenate([change, change])[order], begins) if len(key) else np.empty(0, np.int64)
    left = total != 0
    key, total = key[begins[left]], total[left]
    row = (key >> 32).astype(np.int32)
    first = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]])) if len(row) else np.empty(0, np.int64)
    ends = np.concatenate([first, [len(row)]]).astype(np.int32)
    return Batch(row[first], ends, (key & 0xFFFFFFFF).astype(np.int32), total)


class BucketList:
    """The graph of a partition on the device, with columns that are longer than its vertices are many."""

    def __init__(self, begin: Array, count: Array, head: Array, weight: Array, n_more: int = 0) -> None:
        """From rows that begin there, int64[n], and have so many slots, int32[n]; those without a weight are dropped.
        ``n_more`` slots at least are left at the end."""
        n = self.n = len(begin)
        length = n + n // SHARE + 1
        used = cupy.zeros(length, np.int32)
        strided(LINKS, "count_links", n, np.int32(n), begin, count, weight, used)
        room = (used + np.int32(SLOTS - 1)) // np.int32(SLOTS) * np.int32(SLOTS)
        through = cupy.cumsum(room, dtype=np.int64)
        start, self.end = through - room, int(through[-1])
        self.slots = self.end + max(self.end // HEADROOM + SLOTS, n_more)
        self.rows = Rows(start, used, room, cupy.empty(self.slots, np.int32), cupy.empty(self.slots, np.int64))
        given = begin, count, head, weight, start, self.rows.head, self.rows.weight
        strided(LINKS, "fill_rows", n, np.int32(n), *given)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def grow(self, n: int) -> None:
        """Have so many vertices; the new ones have no links."""
        if n > len(self.rows.start):
            rows, length = self.rows, n + n // SHARE
            rows.start, rows.used, rows.room = (longer(column, length, 0) for column in (rows.start, rows.used, rows.room))
        self.n = n

    def reserve(self, batch: tuple[Array, ...], rows: int) -> int:
        """Slots at the end that a batch on the device takes. Waits."""
        needed = cupy.zeros(1, np.int64)
        vertex, first, *_ = batch
        strided(LINKS, "reserve", rows, np.int32(rows), vertex, first, self.rows.used, self.rows.room, needed)
        return int(needed.get()[0])

    def fits(self, needed: int) -> bool:
        return self.end + needed <= self.slots

    def packed_anew(self, n_more: int) -> "BucketList":
        """The same links, with room for so many slots at the end."""
        rows = self.rows
        packed = BucketList(rows.start[: self.n], rows.used[: self.n], rows.head, rows.weight, n_more)
        return packed

    def change(self, batch: tuple[Array, ...], rows: int, needed: int) -> Array:
        """Enter a batch that fits; returns int32[1], how many links would weigh less than nothing, for later."""
        vertex, first, neighbour, change = batch
        place, missed, mine = cupy.empty(1, np.int64), cupy.zeros(1, np.int32), self.rows
        place.fill(self.end)
        columns = mine.start, mine.used, mine.room, mine.head, mine.weight
        by_tile(LINKS, "change_links", rows, np.int32(rows), vertex, first, neighbour, change, *columns, place, missed)
        self.end += needed
        return missed


def longer(column: Array, length: int, fill: int) -> Array:
    """A copy with so many items, the new ones ``fill``."""
    whole = cupy.empty(length, column.dtype)
    whole[: len(column)] = column
    whole[len(column) :] = fill
    return whole
