"""Answers as files: named columns beside a JSON text of all that is no column, in npz or Arrow, written as they come.

The columns may be of any length, and of no table. None of them is in memory as a whole.
"""

import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_engine.formats._names import as_arrow
from gpu_engine.formats._npy import header
from gpu_engine.formats._sink import Sink
from gpu_engine.text.texts import Texts

Part: TypeAlias = NDArray[Any] | Texts
"""Some rows of a column."""

ANSWER: Final = "answer"
"""The name of the JSON text: a member of the archive, or a key of the schema's metadata."""

SAMPLE_BYTES: Final = 8 << 10
SHRINKS: Final = 4
"""A member of an archive is compressed if its first bytes become less than a fourth of what they were: to deflate the
others takes longer than to send them, unless the network is slow."""

TYPES: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}
)


class Column(Protocol):
    """A column that is written some rows at a time."""

    @property
    def table(self) -> str:
        """Columns of one table have a value for each of its rows, and give their parts in step."""
        ...

    @property
    def kind(self) -> str:
        """ "int64", "float64", "bool", "text", or "bits": as "bool", and in npz packed, row i as bit i, the lowest bit
        first."""
        ...

    def count(self) -> int:
        """How many rows there are."""
        ...

    def parts(self) -> Iterator[Part]:
        """The rows, in order; each call begins anew. Of "bits" each part but the last has a multiple of 8 rows."""
        ...


Columns: TypeAlias = Mapping[str, Column]
"""By dotted name."""


def npz_columns(answer: bytes, columns: Columns) -> Iterator[bytes]:
    """An archive with an array for each column, and the JSON text as ``answer``, uint8[bytes].

    Integers have the narrowest of the types int8, int16, int32 and int64 that holds all of the column.
    A column of text is two arrays: ``NAME.utf8``, uint8[bytes], and ``NAME.offsets``, int64[rows + 1]; text i is
    ``utf8[offsets[i]:offsets[i + 1]]``.
    """
    sink = Sink()
    with zipfile.ZipFile(sink, "w", compresslevel=1) as archive:
        text = header(np.dtype(np.uint8), (len(answer),)) + answer
        members = chain([(ANSWER, iter([text]))], *(_members(name, column) for name, column in columns.items()))
        for name, pieces in members:
            first, pays = _first(pieces)
            archive.compression = zipfile.ZIP_DEFLATED if pays else zipfile.ZIP_STORED
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                for piece in chain([first], pieces):
                    member.write(piece)
                    yield sink.take()
    yield sink.take()


def arrow_columns(answer: bytes, columns: Columns, metadata: Mapping[str, str]) -> Iterator[bytes]:
    """Arrow IPC streams one behind the other, one for each table, with its name as ``table`` in the metadata.

    The metadata of the first has the JSON text as ``answer``, and ``metadata``. A column is named by the last part of
    its dotted name. Without columns there is one stream, which has none either.
    """
    tables: dict[str, dict[str, Column]] = {}
    for name, column in columns.items():
        tables.setdefault(column.table, {})[name.rpartition(".")[2]] = column
    sink, said = Sink(), {ANSWER: answer, **metadata}
    for table, members in (tables or {"": {}}).items():
        fields = [(name, TYPES.get(_of_arrow(column), pa.large_string())) for name, column in members.items()]
        schema = pa.schema(fields, metadata={"table": table, **said})
        with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema) as writer:
            for parts in zip(*(column.parts() for column in members.values()), strict=True):
                arrays = [as_arrow(part) if isinstance(part, Texts) else pa.array(part) for part in parts]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
                yield sink.take()
        said = {}
    yield sink.take()


def _of_arrow(column: Column) -> str:
    return "bool" if column.kind == "bits" else column.kind


def _members(name: str, column: Column) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The arrays of a column, each as the bytes of its file."""
    rows = column.count()
    if column.kind == "text":
        n_bytes = sum(int(part.offsets[-1]) for part in _texts(column))
        yield f"{name}.utf8", _file(np.uint8, n_bytes, lambda: (part.data for part in _texts(column)))
        yield f"{name}.offsets", _file(np.int64, rows + 1, lambda: _offsets(column))
    elif column.kind == "bits":
        yield name, _file(np.uint8, -(-rows // 8), lambda: (_bits(part) for part in column.parts()))
    else:
        plain = {"float64": np.float64, "bool": np.bool_}
        yield name, _file(plain.get(column.kind) or _narrowest(column), rows, column.parts)


def _file(dtype: type[np.generic], rows: int, parts: Callable[[], Iterable[Part]]) -> Iterator[bytes]:
    yield header(np.dtype(dtype), (rows,))
    yield from (np.ascontiguousarray(part, dtype).tobytes() for part in parts())


def _narrowest(column: Column) -> type[np.generic]:
    low = high = 0
    for part in column.parts():
        if len(part):
            low, high = min(low, int(np.min(part))), max(high, int(np.max(part)))
    types = (np.int8, np.int16, np.int32)
    return next((t for t in types if np.iinfo(t).min <= low and high <= np.iinfo(t).max), np.int64)


def _texts(column: Column) -> Iterator[Texts]:
    return (part for part in column.parts() if isinstance(part, Texts))


def _offsets(column: Column) -> Iterator[NDArray[np.int64]]:
    at = 0
    yield np.zeros(1, np.int64)
    for part in _texts(column):
        yield part.offsets[1:] + at
        at += int(part.offsets[-1])


def _bits(flags: Part) -> NDArray[np.uint8]:
    return np.packbits(np.asarray(flags, np.bool_), bitorder="little")


def _first(pieces: Iterator[bytes]) -> tuple[bytes, bool]:
    """The first bytes of a member, and whether it pays to compress it: to look at them takes about a millisecond."""
    first = bytearray()
    while len(first) < SAMPLE_BYTES and (piece := next(pieces, None)) is not None:
        first += piece
    sample = first[:SAMPLE_BYTES]
    return bytes(first), SHRINKS * len(zlib.compress(sample, 1)) < len(sample)
