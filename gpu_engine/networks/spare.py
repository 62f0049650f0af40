"""Room behind a column that networks share, so that it grows without being copied each time."""

from typing import Final

import numpy as np

from gpu_engine.types import UnitArray

SHARE: Final = 16
"""A column that has to be copied gets room behind it for one in this many of its items."""


class Spare:
    """The room behind one int64 column. A column and the longer one made of it share their items: after one of them was
    written to, the other must not be used. Each part of the room is given out once, to the first caller."""

    def __init__(self) -> None:
        self._buffer: UnitArray = np.empty(0, np.int64)
        self._used = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the room that is left."""
        return self._buffer.nbytes - 8 * self._used

    def with_zeros(self, column: UnitArray, more: int) -> UnitArray:
        """The column with ``more`` zeros behind it: a longer view if the room behind it is free, else a copy. O(more),
        or O(m) for a copy."""
        length = len(column) + more
        if column.base is not self._buffer or self._used != len(column) or length > len(self._buffer):
            self._buffer = np.empty(length + length // SHARE, np.int64)
            self._buffer[: len(column)] = column
        self._buffer[len(column) : length] = 0
        self._used = length
        return self._buffer[:length]
