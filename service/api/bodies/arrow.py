"""Arrow IPC streams of a batch of changes."""

from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_engine.errors import pointer
from gpu_engine.formats import Limits
from gpu_engine.formats.arrow import (
    WORD_BYTES,
    StreamSize,
    column,
    is_null,
    is_text,
    is_text_dictionary,
    measure_tables,
    read_tables,
    renamed,
    stated_decimals,
)
from gpu_engine.text.near import did_you_mean
from service.api.bodies.encodings import MAX_EXPANSION
from service.errors import ServiceError
from service.models.capacities import Batch
from service.models.columns import check_ids, plain_decimals
from service.models.faults import ColumnFault

B = TypeVar("B", bound=Batch)

OLD_NAMES: Final = {"edge": "edges"}
"""Former names of the column of ids."""
AMOUNT_COLUMNS: Final = ("set", "add", "scale")
UNLIMITED: Final = "unlimited"

MAX_WORDS_BYTES: Final = 64 << 20
"""The limit of all words of a dictionary after they were written out for the worker, each as often as it is used."""

FLOAT64_BITS: Final = 64
INT_DIGITS: Final = 20
"""The number of digits of the largest integer of 64 bits."""

ROW_BYTES: Final = 500
TEXT_COPIES: Final = 6
"""Bytes of memory for each row and for each byte of text while a batch is read; `gpu_engine.formats.reading` has the
same for graphs."""


@dataclass(frozen=True, slots=True)
class PatchLimits:
    """The limits of one batch."""

    max_rows: int
    max_bytes: int
    """The limit of all columns together, decompressed."""

    @property
    def of_stream(self) -> Limits:
        return Limits(max_bytes_decompressed=self.max_bytes, max_expansion=MAX_EXPANSION)


def patch_bytes(limits: PatchLimits, body: memoryview) -> int:
    """Memory that `patch_from_arrow` and writing its batch may take. Raises as it does for sizes and types."""
    (size,) = measure_tables(body, limits.of_stream, [limits.max_rows])
    words = sum(min(size.rows * WORD_BYTES, MAX_WORDS_BYTES) for _ in _dictionaries(size))
    return size.decompressed_bytes + ROW_BYTES * size.rows + TEXT_COPIES * (size.text_bytes + words)


def patch_from_arrow(model: type[B], limits: PatchLimits, body: memoryview) -> B:
    """A batch of one operation: the columns `edges`, or `tail` and `head`, or `vertices`, and one of `set`, `add`,
    `scale`. ``model`` says what they are of.

    Amounts are decimal128 or float columns in the graph's own unit, or integers: units of the `decimals` in the
    schema's metadata, 0 without, as in a load; of costs units of its `cost_decimals`, if it has that. A factor is a
    number as it stands. Positive infinity is "inf", and so is a row of `set` whose boolean `unlimited` is true,
    whatever amount stands there.
    Raises invalid_body, too_large.
    """
    (table,) = read_tables(body, limits.of_stream, [limits.max_rows])
    table = renamed(table, OLD_NAMES)
    _check_columns(table.column_names, [name for name, kind in model.COLUMNS.items() if kind == "ids"])
    decimals = stated_decimals(table.schema, model.PLACES) or 0
    members: dict[str, Any] = {}
    for name in table.column_names:
        values = column(table, name)
        nulls = np.flatnonzero(is_null(values))
        if len(nulls):
            raise ServiceError("invalid_body", f"row {nulls[0]}: {name} is null", nulls.tolist(), field=pointer(name))
        try:
            if name in AMOUNT_COLUMNS:
                members[name] = _amounts(values, 0 if name == "scale" else decimals)
            elif name != UNLIMITED:
                members[name] = check_ids(_ids(name, values))
        except ColumnFault as fault:
            raise fault.refusal(name) from None
    if UNLIMITED in table.column_names:
        if "set" not in members:
            raise ServiceError("invalid_body", "the column unlimited may stand only beside the column set")
        flags = _flags(column(table, UNLIMITED))
        members["set"] = ["inf" if flag else text for text, flag in zip(members["set"], flags, strict=True)]
    return model.from_columns(members)


def _check_columns(names: list[str], ends: list[str]) -> None:
    known = [*ends, *AMOUNT_COLUMNS, UNLIMITED]
    for name in names:
        if name not in known:
            hint = did_you_mean(
                name, [other for other in known if other not in names], f"; there are {', '.join(known)}"
            )
            raise ServiceError("invalid_body", f"there is no column {name[:100]!r}{hint}", field=pointer(name))
        if names.count(name) > 1:
            raise ServiceError("invalid_body", f"the column {name!r} is there twice", field=pointer(name))


def _dictionaries(size: StreamSize) -> list[str]:
    return [field.name for field in size.schema if is_text_dictionary(field.type)]


def _ids(name: str, values: pa.Array) -> list[int] | list[str]:
    if is_text_dictionary(values.type):
        return _words(name, values)
    if not (is_text(values.type) or pa.types.is_integer(values.type)):
        raise ColumnFault(f"holds integers or text, not {values.type}")
    ids: list[int] | list[str] = values.to_pylist()
    return ids


def _words(name: str, values: pa.DictionaryArray) -> list[str]:
    """Each row's word, which is one object however often it is used."""
    lengths = pc.cast(pc.binary_length(values.dictionary), pa.int64()).take(values.indices)
    if (pc.sum(lengths).as_py() or 0) > MAX_WORDS_BYTES:
        raise ServiceError(
            "too_large",
            f"the dictionary of the column {name} takes more than {MAX_WORDS_BYTES} bytes once each row has its text",
        )
    words = values.dictionary.to_pylist()
    return [words[index] for index in values.indices.to_pylist()]


def _amounts(column: pa.Array, decimals: int) -> list[str]:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)):
        raise ColumnFault(f"holds integers, decimals or floats, not {kind}")
    if pa.types.is_integer(kind) and decimals:
        column = _of_units(column, decimals)
    elif pa.types.is_floating(kind) and kind.bit_width < FLOAT64_BITS:
        column = pc.cast(pa.array(column.to_numpy().astype(str)), pa.float64())
    literals: list[str] = list(map(str, column.to_pylist()))  # a float stands for its shortest decimal
    wrong = [row for row, text in enumerate(literals) if text in ("nan", "-inf")]
    if wrong:
        raise ColumnFault("is not a number", wrong)
    return plain_decimals(literals)


def _of_units(column: pa.Array, decimals: int) -> pa.Decimal128Array:
    """The amounts that so many units are. The largest integer is one as any other."""
    whole = pc.cast(column, pa.decimal128(INT_DIGITS, 0))
    return pa.Array.from_buffers(pa.decimal128(INT_DIGITS, decimals), len(whole), whole.buffers(), offset=whole.offset)


def _flags(values: pa.Array) -> list[bool]:
    if not pa.types.is_boolean(values.type):
        raise ServiceError("invalid_body", f"unlimited is boolean, not {values.type}")
    flags: list[bool] = values.to_pylist()
    return flags
