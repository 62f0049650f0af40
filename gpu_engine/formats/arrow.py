"""Arrow IPC streams: the fastest way in, and, compressed, the serialisation of snapshots.

The first stream has one row per edge: ``tail`` and ``head`` (integers: vertex indices; text: names,
numbered in the order they first appear), ``capacity``, and optionally ``undirected``,
``unlimited`` and ``closed`` (boolean), ``edge_ids`` (integers or text) and ``cost``. A second stream may follow with
one row per vertex: ``label``, of which tails and heads are then indices, ``capacity``, null where there is none, and
``x`` and ``y``, where it lies.

``capacity`` is a decimal128 or float64 column of amounts, or an integer column of units, ``10 ** -decimals``
each. An edge never limits if its amount is positive infinity, or if its ``unlimited`` is true, whatever its
capacity then is. ``cost`` is such a column too, in units of ``cost_decimals``; it is finite and may be negative. A
``closed`` edge lets nothing through until it is reopened. The first schema's metadata may hold ``n_vertices``,
``decimals``, ``cost_decimals``, ``source``, ``sink`` (indices), ``crs`` (what x and y are), ``undirected`` and
``labelled`` (``true`` or ``false``; the latter says that a second stream must follow). That of the second may say the
same again, and nothing else. A stream without its end mark
was cut and is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpu_engine.errors import ROWS_SHOWN, InvalidNetwork, pointer
from gpu_engine.formats import _capacity, _costs, _lower
from gpu_engine.formats._arrow_check import WORD_BYTES, StreamSize, is_text, is_text_dictionary, measure
from gpu_engine.formats._assemble import assemble
from gpu_engine.formats._flags import flags, undirected_of
from gpu_engine.formats._metadata import Metadata
from gpu_engine.formats._names import Names, as_arrow, from_arrow, number_by_appearance
from gpu_engine.formats._place import ROWS, refusing, shown
from gpu_engine.formats._sink import Sink
from gpu_engine.formats._vertices import Vertices, from_table, table_of
from gpu_engine.formats._views import check_views, without_views
from gpu_engine.formats.limits import DEFAULT_LIMITS, Limits, Source, load
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import AS_WRITTEN, Precision, check_decimals
from gpu_engine.networks.validate import twice
from gpu_engine.text.near import did_you_mean
from gpu_engine.types import BoolArray

__all__ = [
    "WORD_BYTES",
    "StreamSize",
    "arrow_pieces",
    "column",
    "is_null",
    "is_text",
    "is_text_dictionary",
    "measure_tables",
    "pack",
    "pack_into",
    "read_arrow",
    "read_tables",
    "renamed",
    "stated_decimals",
    "unpack",
    "write_arrow",
]

REQUIRED = ("tail", "head", "capacity")
OPTIONAL = ("undirected", "unlimited", "closed", "edge_ids", "cost", "lower")
PACKED_IDS: Final = "edge_id"
"""What the column of ids is called in the packed form, and was once called in files."""
COST_PLACES: Final = "cost_decimals"
BATCH_ROWS = 1 << 18
"""Written at a time, where a network is written piece by piece."""


def read_arrow(source: Source, limits: Limits = DEFAULT_LIMITS, precision: Precision = AS_WRITTEN) -> EdgeList:
    """Read one or two Arrow IPC streams; nothing is decompressed before its declared size was checked."""
    return _read(source, limits, precision, packed=False)


def _read(source: Source, limits: Limits, precision: Precision, *, packed: bool) -> EdgeList:
    """`packed` says that `pack` wrote it, which keeps the engine's own `INFINITE`, and that no name occurs twice:
    looking for repeats takes longer than all else.
    """
    edges, *rest = read_tables(source, limits, (limits.max_edges, limits.max_vertices))
    edges = renamed(edges, {PACKED_IDS: "edge_ids"})
    _check_columns(edges)
    columns = {name: column(edges, name) for name in edges.column_names}
    for name, values in columns.items():
        ROWS.refuse(is_null(values), "is null", what=name)
    metadata = Metadata(edges.schema.metadata or {})
    if not packed:
        metadata.refuse_misspelt()
        for table in rest:
            Metadata(table.schema.metadata or {}).refuse_unlike(metadata)
    own = metadata.count("decimals")
    crs = metadata.text("crs")
    vertices = from_table(rest[0], own, precision, crs, packed=packed) if rest else Vertices()
    if metadata.flag("labelled") and not rest:
        raise InvalidNetwork("the stream of labels is missing")
    if crs is not None and vertices.coordinates is None:
        raise InvalidNetwork("crs says what x and y are, and there are none", field="/crs")
    if rest and vertices.labels is None and is_text(columns["tail"].type):
        raise InvalidNetwork("with a stream of vertices, tail and head must be indices")
    tail, head, labels = _ends(columns, vertices.labels)
    unlimited = flags(columns["unlimited"], "unlimited") if "unlimited" in columns else None
    of_edges = _capacities(columns["capacity"], own, precision, unlimited, packed)
    lower = _lower.from_arrow(columns.get("lower"), own, precision.of_body(own), packed)
    amounts, limited, lower_units = _lower.in_same_units(of_edges, vertices.limited, lower)
    n_vertices = metadata.count("n_vertices")
    edge_list = assemble(
        tail,
        head,
        amounts.units,
        n_vertices=len(labels) if n_vertices is None and labels is not None else n_vertices,
        undirected=undirected_of(columns.get("undirected"), metadata),
        decimals=amounts.decimals,
        edge_ids=_edge_ids(columns["edge_ids"]) if "edge_ids" in columns else None,
        vertex_labels=labels,
        source=metadata.count("source"),
        sink=metadata.count("sink"),
        closed=flags(columns["closed"], "closed") if "closed" in columns else None,
        costs=_cost(columns.get("cost"), metadata.count("cost_decimals"), precision),
        lower=lower_units,
        rounded=amounts.rounded,
        limits=limits,
        unique=packed,
        limited=limited,
        coordinates=vertices.coordinates,
    )
    if not packed:
        return edge_list
    return replace(edge_list, rounded=metadata.rounded("rounded"), rounded_costs=metadata.rounded("rounded_costs"))


def measure_tables(source: Source, limits: Limits, max_rows: Sequence[int]) -> list[StreamSize]:
    """The sizes of the tables that `read_tables` would read; raises as it does. Nothing is decompressed."""
    return measure(pa.py_buffer(load(source)), limits, max_rows)


def read_tables(source: Source, limits: Limits, max_rows: Sequence[int]) -> list[pa.Table]:
    """The Arrow IPC streams of a body, at most one for each of `max_rows`, measured before they are made."""
    data = load(source)
    sizes = measure_tables(data, limits, max_rows)
    reader = pa.BufferReader(pa.py_buffer(data))
    with refusing("not an Arrow IPC stream", pa.ArrowException, OSError, ValueError, KeyError):
        return [_table(reader, size) for size in sizes]


def renamed(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The table with other names for some columns."""
    columns = [names.get(name, name) for name in table.column_names]
    return table.rename_columns(columns).replace_schema_metadata(table.schema.metadata)


