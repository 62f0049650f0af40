"""Binary floats of 16 or 17 digits, rounded exactly: by arithmetic where it is sure, else by their digits.

All of a column may have so many, and a Python object of each would take a hundred times as long.
"""

from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpu_engine.networks.rounded import EXACT, Rounded
from gpu_engine.networks.rounding import OF_DECIMAL, Rounding
from gpu_engine.types import MAX_TOTAL, BoolArray, UnitArray

UNIQUE: Final = 10**15
"""Below this no two decimals of as many digits have the same nearest float64."""
DOUBT: Final = 2.0**-50
"""Relative error of a product with a power of ten, and of a float as its shortest decimal, with room to spare."""
SMALLEST: Final = 2.0**-1000
"""What is smaller has an error of its own, which is far smaller than this."""
SLICE_ROWS: Final = 1 << 16
CONTEXT: Final = Context(prec=400)
"""A context with enough digits for any float below `EXACT_FLOAT`."""
TRIES: Final = 16
"""How many floats are compared digit by digit before all that may have changed most are."""

Floats = NDArray[np.float64]


def round_floats(values: Floats, decimals: int, rounding: Rounding) -> tuple[UnitArray, Rounded]:
    """Units of floats that are no short decimals, below 2**53, and what rounding has changed."""
    units, doubtful = _by_arithmetic(values, decimals, rounding)
    rows, inexact, largest = np.flatnonzero(doubtful), 0, Decimal(0)
    for chosen in slices(len(rows)):
        units[rows[chosen]], changes = _by_digits(values[rows[chosen]], decimals, rounding)
        inexact, largest = inexact + len(changes), max([largest, *changes])
    most = _bounds(values, units, decimals)
    most[rows] = 0  # their changes are known
    largest = _largest(values, units, most, decimals, largest)
    # None of the others is a whole number of units: it would be short.
    return units, Rounded(inexact + len(values) - len(rows), EXACT.plus(largest.scaleb(-decimals, CONTEXT)))


def _by_arithmetic(values: Floats, decimals: int, rounding: Rounding) -> tuple[UnitArray, BoolArray]:
    """Units, and where the error of arithmetic may decide about them."""
    scaled = values * 10.0**decimals
    part, error = scaled - np.floor(scaled), scaled * DOUBT
    tie, whole_number = np.abs(part - 0.5) <= error, (part <= error) | (part >= 1 - error)
    doubtful: BoolArray = (tie if rounding == "nearest" else whole_number) | (scaled >= UNIQUE)
    whole = np.where(doubtful, 0, {"nearest": np.rint, "down": np.floor, "up": np.ceil}[rounding](scaled))
    return whole.astype(np.int64), doubtful


def _bounds(values: Floats, units: UnitArray, decimals: int) -> Floats:
    """As much as each may have changed, in units."""
    most = values * 10.0**decimals
    error = most * DOUBT
    most -= units
    np.abs(most, out=most)
    most += error
    most += SMALLEST
    return most


def _by_digits(values: Floats, decimals: int, rounding: Rounding) -> tuple[UnitArray, list[Decimal]]:
    """Units, and what has changed of those that were rounded, in units."""
    mode, units, changes = OF_DECIMAL[rounding], [], []
    for number in (Decimal(repr(value)).scaleb(decimals, CONTEXT) for value in values.tolist()):
        whole = number.to_integral_value(mode, CONTEXT)
        if whole != number:
            changes.append(CONTEXT.subtract(number, whole).copy_abs())
        units.append(min(int(whole), MAX_TOTAL + 1))
    return np.array(units, np.int64), changes


def _largest(values: Floats, units: UnitArray, most: Floats, decimals: int, largest: Decimal) -> Decimal:
    """The most that one of these floats, or ``largest``, has changed, in units; none has changed more than ``most``.

    Arithmetic tells which of them may have changed most, and their digits which of these has. Floats of one spacing
    that differ by a whole number have the same digits behind the point, and stand for each other.
    """
    left = np.flatnonzero(most > _below(largest))
    for _ in range(TRIES):
        if not len(left):
            return largest
        first = left[np.argmax(most[left])]
        largest = max(largest, _change(values[first], units[first], decimals))
        left = left[most[left] > _below(largest)]
        part = np.modf(values[left])[0]
        left = left[(part != values[first] % 1) | (np.spacing(values[left]) != np.spacing(values[first]))]
    for value, unit in zip(values[left], units[left], strict=True):
        largest = max(largest, _change(value, unit, decimals))
    return largest


def _change(value: np.float64, unit: np.int64, decimals: int) -> Decimal:
    number = Decimal(repr(float(value))).scaleb(decimals, CONTEXT)
    return CONTEXT.subtract(number, int(unit)).copy_abs()


def _below(number: Decimal) -> float:
    """A float that is not above it."""
    return float(np.nextafter(float(number), 0.0))


def slices(n_rows: int) -> Iterator[slice]:
    """A Python object of every value at once would take gigabytes."""
    return (slice(start, start + SLICE_ROWS) for start in range(0, n_rows, SLICE_ROWS))
