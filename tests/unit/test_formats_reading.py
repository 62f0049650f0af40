"""What reading a body may take is told from its first bytes and its heads, and nothing is made for it."""

import io
import itertools
import json
import struct
import tracemalloc
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gpu_engine import formats
from gpu_engine.errors import EngineError, InvalidNetwork, TooLarge
from gpu_engine.formats import FREE_BYTES, MEDIA_TYPES, Limits, reading_bytes
from gpu_engine.formats._arrow_check import FREE_MESSAGES, MAX_COLUMNS, ROWS_PER_MESSAGE
from gpu_engine.formats.arrow import measure_tables
from gpu_engine.formats.limits import View
from gpu_engine.formats.reading import FORMATS
from tests import bombs
from tests.bombs import ARROW, CSV, JSON, NPY, NPZ

LIMITS = Limits(max_bytes_decompressed=1 << 30, max_expansion=200)
GENEROUS = 1 << 30


def test_every_format_is_told() -> None:
    assert set(FORMATS) == set(MEDIA_TYPES)


def test_bombs_cost_nothing_to_tell() -> None:
    """Neither memory of Arrow nor of Python; what is not refused here is told to take little."""
    before = pa.total_allocated_bytes()
    for bomb in bombs.graphs():
        if bomb.encoding is not None:
            continue
        tracemalloc.start()
        told, code = 0, None
        try:
            told = reading_bytes(bomb.body, bomb.media_type, LIMITS)
        except EngineError as refusal:
            code = refusal.code
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert code is None or code in bomb.codes, bomb.name
        assert told < GENEROUS, bomb.name
        assert peak < 12_000_000, bomb.name
        assert pa.total_allocated_bytes() - before < 1_000_000, bomb.name


def refused(body: bytes, message: str, media_type: str = ARROW, limits: Limits = LIMITS) -> None:
    """By what tells the memory, and by the reader alike."""
    for act in (reading_bytes, formats.read):
        with pytest.raises(InvalidNetwork, match=message):
            act(body, media_type, limits)


FREE = 1000
PLAIN: dict[str, Any] = {"tail": [0, 1, 0], "head": [1, 2, 2], "capacity": [5, 6, 7]}


def test_buffers_that_share_bytes_are_refused() -> None:
    columns = {name: pa.array(np.arange(FREE)) for name in ("tail", "head", "capacity")}
    body = bombs.stream(columns)
    size = 8 * FREE
    places = [(0, 0), (0, size), (size, 0), (size, size), (2 * size, 0), (2 * size, size)]  # offset and length
    packed = b"".join(struct.pack("<qq", at, length) for at, length in places)
    shared = b"".join(struct.pack("<qq", 0, 3 * length) for _, length in places)
    assert body.count(packed) == 1
    refused(body.replace(packed, shared), "overlap")


def test_members_of_one_place_are_refused_without_a_warning() -> None:
    """By newer Pythons alone zipfile reads them, and warns of a bomb."""
    out = io.BytesIO()
    np.savez(out, **{name: np.array(column) for name, column in PLAIN.items()})
    refused(bombs.overlapping(out.getvalue()), "members of the archive overlap", NPZ)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [(8 * FREE, 1 << 40, "outside"), (8 * FREE, -8, "outside"), (8 * FREE, 8 * FREE - 8, "claims 1000 rows")],
)
def test_lengths_of_buffers_are_held_against_the_bytes(old: int, new: int, message: str) -> None:
    body = bombs.stream({name: pa.array(np.arange(FREE)) for name in ("tail", "head", "capacity")})
    refused(bombs.claiming(body, new, instead_of=old), message)


@pytest.mark.parametrize("declared", [-2, 1 << 40, 0])
def test_lengths_of_compressed_buffers_are_held_against_rows_and_limits(declared: int) -> None:
    body = bombs.stream({name: pa.array(np.arange(FREE)) for name in ("tail", "head", "capacity")}, "zstd")
    refused(bombs.claiming(body, declared, instead_of=8 * FREE), "malformed|decompress|claims")


