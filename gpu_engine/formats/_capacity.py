"""Exact fixed-point capacities from whatever a format holds: text, decimals, integers or floats.

Without a stated number of decimals the fewest that hold every capacity exactly are taken, so ``1.50`` and
``1.5`` both need one. Nothing is ever rounded: a capacity that needs more than `MAX_DECIMALS` is refused.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow, InvalidNetwork
from gpu_engine.formats._place import Place, shown
from gpu_engine.types import INFINITE, MAX_DECIMALS, MAX_TOTAL, BoolArray, UnitArray

INFINITE_TEXT = "inf"
EXACT_FLOAT = 2.0**53
"""Below this every integer has its own float64, and so every amount of units."""
WIDEST = 38
"""Digits of an Arrow decimal128."""
SLICE_ROWS = 1 << 16
EXACT = Context(prec=WIDEST)
"""Far more digits than an amount that was not refused has, its trailing zeros aside."""


@dataclass(frozen=True, slots=True)
class Amounts:
    units: UnitArray
    """int64[m] in ``10 ** -decimals``; `INFINITE` where the text said ``inf``."""
    decimals: int


def check_decimals(decimals: object) -> int | None:
    """The caller's own statement, if there is one."""
    if decimals is None:
        return None
    if type(decimals) is not int or not 0 <= decimals <= MAX_DECIMALS:
        raise InvalidNetwork(f"decimals must be a whole number 0 .. {MAX_DECIMALS}, not {shown(decimals)}")
    return decimals


def from_text(strings: pa.StringArray, place: Place, decimals: int | None = None) -> Amounts:
    """Numbers as written (``7``, ``1.25``, ``1e-3``) or ``inf``; no binary float in between."""
    infinite = pc.equal(strings, INFINITE_TEXT)
    finite = _plain(pc.if_else(infinite, "0", strings), place)
    try:
        values = pc.cast(finite, pa.decimal128(WIDEST, MAX_DECIMALS))
    except pa.ArrowInvalid:
        _refuse_text(finite, place)
        raise InvalidNetwork("a capacity has too many digits") from None
    amounts = from_decimals(values, place, decimals)
    amounts.units[infinite.to_numpy(zero_copy_only=False)] = INFINITE
    return amounts


def _plain(strings: pa.StringArray, place: Place) -> pa.StringArray:
    """The strings with numbers of unusual length or exponent written out, or refused.

    Arrow wraps around, unsaid, where a number has more than `WIDEST` digits or an exponent far from zero.
    """
    long = pc.greater(pc.binary_length(strings), WIDEST)
    unusual = pc.or_(long, pc.match_substring_regex(strings, "[eE][+-]?0*[1-9][0-9]"))
    rows = np.flatnonzero(unusual.to_numpy(zero_copy_only=False))
    if not len(rows):
        return strings
    _refuse_text(strings, place)
    written = [f"{Decimal(text).normalize(EXACT):f}" for text in strings.take(rows).to_pylist()]
    return pc.replace_with_mask(strings, unusual, pa.array(written, strings.type))


def from_decimals(values: pa.Decimal128Array, place: Place, decimals: int | None = None) -> Amounts:
    """An Arrow decimal128 column without nulls."""
    for tried in range(MAX_DECIMALS + 1) if decimals is None else (decimals,):
        try:
            scaled = pc.cast(values, pa.decimal128(WIDEST, tried))
        except pa.ArrowInvalid:
            continue
        return Amounts(_words(scaled, place), tried)
    allowed = MAX_DECIMALS if decimals is None else decimals
    long = np.concatenate([np.zeros(0, np.int8), *_in_slices(values, lambda value: _n_decimals(value) > allowed)])
    place.refuse(long > 0, f"has more than {allowed} decimals", what="capacity")
    raise CapacityOverflow("a capacity has too many digits")


def from_integers(column: NDArray[np.integer], place: Place) -> UnitArray:
    """A whole-number column as int64; the caller knows whether it counts units."""
    if column.dtype.kind == "u":
        place.refuse(column > INFINITE, "is too large", CapacityOverflow, what="capacity")
    return column.astype(np.int64)


def from_units(column: NDArray[np.integer], place: Place, unlimited: BoolArray | None = None) -> UnitArray:
    """A column of units; rows that are `unlimited` are so whatever amount stands beside them.

    No number means unlimited: the largest int64, which does inside the engine, is too large as any other.
    """
    units = from_integers(column, place)
    place.refuse(units > MAX_TOTAL, "is too large", CapacityOverflow, what="capacity")
    place.refuse(units < 0, "is negative", what="capacity")
    return with_unlimited(units, unlimited)


def with_unlimited(units: UnitArray, unlimited: BoolArray | None) -> UnitArray:
    """The column with `INFINITE` where the flag is set; raises where there is not one flag for each row."""
    if unlimited is None:
        return units
    if len(unlimited) != len(units):
        raise InvalidNetwork(f"unlimited has {len(unlimited)} rows, capacity has {len(units)}")
    return np.where(unlimited, INFINITE, units)


def split_unlimited(units: UnitArray) -> tuple[UnitArray, BoolArray | None]:
    """The parts of `with_unlimited`: 0 where there is no limit, and the flags, None if there are limits only."""
    unlimited = units == INFINITE
    return (np.where(unlimited, 0, units), unlimited) if unlimited.any() else (units, None)


