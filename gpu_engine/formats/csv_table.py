"""CSV with a header: ``tail,head,capacity``, if wanted ``edge_ids``, ``undirected``, ``cost``, ``lower``, in any order.

Vertices are names. Text is numbered in the order it first appears, integers in ascending order; integers that
are exactly ``0 .. n-1`` are the vertex indices themselves. They are integers if every tail and head is written as one
is, without zeros in front, and fits 64 bits; else all of them are text. Capacities are exact decimals or ``inf``,
in any spelling, costs are exact decimals.
"""

import io
import re
from contextlib import suppress
from csv import Error, reader
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats import _capacity, _costs, _lower
from gpu_engine.formats._assemble import assemble, check_edge_count
from gpu_engine.formats._infinity import as_inf
from gpu_engine.formats._looks import seems_to_be
from gpu_engine.formats._names import Names, as_arrow, from_arrow, number_by_appearance
from gpu_engine.formats._place import Place, refusing, shown
from gpu_engine.formats._vertices import refuse_limited
from gpu_engine.formats.limits import DEFAULT_LIMITS, Limits, Source, load
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import AS_WRITTEN, Precision
from gpu_engine.text.counted import counted
from gpu_engine.text.json_fault import UTF_16
from gpu_engine.text.near import did_you_mean
from gpu_engine.types import BoolArray

REQUIRED = ("tail", "head", "capacity")
OPTIONAL = ("edge_ids", "undirected", "cost", "lower")
FORMER: Final = {"id": "edge_ids"}
"""What a column was called, and what it is called in every format."""
LINES = Place("line", first=2)
"""The header is line 1."""
LINE_FEED: Final = ord("\n")

EXPECTED: Final = "the header is tail,head,capacity[,edge_ids][,undirected][,cost][,lower]"
OTHER_DIVIDERS: Final = (";", "\t", "|")

MAX_HEADER_BYTES = 4096
BLOCK_BYTES = 1 << 16

ESCAPED: Final = re.compile(rb'\\"(?![",\r\n]|\Z)')
"""A double quote within a field behind a backslash, as MySQL writes it: for others the field ends there."""

INNER: Final = re.compile(rb'(?<![,\n"])"(?![",\r\n]|\Z)')
"""A double quote that neither begins nor ends a field, and is not one of two: legal in a field without them alone."""

WHOLE_NUMBER = r"^(0|-?[1-9][0-9]{0,18})$"
"""A name that is an integer, if it fits 64 bits. One with zeros in front, as 007, is text: 7 may be another vertex."""


def read_csv(source: Source, limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN) -> EdgeList:
    """Read a table of edges; `InvalidNetwork` names the line. About half a second for a million edges."""
    precision = precision.of_body(None)
    data = _trimmed(memoryview(load(source)))
    table = _table(data)
    check_edge_count(table.num_rows, limits)
    lines = _lines(data, table)
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    for name, column in columns.items():
        lines.refuse(pc.equal(column, "").to_numpy(zero_copy_only=False), "is empty", what=name)
    lower = _lower.from_text(columns["lower"], lines, precision) if "lower" in columns else None
    amounts, _, lower_units = _lower.in_same_units(
        _capacity.from_text(as_inf(columns["capacity"]), lines, precision), None, lower
    )
    tail, head, labels = _ends(columns["tail"], columns["head"])
    return assemble(
        tail,
        head,
        amounts.units,
        n_vertices=None if labels is None else len(labels),
        undirected=_undirected(columns["undirected"], lines) if "undirected" in columns else False,
        decimals=amounts.decimals,
        rounded=amounts.rounded,
        edge_ids=_ids(columns["edge_ids"]) if "edge_ids" in columns else None,
        vertex_labels=labels,
        costs=_costs.from_text(columns["cost"], lines, precision.of_costs(None)) if "cost" in columns else None,
        lower=lower_units,
        place=lines,
        limits=limits,
    )


def write_csv(edges: EdgeList) -> bytes:
    """The table of edges. Terminals and vertices without an edge have no place in it. Raises `HasVertexCapacities`."""
    refuse_limited(edges, "CSV")
    columns = {
        "tail": _named(edges, edges.tail),
        "head": _named(edges, edges.head),
        "capacity": _capacity.to_text(edges.effective, edges.decimals),
    }
    if edges.edge_ids is not None:
        columns["edge_ids"] = as_arrow(edges.edge_ids)
    if edges.undirected is not False:
        columns["undirected"] = pa.array(np.broadcast_to(edges.undirected, edges.n_edges).copy())
    if edges.cost is not None:
        columns["cost"] = _capacity.to_text(edges.cost, edges.cost_decimals)
    if edges.lower is not None:
        columns["lower"] = _capacity.to_text(edges.lower, edges.decimals)
    text = io.BytesIO()
    csv.write_csv(pa.table(columns), text, csv.WriteOptions(quoting_style="needed", quoting_header="none"))
    return text.getvalue()


