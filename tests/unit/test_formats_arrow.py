"""Arrow IPC streams: column types, labels, metadata, and bombs refused before they go off."""

import contextlib
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_engine.errors import CapacityOverflow, EngineError, InvalidNetwork, TooLarge
from gpu_engine.formats import (
    Limits,
    pack,
    read_arrow,
    read_json,
    read_npz,
    unpack,
    write_arrow,
    write_json,
    write_npz,
)
from gpu_engine.formats.arrow import stated_decimals
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import INFINITE


def stream(columns: dict[str, Any], metadata: dict[str, str] | None = None, compression: str | None = None) -> bytes:
    table = pa.table(columns).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=2)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


BASE: dict[str, Any] = {"tail": [0, 1, 0], "head": [1, 2, 2], "capacity": [5, 6, 7]}


def test_integers_count_units() -> None:
    metadata = {"decimals": "2", "n_vertices": "9", "source": "0", "sink": "8", "undirected": "true"}
    edges = read_arrow(stream(BASE | {"unlimited": [False, True, False]}, metadata))
    assert edges.capacity.tolist() == [5, INFINITE, 7]
    assert (edges.decimals, edges.n_vertices, edges.undirected) == (2, 9, True)
    assert (edges.source, edges.sink) == (0, 8)


@pytest.mark.parametrize(
    ("capacity", "metadata", "units", "decimals"),
    [
        (pa.array([Decimal("1.50"), Decimal("2.00"), Decimal(0)], pa.decimal128(9, 2)), {}, [15, 20, 0], 1),
        (pa.array([Decimal("1.50"), Decimal(2), Decimal(0)]), {"decimals": "3"}, [1500, 2000, 0], 3),
        (pa.array([0.1, 0.25, float("inf")]), {"decimals": "2"}, [10, 25, INFINITE], 2),
        (pa.array([0.1, 2.0, 3.0]), {}, [1, 20, 30], 1),
        (pa.array([1e8, 0.123456789, 3.0]), {}, [10**17, 123456789, 3 * 10**9], 9),
        (pa.array([1, 2, 3], pa.uint8()), {}, [1, 2, 3], 0),
    ],
)
def test_amounts_are_exact(capacity: pa.Array, metadata: dict[str, str], units: list[int], decimals: int) -> None:
    edges = read_arrow(stream(BASE | {"capacity": capacity}, metadata))
    assert edges.capacity.tolist() == units
    assert edges.decimals == decimals


