"""Columns of a body, each checked as one array: ids (all integers or all strings) and exact amounts."""

import json
import re
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Annotated, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from gpu_engine.text.infinity import as_inf, is_infinity
from gpu_engine.text.texts import Texts
from service.models.amounts import Amount
from service.models.faults import ColumnFault
from service.models.numbers import Number

IdColumn: TypeAlias = list[int] | list[str] | NDArray[np.int64] | Texts
AmountColumn: TypeAlias = list[str] | Texts
"""Decimal literals, or "inf"."""

MAX_EXPONENT: Final = 40
"""Amounts are below 10**40 and have at most 40 places: far outside int64 units, and cheap to write out."""

TINY: Final = Decimal("1e-21")
"""Less than half a unit of any graph, also after it was multiplied with the largest capacity."""

MAX_LITERAL_CHARS: Final = 128
SHOWN_CHARS: Final = 60
"""Characters of a value that an error quotes."""

MAX_LABEL_CHARS: Final = 1024
LITERAL: Final = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
"""A number as text, which PUT reads as well."""
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


def check_ids(value: object) -> IdColumn:
    """A column of ids: all integers ``-2**63 .. 2**63-1``, as a load may name them, or all strings. O(n), 5 ms for
    100k."""
    if isinstance(value, np.ndarray | Texts):  # read by `service.models.flat`, which has checked them
        return value
    if type(value) is not list:
        raise ColumnFault(f"should be an array, as in {_as_column(value)}")
    kinds = set(map(type, value))
    if kinds <= {int}:
        if value and not (min(value) >= INT64_MIN and max(value) <= INT64_MAX):
            wrong = [row for row, v in enumerate(value) if not INT64_MIN <= v <= INT64_MAX]
            found = f"row {wrong[0]}: {shown(value[wrong[0]])} is no id"
            raise ColumnFault(f"{found}: integers are -2**63 .. 2**63-1", wrong)
    elif kinds == {str}:
        if max(map(len, value)) > MAX_LABEL_CHARS:
            wrong = [row for row, v in enumerate(value) if len(v) > MAX_LABEL_CHARS]
            raise ColumnFault(f"a label has at most {MAX_LABEL_CHARS} characters", wrong, code="too_large")
    else:
        wrong = [row for row, v in enumerate(value) if type(v) not in (int, str)]
        if not wrong:
            wrong = [row for row, v in enumerate(value) if type(v) is not type(value[0])]
            one, other = ("an integer", "text") if type(value[0]) is int else ("text", "an integer")
            raise ColumnFault(f"row {wrong[0]} is {other} and row 0 is {one}: a column has one kind", wrong)
        raise ColumnFault(f"row {wrong[0]}: {shown(value[wrong[0]])} is neither an integer nor text", wrong)
    return value


def check_amounts(value: object) -> AmountColumn:
    """A column of JSON numbers, such numbers as text, or "inf", however it is spelled, as plain decimal literals, signs
    kept. O(n), 10 ms for 100k numbers.

    Raises `ColumnFault` naming the rows that are no numbers, with the code capacity_overflow for absurdly large ones.
    """
    if isinstance(value, Texts):  # read by `service.models.flat`, which has checked them
        return value
    if type(value) is not list:
        raise ColumnFault(f"should be an array with one amount for each row, as in {_as_column(value)}")
    kinds = set(map(type, value))
    if not kinds <= {int, Number}:
        wrong = [row for row, v in enumerate(value) if not (type(v) in (int, Number) or _is_amount(v))]
        if wrong:
            found = f"row {wrong[0]}: {shown(value[wrong[0]])} is no amount"
            known = 'a number, or the text of one with a decimal point, or "inf" where there may be no limit'
            raise ColumnFault(f"{found}: that is {known}", wrong)
        value = as_inf(value)
    return plain_decimals(list(map(str, value)))


def check_places(value: object) -> list[float]:
    """A column of finite JSON numbers as floats. Raises `ColumnFault` naming the rows that are none."""
    if type(value) is not list:
        raise ColumnFault("should be an array with one number for each vertex")
    if not set(map(type, value)) <= {int, Number}:
        wrong = [row for row, v in enumerate(value) if type(v) not in (int, Number)]
        raise ColumnFault(f"row {wrong[0]}: {shown(value[wrong[0]])} is no number", wrong)
    found = [float(str(item)) for item in value]  # of an int that is too large for a float, infinity
    wrong = [row for row, v in enumerate(found) if not isfinite(v)]
    if wrong:
        raise ColumnFault(f"row {wrong[0]}: {shown(value[wrong[0]])} is too large", wrong)
    return found