def _named(edges: EdgeList, end: NDArray[np.int32]) -> pa.Array:
    if edges.vertex_labels is None:
        return pa.array(end)
    return as_arrow(edges.vertex_labels).take(pa.array(end))


def _trimmed(data: memoryview) -> memoryview:
    """The text without the blanks at its end, not copied."""
    while data and not (last := bytes(data[-BLOCK_BYTES:]).rstrip()):
        data = data[:-BLOCK_BYTES]
    return data[: len(data) - min(len(data), BLOCK_BYTES) + len(last)] if data else data


def _check_utf8(data: memoryview) -> None:
    whole = [None, pa.array([0, len(data)], pa.int64()).buffers()[1], pa.py_buffer(data)]
    try:
        pa.Array.from_buffers(pa.large_string(), 1, whole).validate(full=True)
    except pa.ArrowInvalid:
        try:
            bytes(data).decode()
        except UnicodeDecodeError as failure:
            line = 1 + bytes(data[: failure.start]).count(b"\n")
            end = _other_than_utf_8(failure.object)
            raise InvalidNetwork(f"line {line}: not UTF-8{end}", lines=[line]) from failure
        raise


def _other_than_utf_8(data: bytes) -> str:
    """The end of the sentence that says so: what the bytes seem to be, and what to do."""
    if data.startswith(UTF_16):
        return ", but like UTF-16: save it as UTF-8"
    return seems_to_be(data, "text/csv") or ": a spreadsheet writes it where it saves as 'CSV UTF-8'"


def _header(data: memoryview) -> list[str]:
    """The names of the columns."""
    line, newline, _ = bytes(data[:MAX_HEADER_BYTES]).partition(b"\n")
    if not newline and len(data) > MAX_HEADER_BYTES:
        raise InvalidNetwork(f"line 1: a header has at most {MAX_HEADER_BYTES} bytes", lines=[1])
    if not line.strip():
        raise InvalidNetwork(f"line 1: {EXPECTED}; it is empty", lines=[1])
    written = [name.strip('"') for name in line.decode("utf-8-sig").rstrip("\r").split(",")]
    names = [FORMER.get(name, name) for name in written]
    unknown = [name for name in names if name not in REQUIRED + OPTIONAL]
    if unknown or not set(REQUIRED) <= set(names) or len(set(names)) < len(names):
        other = seems_to_be(data, "text/csv").removeprefix(": ")
        raise InvalidNetwork(f"line 1: {EXPECTED}; {other or _fault_of_header(names, unknown)}", lines=[1])
    return names


def _fault_of_header(names: list[str], unknown: list[str]) -> str:
    """What is wrong with the names of the columns."""
    if names[0].lower().startswith("sep="):
        return "a first line 'sep=' is for Excel alone: leave it out, and divide columns by commas"
    if len(names) == 1 and (divider := next((mark for mark in OTHER_DIVIDERS if mark in names[0]), None)):
        return f"columns are divided by commas, not by {divider!r}"
    if all(name.replace(".", "", 1).isdigit() for name in names):
        return f"this is none: {shown(','.join(names))}"
    if "" in unknown:
        usual = "the index that pandas writes without index=False" if not names[0] else "one behind a comma at the end"
        return f"column {names.index('') + 1} has no name, as {usual}"
    if any("\r" in name for name in names):
        return "lines end in carriage returns alone: let them end in line feeds"
    if unknown and (bare := unknown[0].strip().strip('"')) in REQUIRED + OPTIONAL:
        return f"{shown(unknown[0])} is not {shown(bare)}: a blank beside a comma belongs to the field"
    if "closed" in unknown:
        return (
            "there is no column 'closed': JSON, npz and Arrow have one, and a capacity of 0 lets nothing through either"
        )
    if unknown:
        others = [name for name in REQUIRED + OPTIONAL if name not in names]
        return f"there is no column {shown(unknown[0])}{did_you_mean(unknown[0], others)}"
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        return f"the column {missing[0]} is missing"
    twice = next(name for place, name in enumerate(names) if name in names[:place])
    former = "".join(f", which {other} is as well" for other, name in FORMER.items() if name == twice)
    return f"the column {twice} is there twice{former}"


