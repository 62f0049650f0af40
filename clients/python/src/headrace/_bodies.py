"""Graphs as request bodies: columns, NetworkX, SciPy or a file. Nothing here does network I/O."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from headrace._amounts import Amount, dumps
from headrace._errors import InvalidInput
from headrace._options import check_options
from headrace._results import EdgeId, Vertex

CHUNK_BYTES = 1 << 20

MEDIA_TYPES = {
    ".json": "application/json",
    ".arrow": "application/vnd.apache.arrow.stream",
    ".arrows": "application/vnd.apache.arrow.stream",
    ".npz": "application/x-npz",
    ".npy": "application/x-npy",
    ".max": "text/x-dimacs",
    ".dimacs": "text/x-dimacs",
    ".mtx": "text/x-matrix-market",
    ".adj": "text/x-adjacency-matrix",
    ".csv": "text/csv",
}
ENCODINGS = {".gz": "gzip", ".zst": "zstd"}

Column: TypeAlias = Sequence[Any] | NDArray[Any]


class GraphColumns(TypedDict, total=False):
    """A graph as columns, one row per edge; the keyword arguments of `put_graph`. None is as if left out."""

    tail: Sequence[Vertex] | NDArray[Any]
    """Vertex indices or labels, m rows."""
    head: Sequence[Vertex] | NDArray[Any]
    capacity: Sequence[Amount] | NDArray[Any] | str
    """m amounts; `math.inf` never limits. With a NetworkX graph: the edge attribute, "capacity" by default."""
    n_vertices: int | None
    """One more than the largest index by default; not needed with labels."""
    undirected: bool | Sequence[bool] | NDArray[np.bool_] | None
    """Whether all edges, or which, carry flow either way."""
    closed: Sequence[bool] | NDArray[np.bool_] | None
    """Which edges let nothing through until they are reopened."""
    edge_ids: Sequence[EdgeId] | NDArray[Any] | None
    """Your ids, unique; the row numbers by default."""
    vertex_labels: Sequence[Vertex] | NDArray[Any] | None
    """Your names of all vertices, integers or strings; tail and head then hold names."""
    decimals: int | None
    """Places all amounts are kept to; by default the fewest that hold every capacity exactly."""
    source: Vertex | None
    """Default terminals of `max_flow`."""
    sink: Vertex | None


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
    check_options("put_graph()", columns, GraphColumns.__annotations__, ("timeout_s", "progress"))
    if graph is None:
        return _columns_body(columns)
    if isinstance(graph, Path):
        if columns:
            raise InvalidInput(f"a file describes the whole graph; remove {', '.join(columns)}")
        return file_body(graph)
    if hasattr(graph, "is_directed") and hasattr(graph, "nodes"):
        return _columns_body(_networkx_columns(graph, columns))
    if hasattr(graph, "tocoo"):
        return _columns_body(_scipy_columns(graph, columns))
    raise InvalidInput(f"no graph: {type(graph).__name__}; send columns, a NetworkX or SciPy graph, or a Path")


def file_body(path: Path) -> Body:
    """A file, its media type told by its suffix; `.gz` and `.zst` after it are sent compressed."""
    suffixes = path.suffixes
    encoding = ENCODINGS.get(suffixes[-1]) if suffixes else None
    suffix = suffixes[-2 if encoding and len(suffixes) > 1 else -1] if suffixes else ""
    if suffix not in MEDIA_TYPES:
        raise InvalidInput(f"{path.name}: the suffix must be one of {', '.join(MEDIA_TYPES)}")
    if not path.is_file():
        raise InvalidInput(f"{path} is no file")
    return Body(MEDIA_TYPES[suffix], path, encoding)


def _columns_body(columns: GraphColumns) -> Body:
    """npz where all columns are integers, else columnar JSON."""
    given = {name: value for name, value in columns.items() if value is not None}
    missing = [name for name in ("tail", "head", "capacity") if name not in given]
    if missing:
        raise InvalidInput(f"{' and '.join(missing)} missing")
    arrays = {name: _narrowed(value) for name, value in given.items()}
    tail, head = arrays["tail"], arrays["head"]
    indexed = isinstance(tail, np.ndarray) and isinstance(head, np.ndarray) and "vertex_labels" not in arrays
    if indexed and "n_vertices" not in arrays:
        arrays["n_vertices"] = int(max(tail.max(initial=-1), head.max(initial=-1))) + 1
    # In an npz, a capacity counts units of the last decimal; JSON has amounts.
    if indexed and "decimals" not in arrays and all(map(_fits_npz, arrays.values())):
        buffer = io.BytesIO()
        members: dict[str, Any] = {name: np.asarray(value) for name, value in arrays.items()}
        np.savez(buffer, allow_pickle=False, **members)
        return Body(MEDIA_TYPES[".npz"], buffer.getvalue())
    return json_body(arrays)


def _narrowed(column: Any) -> Any:
    """An integer or boolean column as an array, where that loses nothing; else what JSON is written from."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "ib" or (column.dtype.kind == "u" and column.dtype.itemsize < 8):
            return column
        if column.dtype.kind == "f" and _all_whole(column):
            return column.astype(np.int64)
        return column if column.dtype.kind == "f" else column.tolist()
    if isinstance(column, np.generic):
        return column.item()
    if isinstance(column, str | int):
        return column
    values = list(column)
    kinds = set(map(type, values))
    if kinds <= {int} and min(values, default=0) >= -(2**63) and max(values, default=0) < 2**63:
        return np.asarray(values, dtype=np.int64)
    return np.asarray(values) if kinds == {bool} else values


