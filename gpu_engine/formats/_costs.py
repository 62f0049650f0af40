"""Exact fixed-point costs from whatever a format holds, as capacities are read, but signed and finite."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow, CostOverflow, InvalidNetwork
from gpu_engine.formats import _capacity
from gpu_engine.formats._capacity import Amounts
from gpu_engine.formats._place import Place
from gpu_engine.networks.rounding import Precision, Rounding
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray

Read: TypeAlias = Callable[[Place, Precision], Amounts]
"""Reads the sizes of the costs, which are not negative."""

BELOW: Final = r"^-[0-9.]"
FLIPPED: Final[dict[Rounding, Rounding]] = {"down": "up", "up": "down"}


def from_text(strings: pa.StringArray, place: Place, precision: Precision) -> Amounts:
    """Numbers as written (``-7``, ``1.25``)."""
    below = pc.match_substring_regex(strings, BELOW)
    sizes = pc.if_else(below, pc.utf8_slice_codeunits(strings, 1), strings)
    return _signed(below, place, precision, lambda *how: _capacity.from_text(sizes, *how))


def from_numbers(column: NDArray[Any], place: Place, own_decimals: int | None, precision: Precision) -> Amounts:
    """Floats, or integers: units of the body's own decimals, 0 without any."""
    place = replace(place, amounts="cost")
    if column.dtype.kind == "f":
        sizes = np.abs(column)
        return _signed(column < 0, place, precision, lambda *how: _capacity.from_floats(sizes, *how))
    if column.dtype.kind == "i":
        place.refuse(column < -MAX_TOTAL, "is too large", CostOverflow, what="cost")
        sizes = np.abs(column)
    else:
        sizes = column
    return _signed(
        column < 0, place, precision, lambda where, how: _capacity.from_units(sizes, where, own_decimals, how)
    )


def from_arrow(column: pa.Array, place: Place, own_decimals: int | None, precision: Precision) -> Amounts:
    """A column without nulls: integers, floats or decimal128."""
    if pa.types.is_decimal128(column.type):
        below = pc.less(column, pa.scalar(0, pa.decimal128(1, 0)))
        sizes = pc.abs(column)
        return _signed(below, place, precision, lambda *how: _capacity.from_decimals(sizes, *how))
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InvalidNetwork(f"cost must be integer, decimal128 or float64, not {column.type}", field="/cost")
    return from_numbers(column.to_numpy(zero_copy_only=False), place, own_decimals, precision)


def _signed(below: BoolArray | pa.Array, place: Place, precision: Precision, read: Read) -> Amounts:
    """What is ``below`` zero gets its sign. It is rounded the other way: down is away from zero there."""
    place = replace(place, amounts="cost")
    negative: BoolArray = below if isinstance(below, np.ndarray) else below.to_numpy(zero_copy_only=False)
    with _of_costs():
        amounts = read(place, precision)
        place.refuse(amounts.units == INFINITE, "is not finite", what="cost")
        units = amounts.units
        if precision.mode in FLIPPED and negative.any():
            flipped = read(place, replace(precision, rounding=FLIPPED[precision.mode]))
            units = np.where(negative, flipped.units, units)
    return Amounts(np.where(negative, -units, units), amounts.decimals)


@contextmanager
def _of_costs() -> Iterator[None]:
    """A cost has an overflow of its own."""
    try:
        yield
    except CapacityOverflow as error:
        overflow = CostOverflow(error.message)
        overflow.where = error.where
        raise overflow from None
