"""A partition from nothing on the device, and one that is looked at as a whole: multilevel, refined on the way back."""

from typing import Final

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array
from gpu_engine.cuda.launch.partition import (
    COARSEN,
    DeviceBooks,
    Effort,
    Rows,
    Scratch,
    new_told,
    refine,
    strided,
    weigh_parts,
)
from gpu_engine.cuda.partition.coarsen import Level, Small, levels_of
from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled
from gpu_engine.partition.buckets import Buckets
from gpu_engine.partition.moves import Books
from gpu_engine.partition.partitioner import HostPartitioner

FEW: Final = 1 << 13
FEW_OF_PART: Final = 1 << 7


def few_for(k: int) -> int:
    """The host divides graphs of so few vertices."""
    return max(FEW, FEW_OF_PART * k)


LIGHT: Final = 20
"""A group weighs at most so small a part of what a part weighs."""

COARSE: Final = Effort(turns=100, patience=12, daring=3)
FINE: Final = Effort(turns=100, patience=12, daring=1)
"""Jet's own: on coarse graphs a vertex may lose three quarters of its links for a move, on the finest a quarter."""


class Whole:
    """The finest graph with its books. ``sums``: what all vertices weigh, and what a part may weigh."""

    def __init__(
        self, n: int, rows: Rows, books: DeviceBooks, scratch: Scratch, sums: tuple[int, int], few: int
    ) -> None:
        self._n, self._rows, self._books, self._scratch = n, rows, books, scratch
        self._limit, self._k, self._few = sums[1], scratch.k, few
        self._heaviest = max(1, sums[0] // (LIGHT * self._k))

    def from_nothing(self, thousandths: int, seed: int, control: Control) -> None:
        """Give every vertex with a part that is not negative another one. Raises `Cancelled`, `OutOfMemory`."""
        levels, small = self._levels(None)
        _go_on(control)
        self._back(levels, cupy.asarray(self._divided(small, thousandths, seed, control)), control)

    def again(self, control: Control) -> None:
        """Refine the partition at hand on all levels. The cut does not grow if it keeps the limit."""
        levels, small = self._levels(self._books.part)
        _go_on(control)
        if small.part is None or not levels:
            refine(self._rows, self._books, self._scratch, self._n, self._limit, FINE, None)
            return
        books = DeviceBooks(small.part, small.vertex_weight, new_told(self._k))
        weigh_parts(books, small.n, self._k)
        refine(small.rows, books, self._scratch, small.n, self._limit, COARSE, None)
        self._back(levels, small.part, control)

    def _levels(self, part: Array | None) -> tuple[list[Level], Small]:
        graph = self._n, self._rows, self._books.vertex_weight, self._books.part
        return levels_of(*graph, part, self._few, self._heaviest)

    def _divided(
        self, small: Small, thousandths: int, seed: int, control: Control
    ) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
        """Parts of the smallest graph, made on the host."""
        rows, n = small.rows, small.n
        used = rows.used[:n].get()
        end = np.array([len(rows.head)], np.int64)
        buckets = Buckets(rows.start[:n].get(), used, used, rows.head.get(), rows.weight.get(), end)
        there = self._books.part[:n].get() >= 0 if n == self._n else np.ones(n, np.bool_)
        sums = np.zeros(self._k + 1, np.int64), np.zeros(1, np.int64), np.array([self._limit], np.int64)
        part = np.where(there, self._k, -1).astype(np.int32)
        books = Books(part, small.vertex_weight[:n].get(), *sums)
        HostPartitioner().full(buckets, books, thousandths, seed, control)
        return books.part

    def _back(self, levels: list[Level], part: Array, control: Control) -> None:
        """From the parts of the smallest graph to those of the finest."""
        for level in reversed(levels):
            _go_on(control)
            finest = level is levels[0]
            own = self._books.part if finest else cupy.empty(level.n, np.int32)
            strided(COARSEN, "parts_of_groups", level.n, np.int32(level.n), level.group, part, own)
            books = self._books if finest else DeviceBooks(own, level.vertex_weight, new_told(self._k))
            weigh_parts(books, level.n, self._k)
            refine(level.rows, books, self._scratch, level.n, self._limit, FINE if finest else COARSE, None)
            part = own
        if not levels:
            self._books.part[: self._n] = part
            weigh_parts(self._books, self._n, self._k)
            refine(self._rows, self._books, self._scratch, self._n, self._limit, FINE, None)


def _go_on(control: Control) -> None:
    if control.cancelled:
        raise Cancelled("cancelled while it was partitioned")