def check_amount(value: object) -> str:
    """One amount as a plain decimal literal; raises as `check_amounts`, and names no row."""
    try:
        return check_amounts([value])[0]
    except ColumnFault as fault:
        raise ColumnFault(fault.detail.removeprefix("row 0: "), code=fault.code) from None


def _is_amount(value: object) -> bool:
    return type(value) is str and (is_infinity(value) or LITERAL.fullmatch(value) is not None)


def plain_decimals(literals: list[str]) -> list[str]:
    """The literals without exponents, each of bounded length; raises `ColumnFault` naming the rows."""
    if max(map(len, literals), default=0) > MAX_LITERAL_CHARS:
        rows = [row for row, text in enumerate(literals) if len(text) > MAX_LITERAL_CHARS]
        raise ColumnFault(f"an amount has at most {MAX_LITERAL_CHARS} characters", rows)
    joined = "".join(literals)
    if "e" in joined or "E" in joined:
        return [_plain(text, row) if "e" in text or "E" in text else text for row, text in enumerate(literals)]
    return literals


def _plain(literal: str, row: int) -> str:
    try:
        number = Decimal(literal)
    except InvalidOperation:
        raise ColumnFault(f"{literal} has an exponent that no amount has", [row]) from None
    if number == 0:
        return "0"
    if number.adjusted() > MAX_EXPONENT:
        raise ColumnFault(f"row {row}: {literal} is over every limit", [row], code="capacity_overflow")
    if number.adjusted() < -MAX_EXPONENT:  # below every unit: refused or rounded alike, however small it is
        number = TINY.copy_sign(number)
    return format(number, "f")


def _joined(amounts: AmountColumn) -> str:
    return amounts.data.tobytes().decode() if isinstance(amounts, Texts) else "".join(amounts)


def refuse_negative(amounts: AmountColumn, what: str, field: str) -> None:
    """Raise `ColumnFault` for the rows below zero; "-0" is zero."""
    if "-" in _joined(amounts):
        rows = [row for row, text in enumerate(amounts) if text.startswith("-") and Decimal(text) < 0]
        if rows:
            raise ColumnFault(f"row {rows[0]}: {amounts[rows[0]]} is negative, and {what} is not", rows, field=field)


def refuse_infinite(amounts: AmountColumn, what: str, field: str) -> None:
    """Raise `ColumnFault` for the rows that are "inf"."""
    if "inf" in _joined(amounts):
        rows = [row for row, text in enumerate(amounts) if text == "inf"]
        raise ColumnFault(f'row {rows[0]}: {what} is a number, not "inf"', rows, field=field)


def refuse_no_limit_or_negative(amount: str, what: str, field: str = "") -> None:
    """Raise `ColumnFault` for one amount that is "inf" or below zero; it names no row."""
    if amount == "inf":
        raise ColumnFault(f'{what} is a number, not "inf"', field=field)
    if amount.startswith("-") and Decimal(amount) < 0:
        raise ColumnFault(f"{amount} is negative, and {what} is not", field=field)


def shown(value: object) -> str:
    """A value as JSON has it, abridged."""
    text = value if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


def _as_column(value: object) -> str:
    return f"[{shown(value)}]" if isinstance(value, str | int) else "[1, 2]"


def _in_quotes(value: object) -> object:
    """What is no number with a fraction, whose digits are kept as text. Raises `ColumnFault`."""
    if isinstance(value, Number):
        raise ColumnFault(f"{shown(value)} is no text: that stands in quotes")
    return value


def _seconds(value: object) -> object:
    """A number as a float; by its text, as an integer of 400 digits is too large for `float` and not for its limit."""
    return float(str(value)) if type(value) in (int, Number) else value


Ids: TypeAlias = Annotated[
    IdColumn,
    PlainValidator(check_ids),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": "integer", "minimum": INT64_MIN, "maximum": INT64_MAX}},
                {"type": "array", "items": {"type": "string", "maxLength": MAX_LABEL_CHARS}},
            ]
        }
    ),
]
Amounts: TypeAlias = Annotated[AmountColumn, PlainValidator(check_amounts, json_schema_input_type=list[Amount])]
Places: TypeAlias = Annotated[list[float], PlainValidator(check_places, json_schema_input_type=list[float])]
AmountText: TypeAlias = Annotated[str, PlainValidator(check_amount, json_schema_input_type=Amount)]
IN_QUOTES: Final = BeforeValidator(_in_quotes)
Text: TypeAlias = Annotated[str, IN_QUOTES]
Seconds: TypeAlias = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=86_400)]