@pytest.mark.parametrize(("write", "read"), [(write_arrow, read_arrow), (write_npz, read_npz), (write_json, read_json)])
def test_a_network_with_every_column_is_read_again(write: Any, read: Any) -> None:
    edges = EdgeList(
        3,
        np.array([0, 1, 0], np.int32),
        np.array([1, 2, 2], np.int32),
        np.array([5, INFINITE, 7]),
        undirected=np.array([False, True, False]),
        edge_ids=["a", "b", "c"],
        vertex_labels=["s", "u", "t"],
        closed=np.array([True, False, False]),
        cost=np.array([4, 0, -2]),
        lower=np.array([0, 0, 1]),
    )
    again = read(write(edges))
    for name in ("capacity", "undirected", "edge_ids", "closed", "cost", "lower"):
        assert list(getattr(again, name)) == list(getattr(edges, name)), name


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_names_are_numbered_as_they_appear(kind: pa.DataType) -> None:
    ends = {"tail": pa.array(["b", "a", "b"], kind), "head": pa.array(["a", "c", "c"], kind)}
    edges = read_arrow(stream(BASE | ends))
    assert edges.vertex_labels == ["b", "a", "c"]
    assert edges.tail.tolist() == [0, 1, 0]
    assert edges.head.tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    ("changes", "metadata", "message"),
    [
        ({"capacity": [1, None, 3]}, {}, "row 1: capacity is null"),
        ({"capacity": [1, -2, 3]}, {}, "row 1: capacity is negative"),
        ({"capacity": [1.0, float("nan"), 3.0]}, {}, "row 1: capacity is not a number"),
        ({"capacity": [1.0, 0.1 + 0.2, 3.0]}, {}, "row 1: capacity has more than 9 decimals"),
        ({"capacity": [1.0, 0.25, 3.0]}, {"decimals": "1"}, "row 1: capacity has more than 1 decimal"),
        ({"capacity": [True, False, True]}, {}, "capacity must be integer"),
        ({"capacity": ["1", "2", "3"]}, {}, "capacity must be integer"),
        ({"tail": [0, -1, 0]}, {}, "row 1: tail is no vertex"),
        ({"tail": [0.0, 1.0, 0.0]}, {}, "tail must be integers or text"),
        ({"tail": ["a", "b", "c"]}, {}, "both be integers or both be text"),
        ({"undirected": [0, 1, 0]}, {}, "undirected must be boolean"),
        ({"edge_ids": [1, 1, 2]}, {}, "edge id 1 occurs more than once"),
        ({"edge_id": [1, 1, 2]}, {}, "edge id 1 occurs more than once"),
        ({"edge_id": [1, 3, 2], "edge_ids": [1, 3, 2]}, {}, "'edge_ids' is there twice"),
        ({"colour": [1, 1, 2]}, {}, "there is no column 'colour'"),
        ({}, {"decimals": "x"}, "metadata decimals"),
        ({}, {"decimal": "2"}, "metadata 'decimal' is not read: did you mean 'decimals'"),
        ({}, {"Decimals": "2"}, "did you mean 'decimals'"),
        ({}, {"vertices": "9"}, "did you mean 'n_vertices'"),
        ({}, {"vertex": "9"}, "did you mean 'n_vertices'"),
        ({}, {"directed": "true"}, "did you mean 'undirected'"),
        ({}, {"sources": "0"}, "did you mean 'source'"),
        ({}, {"src": "0"}, "did you mean 'source'"),
        ({}, {"capacity_decimals": "2"}, "did you mean 'decimals'"),
        ({"undirected": [True, False, True]}, {"undirected": "true"}, "metadata undirected is true, and the column"),
        ({}, {"rounding": "down"}, "metadata rounding is not read: the query"),
        ({}, {"decimals": "10"}, "decimals must be"),
        ({}, {"undirected": "yes"}, "metadata undirected"),
        ({}, {"sink": "99"}, "sink 99 is no vertex"),
    ],
)
def test_columns_refused(changes: dict[str, Any], metadata: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidNetwork, match=message):
        read_arrow(stream(BASE | changes, metadata))


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"decimals": "2"}, "metadata decimals of the second stream .'2'. is not read: say it in that of the first"),
        ({"decimal": "1"}, "metadata 'decimal' is not read: did you mean 'decimals'"),
        ({"n_vertices": "7"}, "metadata n_vertices of the second stream"),
        ({"crs": "EPSG:4326"}, "metadata crs of the second stream"),
        ({"rounding": "up"}, "metadata rounding is not read"),
    ],
)
def test_what_a_second_stream_says_otherwise_is_refused(second: dict[str, str], message: str) -> None:
    edges = stream(BASE, {"decimals": "1"})
    vertices = {"capacity": pa.array([5] * 3, pa.int64())}
    with pytest.raises(InvalidNetwork, match=message):
        read_arrow(edges + stream(vertices, second))
    for alike in ({}, {"decimals": "1"}, {"pandas": "{}", "author": "me"}):
        read = read_arrow(edges + stream(vertices, alike))
        assert (read.decimals, read.vertex_capacity is not None) == (1, True)


def test_what_a_writer_says_for_itself_is_left_alone() -> None:
    own = {"pandas": "{}", "source_file": "a.csv", "created": "today", "ARROW:schema": "", "author": "me", "table": ""}
    assert read_arrow(stream(BASE, own | {"n_vertices": "9"})).n_vertices == 9


