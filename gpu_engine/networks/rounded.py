"""How much rounding has changed of the amounts that a caller sent."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal
from typing import Final, Self

EXACT: Final = Context(prec=200, rounding=ROUND_UP, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
"""Digits enough for the change of any amount of `networks.units`; one of still more digits is rounded up."""

SMALLEST_PLAIN: Final = -40
"""A change of less than ten to this is written with an exponent."""


@dataclass(frozen=True, slots=True)
class Rounded:
    """What rounding has changed; two of them add up to what both have changed."""

    rows: int = 0
    """Amounts that were rounded."""
    largest: Decimal = Decimal(0)
    """The most that one of them has changed, up or down."""

    @classmethod
    def of(cls, amounts: Iterable[Decimal], kept: Iterable[Decimal]) -> Self:
        """Amounts one by one, and what is kept of them."""
        changes = [change.copy_abs() for change in map(EXACT.subtract, amounts, kept) if change]
        return cls(len(changes), max(changes, default=Decimal(0)))

    def __add__(self, other: "Rounded") -> "Rounded":
        return Rounded(self.rows + other.rows, max(self.largest, other.largest))

    def __bool__(self) -> bool:
        return self.rows > 0

    @property
    def largest_text(self) -> str:
        """The digits of `largest`, without zeros at the end."""
        shortest = self.largest.normalize(EXACT)
        return f"{shortest:f}" if shortest.adjusted() >= SMALLEST_PLAIN else str(shortest)


UNROUNDED: Final = Rounded()