def from_whole(column: NDArray[np.integer], place: Place, decimals: int | None = None) -> Amounts:
    """Whole amounts of the caller's unit, scaled to the stated decimals."""
    units = from_integers(column, place)
    scale = 10 ** (decimals or 0)
    place.refuse(units > MAX_TOTAL // scale, "is too large", CapacityOverflow, what="capacity")
    place.refuse(units < 0, "is negative", what="capacity")
    return Amounts(units * scale, decimals or 0)


def from_floats(column: NDArray[np.floating], place: Place, decimals: int | None = None) -> Amounts:
    """Floats that are the nearest to a decimal number of so many places; infinity is infinite.

    A float64 stands for the decimal it is nearest to: 0.1 is one tenth. One that is nearest to no decimal of
    at most nine places, such as ``0.1 + 0.2``, is refused.
    """
    values = column.astype(np.float64)
    place.refuse(np.isnan(values), "is not a number", what="capacity")
    place.refuse(values < 0, "is negative", what="capacity")
    infinite = np.isposinf(values)
    values = np.where(infinite, 0.0, values)
    large = values >= EXACT_FLOAT
    place.refuse(large, "is too large for an exact float", CapacityOverflow, what="capacity")
    allowed = MAX_DECIMALS if decimals is None else decimals
    needed, units = _shortest(values, allowed)
    place.refuse(needed < 0, f"has more than {allowed} decimals", what="capacity")
    common = int(needed.max(initial=0)) if decimals is None else decimals
    scale = 10 ** (common - needed)
    place.refuse(units > MAX_TOTAL // scale, "is too large", CapacityOverflow, what="capacity")
    return Amounts(np.where(infinite, INFINITE, units * scale), common)


def _shortest(values: NDArray[np.float64], allowed: int) -> tuple[NDArray[np.int64], UnitArray]:
    """For each float the fewest decimals, at most `allowed` (-1: more), it is the nearest float to.

    Dividing two exact floats rounds correctly, so the test below is exact.
    """
    needed = np.full(len(values), -1, dtype=np.int64)
    units = np.zeros(len(values), dtype=np.int64)
    rest = np.arange(len(values))
    for tried in range(allowed + 1):
        scaled = np.rint(values[rest] * 10.0**tried)
        exact = (scaled / 10.0**tried == values[rest]) & (scaled < EXACT_FLOAT)
        needed[rest[exact]] = tried
        units[rest[exact]] = scaled[exact].astype(np.int64)
        rest = rest[~exact]
    return needed, units


def to_text(units: UnitArray, decimals: int) -> pa.StringArray:
    """Texts that `from_text` reads back: ``units * 10 ** -decimals``, ``inf`` where infinite."""
    words = np.stack([units, units >> 63], axis=1)
    kind = pa.decimal128(WIDEST, decimals)
    values = pa.Array.from_buffers(kind, len(units), [None, pa.py_buffer(words.tobytes())])
    return pc.if_else(pa.array(units == INFINITE), INFINITE_TEXT, pc.cast(values, pa.string()))


def _words(scaled: pa.Decimal128Array, place: Place) -> UnitArray:
    """The low halves of 128-bit integers, after the high halves were found to be empty."""
    words = np.frombuffer(scaled.buffers()[1], dtype="<i8").reshape(-1, 2)
    words = words[scaled.offset : scaled.offset + len(scaled)]
    low, high = words[:, 0], words[:, 1]
    place.refuse(high < 0, "is negative", what="capacity")
    too_large = (high > 0) | (low < 0) | (low > MAX_TOTAL)
    place.refuse(too_large, "is too large", CapacityOverflow, what="capacity")
    return low.copy()


def _refuse_text(strings: pa.StringArray, place: Place) -> None:
    """Name the rows Arrow could not read; slow, but only on the way to an error."""
    faults = [
        ("is not a number or 'inf'", InvalidNetwork),
        ("is negative", InvalidNetwork),
        ("is too large", CapacityOverflow),
        (f"has more than {MAX_DECIMALS} decimals", InvalidNetwork),
    ]
    found = np.concatenate([np.zeros(0, np.int8), *_in_slices(strings, _fault_of)])
    for fault, (message, error) in enumerate(faults, 1):
        place.refuse(found == fault, message, error, what="capacity", value_of=lambda row: strings[row].as_py())


def _fault_of(text: str) -> int:
    """0: none; else its place in the list of `_refuse_text`, from 1."""
    number = _number(text)
    if number is None:
        return 1
    if number < 0:
        return 2
    if number > MAX_TOTAL:
        return 3
    return 4 if _n_decimals(number) > MAX_DECIMALS else 0


def _in_slices(column: pa.Array, act: Callable[[Any], int]) -> Iterator[NDArray[np.int8]]:
    """Apply `act` to each value: int8. A Python object of every value at once would take gigabytes."""
    for start in range(0, len(column), SLICE_ROWS):
        yield np.array(list(map(act, column.slice(start, SLICE_ROWS).to_pylist())), np.int8)


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    plain = text.isascii() and "_" not in text and text == text.strip()
    return number if plain and number.is_finite() else None


def _n_decimals(number: Decimal) -> int:
    """Decimals without trailing zeros, by the digits alone: arithmetic would round to the context."""
    _, digits, exponent = number.as_tuple()
    if number.is_zero() or not isinstance(exponent, int):
        return 0
    text = "".join(map(str, digits))
    return max(0, -exponent - (len(text) - len(text.rstrip("0"))))