@pytest.mark.parametrize(
    "capacity",
    [
        pa.array([1, 2**62, 3]),
        pa.array([1, 2**64 - 1, 3], pa.uint64()),
        pa.array([1.0, 1e18, 3.0]),
        pa.array([Decimal(1), Decimal(10) ** 30, Decimal(3)], pa.decimal128(38, 0)),
    ],
)
def test_huge_capacities_are_an_overflow(capacity: pa.Array) -> None:
    with pytest.raises(CapacityOverflow, match="row 1"):
        read_arrow(stream(BASE | {"capacity": capacity}))


def test_missing_column() -> None:
    with pytest.raises(InvalidNetwork, match="'head' is missing"):
        read_arrow(stream({"tail": [0], "capacity": [1]}))


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_every_truncation_is_refused(compression: str | None) -> None:
    whole = stream(BASE, compression=compression)
    for cut in range(0, len(whole), 4):
        with pytest.raises(InvalidNetwork):
            read_arrow(whole[:cut])


def test_every_truncation_of_a_labelled_network_is_refused() -> None:
    whole = pack(read_arrow(stream(BASE | {"tail": ["b", "a", "b"], "head": ["a", "c", "c"]})))
    assert unpack(whole).vertex_labels == ["b", "a", "c"]
    for cut in range(0, len(whole), 4):
        with pytest.raises(InvalidNetwork):
            unpack(whole[:cut])
    with pytest.raises(InvalidNetwork):
        unpack(whole + b"rest")
    with pytest.raises(InvalidNetwork):
        unpack(whole + whole)


@pytest.mark.parametrize("seed", range(3))
def test_damage_never_raises_anything_else(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = np.frombuffer(pack(generate("grid", seed=seed, rows=5, columns=5)), dtype=np.uint8)
    for _ in range(300):
        damaged = whole.copy()
        damaged[rng.integers(0, len(whole), 4)] = rng.integers(0, 256, 4)
        with contextlib.suppress(EngineError):
            unpack(damaged.tobytes(), Limits(max_bytes_decompressed=1 << 20))


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_bomb_is_refused_by_its_declared_size(compression: str) -> None:
    zeros = np.zeros(1 << 20, dtype=np.int64)
    columns = {"tail": zeros, "head": zeros, "capacity": zeros}
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    packed = sink.getvalue().to_pybytes()
    assert len(packed) < 200_000
    with pytest.raises(TooLarge, match="decompress"):
        read_arrow(packed, Limits(max_bytes_decompressed=(3 << 23) - 1))
    with pytest.raises(TooLarge, match="more than 100 times as many"):
        read_arrow(packed, Limits(max_expansion=100))
    assert read_arrow(packed, Limits(max_bytes_decompressed=3 << 23)).n_edges == 1 << 20


def test_a_dictionary_of_long_names_is_not_written_out() -> None:
    """A hundred megabytes, were each use a copy."""
    names = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), ["x" * 100_000])
    packed = stream({"tail": names, "head": names, "capacity": [1] * 1000})
    pool = pa.system_memory_pool()
    before, most = pa.default_memory_pool(), pool.max_memory()  # of all tests of this process
    pa.set_memory_pool(pool)
    try:
        edges = read_arrow(packed, Limits(max_bytes_decompressed=1 << 20))
    finally:
        pa.set_memory_pool(before)
    assert edges.vertex_labels == ["x" * 100_000]
    assert pool.max_memory() < most + 5_000_000