def column(table: pa.Table, name: str) -> pa.Array:
    """One array. A dictionary of text stays one: decoding would copy each word as often as it is used."""
    with refusing("not an Arrow IPC stream", pa.ArrowException):
        values = table.column(name).combine_chunks()
        is_plain = not pa.types.is_dictionary(values.type) or is_text_dictionary(values.type)
        return values if is_plain else values.dictionary_decode()


def stated_decimals(schema: pa.Schema, keys: Sequence[str]) -> int | None:
    """What the metadata says that whole numbers are units of: the first of the ``keys`` that is there, else None.
    Raises `InvalidNetwork` if any of them says so wrongly, or is written otherwise."""
    metadata = Metadata(schema.metadata or {})
    metadata.refuse_misspelt(keys)
    metadata.refuse_operation()
    counts = [check_decimals(metadata.count(key)) for key in keys]
    stated = [count for count in counts if count is not None]
    if not stated:
        metadata.refuse_lone(COST_PLACES, keys[0])
    return stated[0] if stated else None


def write_arrow(edges: EdgeList, compression: str | None = None) -> bytes:
    """Every field of the network; `compression` is None, ``"lz4"`` or ``"zstd"``."""
    sink = pa.BufferOutputStream()
    _write(edges, sink, compression, packed=False)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def pack(edges: EdgeList) -> bytes:
    """The compact form snapshots keep: an Arrow stream with zstd buffers, in which `INFINITE` stands as it is."""
    sink = pa.BufferOutputStream()
    _write(edges, sink, "zstd", packed=True)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def pack_into(edges: EdgeList, out: BinaryIO) -> None:
    """Write the bytes of `pack` to a file, piece by piece."""
    _write(edges, pa.PythonFile(out, mode="w"), "zstd", packed=True)