def test_other_columns_than_the_schema_are_refused() -> None:
    two = bombs.stream({"tail": [0], "head": [1]})
    three = bombs.stream({"tail": [0], "head": [1], "capacity": [1]})
    schema_end = 8 + struct.unpack_from("<i", three, 4)[0]
    batches = two[8 + struct.unpack_from("<i", two, 4)[0] :]
    refused(three[:schema_end] + batches, "other columns than its schema")


def test_streams_are_counted() -> None:
    labels = bombs.stream({"label": ["a", "b", "c"]})
    edges = bombs.stream(PLAIN, metadata={"labelled": "true"})
    assert formats.read(edges + labels, ARROW, LIMITS).vertex_labels == ["a", "b", "c"]
    refused(edges + labels + labels, "something follows")
    refused(edges + labels, "3 rows are more than the limit of 2", limits=Limits(max_vertices=2))
    refused(edges, "3 rows are more than the limit of 2", limits=Limits(max_edges=2))
    refused(b"", "it is empty")
    refused(edges[8 + struct.unpack_from("<i", edges, 4)[0] :], "starts with a schema|not an Arrow")


def many_batches(rows: int, count: int) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({name: pa.array(np.zeros(rows, np.int8)) for name in ("tail", "head", "capacity")})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(count):
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def test_batches_are_as_many_as_their_rows_are_worth() -> None:
    assert reading_bytes(many_batches(1, FREE_MESSAGES - 1), ARROW, LIMITS) > 0
    refused(many_batches(1, FREE_MESSAGES + 1), "too many messages")
    assert reading_bytes(many_batches(ROWS_PER_MESSAGE, FREE_MESSAGES + 1), ARROW, LIMITS) > 0


def test_schemas_are_small() -> None:
    columns = {f"c{k}": pa.array([1]) for k in range(MAX_COLUMNS + 1)}
    refused(bombs.stream(columns), f"at most {MAX_COLUMNS} columns")
    refused(bombs.stream(PLAIN, metadata={"x": 100_000 * "y"}), "a schema of at most")


def test_texts_and_words_are_told_apart() -> None:
    names = pa.array(["ab", "cde", "f"])
    body = bombs.stream(PLAIN | {"tail": names, "head": names.dictionary_encode()})
    (size,) = measure_tables(body, LIMITS, [10])
    assert (size.rows, size.words, size.names) == (3, 3, 6)
    assert size.text_bytes >= 6
    assert size.decompressed_bytes == 0
    (size,) = measure_tables(bombs.stream({"tail": pa.array(np.arange(100))}, "zstd"), LIMITS, [100])
    assert size.decompressed_bytes == 800


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, names: str = "{}.npy") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as target:
        for name, content in members.items():
            target.writestr(names.format(name), content)
    return out.getvalue()


def npy(column: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(column))
    return out.getvalue()


COLUMNS = {name: npy(column) for name, column in PLAIN.items()}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (zipped(COLUMNS, zipfile.ZIP_BZIP2), "neither stored nor deflated"),
        (bombs.declaring(zipped(COLUMNS), 1 << 30), "cannot hold"),
        (zipped(COLUMNS | {"other": b""}), "unknown array 'other'"),
        (zipped(COLUMNS | {"decimals": npy(np.array(["x"], object))}), "npy header|object|not an npz"),
        (bombs.squeezed(FREE_BYTES, zipfile.ZIP_DEFLATED), "more than 200 times"),
        (b"PK\x05\x06" + bytes(18), "are expected"),
        (bombs.archive({f"x{k}": b"" for k in range(5000)}, zipfile.ZIP_STORED), "bytes at a time"),
    ],
)
def test_archives_refused(body: bytes, message: str) -> None:
    if "are expected" in message:
        assert reading_bytes(body, NPZ, LIMITS) == 0
        with pytest.raises(InvalidNetwork, match=message):
            formats.read(body, NPZ, LIMITS)
    else:
        refused(body, message, NPZ)


