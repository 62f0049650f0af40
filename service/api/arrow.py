"""Arrow IPC streams for capacities: a page out, a batch in."""

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from gpu_engine.types import INFINITE
from service.errors import ServiceError
from service.models.capacities import PatchBody
from service.models.columns import check_ids, plain_decimals

ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"
END_COLUMNS: Final = {"edge": "edges", "tail": "tail", "head": "head"}
AMOUNT_COLUMNS: Final = ("set", "add", "scale")


def patch_from_arrow(raw: bytes | bytearray) -> PatchBody:
    """A batch of one operation: the columns `edge`, or `tail` and `head`, and one of `set`, `add`, `scale`.

    Amounts are integer, decimal128 or float64 columns in the graph's own unit; positive infinity is "inf".
    Raises invalid_body.
    """
    table = _read(raw)
    unknown = [name for name in table.column_names if name not in (*END_COLUMNS, *AMOUNT_COLUMNS)]
    if unknown or len(set(table.column_names)) < table.num_columns:
        raise ServiceError("invalid_body", f"unknown or repeated columns {table.column_names}", unknown)
    members: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        if column.null_count:
            rows = [row for row, value in enumerate(column.is_valid().to_pylist()) if not value]
            raise ServiceError("invalid_body", f"{name} is null", rows)
        if name in AMOUNT_COLUMNS:
            members[name] = _amounts(name, column)
        else:
            members[END_COLUMNS[name]] = check_ids(_ids(name, column))
    return PatchBody.from_columns(members)


def capacities_to_arrow(page: dict[str, Any], decimals: int) -> bytes:
    """The columns of a page, `capacity` as int64 units with `decimals` in the metadata, as a load reads them."""
    columns = {name: pa.array(page[name]) for name in ("tail", "head")}
    columns["capacity"] = pa.array([_units(amount, decimals) for amount in page["capacity"]], pa.int64())
    columns["edge_id"] = pa.array(page["edge_ids"])
    columns["closed"] = pa.array(page["closed"], pa.bool_())
    metadata = {"decimals": str(decimals), "version": str(page["version"])}
    table = pa.table(columns).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def _read(raw: bytes | bytearray) -> pa.Table:
    try:
        with pa.ipc.open_stream(pa.py_buffer(raw)) as stream:
            table = stream.read_all()
        table.validate(full=True)  # offsets of an untrusted stream may point anywhere
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ServiceError("invalid_body", f"not an Arrow IPC stream: {error}") from None
    return table


def _ids(name: str, column: pa.ChunkedArray) -> list[int] | list[str]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not (is_text or pa.types.is_integer(column.type)):
        raise ServiceError("invalid_body", f"{name} holds integers or text, not {column.type}")
    ids: list[int] | list[str] = column.to_pylist()
    return ids


def _amounts(name: str, column: pa.ChunkedArray) -> list[str]:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)):
        raise ServiceError("invalid_body", f"{name} holds integers, decimals or floats, not {kind}")
    literals: list[str] = list(map(str, column.to_pylist()))  # a float64 stands for its shortest decimal
    wrong = [row for row, text in enumerate(literals) if text in ("nan", "-inf")]
    if wrong:
        raise ServiceError("invalid_body", f"{name} is not a number", wrong)
    return plain_decimals(literals)


def _units(amount: int | str, decimals: int) -> int:
    return INFINITE if amount == "inf" else int(Decimal(str(amount)).scaleb(decimals))
