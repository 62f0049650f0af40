"""Amounts on the wire: exact both ways.

Sent: an int as it is, a Decimal digit by digit, a float by its shortest decimal (`repr`), `math.inf` as "inf".
Received: a whole number is an int, any other a Decimal, "inf" is `Decimal("Infinity")`, which equals `math.inf`.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Number
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace._errors import InvalidInput
from headrace._mistakes import counted, is_nan

Amount: TypeAlias = int | float | Decimal
"""What callers may send."""

Exact: TypeAlias = int | Decimal
"""What comes back; never rounded."""


class Series(Protocol):
    """A column of pandas, Polars or Arrow. It counts by position."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def to_numpy(self) -> Any: ...


Amounts: TypeAlias = Amount | Sequence[Amount] | NDArray[Any] | Series
"""One amount for all rows, or one for each."""

INFINITY = Decimal("Infinity")
NARROW = (np.dtype(np.float16), np.dtype(np.float32))
WRITTEN_OUT = 400
"""Digits on one side of the point that are written one by one: a float has fewer, a Decimal may have billions."""
SENDABLE = "an amount is an int, a float or a Decimal, and a name an int or text"
PLAIN = re.compile(r"[^a-zA-Z]*")
"""JSON of numbers of which none has an exponent, is infinite or is none."""


def literal(amount: float | Decimal) -> str:
    """The JSON literal of one amount that is no int."""
    if is_nan(amount) or amount == -math.inf:
        raise InvalidInput(f"{amount} is no amount")
    if amount == math.inf:
        return '"inf"'
    exact = amount if isinstance(amount, Decimal) else Decimal(float.__repr__(amount))
    return format(exact, "f") if abs(exact.adjusted()) < WRITTEN_OUT else str(exact)


def dumps(value: object) -> str:
    """Compact JSON, with decimals as exact number literals; `json.dumps` would need them as floats."""
    match value:
        case dict():
            return "{" + ",".join(f"{json.dumps(key)}:{_part(key, part)}" for key, part in value.items()) + "}"
        case np.ndarray() | np.floating() if value.dtype in NARROW:
            # 0.1 in float32 is meant as 0.1, not as 0.10000000149011612.
            return dumps(np.asarray(value).astype(str).astype(np.float64).tolist())
        case np.floating() if value.dtype == np.longdouble:  # tolist() leaves these as they are
            return literal(Decimal(str(value)))
        case np.ndarray() | np.generic() if value.dtype.kind in "mM":  # tolist() makes integers of nanoseconds
            known = "a duration is a number once it is divided by numpy.timedelta64(1, 's')"
            raise InvalidInput(f"cannot send {value.dtype}: {known if value.dtype.kind == 'm' else SENDABLE}")
        case np.ndarray() | np.generic() if value.dtype != np.clongdouble:
            return dumps(value.tolist())
        case list() | tuple() if set(map(type, value)) <= {int, str}:
            return json.dumps(value, separators=(",", ":"))
        case list() | tuple() if set(map(type, value)) <= {int, float} and PLAIN.fullmatch(text := json.dumps(value)):
            return text.replace(" ", "")
        case list() | tuple():
            return "[" + ",".join(_part(row, part) for row, part in enumerate(value)) + "]"
        case float() | Decimal():
            return literal(value)
    try:
        return json.dumps(value)
    except TypeError as error:
        known = "an amount is an int, a float or a Decimal" if isinstance(value, Number) else SENDABLE
        raise InvalidInput(f"cannot send {type(value).__name__} {value!r:.80}: {known}") from error


def _part(where: str | int, part: object) -> str:
    """A member of an object, or a row of a column. What cannot be sent is refused with where it stands."""
    try:
        return dumps(part)
    except InvalidInput as error:
        raise InvalidInput(f"{f'row {where}' if isinstance(where, int) else where}: {error}") from error


def loads(content: bytes | str) -> Any:
    """JSON with every number exact. Raises `ValueError` for what is none, is nested too deep, or has a number that no
    `Decimal` is: something other than the service has written it."""
    try:
        return json.loads(content, parse_float=Decimal)
    except (RecursionError, ArithmeticError) as error:
        raise ValueError(f"JSON that cannot be read: {error!r}") from error


def exact(value: Any) -> Exact:
    """One received amount. Raises `ValueError` for what is none."""
    if value == "inf":
        return INFINITY
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError(f"{value!r} is no amount")
    return value


def amount_column(
    amounts: Amounts, n_rows: int, name: str, of: tuple[str, ...] = ("edge",)
) -> Sequence[Amount] | NDArray[Any] | Series:
    """One amount per row. Raises `InvalidInput` when the column has another length than there are rows."""
    if isinstance(amounts, int | float | Decimal | Number | np.generic):  # one that is no amount is refused by `dumps`
        return [amounts] * n_rows
    if isinstance(amounts, str | Mapping) or not hasattr(amounts, "__len__"):
        raise InvalidInput(f"{name} is one amount or a column of them, not {amounts!r:.80}")
    if len(amounts) != n_rows:
        raise InvalidInput(f"{name} has {counted(len(amounts), 'amount')} for {counted(n_rows, *of)}")
    return amounts
