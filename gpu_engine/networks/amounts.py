"""What set, add and scale make of capacities, those of edges as those of vertices."""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from gpu_engine.errors import CapacityOverflow, InvalidNetwork
from gpu_engine.networks.refused import Ids
from gpu_engine.networks.tally import Tally
from gpu_engine.networks.units import WIDE, read_amounts, read_decimal, scale_units, to_add
from gpu_engine.types import INFINITE, MAX_TOTAL, UnitArray


def changed(
    op: str, own: UnitArray, literals: Sequence[str], ids: Ids, decimals: int, tally: Tally, *, what: str = "capacity"
) -> UnitArray:
    """int64[k]: the capacities after set, add or scale with these literals, of which ``ids`` are the rows in the body;
    or ``what`` else they are amounts of.

    Raises `InvalidNetwork` or `CapacityOverflow` with the row. O(k).
    """
    if op == "set":
        return _set(literals, ids, decimals, tally)
    if op == "add":
        return _added(own, literals, ids, decimals, tally, what)
    return _scaled(own, literals, ids, decimals, tally)


def _set(literals: Sequence[str], ids: Ids, decimals: int, tally: Tally) -> UnitArray:
    def one(i: int) -> int:
        (units,) = read_amounts([literals[i]], decimals, [ids[i]], tally.rounding)
        if units != INFINITE:
            tally.note(Decimal(literals[i]).scaleb(decimals, WIDE), units, decimals)
        return units

    return tally.set(literals, decimals, one)


def _added(own: UnitArray, literals: Sequence[str], ids: Ids, decimals: int, tally: Tally, what: str) -> UnitArray:
    def one(i: int) -> int:
        number, before = read_decimal(literals[i], ids[i]), int(own[i])
        more = to_add(number, before, decimals, ids[i], tally.rounding)
        if before != INFINITE:
            tally.note(number.scaleb(decimals, WIDE), more, decimals)
        return more

    more = tally.add(own, literals, decimals, one, least=0)
    unlimited = own == INFINITE
    sums = np.where(unlimited, INFINITE, np.where(unlimited, 0, own) + more)  # both are within 2**60 of zero
    for i in np.flatnonzero(sums < 0)[:1].tolist():
        raise InvalidNetwork(f"the {what} would be negative", [ids[i]])
    for i in np.flatnonzero((sums > MAX_TOTAL) & ~unlimited)[:1].tolist():
        raise CapacityOverflow(f"the {what} would be beyond {MAX_TOTAL} units", [ids[i]])
    return sums


def _scaled(own: UnitArray, literals: Sequence[str], ids: Ids, decimals: int, tally: Tally) -> UnitArray:
    def one(i: int) -> int:
        units, factor = int(own[i]), read_decimal(literals[i], ids[i])
        if factor < 0:
            raise InvalidNetwork(f"the factor {literals[i]} is negative", [ids[i]])
        scaled = scale_units(units, factor, ids[i], tally.rounding)
        if units != INFINITE:
            tally.note(WIDE.multiply(units, factor), scaled, decimals)
        return scaled

    return tally.scale(own, literals, decimals, one)
