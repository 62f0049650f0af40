"""Text in columns: UTF-8 bytes one after the other, and where each text begins.

Millions of Python strings would take five times the memory, and whoever walks over them in one call of C holds the
interpreter's lock for seconds. The layout is that of Arrow's ``large_string``.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

STEP = 1 << 14
"""Texts that are turned into Python strings, or made of them, at a time."""


class Texts(Sequence[str]):
    """Strings ``0 .. n-1``. ``data`` uint8[...]; text i is ``data[offsets[i]:offsets[i + 1]]``, offsets int64[n+1]."""

    __slots__ = ("data", "offsets")

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.data = data
        self.offsets = offsets

    @classmethod
    def of(cls, strings: Iterable[str]) -> "Texts":
        """A column of these strings. Half of a surrogate pair becomes bytes that no proper text has. O(bytes)."""
        if isinstance(strings, cls):
            return strings
        rest = iter(strings)
        data, lengths = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)]
        while some := [string.encode("utf-8", "surrogatepass") for string in islice(rest, STEP)]:
            data.append(np.frombuffer(b"".join(some), np.uint8))
            lengths.append(np.fromiter(map(len, some), np.int64, len(some)))
        return cls(np.concatenate(data), np.cumsum(np.concatenate(lengths)))

    def copy(self) -> "Texts":
        """A copy of the texts in arrays of their own, which keep no larger buffer alive."""
        first, last = self.offsets[0], self.offsets[-1]
        return Texts(self.data[first:last].copy(), self.offsets - first)

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + self.offsets.nbytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> "Texts": ...
    def __getitem__(self, row: int | slice) -> "str | Texts":
        if isinstance(row, slice):
            first, last, step = row.indices(len(self))
            if step != 1:
                raise ValueError("texts are cut in steps of one")
            return Texts(self.data, self.offsets[first : max(first, last) + 1])
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)} texts")
        row %= len(self)
        return self.data[self.offsets[row] : self.offsets[row + 1]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        for at in range(0, len(self), STEP):
            ends = self.offsets[at : at + STEP + 1]
            raw, places = self.data[ends[0] : ends[-1]].tobytes(), (ends - ends[0]).tolist()
            yield from [raw[i:j].decode() for i, j in pairwise(places)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # like a list


def concatenated(columns: Sequence[Texts]) -> Texts:
    """The texts of several columns, one column after the other. O(bytes)."""
    parts = [column.copy() for column in columns]
    begins = np.cumsum([0, *(part.offsets[-1] for part in parts)])
    offsets = [part.offsets[1:] + begin for part, begin in zip(parts, begins, strict=False)]
    return Texts(np.concatenate([part.data for part in parts]), np.concatenate([np.zeros(1, np.int64), *offsets]))
