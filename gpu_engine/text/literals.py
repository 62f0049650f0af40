"""Columns of decimal literals as exact units, by a kernel where they are plain, and one by one where they are not."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.text.texts import Texts
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray, UnitArray

MAX_DIGITS: Final = 18
"""Most digits of a plain literal, with the zeros that `decimals` adds: below 10**18, no digit overflows int64."""

_MINUS, _POINT, _ZERO, _NINE = b"-.09"
_INFINITE: Final = np.frombuffer(b"inf", np.uint8)


def read_literals(
    literals: Sequence[str], decimals: int, one: Callable[[int], int], *, signed: bool = False
) -> UnitArray:
    """int64[k]: units of each literal; ``"inf"`` is `INFINITE`. ``one(i)`` reads what is not plain, or raises.

    Plain are digits with a point and a sign, but a negative amount only if ``signed``. O(bytes).
    """
    texts = Texts.of(literals)
    units, plain = _read(texts.data, texts.offsets, decimals, signed)
    for i in np.flatnonzero(~plain).tolist():
        units[i] = one(i)
    return units


@njit(cache=True, nogil=True)
def _read(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], decimals: int, signed: bool
) -> tuple[UnitArray, BoolArray]:
    count = len(offsets) - 1
    units, plain = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    for i in range(count):
        at, end = offsets[i], offsets[i + 1]
        if end - at == len(_INFINITE) and not signed:
            same = 0
            while same < len(_INFINITE) and data[at + same] == _INFINITE[same]:
                same += 1
            if same == len(_INFINITE):
                units[i], plain[i] = INFINITE, True
                continue
        negative = at < end and data[at] == _MINUS
        at += negative
        value, digits, places = 0, 0, -1  # no point yet
        good = at < end
        while good and at < end:
            byte = data[at]
            if byte == _POINT and places < 0 and digits:
                places = 0
            elif _ZERO <= byte <= _NINE and digits < MAX_DIGITS:
                value = 10 * value + (byte - _ZERO)
                digits += 1
                places += places >= 0
            else:
                good = False
            at += 1
        places = max(places, 0)
        good &= digits > 0
        while good and places > decimals and value % 10 == 0:  # zeros that say nothing
            value //= 10
            places -= 1
        good &= places <= decimals and digits + decimals - places <= MAX_DIGITS
        if good:
            value *= 10 ** (decimals - places)
            good = value <= MAX_TOTAL and (signed or not negative or value == 0)
        if good:
            units[i], plain[i] = -value if negative else value, True
    return units, plain
