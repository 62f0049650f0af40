"""The caller's names of edges and vertices, and the rows they stand for."""

import sys
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork


class Names:
    """Unique integer or string names of rows ``0 .. count-1``; without a column the row number is the name.

    Integers cost 8 bytes a row, and 8 more once a name has been looked up; strings are kept as Python
    objects, with a dictionary once a name has been looked up.
    """

    def __init__(self, column: NDArray[np.int64] | Sequence[str] | None, count: int, kind: str) -> None:
        self.count = count
        self.kind = kind
        self.column: NDArray[np.int64] | list[str] | None
        if column is None or isinstance(column, np.ndarray):
            self.column = None if column is None else column.astype(np.int64)
        else:
            self.column = list(column)
        if self.column is not None:
            if len(self.column) != count:
                raise InvalidNetwork(f"{len(self.column)} {kind}s for {count} rows")
            self._refuse_duplicates(self.column)

    def _refuse_duplicates(self, column: NDArray[np.int64] | list[str]) -> None:
        if isinstance(column, list):
            first: dict[str, int] = {}
            twice = [row for row, name in enumerate(column) if first.setdefault(name, row) != row]
        else:
            order = np.argsort(column, kind="stable")
            twice = order[1:][column[order][1:] == column[order][:-1]].tolist()
        if twice:
            raise InvalidNetwork(f"{len(twice)} {self.kind}s stand more than once", twice)

    @property
    def nbytes(self) -> int:
        """Bytes of the column, and of its index once there is one. O(m) the first time for strings."""
        return self._column_nbytes + self._index_nbytes

    @property
    def _index_nbytes(self) -> int:
        if "_order" in self.__dict__:
            return self._order.nbytes
        if "_row_of" in self.__dict__:
            return sys.getsizeof(self._row_of) + 32 * self.count  # an int object for each row
        return 0

    @cached_property
    def _column_nbytes(self) -> int:
        if self.column is None:
            return 0
        if isinstance(self.column, list):
            return sum(len(name) + 57 for name in self.column)  # CPython: 49-byte header, 8-byte pointer
        return self.column.nbytes

    @cached_property
    def _row_of(self) -> dict[str, int]:
        assert isinstance(self.column, list)
        return {name: row for row, name in enumerate(self.column)}

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        assert isinstance(self.column, np.ndarray)
        return np.argsort(self.column)

    def rows(self, names: NDArray[np.int64] | Sequence[int] | Sequence[str]) -> NDArray[np.int64]:
        """int64[k]: the row of each name, -1 where there is none. O(k), or O(k log n) for integer names."""
        if isinstance(self.column, list):
            return np.fromiter((self._row_of.get(str(name), -1) for name in names), np.int64, len(names))
        if not isinstance(names, np.ndarray) and any(isinstance(name, str) for name in names):
            return np.full(len(names), -1, np.int64)
        wanted = np.asarray(names, dtype=np.int64)
        if self.column is None:
            return np.where((wanted >= 0) & (wanted < self.count), wanted, -1)
        if self.count == 0:
            return np.full(len(wanted), -1, np.int64)
        place = np.searchsorted(self.column, wanted, sorter=self._order)
        found = self._order[np.minimum(place, self.count - 1)]
        return np.where(self.column[found] == wanted, found, -1)

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | list[str]:
        """The names of these rows, in order."""
        if self.column is None:
            return rows.astype(np.int64)
        if isinstance(self.column, list):
            return [self.column[row] for row in rows]
        return self.column[rows]