def _fits_npz(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, np.ndarray) and value.dtype.kind in "iub")


def _all_whole(column: NDArray[Any]) -> bool:
    return bool(np.all(np.abs(column) < 2.0**53) and np.all(column == np.rint(column)))


def _networkx_columns(graph: Any, columns: GraphColumns) -> GraphColumns:
    """Nodes 0 .. n-1 are vertices by index, other integers and strings by label, anything else by `str(node)`.

    An edge without the attribute is unlimited, as in NetworkX.
    """
    attribute = columns.get("capacity", "capacity")
    if not isinstance(attribute, str):
        raise InvalidInput("with a NetworkX graph, capacity names an edge attribute")
    nodes = list(graph.nodes)
    kinds = set(map(type, nodes))
    as_label: Callable[[Any], Vertex] = int if kinds <= {int} else str
    name = {node: as_label(node) for node in nodes}
    if len(set(name.values())) != len(nodes):
        raise InvalidInput("two nodes have the same str(); they become vertex labels")
    edges = list(graph.edges(data=attribute, default=np.inf))
    described: GraphColumns = {
        "tail": [name[tail] for tail, _, _ in edges],
        "head": [name[head] for _, head, _ in edges],
        "capacity": [capacity for _, _, capacity in edges],
        "undirected": not graph.is_directed(),
    }
    if kinds <= {int} and set(nodes) == set(range(len(nodes))):
        described["n_vertices"] = len(nodes)
    else:
        described["vertex_labels"] = list(name.values())
    merged = columns | described
    for terminal in ("source", "sink"):
        if columns.get(terminal) is not None:
            merged[terminal] = name.get(columns[terminal], columns[terminal])
    return merged


def _scipy_columns(graph: Any, columns: GraphColumns) -> GraphColumns:
    """Entry (i, j) of a square sparse matrix or array is the capacity of an edge from i to j."""
    matrix = graph.tocoo()
    n_rows, n_columns = matrix.shape
    if n_rows != n_columns:
        raise InvalidInput(f"a {n_rows} x {n_columns} matrix is no graph; it must be square")
    described: GraphColumns = {
        "tail": matrix.row,
        "head": matrix.col,
        "capacity": matrix.data,
        "n_vertices": int(n_rows),
    }
    return described | columns
