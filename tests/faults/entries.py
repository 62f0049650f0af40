"""The edges of a load, and the entries of a graph's log, as docs/durability.md says that they are written.

Shares no code with the service, as all that reads the append-only file.
"""

import io
import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import zstandard

from tests.faults.history import CRS, Edges

ROW: Final = "qq?"
"""Of a change: an edge and its capacity as int64, and whether it is closed as one byte, column by column."""
COST_ROW: Final = "qq"
"""Of a change of costs: an edge and its cost."""


@dataclass(slots=True)
class Structure:
    """What an entry inserts and deletes. The inserted edges become the last rows, which are never given twice."""

    n_vertices: int = 0
    """How many are inserted."""
    tail: list[int] = field(default_factory=list)
    head: list[int] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)
    revived: list[int] = field(default_factory=list)
    """Deleted rows that are there again."""
    ids: list[int] | None = None
    """Of the inserted edges; None where edges are numbered, or none is inserted."""
    cost: list[int] | None = None
    """The same of their costs."""
    lower: list[int] | None = None
    """Their lower bounds; None: all are 0."""
    x: list[float] | None = None
    y: list[float] | None = None
    """Where the inserted vertices lie."""
    deleted_vertices: list[int] = field(default_factory=list)
    revived_vertices: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Commit:
    """One entry of a graph's log."""

    version: int
    key: str
    rows: list[int]
    own: list[int]
    closed: list[bool]
    job: str = ""
    """The job whose outcome was written with it."""
    order: int = 0
    """Place of its transaction in the file."""
    limits: dict[int, int] = field(default_factory=dict)
    """Capacities of vertices by vertex, in the order of the entry."""
    cost_rows: list[int] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    structure: Structure | None = None
    lower_rows: list[int] = field(default_factory=list)
    lowers: list[int] = field(default_factory=list)
    is_bounded: bool = False
    """It changes lower bounds, perhaps none."""
    size: tuple[int, int] | None = None
    """How many vertices and edges the graph is said to have since."""


def pairs(words: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(words[::2], words[1::2], strict=True))


def read_edges(data: bytes) -> Edges:
    """The graph as it was loaded: an Arrow stream of three columns, and more if edges were closed then or have costs,
    lower bounds, or ids, which only a copy begins with.

    The histories have no names of vertices and no fractions.
    """
    source = io.BytesIO(data)
    table: Any = pa.ipc.open_stream(source).read_all()
    of_vertices = pa.ipc.open_stream(source).read_all().to_pydict() if source.tell() < len(data) else {}
    limits = {vertex: limit for vertex, limit in enumerate(of_vertices.get("capacity", ())) if limit is not None}
    metadata = table.schema.metadata
    if metadata[b"decimals"] != b"0" or metadata.get(b"undirected", b"false") != b"false":
        raise ValueError(f"nobody loaded such a graph: {metadata}")
    tail, head, capacity = (table.column(name).to_pylist() for name in ("tail", "head", "capacity"))
    closed, cost, ids, lower = (
        table.column(name).to_pylist() if name in table.column_names else None
        for name in ("closed", "cost", "edge_id", "lower")
    )
    if metadata.get(b"cost_decimals", b"0") != b"0":
        raise ValueError(f"nobody loaded a graph with such costs: {metadata}")
    ends = int(metadata[b"n_vertices"]), tail, head
    edges = Edges(*ends, capacity, closed, cost, ids, int(metadata[b"sink"]), limits, lower)
    edges.x, edges.y = of_vertices.get("x"), of_vertices.get("y")
    if metadata.get(b"crs", b"").decode() != ("" if edges.x is None else CRS):
        raise ValueError(f"nobody loaded such coordinates: {metadata}")
    if metadata[b"source"] != b"0" or not 0 < edges.sink < edges.n_vertices:
        raise ValueError(f"nobody loaded a graph with these ends: {metadata}")
    return edges


