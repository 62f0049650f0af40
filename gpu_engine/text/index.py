"""Which row a text stands in: a hash table of row numbers beside the text, built and asked without the interpreter.

Chained hashing with a polynomial of random base (Carter & Wegman 1979, *Universal classes of hash functions*): whoever
chooses the texts does not know the base, and cannot choose many that share a chain.
"""

import secrets
from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.text.texts import Texts

PRIME: Final = (1 << 31) - 1
NOBODY: Final = -1
SHOWN: Final = 10
"""Rows of repeated texts that are told."""

Rows = NDArray[np.int32]


class TextIndex:
    """Rows by text; of texts that are equal, the first one. 8 bytes a row. O(bytes) to build."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._base = secrets.randbelow(PRIME - 256) + 256
        self._first: Rows = np.full(max(1, len(texts)), NOBODY, np.int32)
        self._after: Rows = np.full(len(texts), NOBODY, np.int32)
        repeats = np.empty(SHOWN, np.int64)
        self.n_repeats = int(_fill(texts.data, texts.offsets, self._base, self._first, self._after, repeats))
        self.repeats: list[int] = repeats[: self.n_repeats].tolist()
        """The first rows whose text stands in an earlier row; `n_repeats` counts all."""

    @property
    def nbytes(self) -> int:
        return self._first.nbytes + self._after.nbytes

    def rows(self, wanted: Texts) -> NDArray[np.int64]:
        """int64[k]: the row of each text, -1 where there is none. O(bytes wanted)."""
        mine = self._texts
        return _find(mine.data, mine.offsets, self._base, self._first, self._after, wanted.data, wanted.offsets)


@njit(cache=True, nogil=True)
def _hash(data: NDArray[np.uint8], start: int, end: int, base: int) -> int:
    value = 1
    for i in range(start, end):
        value = value * base + data[i] + 1  # below 2**62
        value = (value & PRIME) + (value >> 31)
        if value >= PRIME:
            value -= PRIME
    return value


@njit(cache=True, nogil=True)
def _look(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    after: Rows,
    row: int,
    text: NDArray[np.uint8],
    start: int,
    end: int,
) -> int:
    """The first row from ``row`` on in its chain that holds ``text[start:end]``."""
    while row != NOBODY:
        begin = offsets[row]
        if offsets[row + 1] - begin == end - start:
            same = 0
            while same < end - start and data[begin + same] == text[start + same]:
                same += 1
            if same == end - start:
                break
        row = after[row]
    return row


@njit(cache=True, nogil=True)
def _fill(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    base: int,
    first: Rows,
    after: Rows,
    repeats: NDArray[np.int64],
) -> int:
    n_repeats = 0
    for row in range(len(after)):
        start, end = offsets[row], offsets[row + 1]
        place = _hash(data, start, end, base) % len(first)
        if _look(data, offsets, after, first[place], data, start, end) != NOBODY:
            if n_repeats < len(repeats):
                repeats[n_repeats] = row
            n_repeats += 1
            continue
        after[row] = first[place]
        first[place] = row
    return n_repeats


@njit(cache=True, nogil=True)
def _find(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    base: int,
    first: Rows,
    after: Rows,
    texts: NDArray[np.uint8],
    ends: NDArray[np.int64],
) -> NDArray[np.int64]:
    found = np.empty(len(ends) - 1, np.int64)
    for i in range(len(found)):
        place = _hash(texts, ends[i], ends[i + 1], base) % len(first)
        found[i] = _look(data, offsets, after, first[place], texts, ends[i], ends[i + 1])
    return found