def test_an_array_twice_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for name, content in COLUMNS.items():
            target.writestr(f"{name}.npy", content)
        with pytest.warns(UserWarning, match="Duplicate"):
            target.writestr("tail.npy", COLUMNS["tail"])
    refused(out.getvalue(), "twice", NPZ)


def test_rows_of_an_archive_are_counted_before_they_are_read() -> None:
    refused(zipped(COLUMNS), "3 edges are more than the limit of 2", NPZ, Limits(max_edges=2))


def test_a_matrix_is_told_by_what_is_in_it() -> None:
    empty, full = (npy(np.full((500, 500), entry, np.int8)) for entry in (0, 1))
    assert reading_bytes(full, NPY, LIMITS) > 50 * reading_bytes(empty, NPY, LIMITS)
    refused(full, "250000 edges are more than", NPY, Limits(max_edges=1000))
    refused(npy(np.full((5, 5), True)), "integers or floats", NPY)


@pytest.mark.parametrize(
    ("media_type", "little", "much"),
    [
        (JSON, [1] * 100, [1] * 1000),
        (JSON, [1] * 1000, [1.5] * 1000),
        (JSON, [1.5] * 1000, ["a"] * 1000),
        (JSON, ["a"] * 1000, ["\U0001f600"] * 1000),
    ],
)
def test_json_is_told_by_its_values(media_type: str, little: list[Any], much: list[Any]) -> None:
    told = [
        reading_bytes(json.dumps({"tail": column}, ensure_ascii=False).encode(), JSON, LIMITS)
        for column in (little, much)
    ]
    assert told[1] > 1.1 * told[0]


def test_text_is_told_by_its_lines_and_words() -> None:
    rows = ["12,34,5\n" * 100, "1,2,3\n" * 1000, "a,b,3\n" * 1000]
    told = [reading_bytes(row.encode(), CSV, LIMITS) for row in rows]
    assert 2 * told[0] < told[1] < told[2] / 2
    assert reading_bytes(b"1-2,3-4,5\n" * 1000, CSV, LIMITS) > 2 * told[1]  # names of digits


def test_counting_does_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'{"tail":["ab","c"],"capacity":[1.5,2e3,0.25]}\n1-2,x/y\n'
    told = {}
    for block in (1, 2, 3, 7, 1 << 20):
        monkeypatch.setattr("gpu_engine.formats.reading.BLOCK_BYTES", block)
        told[block] = [reading_bytes(text, media_type, LIMITS) for media_type in (JSON, CSV)]
    assert len(set(map(tuple, told.values()))) == 1


def test_a_view_is_read_like_a_file() -> None:
    view, file = View(b"0123456789", 8), io.BytesIO(b"0123456789")
    for (seek, whence), size in itertools.product([(4, 0), (3, 1), (-2, 1), (-3, 2), (20, 0)], (0, 3, 8)):
        outcomes = []
        for source in (view, file):
            source.seek(2)
            outcomes.append((source.seek(seek, whence), source.read(size), source.tell()))
        assert outcomes[0] == outcomes[1]
    with pytest.raises(OSError, match="before the first"):
        view.seek(-1)
    view.seek(0)
    with pytest.raises(ValueError, match="at a time"):
        view.read(9)
    with pytest.raises(ValueError, match="at a time"):
        view.read()


def test_want_of_memory_is_no_fault_of_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(pa.ipc, "open_stream", none_left)
    with pytest.raises(MemoryError):
        formats.read(bombs.stream(PLAIN), ARROW, LIMITS)


def test_too_large_says_how_much() -> None:
    limits = Limits(max_bytes_decompressed=100, max_expansion=10)
    limits.check_decompressed(100, 10)
    with pytest.raises(TooLarge, match="101 bytes decompressed are over the limit of 100"):
        limits.check_decompressed(101, 100)
    limits = Limits(max_expansion=10)
    limits.check_decompressed(FREE_BYTES, 1)
    limits.check_decompressed(10 * FREE_BYTES, FREE_BYTES)
    with pytest.raises(TooLarge, match="send them uncompressed"):
        limits.check_decompressed(FREE_BYTES + 1, 1)
