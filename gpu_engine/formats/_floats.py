"""Columns of binary floats as exact units: each float stands for the shortest decimal that is nearest to it.

So 0.1 is one tenth, and ``0.1 + 0.2`` is 0.30000000000000004. The digits are those of Python's `repr`, or for narrower
floats those NumPy shows.
"""

from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow
from gpu_engine.formats._place import Place
from gpu_engine.networks.rounding import OF_DECIMAL, Precision, Rounding, divided
from gpu_engine.types import INFINITE, MAX_DECIMALS, MAX_TOTAL, UnitArray

EXACT_FLOAT: Final = 2.0**53
"""Below this every integer has its own float64, and so every amount of units."""
UNIQUE: Final = 10**15
"""Below this no two decimals of as many digits have the same nearest float64."""
DOUBT: Final = 2.0**-50
"""Relative error of a product with a power of ten, and of a float as its shortest decimal, with room to spare."""
SLICE_ROWS: Final = 1 << 16
FINEST: Final = 15
"""Decimals that are tried by arithmetic before a float that is to be rounded goes by its digits."""
CONTEXT: Final = Context(prec=400)
"""Digits enough for any float below `EXACT_FLOAT`."""

Floats = NDArray[np.float64]


def floats_as_units(column: NDArray[np.floating], place: Place, precision: Precision) -> tuple[UnitArray, int]:
    """Units int64[m], `INFINITE` for positive infinity, and their decimals; raises what is refused. O(m)."""
    values = _widened(column)
    place.refuse(np.isnan(values), "is not a number", what=place.amounts)
    place.refuse(values < 0, "is negative", what=place.amounts)
    infinite = np.isposinf(values)
    values = np.where(infinite, 0.0, values)
    place.refuse(values >= EXACT_FLOAT, "is too large for an exact float", CapacityOverflow, what=place.amounts)
    needed, digits = _shortest(values, FINEST if precision.rounds else precision.allowed)
    rest = np.flatnonzero(needed < 0)
    if precision.rounds:
        decimals = precision.allowed
        units = _rescaled(digits, needed, decimals, precision.mode)
        units[rest] = _rounded(values[rest], decimals, precision.mode)
    else:
        needed[rest], digits[rest] = _by_digits(values[rest], precision.allowed)
        place.refuse(needed < 0, precision.too_fine, what=place.amounts)
        decimals = int(needed.max(initial=0)) if precision.decimals is None else precision.decimals
        units = _rescaled(digits, needed, decimals, "error")
    place.refuse(units > MAX_TOTAL, "is too large", CapacityOverflow, what=place.amounts)
    return np.where(infinite, INFINITE, units), decimals


def _widened(column: NDArray[np.floating]) -> Floats:
    """float64[m]; a narrower float stands for its own shortest decimal, not for that of the float64 it equals."""
    if column.dtype.itemsize >= np.dtype(np.float64).itemsize:
        return column.astype(np.float64)
    parts = (_shown(column[part]) for part in _slices(len(column)))
    digits = (pc.cast(part, pa.float64()).to_numpy(zero_copy_only=False) for part in parts)
    return np.concatenate([np.zeros(0), *digits])


def _shown(column: NDArray[np.floating]) -> pa.StringArray:
    """As text; Arrow is ten times as fast as NumPy, and has no digits of its own for two bytes."""
    return pc.cast(pa.array(column), pa.string()) if column.dtype == np.float32 else pa.array(column.astype(str))


def _shortest(values: Floats, finest: int) -> tuple[NDArray[np.int64], UnitArray]:
    """For each float the fewest decimals, and its digits as a whole number, where they are short; -1: they are not.

    Dividing two exact floats rounds correctly, so the test below is exact.
    """
    needed = np.full(len(values), -1, dtype=np.int64)
    digits = np.zeros(len(values), dtype=np.int64)
    rest = np.arange(len(values))
    for tried in range(finest + 1):
        scaled = np.rint(values[rest] * 10.0**tried)
        short = scaled < (EXACT_FLOAT if tried == 0 else UNIQUE)
        exact = short & (scaled / 10.0**tried == values[rest])
        needed[rest[exact]] = tried
        digits[rest[exact]] = scaled[exact].astype(np.int64)
        rest = rest[~exact & short]  # with more decimals the others are longer still
        if not len(rest):
            break
    return needed, digits


def _rescaled(digits: UnitArray, needed: NDArray[np.int64], decimals: int, rounding: Rounding) -> UnitArray:
    """Units of `decimals` for digits of `needed` decimals each (what is -1 there has no meaning); more than
    `MAX_TOTAL` for what is too large."""
    more = np.clip(decimals - needed, 0, MAX_DECIMALS)
    scale = 10**more
    units = np.where(digits > MAX_TOTAL // scale, MAX_TOTAL + 1, 0)
    fits = units == 0
    units[fits] = digits[fits] * scale[fits]
    finer = np.flatnonzero(needed > decimals)
    units[finer], _ = divided(digits[finer], 10 ** (needed[finer] - decimals), rounding)
    return units


def _by_digits(values: Floats, allowed: int) -> tuple[NDArray[np.int64], UnitArray]:
    """As `_shortest`, for floats whose digits are many: one by one, unless they are surely too fine."""
    needed = np.full(len(values), -1, dtype=np.int64)
    digits = np.zeros(len(values), dtype=np.int64)
    # All decimals of the others were tried: they have more.
    maybe = np.flatnonzero(values * 10.0**allowed >= UNIQUE / 10)
    for i in maybe.tolist():
        number = Decimal(repr(float(values[i]))).normalize(CONTEXT)
        places = max(0, -int(number.as_tuple().exponent))
        if places <= allowed:
            needed[i] = places
            digits[i] = min(int(number.scaleb(places, CONTEXT)), MAX_TOTAL + 1)
    return needed, digits


def _rounded(values: Floats, decimals: int, rounding: Rounding) -> UnitArray:
    """Units of floats with many digits: by arithmetic where its error decides nothing, else by their digits."""
    scaled = values * 10.0**decimals
    floor = np.floor(scaled)
    part, error = scaled - floor, scaled * DOUBT
    tie, whole_number = np.abs(part - 0.5) <= error, (part <= error) | (part >= 1 - error)
    doubtful = (tie if rounding == "nearest" else whole_number) | (scaled >= UNIQUE)
    whole = np.where(doubtful, 0, {"nearest": np.rint, "down": np.floor, "up": np.ceil}[rounding](scaled))
    units: UnitArray = whole.astype(np.int64)
    rows = np.flatnonzero(doubtful)
    for chosen in _slices(len(rows)):
        units[rows[chosen]] = _exactly(values[rows[chosen]], decimals, rounding)
    return units


def _exactly(values: Floats, decimals: int, rounding: Rounding) -> UnitArray:
    mode = OF_DECIMAL[rounding]
    numbers = (Decimal(repr(value)).scaleb(decimals, CONTEXT) for value in values.tolist())
    whole = (int(number.to_integral_value(mode, CONTEXT)) for number in numbers)
    return np.array([min(number, MAX_TOTAL + 1) for number in whole], np.int64)


def _slices(n_rows: int) -> Iterator[slice]:
    """A Python object of every value at once would take gigabytes."""
    return (slice(start, start + SLICE_ROWS) for start in range(0, n_rows, SLICE_ROWS))
