"""Columns of binary floats as exact units: each float stands for the shortest decimal that is nearest to it.

So 0.1 is one tenth, and ``0.1 + 0.2`` is 0.30000000000000004. The digits are those of Python's `repr`, or for narrower
floats those NumPy shows.
"""

from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow
from gpu_engine.formats._beyond import as_stated, refuse_beyond, since
from gpu_engine.formats._many_digits import CONTEXT, UNIQUE, Floats, round_floats, slices
from gpu_engine.formats._place import Place
from gpu_engine.networks.rounded import UNROUNDED, Rounded
from gpu_engine.networks.rounding import Precision, Rounding, divided
from gpu_engine.types import INFINITE, MAX_DECIMALS, MAX_TOTAL, UnitArray

EXACT_FLOAT: Final = 2.0**53
"""Below this every integer has its own float64, and so every amount of units."""
FINEST: Final = 15
"""Decimals that are tried by arithmetic before a float that is to be rounded goes by its digits."""


def floats_as_units(column: NDArray[np.floating], place: Place, precision: Precision) -> tuple[UnitArray, int, Rounded]:
    """Units int64[m], `INFINITE` for positive infinity, their decimals, and what rounding has changed; raises what is
    refused. O(m)."""
    values = _widened(column)
    place.refuse(np.isnan(values), "is not a number", what=place.amounts)
    place.refuse(values < 0, "is negative", what=place.amounts)
    infinite = np.isposinf(values)
    values = np.where(infinite, 0.0, values)
    place.refuse(values >= EXACT_FLOAT, "is too large for an exact float", CapacityOverflow, what=place.amounts)
    finest = None
    if precision.rounds:
        decimals = precision.allowed
        units, rounded = _in_units(values, decimals, precision.mode)
    else:
        rounded = UNROUNDED
        needed, digits = _shortest(values, precision.allowed)
        rest = np.flatnonzero(needed < 0)
        needed[rest], digits[rest] = _by_digits(values[rest], precision.allowed)
        place.refuse(needed < 0, precision.too_fine, what=place.amounts)
        decimals = int(needed.max(initial=0)) if precision.decimals is None else precision.decimals
        finest = int(needed.argmax()) if precision.decimals is None and len(needed) else None
        units = _rescaled(digits, needed, decimals)
    why = as_stated(precision) if finest is None else since(decimals, place, finest)
    refuse_beyond(units > MAX_TOTAL, place, lambda: why)
    return np.where(infinite, INFINITE, units), decimals, rounded


def _widened(column: NDArray[np.floating]) -> Floats:
    """float64[m]; a narrower float stands for its own shortest decimal, not for that of the float64 it equals."""
    if column.dtype.itemsize >= np.dtype(np.float64).itemsize:
        return column.astype(np.float64)
    parts = (_shown(column[part]) for part in slices(len(column)))
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


def _rescaled(digits: UnitArray, needed: NDArray[np.int64], decimals: int) -> UnitArray:
    """Units of `decimals` for digits of no more decimals each; more than `MAX_TOTAL` for what is too large."""
    more = np.clip(decimals - needed, 0, MAX_DECIMALS)
    scale = 10**more
    units = np.where(digits > MAX_TOTAL // scale, MAX_TOTAL + 1, 0)
    fits = units == 0
    units[fits] = digits[fits] * scale[fits]
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


def _in_units(values: Floats, decimals: int, rounding: Rounding) -> tuple[UnitArray, Rounded]:
    """Units of `decimals`, rounded where there are more."""
    needed, digits = _shortest(values, FINEST)
    units = _rescaled(digits, needed, decimals)
    finer, rest = np.flatnonzero(needed > decimals), np.flatnonzero(needed < 0)
    units[finer], rounded = _divided(digits[finer], needed[finer], decimals, rounding)
    units[rest], more = round_floats(values[rest], decimals, rounding)
    return units, rounded + more


def _divided(
    digits: UnitArray, needed: NDArray[np.int64], decimals: int, rounding: Rounding
) -> tuple[UnitArray, Rounded]:
    """Units of digits of more decimals than are kept. They are the fewest, so that each of them is rounded."""
    step = 10 ** (needed - decimals)
    units, _ = divided(digits, step, rounding)
    change = np.abs(digits - units * step)
    largest = np.zeros(FINEST + 1, np.int64)
    np.maximum.at(largest, needed, change)
    return units, Rounded(len(digits), max(Decimal(int(most)).scaleb(-k) for k, most in enumerate(largest)))
