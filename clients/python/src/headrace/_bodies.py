"""Graphs as request bodies: columns or a file. Nothing here does network I/O."""

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace._amounts import dumps
from headrace._columns import GraphColumns, as_column, columns_of, has_attributes
from headrace._errors import InvalidInput
from headrace._mistakes import refuse_missing, refuse_set
from headrace._options import check_options
from headrace._places import crs_text, place_column

CHUNK_BYTES = 1 << 20
EXACT_FLOAT = np.float64(2**53)
"""From here on neighbouring floats are whole numbers apart. A float16 would not hold it."""

PUT_OPTIONS = ("timeout_s", "progress", "if_version", "must_be_new")
"""Parameters of `put_graph` that describe no graph."""

MEDIA_TYPES = {
    ".json": "application/json",
    ".arrow": "application/vnd.apache.arrow.stream",
    ".arrows": "application/vnd.apache.arrow.stream",
    ".npz": "application/x-npz",
    ".npy": "application/x-npy",
    ".max": "text/x-dimacs",
    ".min": "text/x-dimacs",
    ".dimacs": "text/x-dimacs",
    ".mtx": "text/x-matrix-market",
    ".adj": "text/x-adjacency-matrix",
    ".csv": "text/csv",
}
COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""How a file is compressed, by its first bytes."""
OF_COMPRESSED = (".gz", ".zst")

AMOUNTS = ("capacity", "cost", "lower", "vertex_capacity")
"""Columns of amounts, whose floats stand for decimals."""

PLACES = ("x", "y", "crs")
"""Where the vertices lie."""

NOT_COLUMNS = ("decimals", "rounding", "cost_decimals")
"""What is said beside the body, whatever its format."""


@dataclass(frozen=True, slots=True)
class Body:
    """A request body that can be sent again: bytes, or a file read in chunks."""

    media_type: str
    data: bytes | Path
    encoding: str | None = None

    @property
    def n_bytes(self) -> int:
        return len(self.data) if isinstance(self.data, bytes) else self.data.stat().st_size

    def chunks(self, on_sent: Callable[[int], None]) -> Iterator[bytes]:
        """The body piece by piece; `on_sent` is told how many bytes have gone out so far."""
        n_sent = 0
        with io.BytesIO(self.data) if isinstance(self.data, bytes) else self.data.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
                n_sent += len(chunk)
                on_sent(n_sent)


def json_body(value: object) -> Body:
    return Body("application/json", dumps(value).encode())


def graph_body(graph: object, columns: GraphColumns) -> Body:
    """The body of PUT /v1/graphs/{name} for whatever describes a graph; raises `InvalidInput`, `TypeError`."""
    check_options("put_graph()", columns, GraphColumns.__annotations__, PUT_OPTIONS)
    described = {name: value for name, value in columns.items() if name not in NOT_COLUMNS}
    limits = described.pop("vertex_capacities", None)
    if isinstance(limits, Mapping) and not isinstance(graph, str | Path):
        described |= {"vertices": list(limits), "vertex_capacity": list(limits.values())}
    elif isinstance(limits, str) and has_attributes(graph):
        described["vertex_capacities"] = limits
    elif limits is not None:
        told = "amounts by vertex, as in {'v': 3}, or an attribute of a NetworkX or igraph graph; a file has its own"
        raise InvalidInput(f"vertex_capacities are {told}")
    if not isinstance(graph, str | Path):
        are_amounts = columns.get("decimals") == 0
        return _columns_body(columns_of(graph, described, are_amounts=are_amounts))  # type: ignore[arg-type]  # a dict of its keys
    if described:
        raise InvalidInput(f"a file describes the whole graph; remove {', '.join(described)}")
    return file_body(Path(graph))


def graph_params(columns: GraphColumns) -> dict[str, str]:
    """How exactly the amounts of a graph are kept: parameters of its PUT. Raises `InvalidInput`."""
    given = {name: columns.get(name) for name in NOT_COLUMNS}
    if given["rounding"] not in (None, "error") and given["decimals"] is None:
        raise InvalidInput(f"rounding={given['rounding']!r} needs decimals=, the places to round to")
    return {name: str(value) for name, value in given.items() if value is not None}


def file_body(path: Path) -> Body:
    """A file, its media type told by its suffix, before a `.gz` or `.zst`. What is compressed is sent as it is."""
    if not path.is_file():
        raise InvalidInput(f"{path} is no file")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in OF_COMPRESSED:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in MEDIA_TYPES:
        raise InvalidInput(f"{path.name}: the suffix must be one of {', '.join(MEDIA_TYPES)}")
    with path.open("rb") as file:
        begins = file.read(4)
    encoding = next((name for first, name in COMPRESSED.items() if begins.startswith(first)), None)
    return Body(MEDIA_TYPES[suffix], path, encoding)


def _columns_body(columns: GraphColumns) -> Body:
    """npz where all columns are numbers, else columnar JSON."""
    for name, value in columns.items():
        refuse_set(value, name)
    given = {name: as_column(value) for name, value in columns.items() if value is not None}
    given |= {name: place_column(given[name], name) for name in ("x", "y") if name in given}
    if "crs" in given:
        given["crs"] = crs_text(given["crs"])
    missing = [name for name in ("tail", "head", "capacity") if name not in given]
    if missing:
        raise InvalidInput(f"{' and '.join(missing)} missing")
    for name in ("tail", "head", "capacity", *(name for name in ("cost", "lower") if name in given)):
        if isinstance(given[name], str | bytes | Mapping) or not hasattr(given[name], "__len__"):
            raise InvalidInput(f"{name} is a column with one value for each edge, not {given[name]!r:.80}")
    arrays = {
        name: value if name in PLACES else _narrowed(value, is_amount=name in AMOUNTS) for name, value in given.items()
    }
    tail, head = arrays["tail"], arrays["head"]
    whole = all(isinstance(end, np.ndarray) and end.dtype.kind in "ib" for end in (tail, head))
    indexed = whole and "vertex_labels" not in arrays
    if indexed and "n_vertices" not in arrays:
        largest = int(max(tail.max(initial=-1), head.max(initial=-1)))
        arrays["n_vertices"] = max(largest + 1, len(arrays.get("x", ())))
    if indexed and all(_fits_npz(name, value) for name, value in arrays.items()):
        buffer = io.BytesIO()
        members: dict[str, Any] = {name: np.asarray(value) for name, value in arrays.items()}
        np.savez(buffer, **members)  # none of which is of objects; NumPy 2.0 knows no allow_pickle
        return Body(MEDIA_TYPES[".npz"], buffer.getvalue())
    for name, value in arrays.items():
        refuse_missing(value, name)
    return json_body(arrays)


def _narrowed(column: Any, *, is_amount: bool) -> Any:
    """A column of numbers as an array, where that loses nothing; else what JSON is written from.

    Each float that is an amount stands for its shortest decimal, in an array as in JSON.
    """
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        if column.dtype.kind in "ibmM" or (column.dtype.kind == "f" and is_amount):  # `dumps` refuses times
            return column
        if column.dtype.kind == "f":
            return column.astype(np.int64) if _all_whole(column) else column
        fits = column.dtype.kind == "u" and (column.dtype.itemsize < 8 or column.max(initial=0) < 2**63)
        return column.astype(np.int64) if fits else column.tolist()
    if isinstance(column, np.generic):
        return column.item()
    if isinstance(column, str | int | float):
        return column
    values = list(column)
    kinds = set(map(type, values))
    if kinds == {bool} or (len(kinds) == 1 and issubclass(next(iter(kinds)), np.number | np.bool_)):
        array = np.asarray(values)
        return array if array.dtype.kind == "b" else _narrowed(array, is_amount=is_amount)
    whole = [kind for kind in kinds if kind is int or issubclass(kind, np.integer)]
    if len(whole) == len(kinds) and min(values, default=0) >= -(2**63) and max(values, default=0) < 2**63:
        return np.asarray(values, dtype=np.int64)
    if is_amount and all(kind in whole or issubclass(kind, float) for kind in kinds):  # np.float64 is a float
        small = all(-EXACT_FLOAT < value < EXACT_FLOAT for value in values if type(value) in whole)
        return np.asarray(values, dtype=np.float64) if small else values
    return values


def _all_whole(column: NDArray[Any]) -> bool:
    return bool(np.all(np.abs(column) < EXACT_FLOAT) and np.all(column == np.rint(column)))


def _fits_npz(name: str, value: Any) -> bool:
    if name in PLACES:
        return True
    if not isinstance(value, np.ndarray):
        return isinstance(value, int)
    if value.dtype.kind != "f":
        return value.dtype.kind in "ib"
    # JSON has the digits of a float that is larger.
    return name in AMOUNTS and not bool(np.any((np.abs(value) >= EXACT_FLOAT) & np.isfinite(value)))