def read_entry(words: list[bytes]) -> Commit:
    """The words of an XADD to a log. Raises ValueError unless the entry is whole and counts its own rows."""
    start = next(i for i in range(2, len(words)) if words[i].endswith(b"-0") and words[i][:-2].isdigit())
    fields = pairs(words[start + 1 :])
    applied = json.loads(fields[b"applied"])
    structure = read_structure(fields[b"structure"]) if b"structure" in fields else None
    is_newer, is_bounded = structure is not None or b"vertices" in fields, b"lower" in fields
    name = b"bounded" if is_bounded else b"values" if is_newer else b"change"
    if fields.keys() & {b"bounded", b"values", b"change"} != {name}:
        raise ValueError(
            "a change of structure or of vertices has `values`, one of lower bounds `bounded`, any other `change`: "
            f"{sorted(fields)}"
        )
    rows, own, closed = _columns(fields[name], ROW)
    cost_rows, costs = _columns(fields[b"costs"], COST_ROW) if b"costs" in fields else ([], [])
    vertices, limits = _columns(fields[b"vertices"], COST_ROW) if b"vertices" in fields else ([], [])
    lower_rows, lowers = _columns(fields[b"lower"], COST_ROW) if is_bounded else ([], [])
    n_applied = len({*rows, *cost_rows, *lower_rows}) + n_vertices(structure, vertices)
    if applied["applied"] != n_applied:
        raise ValueError(f"{rows} and {cost_rows} are not the {applied['applied']} rows that {words[start]!r} applied")
    version = int(words[start][:-2])
    by_vertex = dict(zip(vertices, limits, strict=True))
    commit = Commit(version, applied["key"], rows, own, closed, limits=by_vertex, structure=structure)
    commit.cost_rows, commit.costs = cost_rows, costs
    commit.lower_rows, commit.lowers, commit.is_bounded = lower_rows, lowers, is_bounded
    return commit


def n_vertices(structure: Structure | None, limited: Iterable[int]) -> int:
    """How many vertices an entry counts: those that come and go, and, unless some come, those that get a capacity."""
    if structure is None:
        return len({*limited})
    moved = {*structure.deleted_vertices, *structure.revived_vertices}
    return structure.n_vertices + len(moved if structure.n_vertices else moved | {*limited})


def read_structure(data: bytes) -> Structure:
    """The field `structure` of an entry: an npz, compressed. Raises ValueError for what no history asks for."""
    raw = zstandard.ZstdDecompressor().decompress(data)
    with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
        columns = {name: arrays[name].tolist() for name in arrays.files}
    if any(columns.pop("undirected")):
        raise ValueError("nobody inserted undirected edges")
    moved = {"deleted_vertices", "revived_vertices"}
    if "lower" in columns and "n_beside" in columns:
        columns["n_vertices"] = columns.pop("n_beside")
    elif "n_inserted" in columns and any(columns.get(name) for name in moved):
        columns["n_vertices"] = columns.pop("n_inserted")
    else:
        moved = set()
    of_edges, of_vertices = ("edge_ids", "cost", "lower"), ("x", "y")
    if "lower" in columns and "deleted_vertices" not in moved:
        raise ValueError("an earlier release would read it without its lower bounds")
    ids, cost, lower, x, y = (columns.pop(name, None) or None for name in (*of_edges, *of_vertices))
    lower = lower if any(lower or ()) else None
    if columns.keys() != {"n_vertices", "tail", "head", "deleted", "revived"} | moved:
        raise ValueError(f"nobody asked for such a change of structure: {sorted(columns)}")
    return Structure(**columns, ids=ids, cost=cost, lower=lower, x=x, y=y)


def _columns(data: bytes, row: str) -> list[list[Any]]:
    """Columns one behind the other, of the types in `row`. Raises ValueError unless the rows are whole."""
    raw = zstandard.ZstdDecompressor().decompress(data)
    k, rest = divmod(len(raw), struct.calcsize(f"<{row}"))
    if rest:
        raise ValueError(f"{len(raw)} bytes are no whole number of rows")
    values = struct.unpack("<" + "".join(f"{k}{kind}" for kind in row), raw)
    return [list(values[i * k : (i + 1) * k]) for i in range(len(row))]
