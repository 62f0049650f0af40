"""The caller's names of edges and vertices, and the rows they stand for."""

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import ROWS_SHOWN, InvalidNetwork
from gpu_engine.text.index import TextIndex
from gpu_engine.text.json_text import write_integers, write_texts
from gpu_engine.text.taken import take_texts
from gpu_engine.text.texts import Texts, concatenated


class Names:
    """Unique integer or string names of rows ``0 .. count-1``; without a column the row number is the name.

    Integers cost 8 bytes a row, and 8 more once a name has been looked up; strings cost their UTF-8 bytes, 8 bytes
    a row for where they begin, and 8 for the index.
    """

    def __init__(self, column: NDArray[np.int64] | Sequence[str] | None, count: int, kind: str) -> None:
        self.count = count
        self.kind = kind
        self.column: NDArray[np.int64] | Texts | None = None
        if column is None:
            return
        if len(column) != count:
            raise InvalidNetwork(f"{len(column)} {kind}s for {count} rows")
        if isinstance(column, np.ndarray):
            self.column = column.astype(np.int64)
            order = np.argsort(self.column, kind="stable")
            twice = order[1:][self.column[order][1:] == self.column[order][:-1]]
            self._refuse(len(twice), twice[:ROWS_SHOWN].tolist())
        else:
            self.column = column.copy() if isinstance(column, Texts) else Texts.of(column)
            self._refuse(self._index.n_repeats, self._index.repeats)

    def extended(self, column: NDArray[np.int64] | Sequence[str] | None, count: int) -> "Names":
        """These names and ``count`` more in the next rows, none of which is among them or stands twice; None where the
        row number is the name. What looks names up grows as well, and is not made anew. O(n), by copies alone. Whether
        names are integers or texts the first of them say.
        """
        if self.column is not None and not self.count and column is not None:
            return Names(column, count, self.kind)
        other = copy.copy(self)
        other.count = self.count + count
        if isinstance(self.column, Texts) and count:
            texts = Texts.of(column if column is not None and not isinstance(column, np.ndarray) else [])
            other.column = concatenated([self.column, texts])
            other.__dict__["_index"] = self._index.extended(other.column)
        elif self.column is not None and count:
            other.column = np.concatenate([self.column, np.asarray(column, np.int64)])
            if "_order" in self.__dict__:
                added = other.column[self.count :]
                rising = np.argsort(added)
                places = np.searchsorted(self.column, added[rising], sorter=self._order)
                other.__dict__["_order"] = np.insert(self._order, places, self.count + rising)
        return other

    def _refuse(self, n_repeats: int, rows: list[int]) -> None:
        if n_repeats:
            raise InvalidNetwork(f"{n_repeats} {self.kind}s stand more than once", rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the column, and of its index once there is one."""
        parts = [self.column, *(self.__dict__.get(name) for name in ("_index", "_order"))]
        return sum(int(part.nbytes) for part in parts if part is not None)

    @cached_property
    def _index(self) -> TextIndex:
        assert isinstance(self.column, Texts)
        return TextIndex(self.column)

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        assert isinstance(self.column, np.ndarray)
        return np.argsort(self.column)

    def rows(self, names: NDArray[np.int64] | Sequence[int] | Sequence[str]) -> NDArray[np.int64]:
        """int64[k]: the row of each name, -1 where there is none. O(k), or O(k log n) for integer names."""
        if isinstance(self.column, Texts):
            return self._index.rows(names if isinstance(names, Texts) else Texts.of(map(str, names)))
        if isinstance(names, Texts) or (not isinstance(names, np.ndarray) and any(isinstance(n, str) for n in names)):
            return np.full(len(names), -1, np.int64)
        wanted = np.asarray(names, dtype=np.int64)
        if self.column is None:
            return np.where((wanted >= 0) & (wanted < self.count), wanted, -1)
        if self.count == 0:
            return np.full(len(wanted), -1, np.int64)
        place = np.searchsorted(self.column, wanted, sorter=self._order)
        found = self._order[np.minimum(place, self.count - 1)]
        return np.where(self.column[found] == wanted, found, -1)

    def of(self, rows: NDArray[np.int64]) -> list[int] | list[str]:
        """The names of these few rows, in order."""
        if isinstance(self.column, Texts):
            return [self.column[row] for row in rows.tolist()]
        integers: list[int] = self._integers(rows).tolist()
        return integers

    def name(self, row: int | None) -> int | str | None:
        """The name of one row, if there is one."""
        return None if row is None else self.of(np.array([row]))[0]

    def write(self, rows: NDArray[np.int64]) -> bytes:
        """The names of these rows as JSON, with commas between them. The interpreter's lock is free meanwhile."""
        if isinstance(self.column, Texts):
            return write_texts(self.column, rows)
        return write_integers(self._integers(rows))

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | Texts:
        """The names of these rows as a column: int64[k], or texts if `is_text`."""
        return take_texts(self.column, rows) if isinstance(self.column, Texts) else self._integers(rows)

    @property
    def is_text(self) -> bool:
        return isinstance(self.column, Texts)

    def _integers(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        assert not isinstance(self.column, Texts)
        return rows.astype(np.int64) if self.column is None else self.column[rows]


def joined(first: Any, others: Sequence[Any]) -> Any:
    """Columns of names one after the other: all integers, all texts, or all None where the row number is the name. An
    empty one may be of the other kind."""
    columns = [column for column in (first, *others) if column is not None and len(column)]
    if first is None or not columns:
        return first
    if isinstance(columns[0], np.ndarray):
        return np.concatenate(columns)
    return columns[0] if len(columns) == 1 else concatenated([Texts.of(column) for column in columns])