def _table(data: memoryview) -> pa.Table:
    """All columns as text."""
    _check_utf8(data)
    names = _header(data)
    if escaped := ESCAPED.search(data):
        line = 1 + bytes(data[: escaped.start()]).count(b"\n")
        raise InvalidNetwork(
            f"line {line}: within a field a double quote is written twice, without a backslash", lines=[line]
        )
    if INNER.search(data) and (line := _line_that_goes_on(data)):
        raise InvalidNetwork(f"line {line}: a field goes on behind the double quotes that it stands in", lines=[line])
    if b"\n" not in bytes(data[:MAX_HEADER_BYTES]):
        return pa.table({name: pa.array([], pa.large_string()) for name in names})
    ragged: list[csv.InvalidRow] = []

    def refuse(row: csv.InvalidRow) -> str:
        ragged.append(row)  # an exception would not get through Arrow
        return "error"

    with refusing("not CSV", pa.ArrowException):
        try:
            return csv.read_csv(
                pa.BufferReader(pa.py_buffer(data)),
                read_options=csv.ReadOptions(use_threads=False, column_names=names, skip_rows=1),
                parse_options=csv.ParseOptions(
                    ignore_empty_lines=False,
                    newlines_in_values=True,
                    invalid_row_handler=refuse,
                ),
                convert_options=csv.ConvertOptions(
                    column_types={name: pa.large_string() for name in names}, strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid:
            for row in ragged:
                found = f"{counted(row.expected_columns, 'column')} expected, not {row.actual_columns}"
                hint = ": a double quote has no end" if bytes(data).count(b'"') % 2 else ""
                raise InvalidNetwork(f"line {row.number}: {found}{hint}", lines=[row.number]) from None
            raise


def _line_that_goes_on(data: memoryview) -> int:
    """The line of the first field that has something behind its double quotes; 0: there is none."""
    rows = reader(io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline=""), strict=True)
    try:
        for _ in rows:
            pass
    except Error as error:
        return rows.line_num if "expected after" in str(error) else 0
    return 0


def _lines(data: memoryview, table: pa.Table) -> Place:
    """On which line each row begins: fields in double quotes may have line breaks."""
    if np.count_nonzero(np.frombuffer(data, np.uint8) == LINE_FEED) == table.num_rows:
        return LINES
    breaks = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        breaks += pc.count_substring(column, "\n").to_numpy()
    return replace(LINES, numbers=LINES.first + np.arange(len(breaks)) + np.cumsum(breaks) - breaks)


def _ends(tail: pa.Array, head: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], Names | None]:
    tails, heads = _whole(tail), _whole(head)
    if tails is None or heads is None:
        pairs, labels = number_by_appearance(tail, head)
        return pairs[:, 0], pairs[:, 1], labels
    ends = np.concatenate([tails.to_numpy(), heads.to_numpy()])
    smallest, largest = int(ends.min(initial=0)), int(ends.max(initial=-1))
    if smallest == 0 and largest < len(ends) and np.bincount(ends).all():
        return ends[: len(tail)], ends[len(tail) :], None
    unique, index = np.unique(ends, return_inverse=True)
    return index[: len(tail)], index[len(tail) :], unique


def _whole(column: pa.Array) -> pa.Array | None:
    """The integers that are all names of a column; None if one is none, or has more than 64 bits."""
    if pc.all(pc.match_substring_regex(column, WHOLE_NUMBER)).as_py() is False:
        return None
    with suppress(pa.ArrowInvalid):
        return pc.cast(column, pa.int64())
    return None


def _ids(column: pa.Array) -> Names:
    whole = _whole(column)
    return from_arrow(column if whole is None else whole, "edge_ids")


def _undirected(column: pa.Array, lines: Place) -> BoolArray:
    lower = pc.utf8_lower(column)
    true = pc.is_in(lower, pa.array(["true", "1"], pa.large_string())).to_numpy(zero_copy_only=False)
    false = pc.is_in(lower, pa.array(["false", "0"], pa.large_string())).to_numpy(zero_copy_only=False)
    lines.refuse(
        ~(true | false), "is neither true nor false", what="undirected", value_of=lambda row: column[row].as_py()
    )
    flags: BoolArray = true
    return flags