def arrow_pieces(edges: EdgeList, *, packed: bool = False) -> Iterator[bytes]:
    """What `write_arrow` gives with zstd, or what `pack` does, in batches of `BATCH_ROWS`, piece by piece."""
    sink, options = Sink(), pa.ipc.IpcWriteOptions(compression="zstd")
    for table in _tables(edges, packed=packed):
        with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), table.schema, options=options) as writer:
            for batch in table.to_batches(max_chunksize=BATCH_ROWS):
                writer.write_batch(batch)
                yield sink.take()
    yield sink.take()


def _write(edges: EdgeList, sink: pa.NativeFile, compression: str | None, *, packed: bool) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    for table in _tables(edges, packed=packed):
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)


def _tables(edges: EdgeList, *, packed: bool) -> list[pa.Table]:
    """One row per edge, and, with labels, one row per vertex."""
    capacity, unlimited = (edges.capacity, None) if packed else _capacity.split_unlimited(edges.capacity)
    columns: dict[str, Any] = {"tail": edges.tail, "head": edges.head, "capacity": capacity}
    if unlimited is not None:
        columns["unlimited"] = unlimited
    metadata = {"n_vertices": str(edges.n_vertices), "decimals": str(edges.decimals)}
    if isinstance(edges.undirected, bool):
        metadata["undirected"] = str(edges.undirected).lower()
    else:
        columns["undirected"] = edges.undirected
    if edges.closed is not None:
        columns["closed"] = edges.closed
    if edges.edge_ids is not None:
        columns[PACKED_IDS if packed else "edge_ids"] = as_arrow(edges.edge_ids)
    if edges.cost is not None:
        columns["cost"], metadata["cost_decimals"] = edges.cost, str(edges.cost_decimals)
    if edges.lower is not None:
        columns["lower"] = edges.lower
    for name, terminal in (("source", edges.source), ("sink", edges.sink)):
        if terminal is not None:
            metadata[name] = str(terminal)
    if edges.coordinates is not None:
        metadata["crs"] = edges.coordinates.crs
    vertices = table_of(edges, packed=packed)
    if vertices is not None:
        metadata["labelled"] = "true"
    for name, rounded in (("rounded", edges.rounded), ("rounded_costs", edges.rounded_costs)):
        if packed and rounded:
            metadata[name] = f"{rounded.rows} {rounded.largest}"
    tables = [pa.table(columns).replace_schema_metadata(metadata)]
    return tables if vertices is None else [*tables, vertices]


def unpack(packed: bytes | memoryview, limits: Limits = DEFAULT_LIMITS) -> EdgeList:
    """The network `pack` was given, field by field and bit by bit. Who makes a `Network` of it checks the names."""
    return _read(packed, limits, AS_WRITTEN, packed=True)


