"""A partition from nothing on the device: multilevel, refined on the way back."""

from functools import partial
from typing import Final

import cupy
import numpy as np

from gpu_engine.control import Control
from gpu_engine.cuda.launch.arrays import Array
from gpu_engine.cuda.launch.partition import (
    COARSEN,
    DeviceBooks,
    Effort,
    Rows,
    Scratch,
    new_told,
    read,
    refine,
    strided,
    weigh_parts,
)
from gpu_engine.cuda.partition.attempt import Attempt
from gpu_engine.cuda.partition.coarsen import Level, levels_of
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import unlimited
from gpu_engine.partition.buckets import Buckets
from gpu_engine.partition.moves import Books
from gpu_engine.partition.numbers import numbers
from gpu_engine.partition.partitioner import HostPartitioner
from gpu_engine.types import BoolArray, UnitArray, VertexArray

FEW: Final = 1 << 13
FEW_OF_PART: Final = 1 << 7


def few_for(k: int) -> int:
    """The host divides graphs of so few vertices."""
    return max(FEW, FEW_OF_PART * k)


LIGHT: Final = 20
"""A group weighs at most so small a part of what a part weighs."""

SEEDS: Final = 3
"""The smallest graph is divided so often, side by side, each time with another seed, and what cuts least in the end is
kept: one seed is up to a tenth worse than another."""

COARSE: Final = Effort(turns=100, patience=12, daring=3)
FINE: Final = Effort(turns=100, patience=12, daring=1)
"""The bounds of Jet: on coarse graphs a vertex may lose three quarters of its links for a move, on the finest a
quarter."""

AROUND: Final = Effort(turns=24, patience=6, daring=1)
"""The effort around vertices that a change has touched."""

ALL_BORDERS: Final = Effort(turns=100, patience=24, daring=2)
"""The effort at all borders of a finest graph whose cut has grown in spite of `AROUND`. Levels of smaller graphs find
less in thirty times the time (benchmarks/NOTES.md)."""


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
        self.finish(self.begin(thousandths, seed, control), control)

    def begin(self, thousandths: int, seed: int, control: Control) -> Attempt:
        """Begin one from nothing. The graph may change before it is finished. Raises `Cancelled`."""
        graph = self._n, self._rows, self._books.vertex_weight, self._books.part
        levels, small = levels_of(*graph, self._few, self._heaviest)
        _go_on(control)
        n, own = small.n, self._books.part[: self._n]
        group = levels[0].group if levels else cupy.where(own >= 0, cupy.arange(n, dtype=np.int32), np.int32(-1))
        rows, used = small.rows, small.rows.used[:n].get()
        end = np.array([len(rows.head)], np.int64)
        buckets = Buckets(rows.start[:n].get(), used, used, rows.head.get(), rows.weight.get(), end)
        there = np.ones(n, np.bool_) if levels else own.get() >= 0
        given = buckets, there, small.vertex_weight[:n].get(), self._k, self._limit, thousandths
        first = 1 + SEEDS * seed  # to METIS 0 is the same as 1
        return Attempt(group, levels[1:], [partial(divided, *given, first + i) for i in range(SEEDS)])

    def finish(self, attempt: Attempt, control: Control) -> None:
        """Give every vertex another part that was there at the beginning and is there now, by the best of all seeds.
        Others begin with the part they have, and parts keep their numbers as far as they are the same. Waits. Raises
        `Cancelled`, `OutOfMemory`."""
        books, began = self._books, self._books.part.copy()
        best: tuple[bool, int, Array, Array] | None = None
        for found in attempt.parts(control):
            books.part[:] = began
            self._back(attempt.group, attempt.levels, self._numbered(attempt, cupy.asarray(found)), control)
            told = read(books)
            is_over = bool(told.part_weight.max(initial=0) > self._limit)
            if best is None or (is_over, told.cut) < best[:2]:
                best = is_over, told.cut, books.part.copy(), books.told.copy()
        assert best is not None
        books.part[:], books.told[:] = best[2:]

    def _numbered(self, attempt: Attempt, part: Array) -> Array:
        """The parts of the smallest graph, with the numbers of those at hand."""
        own, k = self._books.part[: len(attempt.group)], self._k
        there = cupy.flatnonzero((own >= 0) & (attempt.group >= 0))
        place = attempt.group[there]
        for level in attempt.levels:
            place = level.group[place]
        common = cupy.bincount(part[place].astype(np.int64) * k + own[there], minlength=k * k)
        return cupy.asarray(numbers(common.reshape(k, k).get()))[part]

    def _back(self, group: Array, levels: list[Level], part: Array, control: Control) -> None:
        """The parts of the finest graph, from those of the smallest one, over those of the ``levels``."""
        for level in reversed(levels):
            _go_on(control)
            own = cupy.zeros(level.n, np.int32)
            strided(COARSEN, "parts_of_groups", level.n, np.int32(level.n), level.group, part, own)
            books = DeviceBooks(own, level.vertex_weight, new_told(self._k))
            weigh_parts(books, level.n, self._k)
            refine(level.rows, books, self._scratch, level.n, self._limit, COARSE, None)
            part = own
        _go_on(control)
        strided(COARSEN, "parts_of_groups", len(group), np.int32(len(group)), group, part, self._books.part)
        weigh_parts(self._books, self._n, self._k)
        refine(self._rows, self._books, self._scratch, self._n, self._limit, FINE, None)


def divided(
    buckets: Buckets,
    there: BoolArray,
    vertex_weight: UnitArray,
    k: int,
    limit: int,
    thousandths: int,
    seed: int,
    control: Control,
) -> VertexArray:
    """int32[n]: the parts of the vertices of a small graph, -1 for those that are not there. Made on the host."""
    part = np.where(there, k, -1).astype(np.int32)
    books = Books(part, vertex_weight, np.zeros(k + 1, np.int64), np.zeros(1, np.int64), np.array([limit], np.int64))
    HostPartitioner().full(buckets, books, thousandths, seed, control, unlimited)
    return books.part


def _go_on(control: Control) -> None:
    if control.cancelled:
        raise Cancelled("cancelled while it was partitioned")
