"""How exactly the floats of other libraries are kept: they have no decimal places, the service's amounts do."""

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from headrace._errors import InvalidInput

MOST_PLACES = 9
"""What the service keeps of decimals."""
MOST_UNITS = 2**60
"""What all amounts of a graph may add up to, in units of the last place."""


def rounded(amounts: Sequence[Any]) -> list[Any]:
    """The amounts with floats to the nearest decimal: as many places as they have, nine at most, and as many as 2**60
    units allow. What is no float is left alone.

    Raises `InvalidInput` for floats with fractions that are so large that no place is left.
    """
    places = places_of(amount for amount in amounts if _is_float(amount))
    if not places:
        return list(amounts)
    total = sum(
        abs(float(amount)) for amount in amounts if isinstance(amount, Real | Decimal) and math.isfinite(amount)
    )
    room = math.floor(math.log10(MOST_UNITS / max(total, 1.0)))
    if room < 0:
        raise InvalidInput(f"the amounts add up to {total:g}: there is no room for fractions below 2**60")
    kept = min(room, MOST_PLACES)
    return list(amounts) if places <= kept else [round(each, kept) if _is_float(each) else each for each in amounts]


def places_of(amounts: Iterable[Any]) -> int:
    """The most decimal places that one of them has; a float has those of its shortest decimal."""
    parts = {amount for amount in amounts if isinstance(amount, Decimal | float | np.floating)}
    fractions = (amount for amount in parts if math.isfinite(amount) and amount % 1)
    exponents = (Decimal(str(amount)).normalize().as_tuple().exponent for amount in fractions)
    return max((-int(exponent) for exponent in exponents), default=0)


def has_floats(amounts: Sequence[Any]) -> bool:
    """Whether a library that has no decimals would answer in floats; what is unlimited is none of them."""
    return any(_is_float(amount) and not math.isinf(amount) for amount in amounts)


def _is_float(amount: object) -> bool:
    return isinstance(amount, float | np.floating)


def exactly(amount: Any) -> Any:
    """A float as its shortest decimal, in which 0.1 + 0.2 is 0.3; anything else as it is."""
    return Decimal(repr(float(amount))) if _is_float(amount) else amount
