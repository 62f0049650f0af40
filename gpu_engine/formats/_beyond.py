"""The refusal of amounts that are too large, with what has made the unit so small in which they are counted."""

from collections.abc import Callable
from typing import Final

import numpy as np

from gpu_engine.errors import CapacityOverflow
from gpu_engine.formats._place import Place
from gpu_engine.networks.rounding import Precision
from gpu_engine.text.counted import counted
from gpu_engine.types import MAX_TOTAL, BoolArray

BEYOND: Final = f"is too large: the limit is {MAX_TOTAL} units"
"""The refusal of an amount that is too large."""


def refuse_beyond(bad: BoolArray, place: Place, why: Callable[[], str] = str) -> None:
    """Raise `CapacityOverflow` with the first rows where `bad` holds; `why` says what a unit is, and is asked then."""
    if bad.any():
        place.refuse(bad, BEYOND, CapacityOverflow, what=place.amounts, hint=why())


def since(decimals: int, place: Place, row: int) -> str:
    """That an amount of another row has so many decimals, the most of all."""
    if not decimals:
        return ""
    (number,) = place.found(np.array([row]))
    return _unit(decimals, f"since {place.name} {number} has {counted(decimals, 'decimal')}")


def as_stated(precision: Precision) -> str:
    """That the caller says how many decimals are kept."""
    return _unit(precision.decimals, f"as {precision.name}={precision.decimals} says") if precision.decimals else ""


def as_in(decimals: int, column: str) -> str:
    """That another column has so many decimals."""
    return _unit(decimals, f"since {column} has {counted(decimals, 'decimal')}")


def _unit(decimals: int, reason: str) -> str:
    return f"; a unit is 10^-{decimals}, {reason}"
