"""Exact fixed-point capacities from whatever a format holds: text, decimals, integers or floats.

Without a stated number of decimals the fewest that hold every capacity exactly are taken, so ``1.50`` and
``1.5`` both need one. A capacity that needs more than are stated, or than `MAX_DECIMALS`, is refused, unless the
caller says how it is to be rounded.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow, InvalidNetwork
from gpu_engine.formats._beyond import BEYOND, as_stated, refuse_beyond, since
from gpu_engine.formats._floats import floats_as_units
from gpu_engine.formats._place import Place
from gpu_engine.networks.rounded import UNROUNDED, Rounded
from gpu_engine.networks.rounding import AS_WRITTEN, OF_DECIMAL, Precision, divided
from gpu_engine.text.counted import counted
from gpu_engine.types import INFINITE, MAX_DECIMALS, MAX_TOTAL, BoolArray, UnitArray

INFINITE_TEXT = "inf"
WIDEST = 38
"""The number of digits of an Arrow decimal128."""
FINEST = 19
"""The number of decimals with which Arrow reads text that is to be rounded. As many digits may stand before the
point."""
SHORT = r"^\+?[0-9]{1,18}(\.[0-9]{0,19})?$"
"""Numbers that Arrow reads exactly with `FINEST` decimals."""
SLICE_ROWS = 1 << 16
"""How many rows become Python objects at a time."""
STEP_DIGITS = 9
"""The most digits that Arrow is asked to divide by at a time: a power of ten with this many zeros fits 32 bits."""
LOW = (1 << 64) - 1
"""The mask of the lower 64 bits."""
EXACT = Context(prec=WIDEST)
"""A context with far more digits than any amount that is accepted has, apart from trailing zeros."""

Number = TypeVar("Number", np.integer, np.floating)

Halves = tuple[NDArray[np.uint64] | np.uint64, NDArray[np.uint64] | np.uint64]
"""128-bit integers as their lower and their upper 64 bits."""

POINT: Final = "; the decimals stand behind a point, and nothing between thousands"
"""The end of a refusal of a decimal comma."""
UNQUOTED: Final = '; without quotes that is no JSON number: an unlimited amount is the string "inf"'
"""The end of a refusal of a bare word that stands for infinity elsewhere."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """A column of amounts as they were read."""

    units: UnitArray
    """int64[m] in ``10 ** -decimals``; `INFINITE` where the text said ``inf``."""
    decimals: int
    rounded: Rounded = UNROUNDED
    """What rounding has changed, rows that are `INFINITE` aside."""


def from_text(strings: pa.StringArray, place: Place, precision: Precision = AS_WRITTEN) -> Amounts:
    """Numbers as written (``7``, ``1.25``, ``1e-3``) or ``inf``; no binary float in between."""
    infinite = pc.equal(strings, INFINITE_TEXT)
    finite, rounded = _plain(pc.if_else(infinite, "0", strings), place, precision)
    try:
        values = pc.cast(finite, pa.decimal128(WIDEST, FINEST if precision.rounds else MAX_DECIMALS))
    except pa.ArrowInvalid:
        _refuse_text(finite, place, precision)
        raise InvalidNetwork(f"a {place.amounts} has too many digits") from None
    amounts = from_decimals(values, place, precision)
    amounts.units[infinite.to_numpy(zero_copy_only=False)] = INFINITE
    return Amounts(amounts.units, amounts.decimals, amounts.rounded + rounded)


def _plain(strings: pa.StringArray, place: Place, precision: Precision) -> tuple[pa.StringArray, Rounded]:
    """The strings with numbers of unusual length or exponent written out, rounded if that is asked for, or refused.

    Arrow wraps around, unsaid, where a number has more than `WIDEST` digits or an exponent far from zero.
    """
    if precision.rounds:
        unusual = pc.invert(pc.match_substring_regex(strings, SHORT))
    else:
        long = pc.greater(pc.binary_length(strings), WIDEST)
        unusual = pc.or_(long, pc.match_substring_regex(strings, "[eE][+-]?0*[1-9][0-9]"))
    rows = np.flatnonzero(unusual.to_numpy(zero_copy_only=False))
    if not len(rows):
        return strings, UNROUNDED
    _refuse_text(strings, place, precision)
    written: list[str] = []
    rounded = UNROUNDED  # Arrow is given what is kept
    for start in range(0, len(rows), SLICE_ROWS):
        numbers = list(map(Decimal, strings.take(rows[start : start + SLICE_ROWS]).to_pylist()))
        kept = [_kept(number, precision) for number in numbers]
        written += [f"{number:f}" for number in kept]
        if precision.rounds:
            rounded += Rounded.of(numbers, kept)
    return pc.replace_with_mask(strings, unusual, pa.array(written, strings.type)), rounded


def _kept(number: Decimal, precision: Precision) -> Decimal:
    if not precision.rounds:
        return number.normalize(EXACT)
    return number.quantize(Decimal(1).scaleb(-precision.allowed), OF_DECIMAL[precision.mode], EXACT)


def from_decimals(
    values: pa.Decimal128Array,
    place: Place,
    precision: Precision,
    unlimited: BoolArray | None = None,
) -> Amounts:
    """An Arrow decimal128 column without nulls; rows that are `unlimited` are so whatever stands beside them."""
    decimals = precision.decimals
    if unlimited is not None:
        _check_flags(unlimited, len(values))
        values = pc.if_else(pa.array(unlimited), pa.scalar(Decimal(0), values.type), values)
    if precision.rounds and values.type.scale > precision.allowed:
        return _rounded(values, place, precision, unlimited)
    for tried in range(MAX_DECIMALS + 1) if decimals is None else (decimals,):
        try:
            scaled = pc.cast(values, pa.decimal128(WIDEST, tried))
        except pa.ArrowInvalid:
            continue
        words = _words(scaled, place, partial(_why, values, tried, place, precision))
        return Amounts(with_unlimited(words, unlimited), tried)
    allowed = precision.allowed
    long = np.concatenate([np.zeros(0, np.int8), *_in_slices(values, lambda value: _n_decimals(value) > allowed)])
    place.refuse(long > 0, precision.too_fine, what=place.amounts)
    raise CapacityOverflow(f"a {place.amounts} {BEYOND}")


def _rounded(values: pa.Decimal128Array, place: Place, precision: Precision, unlimited: BoolArray | None) -> Amounts:
    """The same with no more decimals than stated, which are fewer. What is negative is refused before it may become
    zero.

    Arrow rounds wrongly where it divides by more than 64 bits hold, as 4294967295.875 of 19 decimals. So it is asked
    for the part below in steps of fewer digits, and what is left is compared here, in halves of 128-bit integers.
    """
    negative = pc.less(values, pa.scalar(Decimal(0), values.type))
    place.refuse(negative.to_numpy(zero_copy_only=False), "is negative", what=place.amounts)
    below = _below(values, precision.allowed)
    units, step = _words(below, place, lambda: as_stated(precision)), 10 ** (values.type.scale - precision.allowed)
    rest = _less(_halves(values), _halves(pc.cast(below, pa.decimal128(WIDEST, values.type.scale))))
    left = _less((np.uint64(step & LOW), np.uint64(step >> 64)), rest)
    inexact = (rest[0] | rest[1]) != 0
    if precision.mode == "nearest":
        tie = (rest[0] == left[0]) & (rest[1] == left[1])
        up = (rest[1] > left[1]) | ((rest[1] == left[1]) & (rest[0] > left[0])) | (tie & (units % 2 == 1))
    else:
        up = inexact & (precision.mode == "up")
    units += up
    refuse_beyond(units > MAX_TOTAL, place, lambda: as_stated(precision))
    low, high = (np.where(up, left[half], rest[half])[inexact] for half in (0, 1))
    rounded = UNROUNDED
    if len(low):
        largest = (int(high.max()) << 64) | int(low[high == high.max()].max())
        rounded = Rounded(len(low), Decimal(largest).scaleb(-values.type.scale, EXACT))
    return Amounts(with_unlimited(units, unlimited), precision.allowed, rounded)


def _below(values: pa.Decimal128Array, places: int) -> pa.Decimal128Array:
    """The largest numbers of so many decimals that are not above these, none of which is negative."""
    values = pc.cast(values, pa.decimal128(WIDEST, values.type.scale))  # all decimals of a narrow type may be dropped
    while values.type.scale > places:
        kept = max(places, values.type.scale - STEP_DIGITS)
        values = pc.cast(pc.round(values, kept, "down"), pa.decimal128(WIDEST, kept))
    return values


def _less(these: Halves, others: Halves) -> Halves:
    """128-bit integers less others that are no larger, in halves."""
    (low, high), (other_low, other_high) = these, others
    return low - other_low, high - other_high - (low < other_low)


def from_integers(column: NDArray[np.integer], place: Place) -> UnitArray:
    """A whole-number column as int64; the caller knows whether it counts units."""
    if column.dtype.kind == "u":
        refuse_beyond(column > INFINITE, place)
    return column.astype(np.int64)


def from_units(
    column: NDArray[np.integer],
    place: Place,
    own_decimals: int | None,
    precision: Precision,
    unlimited: BoolArray | None = None,
) -> Amounts:
    """A column of units of the body's own decimals, 0 without any; rows that are `unlimited` are so whatever amount
    stands beside them.

    No number means unlimited: the largest int64, which does inside the engine, is too large as any other.
    """
    units, rounded = from_integers(_limited(column, unlimited), place), UNROUNDED
    refuse_beyond(units > MAX_TOTAL, place)
    place.refuse(units < 0, "is negative", what=place.amounts)
    own = own_decimals or 0
    decimals = own if precision.decimals is None else precision.decimals
    if decimals > own:
        scale = 10 ** (decimals - own)
        refuse_beyond(units > MAX_TOTAL // scale, place, lambda: as_stated(precision))
        units *= scale
    elif decimals < own:
        given, step = units, 10 ** (own - decimals)
        units, finer = divided(units, step, precision.mode)
        place.refuse(finer & (not precision.rounds), precision.too_fine, what=place.amounts)
        change = np.abs(given - units * step)
        rounded = Rounded(int(np.count_nonzero(change)), Decimal(int(change.max(initial=0))).scaleb(-own))
    return Amounts(with_unlimited(units, unlimited), decimals, rounded)


def with_unlimited(units: UnitArray, unlimited: BoolArray | None) -> UnitArray:
    """The column with `INFINITE` where the flag is set; raises where there is not one flag for each row."""
    if unlimited is None:
        return units
    _check_flags(unlimited, len(units))
    return np.where(unlimited, INFINITE, units)


def _limited(column: NDArray[Number], unlimited: BoolArray | None) -> NDArray[Number]:
    """The column with 0 where the flag is set: what stands there counts for nothing, and is neither read nor refused.
    Raises where there is not one flag for each row."""
    if unlimited is None:
        return column
    _check_flags(unlimited, len(column))
    return np.where(unlimited, column.dtype.type(0), column)


def _check_flags(unlimited: BoolArray, n_rows: int) -> None:
    if len(unlimited) != n_rows:
        raise InvalidNetwork(f"unlimited has {counted(len(unlimited), 'row')}, capacity has {n_rows}")


def split_unlimited(units: UnitArray) -> tuple[UnitArray, BoolArray | None]:
    """The parts of `with_unlimited`: 0 where there is no limit, and the flags, None if there are limits only."""
    unlimited = units == INFINITE
    return (np.where(unlimited, 0, units), unlimited) if unlimited.any() else (units, None)


def from_whole(column: NDArray[np.integer], place: Place, precision: Precision) -> Amounts:
    """Whole amounts of the caller's unit, scaled to the stated decimals."""
    return from_units(column, place, 0, precision)


