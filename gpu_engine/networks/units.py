"""Decimal literals as exact units, and back. No float is ever in between."""

from collections.abc import Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation, localcontext

from gpu_engine.errors import CapacityOverflow, InvalidNetwork
from gpu_engine.types import INFINITE, MAX_TOTAL

EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])
"""60 digits hold any amount below 10**19 units times any factor of 40 digits."""

MAX_LITERAL = 40
"""Longest literal read, in characters."""


def read_decimal(literal: str, row: object = None) -> Decimal:
    """The exact finite value of a literal such as "4", "-1.5" or "2e3"; raises `InvalidNetwork` naming `row`."""
    if len(literal) <= MAX_LITERAL:
        try:
            number = EXACT.create_decimal(literal)
        except (InvalidOperation, Inexact):
            number = Decimal("nan")
        if number.is_finite() and "_" not in literal:
            return number
    raise InvalidNetwork(f"{literal[:MAX_LITERAL]!r} is no finite amount", [row])


def to_units(number: Decimal, decimals: int, row: object = None) -> int:
    """Whole units of ``10 ** -decimals``; raises rather than rounds, and beyond `MAX_TOTAL` either way."""
    if number and number.adjusted() + decimals > 19:
        raise CapacityOverflow(f"{number} is beyond the limit of {MAX_TOTAL} units", [row])
    units = number.scaleb(decimals, EXACT)
    whole = int(units)
    if whole != units:
        raise InvalidNetwork(
            f"{number} has more than {decimals} decimals, which were fixed when the graph was loaded", [row]
        )
    if abs(whole) > MAX_TOTAL:
        raise CapacityOverflow(f"{number} is beyond the limit of {MAX_TOTAL} units", [row])
    return whole


def read_amounts(literals: Sequence[str], decimals: int, rows: Sequence[object]) -> list[int]:
    """Units of each literal; ``"inf"`` is `INFINITE`. Raises for negative amounts. O(k)."""
    amounts = []
    for literal, row in zip(literals, rows, strict=True):
        if literal == "inf":
            amounts.append(INFINITE)
            continue
        units = to_units(read_decimal(literal, row), decimals, row)
        if units < 0:
            raise InvalidNetwork(f"{literal} is negative", [row])
        amounts.append(units)
    return amounts


def scale_units(units: int, factor: Decimal, *, down: bool, row: object = None) -> int:
    """``units * factor`` in whole units, rounded down only if `down`. `INFINITE` stays so unless times zero."""
    if units == INFINITE:
        if factor == 0:
            raise InvalidNetwork("an unlimited capacity cannot be scaled by zero", [row])
        return INFINITE
    if units and factor and factor.adjusted() > 19:
        raise CapacityOverflow(f"scaled by {factor} the capacity is beyond {MAX_TOTAL} units", [row])
    with localcontext(EXACT):
        product = units * factor
        whole = int(product)
        if whole != product and not down:
            raise InvalidNetwork(f"scaled by {factor} the capacity is no whole number of units", [row])
    if whole > MAX_TOTAL:
        raise CapacityOverflow(f"scaled by {factor} the capacity is beyond {MAX_TOTAL} units", [row])
    return whole


def write_units(units: int, decimals: int) -> str:
    """The shortest exact JSON text of an amount: ``6``, ``5.5``, ``"inf"`` (with its quotes)."""
    if units == INFINITE:
        return '"inf"'
    if decimals == 0:
        return str(units)
    whole, rest = divmod(abs(units), 10**decimals)
    sign = "-" if units < 0 else ""
    return f"{sign}{whole}.{rest:0{decimals}d}".rstrip("0").rstrip(".") if rest else f"{sign}{whole}"
