"""Decimal literals as exact units, and back. No float is ever in between."""

from collections.abc import Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation, localcontext

from gpu_engine.errors import CapacityOverflow, InvalidNetwork
from gpu_engine.networks.rounding import OF_DECIMAL, Rounding, more_decimals
from gpu_engine.types import INFINITE, MAX_TOTAL

MAX_LITERAL = 170
"""The longest literal that is read, in characters: 128 of a body, and 40 zeros for an exponent that is written out."""

WIDE = Context(prec=200, traps=[Inexact, InvalidOperation])
"""200 digits hold any amount below 10**19 units added to any literal, or times it."""

SHOWN = 40
"""Characters of a literal that a refusal quotes."""

TOLD = Decimal("1e-20")
"""Smaller numbers are not quoted in refusals, because bodies replace very small literals by another very small one."""


def read_decimal(literal: str, row: object = None) -> Decimal:
    """The exact finite value of a literal such as "4", "-1.5" or "2e3"; raises `InvalidNetwork` naming `row`."""
    if len(literal) <= MAX_LITERAL:
        try:
            number = WIDE.create_decimal(literal)
        except (InvalidOperation, Inexact):
            number = Decimal("nan")
        if number.is_finite() and "_" not in literal:
            return number
    elif literal.isascii() and literal.isdecimal():
        raise CapacityOverflow(f"{literal[:SHOWN]}... is beyond the limit of {MAX_TOTAL} units", [row])
    raise InvalidNetwork(f"{literal[:SHOWN]!r} is no finite amount", [row])


def _told(number: Decimal) -> str:
    """A number as a refusal names it."""
    if 0 < abs(number) < TOLD:
        return "so small a number"
    text = str(number)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _beyond(number: Decimal, decimals: int) -> str:
    """The refusal of an amount that is too large for a graph of so many decimals."""
    unit = f" of 10^-{decimals}; the decimals were fixed when the graph was loaded" if decimals else ""
    return f"{_told(number)} is beyond the limit of {MAX_TOTAL} units{unit}"


def to_units(number: Decimal, decimals: int, row: object = None, rounding: Rounding = "error") -> int:
    """Whole units of ``10 ** -decimals``; raises beyond `MAX_TOTAL` either way."""
    if number and number.adjusted() + decimals > 19:
        raise CapacityOverflow(_beyond(number, decimals), [row])
    units = _whole(number.scaleb(decimals, WIDE), rounding)
    whole = int(units)
    if whole != units:
        too_fine = more_decimals(decimals)
        raise InvalidNetwork(f"{_told(number)} {too_fine}; they were fixed when the graph was loaded", [row])
    if abs(whole) > MAX_TOTAL:
        raise CapacityOverflow(_beyond(number, decimals), [row])
    return whole


def to_add(number: Decimal, own: int, decimals: int, row: object, rounding: Rounding) -> int:
    """Whole units that bring `own` units to the rounded sum of both; to one below zero if the exact sum is."""
    more = to_units(number, decimals, row, "down" if rounding != "error" else "error")
    if own == INFINITE or own + more < 0 or rounding == "error":
        return more
    with localcontext(WIDE):
        return int(_whole(own + number.scaleb(decimals), rounding)) - own


def _whole(units: Decimal, rounding: Rounding) -> Decimal:
    return units if rounding == "error" else units.to_integral_value(OF_DECIMAL[rounding], WIDE)


def read_amounts(
    literals: Sequence[str], decimals: int, rows: Sequence[object], rounding: Rounding = "error"
) -> list[int]:
    """Units of each literal; ``"inf"`` is `INFINITE`. Raises for negative amounts. O(k)."""
    amounts = []
    for literal, row in zip(literals, rows, strict=True):
        if literal == "inf":
            amounts.append(INFINITE)
            continue
        number = read_decimal(literal, row)
        if number < 0:  # before it may be rounded to zero
            raise InvalidNetwork(f"{literal} is negative", [row])
        amounts.append(to_units(number, decimals, row, rounding))
    return amounts


def scale_units(units: int, factor: Decimal, row: object, rounding: Rounding) -> int:
    """``units * factor`` in whole units, rounded if that is asked for. `INFINITE` stays so unless times zero."""
    if units == INFINITE:
        if factor == 0:
            raise InvalidNetwork("an unlimited capacity cannot be scaled by zero", [row])
        return INFINITE
    if units and factor and factor.adjusted() > 19:
        raise CapacityOverflow(f"scaled by {_told(factor)} the capacity is beyond {MAX_TOTAL} units", [row])
    with localcontext(WIDE):
        product = units * factor
        whole = int(_whole(product, rounding))
        if whole != product and rounding == "error":
            ask = "rounding=nearest (or down, up) rounds it"
            raise InvalidNetwork(f"scaled by {_told(factor)} the capacity is no whole number of units; {ask}", [row])
    if whole > MAX_TOTAL:
        raise CapacityOverflow(f"scaled by {_told(factor)} the capacity is beyond {MAX_TOTAL} units", [row])
    return whole


def write_units(units: int, decimals: int) -> str:
    """The shortest exact JSON text of an amount: ``6``, ``5.5``, ``"inf"`` (with its quotes)."""
    return '"inf"' if units == INFINITE else write_decimal(units, decimals)


def write_decimal(units: int, decimals: int) -> str:
    """The shortest exact JSON text of a number of units that is always finite, however large."""
    if decimals == 0:
        return str(units)
    whole, rest = divmod(abs(units), 10**decimals)
    sign = "-" if units < 0 else ""
    return f"{sign}{whole}.{rest:0{decimals}d}".rstrip("0").rstrip(".") if rest else f"{sign}{whole}"
