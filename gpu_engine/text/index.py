"""Which row a text stands in: a hash table of row numbers beside the text, built and asked without the interpreter.

Chained hashing with a polynomial of random base (Carter & Wegman 1979, *Universal classes of hash functions*): whoever
chooses the texts does not know the base, and cannot choose many that share a chain.
"""

import copy
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

LONGEST: Final = 4
"""A table that grows is made anew once its chains have so many texts on average."""

Rows = NDArray[np.int32]


class TextIndex:
    """Rows by text; of texts that are equal, the first one. 8 bytes a row. O(bytes) to build."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._base = secrets.randbelow(PRIME - 256) + 256
        self._first: Rows = np.full(max(1, len(texts)), NOBODY, np.int32)
        self._after: Rows = np.full(len(texts), NOBODY, np.int32)
        repeats = np.empty(SHOWN, np.int64)
        self.n_repeats = int(_fill(texts.data, texts.offsets, self._base, self._first, self._after, repeats, 0))
        self.repeats: list[int] = repeats[: self.n_repeats].tolist()
        """The first rows whose text stands in an earlier row; `n_repeats` counts all."""

    def extended(self, texts: Texts) -> "TextIndex":
        """The index of more texts, of which the first are those it has, and the others are not among them. O(n)."""
        begin = len(self._after)
        if len(texts) > LONGEST * len(self._first):
            return TextIndex(texts)
        other = copy.copy(self)
        other._texts, other._first = texts, self._first.copy()
        other._after = np.concatenate([self._after, np.full(len(texts) - begin, NOBODY, np.int32)])
        columns = texts.data, texts.offsets, self._base, other._first, other._after
        _fill(*columns, np.empty(0, np.int64), begin)
        return other

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
    begin: int,
) -> int:
    """Put the texts from ``begin`` on into the table."""
    n_repeats = 0
    for row in range(begin, len(after)):
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