def from_floats(
    column: NDArray[np.floating],
    place: Place,
    precision: Precision,
    unlimited: BoolArray | None = None,
) -> Amounts:
    """Floats as the shortest decimals that are nearest to them; positive infinity is infinite.

    0.1 is one tenth. ``0.1 + 0.2`` is 0.30000000000000004, which is refused unless it may be rounded.
    """
    units, decimals, rounded = floats_as_units(_limited(column, unlimited), place, precision)
    return Amounts(with_unlimited(units, unlimited), decimals, rounded)


def to_text(units: UnitArray, decimals: int) -> pa.StringArray:
    """Texts that `from_text` reads back: ``units * 10 ** -decimals``, ``inf`` where infinite."""
    words = np.stack([units, units >> 63], axis=1)
    kind = pa.decimal128(WIDEST, decimals)
    values = pa.Array.from_buffers(kind, len(units), [None, pa.py_buffer(words.tobytes())])
    return pc.if_else(pa.array(units == INFINITE), INFINITE_TEXT, pc.cast(values, pa.string()))


def _halves(values: pa.Decimal128Array) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The lower and the upper 64 bits of each."""
    words = np.frombuffer(values.buffers()[1], dtype="<u8").reshape(-1, 2)
    words = words[values.offset : values.offset + len(values)]
    return words[:, 0], words[:, 1]


def _why(values: pa.Decimal128Array, decimals: int, place: Place, precision: Precision) -> str:
    """What has made the unit 10 ** -``decimals``; slow, but only on the way to an error."""
    if precision.decimals is not None:
        return as_stated(precision)
    finest = np.concatenate([np.zeros(0, np.int8), *_in_slices(values, lambda value: _n_decimals(value) >= decimals)])
    return since(decimals, place, int(finest.argmax()))


def _words(scaled: pa.Decimal128Array, place: Place, why: Callable[[], str]) -> UnitArray:
    """The low halves of 128-bit integers, after the high halves were found to be empty."""
    low, high = (half.view(np.int64) for half in _halves(scaled))
    place.refuse(high < 0, "is negative", what=place.amounts)
    too_large = (high > 0) | (low < 0) | (low > MAX_TOTAL)
    refuse_beyond(too_large, place, why)
    return low.copy()


def _refuse_text(strings: pa.StringArray, place: Place, precision: Precision) -> None:
    """Name the rows Arrow could not read; slow, but only on the way to an error."""
    faults = [
        ("is not a number or 'inf'", InvalidNetwork),
        ("is negative", InvalidNetwork),
        (BEYOND, CapacityOverflow),
        (precision.too_fine, InvalidNetwork),
    ]
    if precision.rounds:
        del faults[-1]
    found = np.concatenate([np.zeros(0, np.int8), *_in_slices(strings, _fault_of)])
    for fault, (message, error) in enumerate(faults, 1):
        bad = found == fault
        first = strings[int(bad.argmax())].as_py() if fault == 1 and bad.any() else ""
        is_bare = first == "Infinity" and "capacity" in place.amounts  # in quotes it was read as `inf` before
        hint = UNQUOTED if is_bare else POINT if "," in first else ""
        place.refuse(bad, message, error, what=place.amounts, value_of=lambda row: strings[row].as_py(), hint=hint)


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
