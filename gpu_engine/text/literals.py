"""Columns of decimal literals as exact units, by a kernel where they are plain, and one by one where they are not."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.text.texts import Texts
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray, UnitArray

MAX_DIGITS: Final = 18
"""Most digits of a plain literal, with the zeros that `decimals` adds: below 10**18, no digit overflows int64."""

_MINUS, _POINT, _ZERO, _NINE = b"-.09"
_INFINITE: Final = np.frombuffer(b"inf", np.uint8)

One = Callable[[int], int]
"""Reads the literal of a row that is not plain, or raises."""


class RoundedUnits(NamedTuple):
    """Units of literals that were rounded where they have more decimals than are kept."""

    units: UnitArray
    rows: int
    """Plain literals that were rounded."""
    largest: UnitArray
    """int64[MAX_DIGITS + 1]: the most that one of k more decimals has changed, in units of its own last decimal."""


def read_literals(literals: Sequence[str], decimals: int, one: One, *, signed: bool = False) -> UnitArray:
    """int64[k]: units of each literal; ``"inf"`` is `INFINITE`. ``one(i)`` reads what is not plain, or raises.

    Plain are digits with a point and a sign, but a negative amount only if ``signed``. O(bytes).
    """
    texts = Texts.of(literals)
    units, plain = _read(texts.data, texts.offsets, decimals, signed)
    return _with_rest(units, plain, one)


def round_literals(
    literals: Sequence[str], decimals: int, mode: int, own: UnitArray, least: int | None, one: One, *, signed: bool
) -> RoundedUnits:
    """As `read_literals`, rounded as ``mode`` says: 1 to the nearest, 2 down, 3 up.

    What is rounded is the sum with ``own``, int64[k], of which the units are those that are added. Where it is below
    ``least``, or without a limit, it is rounded down and counts for nothing.
    """
    texts = Texts.of(literals)
    lowest = np.iinfo(np.int64).min if least is None else least
    units, plain, rows, largest = _round(texts.data, texts.offsets, decimals, signed, mode, own, lowest)
    return RoundedUnits(_with_rest(units, plain, one), rows, largest)


def scale_literals(literals: Sequence[str], own: UnitArray, mode: int, one: One) -> RoundedUnits:
    """The products of ``own`` and literals that are not negative; 0 as ``mode``: what is no whole number is not plain.

    How much they have changed is said in decimals of the literals alone.
    """
    texts = Texts.of(literals)
    units, plain, rows, largest = _scale(texts.data, texts.offsets, own, mode)
    return RoundedUnits(_with_rest(units, plain, one), rows, largest)


def _with_rest(units: UnitArray, plain: BoolArray, one: One) -> UnitArray:
    for i in np.flatnonzero(~plain).tolist():
        units[i] = one(i)
    return units


@njit(cache=True, nogil=True)
def _number(data: NDArray[np.uint8], at: int, end: int) -> tuple[bool, int, int, int]:
    """Whether digits with at most one point stand there, their value, how many they are, and those behind the point."""
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
    return good and digits > 0, value, digits, max(places, 0)


@njit(cache=True, nogil=True)
def _shortest(data: NDArray[np.uint8], at: int, end: int, decimals: int) -> tuple[bool, int, int, int]:
    """As `_number`, without zeros at the end of places beyond ``decimals``: they say nothing."""
    good, value, digits, places = _number(data, at, end)
    while good and places > decimals and value % 10 == 0:
        value //= 10
        places -= 1
    return good, value, digits, places


@njit(cache=True, nogil=True)
def _is_infinite(data: NDArray[np.uint8], at: int, end: int) -> bool:
    same = 0
    while same < len(_INFINITE) and at + same < end and data[at + same] == _INFINITE[same]:
        same += 1
    return end - at == len(_INFINITE) and same == len(_INFINITE)


@njit(cache=True, nogil=True)
def _shifted(value: int, digits: int, places: int, decimals: int) -> tuple[bool, int]:
    """A number as units, if it has no more decimals and is not too large."""
    if places > decimals or digits + decimals - places > MAX_DIGITS:
        return False, 0
    value *= 10 ** (decimals - places)
    return value <= MAX_TOTAL, value


@njit(cache=True, nogil=True)
def _quotient(whole: int, rest: int, step: int, mode: int) -> tuple[int, int]:
    """A whole number and a part ``rest / step`` of one, not zero, rounded; and how much that has changed."""
    left = step - rest
    if mode == 3 or (mode == 1 and (rest > left or (rest == left and whole % 2 == 1))):
        return whole + 1, left
    return whole, rest


@njit(cache=True, nogil=True)
def _read(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], decimals: int, signed: bool
) -> tuple[UnitArray, BoolArray]:
    count = len(offsets) - 1
    units, plain = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    for i in range(count):
        at, end = offsets[i], offsets[i + 1]
        if not signed and _is_infinite(data, at, end):
            units[i], plain[i] = INFINITE, True
            continue
        negative = at < end and data[at] == _MINUS
        good, value, digits, places = _shortest(data, at + negative, end, decimals)
        fits, value = _shifted(value, digits, places, decimals)
        if good and fits and (signed or not negative or value == 0):
            units[i], plain[i] = -value if negative else value, True
    return units, plain


@njit(cache=True, nogil=True)
def _round(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    decimals: int,
    signed: bool,
    mode: int,
    own: UnitArray,
    least: int,
) -> tuple[UnitArray, BoolArray, int, UnitArray]:
    count, rows = len(offsets) - 1, 0
    units, plain = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    largest = np.zeros(MAX_DIGITS + 1, np.int64)
    for i in range(count):
        at, end = offsets[i], offsets[i + 1]
        if not signed and _is_infinite(data, at, end):
            units[i], plain[i] = INFINITE, True
            continue
        negative = at < end and data[at] == _MINUS
        good, value, digits, places = _shortest(data, at + negative, end, decimals)
        if not good or (negative and not signed and value != 0):
            continue
        value = -value if negative else value
        if places <= decimals:
            plain[i], units[i] = _shifted(value, digits, places, decimals)
            plain[i] &= units[i] >= -MAX_TOTAL
            continue
        step = 10 ** (places - decimals)
        whole = value // step
        units[i], plain[i] = whole, True
        if own[i] == INFINITE or own[i] + whole < least:
            continue
        result, change = _quotient(own[i] + whole, value - whole * step, step, mode)
        units[i] = result - own[i]
        rows += 1
        largest[places - decimals] = max(largest[places - decimals], change)
    return units, plain, rows, largest


@njit(cache=True, nogil=True)
def _scale(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], own: UnitArray, mode: int
) -> tuple[UnitArray, BoolArray, int, UnitArray]:
    count, rows = len(offsets) - 1, 0
    units, plain = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    largest = np.zeros(MAX_DIGITS + 1, np.int64)
    for i in range(count):
        good, value, _, places = _number(data, offsets[i], offsets[i + 1])
        if not good or own[i] == INFINITE or (value > 0 and abs(own[i]) > MAX_TOTAL // value):
            continue
        product, step = own[i] * value, 10**places
        whole = product // step
        rest = product - whole * step
        if rest and mode:
            whole, change = _quotient(whole, rest, step, mode)
            rows += 1
            largest[places] = max(largest[places], change)
        if not rest or mode:
            units[i], plain[i] = whole, True
    return units, plain, rows, largest
