"""Bucket lists on the device: made from a network's rows, and changed in place by batches."""

from typing import Final

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import Array
from gpu_engine.cuda.launch.partition import LINKS, Around, DeviceBooks, Rows, by_tile, strided
from gpu_engine.partition.batch import Batch
from gpu_engine.partition.buckets import HEADROOM, SLOTS
from gpu_engine.types import UnitArray, VertexArray

SHARE: Final = 16
"""Columns by vertex have this part of their length as room behind them."""


class OnDevice:
    """A batch on the device, sent there in one piece with the ``touched`` vertices and other columns of int64; places
    in it are addresses, which hold as long as this is there."""

    def __init__(self, batch: Batch, touched: VertexArray, *more: UnitArray) -> None:
        wide: tuple[NDArray[np.generic], ...] = batch.change, *more
        columns = *wide, batch.vertex, batch.first, batch.neighbour, touched
        sizes = [column.nbytes for column in columns]
        n_bytes = sum(sizes)
        pool = cupy.cuda.alloc_pinned_memory(1 << n_bytes.bit_length())  # sizes that the pool has free again
        self._sent = np.frombuffer(pool, np.uint8, n_bytes)
        """Host memory that the device may still be reading."""
        np.concatenate([column.view(np.uint8) for column in columns], out=self._sent)
        self._whole: Array = cupy.empty(len(self._sent), np.uint8)
        self._whole.set(self._sent, stream=cupy.cuda.get_current_stream())  # without a wait
        places = np.uint64(self._whole.data.ptr) + np.cumsum([0, *sizes[:-1]]).astype(np.uint64)
        self.change, *self.more, self.vertex, self.first, self.neighbour, at = places
        self.touched = Around(at, len(touched))
        self.rows, self.changes = len(batch.vertex), len(batch.neighbour)


class BucketList:
    """The graph of a partition on the device, with columns that are longer than its vertices are many."""

    def __init__(self, begin: Array, count: Array, head: Array, weight: Array, n_more: int = 0) -> None:
        """Lay out the links of compressed rows that begin at ``begin``, int64[n], and have ``count`` slots, int32[n];
        links without a weight are dropped. At least ``n_more`` slots are left at the end."""
        n = self.n = len(begin)
        length = n + n // SHARE + 1
        used = cupy.zeros(length, np.int32)
        strided(LINKS, "count_links", n, np.int32(n), begin, count, weight, used)
        room = (used + np.int32(SLOTS - 1)) // np.int32(SLOTS) * np.int32(SLOTS)
        through = cupy.cumsum(room, dtype=np.int64)
        self._ends: Array = cupy.stack([through[-1], room.max().astype(np.int64)])
        self.read()
        start = through - room
        self.slots = self.end + max(self.end // HEADROOM + SLOTS, n_more)
        self.rows = Rows(start, used, room, cupy.empty(self.slots, np.int32), cupy.empty(self.slots, np.int64))
        given = begin, count, head, weight, start, self.rows.head, self.rows.weight
        strided(LINKS, "fill_rows", n, np.int32(n), *given)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def read(self) -> None:
        """Know what batches have come to. Waits."""
        self.end, self._widest = map(int, self._ends.get())

    def grow(self, n: int) -> None:
        """Have so many vertices; the new ones have no links."""
        if n > len(self.rows.start):
            rows, length = self.rows, n + n // SHARE
            rows.start, rows.used, rows.room = (
                longer(column, length, 0) for column in (rows.start, rows.used, rows.room)
            )
        self.n = n

    def most(self, batch: OnDevice) -> int:
        """Slots at the end that a batch takes at most, known without waiting: no row has more than the widest."""
        return 2 * batch.rows * (self._widest + SLOTS) + batch.changes

    def reserve(self, batch: OnDevice) -> int:
        """Slots at the end that a batch takes. Waits."""
        needed = cupy.zeros(1, np.int64)
        given = np.int32(batch.rows), batch.vertex, batch.first, self.rows.used, self.rows.room, needed
        strided(LINKS, "reserve", batch.rows, *given)
        return int(needed.get()[0])

    def fits(self, needed: int) -> bool:
        return self.end + needed <= self.slots

    def packed_anew(self, n_more: int) -> "BucketList":
        """A bucket list of the same links, with room for so many slots at the end."""
        rows = self.rows
        packed = BucketList(rows.start[: self.n], rows.used[: self.n], rows.head, rows.weight, n_more)
        return packed

    def change(self, batch: OnDevice, books: DeviceBooks) -> None:
        """Enter a batch that fits, also into what is cut. `DeviceBooks.missed` counts links that would weigh less than
        nothing. `read` is due before the next one."""
        mine = self.rows
        given = np.int32(batch.rows), batch.vertex, batch.first, batch.neighbour, batch.change
        columns = mine.start, mine.used, mine.room, mine.head, mine.weight
        by_tile(LINKS, "change_links", batch.rows, *given, *columns, self._ends, books.part, books.sums, books.missed)


def longer(column: Array, length: int, fill: int) -> Array:
    """A copy with so many items, the new ones ``fill``."""
    whole = cupy.empty(length, column.dtype)
    whole[: len(column)] = column
    whole[len(column) :] = fill
    return whole
