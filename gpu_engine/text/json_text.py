"""JSON text of columns, written by kernels: the interpreter is free while they run, and no object is made of a row.

What is written is the inside of an array: the values, with commas between them.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.text.texts import Texts
from gpu_engine.types import INFINITE, UnitArray

AMOUNT_BYTES: Final = 24
"""The longest amount: sign, nineteen digits, point, a zero before it, comma."""

ESCAPED_BYTES: Final = 6
"""The longest text of one byte, as in ``\\u001f``."""

_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_COMMA, _QUOTE, _BACKSLASH, _ZERO, _MINUS, _POINT, _SPACE = b',"\\0-. '
_ESCAPE: Final = np.frombuffer(b"\\u00", np.uint8)
_INFINITE: Final = np.frombuffer(b'"inf"', np.uint8)


def write_texts(texts: Texts, rows: NDArray[np.int64]) -> bytes:
    """The texts of these rows as JSON strings. O(bytes)."""
    out = np.empty(_bytes_of(texts.data, texts.offsets, rows), np.uint8)
    return out[: _write_texts(texts.data, texts.offsets, rows, out)].tobytes()


def write_amounts(units: UnitArray, decimals: int) -> bytes:
    """The amounts as `gpu_engine.networks.units.write_units` writes each of them. O(k)."""
    return _written(units, decimals, unlimited=True)


def write_integers(integers: NDArray[np.int64]) -> bytes:
    """The integers, the largest one included. O(k)."""
    return _written(integers, 0, unlimited=False)


def _written(units: UnitArray, decimals: int, *, unlimited: bool) -> bytes:
    out = np.empty(AMOUNT_BYTES * len(units), np.uint8)
    return out[: _write_amounts(units, decimals, unlimited, out)].tobytes()


@njit(cache=True, nogil=True)
def _bytes_of(data: NDArray[np.uint8], offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> int:
    count = 3 * len(rows)
    for row in rows:
        for i in range(offsets[row], offsets[row + 1]):
            plain = data[i] >= _SPACE and data[i] != _QUOTE and data[i] != _BACKSLASH
            count += 1 if plain else ESCAPED_BYTES
    return count


@njit(cache=True, nogil=True)
def _write_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], rows: NDArray[np.int64], out: NDArray[np.uint8]
) -> int:
    at = 0
    for row in rows:
        if at:
            out[at] = _COMMA
            at += 1
        out[at] = _QUOTE
        at += 1
        for i in range(offsets[row], offsets[row + 1]):
            byte = data[i]
            if byte < _SPACE:
                for escape in _ESCAPE:
                    out[at] = escape
                    at += 1
                out[at], out[at + 1] = _HEX[byte >> 4], _HEX[byte & 15]
                at += 2
                continue
            if byte in (_QUOTE, _BACKSLASH):
                out[at] = _BACKSLASH
                at += 1
            out[at] = byte
            at += 1
        out[at] = _QUOTE
        at += 1
    return at


@njit(cache=True, nogil=True)
def _write_amounts(units: UnitArray, decimals: int, unlimited: bool, out: NDArray[np.uint8]) -> int:
    """``unlimited``: the largest integer stands for no limit."""
    digits = np.empty(AMOUNT_BYTES, np.uint8)
    at = 0
    for amount in units:
        if at:
            out[at] = _COMMA
            at += 1
        if unlimited and amount == INFINITE:
            for byte in _INFINITE:
                out[at] = byte
                at += 1
            continue
        rest = np.uint64(amount)
        if amount < 0:
            out[at] = _MINUS
            at += 1
            rest = np.uint64(~amount) + np.uint64(1)  # the lowest integer has no opposite of its own kind
        count, skipped = 0, 0
        while rest or count <= decimals:  # the last digit comes first
            digits[count] = rest % np.uint64(10)
            rest //= np.uint64(10)
            count += 1
        while skipped < decimals and digits[skipped] == 0:
            skipped += 1
        for place in range(count - 1, skipped - 1, -1):
            if place == decimals - 1:
                out[at] = _POINT
                at += 1
            out[at] = _ZERO + digits[place]
            at += 1
    return at
