"""Columns of an answer, written some rows at a time: as JSON text, or as arrays for `gpu_engine.formats.column_files`.

No Python object is made of a row, and no column is in memory as a whole beside what it is written from.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpu_engine.formats import Part
from gpu_engine.text.json_text import write_amounts, write_integers
from gpu_engine.text.names import Names
from gpu_engine.types import INFINITE, BoolArray, EdgeArray, UnitArray, VertexArray

STEP: Final = 1 << 14
"""So many rows of an answer are written at a time, in a fraction of a millisecond."""

Rows = Callable[[], Iterator[EdgeArray]]
"""Row numbers, `STEP` or fewer at a time; each call begins anew."""


class Column(ABC):
    """An array of an answer. Columns of the same table have a row for each row of the others."""

    table: str
    kind: str
    """As `gpu_engine.formats.column_files.Column` has it."""

    @abstractmethod
    def texts(self) -> Iterator[bytes]:
        """Some values as JSON with commas between them, or nothing, at a time. Each call begins anew."""

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """The same rows as arrays."""

    @abstractmethod
    def count(self) -> int:
        """The number of rows."""


@dataclass(frozen=True, slots=True)
class NameColumn(Column):
    """The names of rows: labels of vertices, or ids of edges."""

    names: Names
    rows: Rows
    table: str = ""

    @property
    def kind(self) -> str:  # type: ignore[override]  # read, never set
        return "text" if self.names.is_text else "int64"

    def texts(self) -> Iterator[bytes]:
        return (self.names.write(some) for some in self.rows())

    def parts(self) -> Iterator[Part]:
        return (self.names.take(some) for some in self.rows())

    def count(self) -> int:
        return _count(self.rows)


@dataclass(frozen=True, slots=True)
class AmountColumn(Column):
    """Amounts in units of ``10 ** -decimals``, which in arrays they stay; there an unlimited one is 0 units."""

    units: UnitArray
    decimals: int
    rows: Rows
    table: str = ""
    kind = "int64"

    def texts(self) -> Iterator[bytes]:
        return (write_amounts(self.units[some], self.decimals) for some in self.rows())

    def parts(self) -> Iterator[Part]:
        for some in self.rows():
            units = self.units.take(some)
            if len(units) and units.max() == INFINITE:  # the largest int64
                units[units == INFINITE] = 0
            yield units

    def count(self) -> int:
        return _count(self.rows)


@dataclass(frozen=True, slots=True)
class IntegerColumn(Column):
    """Plain numbers."""

    integers: NDArray[np.int64]
    table: str = ""
    kind = "int64"

    def texts(self) -> Iterator[bytes]:
        return (write_integers(self.integers[at : at + STEP]) for at in range(0, len(self.integers), STEP))

    def parts(self) -> Iterator[Part]:
        return (self.integers[at : at + STEP] for at in range(0, len(self.integers), STEP))

    def count(self) -> int:
        return len(self.integers)


@dataclass(frozen=True, slots=True)
class FlagColumn(Column):
    """True or false for each row; as kind "bits" packed in npz, eight rows to a byte."""

    flags: BoolArray
    table: str = ""
    kind: str = "bool"

    def texts(self) -> Iterator[bytes]:
        return (b",".join(np.where(part, b"true", b"false").tolist()) for part in self._parts())

    def parts(self) -> Iterator[Part]:
        return self._parts()

    def count(self) -> int:
        return len(self.flags)

    def _parts(self) -> Iterator[BoolArray]:
        return (self.flags[at : at + STEP] for at in range(0, len(self.flags), STEP))


def listed(rows: EdgeArray | VertexArray) -> Rows:
    """These rows."""
    return lambda: (rows[at : at + STEP].astype(np.int64, copy=False) for at in range(0, len(rows), STEP))


def each(column: NDArray[np.generic]) -> Rows:
    """Every row of the column."""
    return where(column, np.ones_like)


def where(column: NDArray[np.generic], holds: Callable[[NDArray[np.generic]], NDArray[np.generic]]) -> Rows:
    """The rows in which ``holds`` is true of the column. They are looked for as they are written, so no list of them is
    made."""
    return lambda: (at + np.flatnonzero(holds(column[at : at + STEP])) for at in range(0, len(column), STEP))


def marked(flags: BoolArray) -> Rows:
    return where(flags, lambda some: some)


def _count(rows: Rows) -> int:
    return sum(len(some) for some in rows())