def dictionary(words: list[str | None], indices: list[int | None], kind: pa.DataType) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, kind), pa.array(words))


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.uint64(), pa.int64()])
def test_dictionaries_are_joined(kind: pa.DataType) -> None:
    """Both have a hundred words, in part the same ones, some unused, one twice."""
    tail = dictionary([f"v{k}" for k in range(100)], [99, 3, 0], kind)
    head = dictionary([f"v{k + 50}" for k in range(99)] + ["v99"], [99, 49, 98], kind)
    edges = read_arrow(stream(BASE | {"tail": tail, "head": head}))
    assert edges.vertex_labels == ["v99", "v3", "v0", "v148"]
    assert edges.tail.tolist() == [0, 1, 2]
    assert edges.head.tolist() == [0, 0, 3]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (dictionary(["a", "b"], [0, None, 1], pa.int8()), "row 1: tail is null"),
        (dictionary(["a", None], [0, 0, 1], pa.int8()), "row 2: tail is null"),
        (dictionary(["a", "b"], [0, 1, 0], pa.int8()).cast(pa.dictionary(pa.int8(), pa.binary())), "are not read"),
    ],
)
def test_dictionaries_refused(column: pa.Array, message: str) -> None:
    with pytest.raises(InvalidNetwork, match=message):
        read_arrow(stream(BASE | {"tail": column, "head": column}))


def test_dictionaries_of_ids_and_numbers() -> None:
    ids = dictionary(["a", "b", "unused", "c"], [3, 0, 1], pa.int8())
    capacity = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), pa.array([5, 7]))
    edges = read_arrow(stream(BASE | {"edge_id": ids, "capacity": capacity}))
    assert edges.edge_ids == ["c", "a", "b"]
    assert edges.capacity.tolist() == [7, 5, 7]
    with pytest.raises(InvalidNetwork, match="'b' occurs more than once"):
        read_arrow(stream(BASE | {"edge_id": dictionary(["a", "b"], [1, 0, 1], pa.int8())}))
    with pytest.raises(InvalidNetwork, match="'b' occurs more than once"):
        read_arrow(stream(BASE | {"edge_id": dictionary(["a", "b", "b"], [1, 0, 2], pa.int8())}))


def test_limits() -> None:
    with pytest.raises(TooLarge):
        read_arrow(stream(BASE), Limits(max_edges=2))
    with pytest.raises(TooLarge):
        read_arrow(stream(BASE), Limits(max_vertices=2))


def test_ids_are_called_alike_in_files_and_as_ever_in_snapshots() -> None:
    """A worker of the release before reads what this one has packed."""
    edges = read_arrow(stream(BASE | {"edge_ids": ["a", "b", "c"]}))
    for written, name in ((write_arrow(edges), "edge_ids"), (pack(edges), "edge_id")):
        with pa.ipc.open_stream(written) as reader:
            assert [column for column in reader.schema.names if column.startswith("edge_id")] == [name]
    assert unpack(pack(edges)).edge_ids == read_arrow(write_arrow(edges)).edge_ids == ["a", "b", "c"]


def test_an_empty_column_has_no_type_of_its_own() -> None:
    """As a client makes one of an empty list, or of a table that a filter has left nothing of."""
    nothing = {name: np.zeros(0, np.int64) for name in ("tail", "head", "capacity", "undirected", "closed")}
    edges = read_arrow(stream(nothing, {"n_vertices": "3"}))
    assert (edges.n_vertices, edges.n_edges, edges.closed is None or not len(edges.closed)) == (3, 0, True)
    with pytest.raises(InvalidNetwork, match="undirected must be boolean"):
        read_arrow(stream(BASE | {"undirected": [1, 0, 1]}))


def test_the_operation_of_an_update_is_no_metadata() -> None:
    """It would close nothing. What is loaded has no operation, so that the key is another tool's there."""
    schema = pa.schema([], metadata={"op": "close"})
    with pytest.raises(InvalidNetwork, match="metadata op is not read: an update in JSON closes and reopens edges"):
        stated_decimals(schema, ["decimals"])
    assert stated_decimals(schema.with_metadata({"author": "me"}), ["decimals"]) is None
    assert read_arrow(stream(BASE, {"op": "close"})).n_edges == 3
