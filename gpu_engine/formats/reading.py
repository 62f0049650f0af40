"""How much memory reading a body may take, told from its bytes before any is decompressed, parsed or allocated.

The figures are those of `read`, `check` and `pack_into` one after the other, measured as the least limit of a process's
data under which they succeed (NumPy 2.4, pyarrow 26), and rounded up. The body itself is not counted. They are
estimates: a process that reads what strangers send keeps the limit as well.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats._assemble import check_edge_count
from gpu_engine.formats._npy import HEAD_BYTES, ArrayType, read_type
from gpu_engine.formats._place import refusing
from gpu_engine.formats.arrow import StreamSize, measure_tables
from gpu_engine.formats.limits import Limits
from gpu_engine.formats.npz import read_types
from gpu_engine.types import BoolArray

BLOCK_BYTES: Final = 1 << 20
"""How many bytes of a text are counted at a time, so that the counting itself takes little memory."""

NUMBER_BYTES: Final = 22
"""Bytes for each number of a binary column."""
FLOAT_BYTES: Final = 70
"""More bytes for each float: the search for the decimals that it stands for, and its rounding, take memory."""
NAME_BYTES: Final = 130
"""Bytes for each name, beside `NAME_COPIES` copies of its text."""
NAME_COPIES: Final = 4
COST_BYTES: Final = 100
"""Bytes for each cost in a text, which is read as a decimal."""

OF_COSTS: Final = re.compile(rb"\A(?:(?:c[^\n]*|[ \t\r]*)\n)*+p[ \t]+min")
"""The beginning of a DIMACS problem with costs."""

Bytes: TypeAlias = NDArray[np.uint8]
Marks: TypeAlias = Callable[[Bytes, Bytes], BoolArray]
"""Whether each byte, with the byte before it, is to be counted: bool[bytes] from two uint8[bytes]."""


def reading_bytes(data: bytes | memoryview, media_type: str, limits: Limits) -> int:
    """Bytes of memory that reading a body of a known media type may take beside itself.

    Refuses what the reader would refuse for its size or its types. Linear in the bytes of text, and in the
    messages or arrays of a binary body.
    """
    view = memoryview(data).cast("B")
    return FORMATS[media_type](view, limits)


def arrow_bytes(size: StreamSize) -> int:
    """For one Arrow stream."""
    kinds = [field.type for field in size.schema]
    floats = sum(pa.types.is_floating(kind) for kind in kinds)
    numbers: int = size.rows * (NUMBER_BYTES * len(kinds) + FLOAT_BYTES * floats)
    return numbers + NAME_BYTES * size.names + NAME_COPIES * size.text_bytes + size.decompressed_bytes


def json_bytes(view: memoryview) -> int:
    """For columnar JSON: each value is a Python object; a fraction or an exponent makes it a text of its own."""
    values = _count(view, lambda now, _: now == ord(","))
    quotes = _count(view, lambda now, _: now == ord('"'))
    exact = _count(view, lambda now, before: _is_digit(before) & ((now == ord(".")) | ((now | 32) == ord("e"))))
    wide = _count(view, lambda now, _: now >= 0xF0) > 0  # four bytes for each character of the text
    return (9 if wide else 3) * len(view) + 56 * values + 120 * (exact + quotes)


def count_objects(view: memoryview) -> int:
    """How many objects a JSON text has, or more."""
    return _count(view, lambda now, _: now == ord("{"))


def count_arrays(view: memoryview) -> int:
    """How many arrays a JSON text has, or more."""
    return _count(view, lambda now, _: now == ord("["))


def _json(view: memoryview, limits: Limits) -> int:
    return json_bytes(view)


def _arrow(view: memoryview, limits: Limits) -> int:
    return sum(map(arrow_bytes, measure_tables(view, limits, (limits.max_edges, limits.max_vertices))))


def _npz(view: memoryview, limits: Limits) -> int:
    types = read_types(view, limits)
    for name in ("tail", "src"):
        if name in types:
            check_edge_count(types[name].n_items, limits)
    return sum(map(_array_bytes, types.values()))


def _array_bytes(kind: ArrayType) -> int:
    decompressed = kind.n_items * kind.dtype.itemsize
    if kind.dtype.kind == "U":
        return NAME_BYTES * kind.n_items + 2 * decompressed
    each = NUMBER_BYTES + FLOAT_BYTES * (kind.dtype.kind == "f")
    return each * kind.n_items + decompressed


def _npy(view: memoryview, limits: Limits) -> int:
    """A matrix: each entry above zero is an edge."""
    with refusing("not an npy array", ValueError, EOFError, OSError):
        kind = read_type(view[:HEAD_BYTES], len(view), "matrix")
    entries = np.frombuffer(view, dtype=kind.dtype, offset=kind.offset)
    if kind.dtype.kind not in "iuf":
        raise InvalidNetwork(f"entries must be integers or floats, not {kind.dtype}")
    n_edges = sum(int(np.count_nonzero(entries[k : k + BLOCK_BYTES])) for k in range(0, len(entries), BLOCK_BYTES))
    check_edge_count(n_edges, limits)
    foreign = 0 if kind.dtype.isnative else len(view)
    return len(entries) + foreign + (3 * NUMBER_BYTES + FLOAT_BYTES * (kind.dtype.kind == "f")) * n_edges


def _rows_of_text(ends: Marks, row_bytes: int) -> Callable[[memoryview, Limits], int]:
    """For texts whose rows end where `ends` says; what is no number in them is a name."""

    def bytes_of(view: memoryview, limits: Limits) -> int:
        rows, words = _count(view, ends), _count(view, _starts_word)
        return 4 * len(view) + row_bytes * (rows + 1) + (NAME_BYTES + 40) * words

    return bytes_of


def _csv(view: memoryview, limits: Limits) -> int:
    """More for columns of costs and of lower bounds, whose names stand in the header."""
    line, _, _ = bytes(view[:HEAD_BYTES]).partition(b"\n")
    return _rows_of_text(_ends_line, 150 + COST_BYTES * ((b"cost" in line) + (b"lower" in line)))(view, limits)


def _dimacs(view: memoryview, limits: Limits) -> int:
    """More for a problem with costs: its kind stands behind the comments."""
    return _rows_of_text(_ends_line, 180 + 2 * COST_BYTES * bool(OF_COSTS.match(view)))(view, limits)


def _is_digit(byte: Bytes) -> BoolArray:
    digit: BoolArray = (byte - np.uint8(ord("0"))) < 10  # what is below wraps around
    return digit


def _is_letter(byte: Bytes) -> BoolArray:
    """Any but what numbers, separators and quotes are made of."""
    letter: BoolArray = (byte > ord("9")) | ((byte > 32) & (byte < ord("+")) & (byte != ord('"'))) | (byte == ord("/"))
    return letter


def _starts_word(now: Bytes, before: Bytes) -> BoolArray:
    inner_sign = (now == ord("-")) & _is_digit(before)  # 12-34 is a name
    starts: BoolArray = (_is_letter(now) & ~_is_letter(before)) | inner_sign
    return starts


def _ends_line(now: Bytes, _: Bytes) -> BoolArray:
    ends: BoolArray = (now == ord("\n")) | (now == ord("\r"))
    return ends


def _ends_field(now: Bytes, _: Bytes) -> BoolArray:
    ends: BoolArray = (now <= 32) | (now == ord(","))
    return ends


def _count(view: memoryview, marks: Marks) -> int:
    """How often `marks` holds, block by block."""
    data = np.frombuffer(view, dtype=np.uint8)
    found = 0
    for start in range(0, len(data), BLOCK_BYTES):
        now = data[start : start + BLOCK_BYTES]
        before = np.empty_like(now)
        before[1:], before[0] = now[:-1], data[start - 1] if start else ord("\n")
        found += int(np.count_nonzero(marks(now, before)))
    return found


FORMATS: Final[Mapping[str, Callable[[memoryview, Limits], int]]] = MappingProxyType(
    {
        "application/json": _json,
        "application/vnd.apache.arrow.stream": _arrow,
        "application/x-npz": _npz,
        "application/x-npy": _npy,
        "text/x-dimacs": _dimacs,
        "text/csv": _csv,
        "text/x-matrix-market": _rows_of_text(_ends_line, 200),
        "text/x-adjacency-matrix": _rows_of_text(_ends_field, 100),
    }
)
"""By media type, as `formats.MEDIA_TYPES`."""