def _table(reader: pa.BufferReader, size: StreamSize) -> pa.Table:
    with pa.ipc.open_stream(reader) as stream:
        table = stream.read_all()
    check_views(table, size)  # before the validation, which looks at each byte of each text
    table.validate(full=True)  # offsets of an untrusted stream may point anywhere
    return without_views(table)


def is_null(values: pa.Array) -> BoolArray:
    """bool[rows]; a word of a dictionary may be null as well."""
    nulls = values.is_null()
    if is_text_dictionary(values.type) and values.dictionary.null_count:
        nulls = pc.or_(nulls, values.dictionary.is_null().take(values.indices).fill_null(True))
    found: BoolArray = nulls.to_numpy(zero_copy_only=False)
    return found


def _check_columns(edges: pa.Table) -> None:
    names = edges.column_names
    known = REQUIRED + OPTIONAL
    for name in names:
        if name not in known:
            hint = did_you_mean(name, [other for other in known if other not in names])
            raise InvalidNetwork(f"there is no column {shown(name)}{hint}", field=pointer(name))
        if names.count(name) > 1:
            raise InvalidNetwork(f"the column {name!r} is there twice", field=pointer(name))
    for name in REQUIRED:
        if name not in names:
            raise InvalidNetwork(f"the column {name!r} is missing; there are {shown(names)}", field=pointer(name))


def _ends(
    columns: dict[str, pa.Array], labels: Names | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], Names | None]:
    tail, head = (_end(columns[name], name) for name in ("tail", "head"))
    if isinstance(tail, np.ndarray) and isinstance(head, np.ndarray):
        return tail, head, labels
    if isinstance(tail, np.ndarray) or isinstance(head, np.ndarray):
        raise InvalidNetwork("tail and head must both be integers or both be text")
    if labels is not None:
        raise InvalidNetwork("with a stream of labels, tail and head must be indices")
    pairs, labels = number_by_appearance(tail, head)
    return pairs[:, 0], pairs[:, 1], labels


def _end(values: pa.Array, name: str) -> NDArray[np.int64] | pa.Array:
    if is_text(values.type):
        return values.cast(pa.large_string())
    if is_text_dictionary(values.type):
        return values
    indices = from_arrow(values, name)
    assert isinstance(indices, np.ndarray)
    return indices


def _edge_ids(values: pa.Array) -> Names:
    """Ids are unique, so that a dictionary of them decodes to no more than it holds."""
    if is_text_dictionary(values.type):
        places = values.indices.to_numpy().astype(np.int64)
        rows = twice(places)
        if rows:
            names = values.dictionary.take(pa.array(np.unique(places[rows])[:ROWS_SHOWN])).to_pylist()
            raise InvalidNetwork(f"edge id {shown(names[0])} occurs more than once", rows, edges=names)
        values = values.dictionary_decode()
    return from_arrow(values, "edge_ids")


def _capacities(
    column: pa.Array, own_decimals: int | None, precision: Precision, unlimited: BoolArray | None, packed: bool
) -> _capacity.Amounts:
    precision = precision.of_body(own_decimals)
    if pa.types.is_integer(column.type):
        whole = column.to_numpy(zero_copy_only=False)
        if packed:
            return _capacity.Amounts(_capacity.from_integers(whole, ROWS), own_decimals or 0)
        return _capacity.from_units(whole, ROWS, own_decimals, precision, unlimited)
    if pa.types.is_decimal128(column.type):
        return _capacity.from_decimals(column, ROWS, precision, unlimited)
    if pa.types.is_floating(column.type):
        return _capacity.from_floats(column.to_numpy(zero_copy_only=False), ROWS, precision, unlimited)
    raise InvalidNetwork(f"capacity must be integer, decimal128 or float64, not {column.type}", field="/capacity")


def _cost(column: pa.Array | None, own_decimals: int | None, precision: Precision) -> _capacity.Amounts | None:
    if column is None:
        precision.refuse_costs(own_decimals)
        return None
    return _costs.from_arrow(column, ROWS, own_decimals, precision.of_costs(own_decimals))
