"""Exact fixed-point costs from whatever a format holds, as capacities are read, but signed and finite."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
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

Sizes: TypeAlias = NDArray[Any] | pa.Array
Read: TypeAlias = Callable[[Any, Place, Precision], Amounts]
"""Reads the sizes of the costs, which are not negative."""

BELOW: Final = r"^-[0-9.]"
FLIPPED: Final[dict[Rounding, Rounding]] = {"down": "up", "up": "down"}


def from_text(strings: pa.StringArray, place: Place, precision: Precision) -> Amounts:
    """Numbers as written (``-7``, ``1.25``)."""
    below = pc.match_substring_regex(strings, BELOW)
    sizes = pc.if_else(below, pc.utf8_slice_codeunits(strings, 1), strings)
    return _signed(sizes, below, place, precision, _capacity.from_text)


def from_numbers(column: NDArray[Any], place: Place, own_decimals: int | None, precision: Precision) -> Amounts:
    """Floats, or integers: units of the body's own decimals, 0 without any."""
    place = replace(place, amounts="cost")
    if column.dtype.kind == "f":
        return _signed(np.abs(column), column < 0, place, precision, _capacity.from_floats)
    if column.dtype.kind == "i":
        place.refuse(column < -MAX_TOTAL, "is too large", CostOverflow, what="cost")
        sizes = np.abs(column)
    else:
        sizes = column

    def read(sizes: NDArray[Any], place: Place, precision: Precision) -> Amounts:
        return _capacity.from_units(sizes, place, own_decimals, precision)

    return _signed(sizes, column < 0, place, precision, read)


def from_arrow(column: pa.Array, place: Place, own_decimals: int | None, precision: Precision) -> Amounts:
    """A column without nulls: integers, floats or decimal128."""
    if pa.types.is_decimal128(column.type):
        below = pc.less(column, pa.scalar(Decimal(0), column.type))
        return _signed(pc.abs(column), below, place, precision, _capacity.from_decimals)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InvalidNetwork(f"cost must be integer, decimal128 or float64, not {column.type}", field="/cost")
    return from_numbers(column.to_numpy(zero_copy_only=False), place, own_decimals, precision)


def _signed(sizes: Sizes, below: BoolArray | pa.Array, place: Place, precision: Precision, read: Read) -> Amounts:
    """What is ``below`` zero gets its sign. It is rounded the other way: down is away from zero there."""
    place = replace(place, amounts="cost")
    negative: BoolArray = below if isinstance(below, np.ndarray) else below.to_numpy(zero_copy_only=False)
    with _of_costs():
        if precision.mode in FLIPPED and negative.any():
            above = read(_where(negative, sizes), place, precision)
            flipped = read(_where(~negative, sizes), place, replace(precision, rounding=FLIPPED[precision.mode]))
            units, rounded = above.units + flipped.units, above.rounded + flipped.rounded
            amounts = Amounts(units, above.decimals, rounded)
        else:
            amounts = read(sizes, place, precision)
        place.refuse(amounts.units == INFINITE, "is not finite", what="cost")
    return Amounts(np.where(negative, -amounts.units, amounts.units), amounts.decimals, amounts.rounded)


def _where(nothing: BoolArray, sizes: Sizes) -> Sizes:
    """The sizes with zero where there is to be ``nothing``."""
    if isinstance(sizes, np.ndarray):
        return np.where(nothing, sizes.dtype.type(0), sizes)
    zero = pa.scalar("0" if pa.types.is_large_string(sizes.type) else Decimal(0), sizes.type)
    return pc.if_else(pa.array(nothing), zero, sizes)


@contextmanager
def _of_costs() -> Iterator[None]:
    """A cost has an overflow of its own."""
    try:
        yield
    except CapacityOverflow as error:
        overflow = CostOverflow(error.message)
        overflow.where = error.where
        raise overflow from None
