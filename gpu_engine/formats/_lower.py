"""Lower bounds of edges from whatever a format holds: as capacities are read, but finite, and in the same units."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats import _capacity
from gpu_engine.formats._capacity import Amounts
from gpu_engine.formats._place import ROWS, Place
from gpu_engine.formats._vertices import VERTEX_ROWS, Limited, finer, together
from gpu_engine.networks.rounding import Precision
from gpu_engine.types import INFINITE, UnitArray


def from_text(strings: pa.StringArray, place: Place, precision: Precision) -> Amounts:
    """Numbers as written."""
    with _finite(place) as (found, where):
        found.append(_capacity.from_text(strings, where, precision))
    return found[0]


def from_numbers(column: NDArray[Any], place: Place, own_decimals: int | None, precision: Precision) -> Amounts:
    """Floats, or integers: units of the body's own decimals."""
    with _finite(place) as (found, where):
        if column.dtype.kind == "f":
            found.append(_capacity.from_floats(column, where, precision))
        else:
            found.append(_capacity.from_units(column, where, own_decimals, precision))
    return found[0]


def from_arrow(column: pa.Array | None, own_decimals: int | None, precision: Precision, packed: bool) -> Amounts | None:
    """A column without nulls: integers, floats or decimal128; ``packed``: units."""
    if column is None:
        return None
    if pa.types.is_decimal128(column.type):
        with _finite(ROWS) as (found, where):
            found.append(_capacity.from_decimals(column, where, precision))
        return found[0]
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InvalidNetwork(f"lower must be integer, decimal128 or float64, not {column.type}", field="/lower")
    numbers = column.to_numpy(zero_copy_only=False)
    if packed:
        return Amounts(_capacity.from_integers(numbers, ROWS), own_decimals or 0)
    return from_numbers(numbers, ROWS, own_decimals, precision)


def in_same_units(
    amounts: Amounts, limited: Limited | None, lower: Amounts | None
) -> tuple[Amounts, Limited | None, UnitArray | None]:
    """Capacities of edges, those of vertices, and lower bounds in units of the same decimals, the finest ones, and all
    that was rounded. Raises `CapacityOverflow`."""
    amounts, limited = together(amounts, limited)
    if lower is None:
        return amounts, limited, None
    if lower.decimals > amounts.decimals:
        amounts = finer(amounts, lower.decimals, ROWS, "lower")
        limited = limited and replace(limited, amounts=finer(limited.amounts, lower.decimals, VERTEX_ROWS, "lower"))
    units = finer(lower, amounts.decimals, replace(ROWS, amounts="lower"), ROWS.amounts).units
    return replace(amounts, rounded=amounts.rounded + lower.rounded), limited, units


@contextmanager
def _finite(place: Place) -> Iterator[tuple[list[Amounts], Place]]:
    """What is read is about lower bounds, none of which is infinite."""
    found: list[Amounts] = []
    where = replace(place, amounts="lower")
    yield found, where
    where.refuse(np.asarray(found[0].units == INFINITE), "is not finite", what="lower")
