"""Columns of amounts of an update, rounded as it asks for, and what that has changed."""

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np

from gpu_engine.networks.rounded import EXACT, UNROUNDED, Rounded
from gpu_engine.networks.rounding import ROUNDINGS, Rounding
from gpu_engine.text.literals import RoundedUnits, read_literals, round_literals, scale_literals
from gpu_engine.types import UnitArray

One = Callable[[int], int]
"""Reads the literal of a row that is not plain, or raises; what it rounds it notes."""


class Tally:
    """Reads the amounts of one batch. `rounded` is what rounding has changed so far."""

    def __init__(self, rounding: Rounding) -> None:
        self.rounding = rounding
        self.rounded = UNROUNDED
        self._mode = ROUNDINGS.index(rounding)

    def note(self, exact: Decimal, kept: int, decimals: int) -> None:
        """A result that was worked out alone, ``exact`` in units of ``decimals``, and what is kept of it."""
        if self._mode and exact != kept:
            change = EXACT.subtract(exact, kept).copy_abs().scaleb(-decimals, EXACT)
            self.rounded += Rounded(1, change)

    def set(self, literals: Sequence[str], decimals: int, one: One, *, signed: bool = False) -> UnitArray:
        """int64[k]: the units of each literal; ``"inf"`` is `INFINITE` unless they are ``signed``."""
        if not self._mode:
            return read_literals(literals, decimals, one, signed=signed)
        return self.add(np.zeros(len(literals), np.int64), literals, decimals, one, None if signed else 0, signed)

    def add(
        self,
        own: UnitArray,
        literals: Sequence[str],
        decimals: int,
        one: One,
        least: int | None = None,
        signed: bool = True,
    ) -> UnitArray:
        """int64[k]: units that bring ``own`` to the rounded sums, to one below ``least`` if the exact sum is."""
        if not self._mode:
            return read_literals(literals, decimals, one, signed=True)
        read = round_literals(literals, decimals, self._mode, own, least, one, signed=signed)
        return self._counted(read, decimals)

    def scale(self, own: UnitArray, literals: Sequence[str], decimals: int, one: One) -> UnitArray:
        """int64[k]: the rounded products."""
        return self._counted(scale_literals(literals, own, self._mode, one), decimals)

    def _counted(self, read: RoundedUnits, decimals: int) -> UnitArray:
        changes = (Decimal(change).scaleb(-finer - decimals) for finer, change in enumerate(read.largest.tolist()))
        self.rounded += Rounded(read.rows, max(changes))
        return read.units
