"""Bucket lists on the device: made from a network's rows, and changed in place by batches."""

from typing import Final, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import Array
from gpu_engine.cuda.launch.partition import LINKS, DeviceBooks, Rows, by_tile, strided
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


class OnDevice:
    """A batch on the device, sent there in one piece with the ``touched`` vertices and other columns of int64."""

    def __init__(self, batch: Batch, touched: VertexArray, *more: UnitArray) -> None:
        narrow: tuple[NDArray[np.generic], ...] = batch.vertex, batch.first, batch.neighbour, touched
        wide: tuple[NDArray[np.generic], ...] = batch.change, *more
        sizes = [8 * len(column) for column in wide] + [4 * len(column) for column in narrow]
        whole: Array = cupy.asarray(np.concatenate([column.view(np.uint8) for column in (*wide, *narrow)]))
        at, pieces = 0, list[Array]()
        for size in sizes:
            pieces.append(whole[at : at + size])
            at += size
        self.rows = len(batch.vertex)
        self.change, *self.more = (piece.view(np.int64) for piece in pieces[: len(wide)])
        self.vertex, self.first, self.neighbour, self.touched = (piece.view(np.int32) for piece in pieces[len(wide) :])


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
            rows.start, rows.used, rows.room = (
                longer(column, length, 0) for column in (rows.start, rows.used, rows.room)
            )
        self.n = n

    def reserve(self, batch: OnDevice) -> int:
        """Slots at the end that a batch takes. Waits."""
        needed = cupy.zeros(1, np.int64)
        given = np.int32(batch.rows), batch.vertex, batch.first, self.rows.used, self.rows.room, needed
        strided(LINKS, "reserve", batch.rows, *given)
        return int(needed.get()[0])

    def fits(self, needed: int) -> bool:
        return self.end + needed <= self.slots

    def packed_anew(self, n_more: int) -> "BucketList":
        """The same links, with room for so many slots at the end."""
        rows = self.rows
        packed = BucketList(rows.start[: self.n], rows.used[: self.n], rows.head, rows.weight, n_more)
        return packed

    def change(self, batch: OnDevice, needed: int, books: DeviceBooks) -> None:
        """Enter a batch that fits, also into what is cut. `DeviceBooks.missed` counts links that would weigh less than
        nothing."""
        place, mine = cupy.empty(1, np.int64), self.rows
        place.fill(self.end)
        given = np.int32(batch.rows), batch.vertex, batch.first, batch.neighbour, batch.change
        columns = mine.start, mine.used, mine.room, mine.head, mine.weight
        by_tile(LINKS, "change_links", batch.rows, *given, *columns, place, books.part, books.sums, books.missed)
        self.end += needed


def longer(column: Array, length: int, fill: int) -> Array:
    """A copy with so many items, the new ones ``fill``."""
    whole = cupy.empty(length, column.dtype)
    whole[: len(column)] = column
    whole[len(column) :] = fill
    return whole
