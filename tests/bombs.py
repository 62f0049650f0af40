"""Small bodies that would take much time or memory to read, each with the code it is to be refused with.

Every generator is cheap: none builds what its body stands for. Tests, the fuzzer and the attack run share them.
"""

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import zstandard

ARROW: Final = "application/vnd.apache.arrow.stream"
NPZ: Final = "application/x-npz"
NPY: Final = "application/x-npy"
JSON: Final = "application/json"
CSV: Final = "text/csv"

FEW: Final = 77_777
"""Rows that are really there where a stream is told afterwards that it has more: a number found once in its bytes."""
MANY: Final = 20_000_000
MOST: Final = 400_000_000
BILLION: Final = 10**9

Columns = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Bomb:
    """A body, and the codes of the refusals that are right for it."""

    name: str
    media_type: str
    body: bytes
    codes: frozenset[str]
    encoding: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        encoding = {} if self.encoding is None else {"Content-Encoding": self.encoding}
        return {"Content-Type": self.media_type} | encoding


def stream(columns: Columns, compression: str | None = None, metadata: Mapping[str, str] | None = None) -> bytes:
    """An Arrow IPC stream of one record batch."""
    batch = pa.record_batch(dict(columns)).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def claiming(body: bytes, rows: int, instead_of: int = FEW) -> bytes:
    """The stream with another number of rows in its heads, over the buffers it has."""
    return body.replace(struct.pack("<q", instead_of), struct.pack("<q", rows))


def patches() -> Iterator[Bomb]:
    """For PATCH of capacities."""
    yield from _arrows(lambda column: {"edge": column, "set": column}, lambda rows: {"edge": rows, "set": rows})
    for letters in (20_000, 5_000_000):
        text = json.dumps({"edges": [letters * "x"], "set": [1]}).encode()
        yield Bomb(f"JSON edge of {letters} letters", JSON, text, frozenset({"too_large"}))
    numbers = ["1e1000000000", "1e-1000000000", "1e99999999999999999999", "9" * 4000]
    for number in numbers:
        text = f'{{"edges":[0],"set":[{number}]}}'.encode()
        yield Bomb(f"JSON amount {number[:20]}", JSON, text, frozenset({"invalid_body", "capacity_overflow"}))
    yield Bomb("deep JSON", JSON, 60_000 * b"[", frozenset({"invalid_body"}))
    yield from _encoded(JSON)


def graphs() -> Iterator[Bomb]:
    """For PUT of a graph."""
    yield from _arrows(
        lambda column: {"tail": column, "head": column, "capacity": column},
        lambda rows: {"tail": rows, "head": rows, "capacity": rows},
    )
    yield from _archives()
    yield from _texts()
    yield from _encoded(JSON)
    yield from _encoded(CSV)


def _arrows(same: Callable[[Any], Columns], integers: Callable[[Any], Columns]) -> Iterator[Bomb]:
    """`same` gives the columns of a body that all hold what it is given."""
    refused = frozenset({"invalid_body", "too_large"})

    def bomb(name: str, body: bytes, codes: frozenset[str] = refused) -> Bomb:
        return Bomb(f"Arrow {name}", ARROW, body, codes)

    nothing = stream(same(pa.nulls(FEW)))
    for rows in (MANY, MOST, BILLION):
        yield bomb(f"{rows} nulls", claiming(nothing, rows))
    zeros = pa.array(np.zeros(MANY // 2, np.int64))
    for method in ("zstd", "lz4"):
        yield bomb(f"zeros by {method}", stream(integers(zeros), method))
    few = stream(integers(pa.array(np.arange(FEW))))
    yield bomb("more rows than its buffers hold", claiming(few, BILLION))
    yield bomb("fewer than no rows", claiming(few, -5))
    empty = claiming(stream(integers(pa.array([], pa.int64()))), 2**40, instead_of=0)
    yield bomb("rows over empty buffers", empty)
    yield from (bomb(name, stream(same(column))) for name, column in _columns())
    words = pa.array([100_000 * b"x"], pa.large_binary())
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int8)), words)
    yield bomb("one long binary word many times", stream(same(long), "zstd"))
    yield bomb("many dictionaries", many_dictionaries())
    yield bomb("many empty batches", many_batches(20_000))
    yield bomb("metadata of 8 MB", stream(integers(pa.array([1])), metadata={"x": 8_000_000 * "y"}))
    wide = {f"column {number}": pa.array([1]) for number in range(2000)}
    yield bomb("thousands of columns", stream(wide))


def _columns() -> Iterator[tuple[str, Any]]:
    """Columns of types that make much of little."""
    words = {"large_binary": pa.large_binary(), "binary": pa.binary(), "null": pa.null(), "list": pa.list_(pa.null())}
    for name, kind in words.items():
        value = pa.array([[None]] if name == "list" else [None], kind)
        indices = pa.array(np.zeros(3, np.int8))
        yield f"dictionary<{name}>", pa.DictionaryArray.from_arrays(indices, value)
    yield "run ends", pa.RunEndEncodedArray.from_arrays(pa.array([BILLION], pa.int32()), pa.array([7]))
    yield "zero-width bytes", pa.Array.from_buffers(pa.binary(0), MANY, [None, pa.py_buffer(b"")])
    yield "empty structs", pa.Array.from_buffers(pa.struct([]), MANY, [None])
    nested = pa.null()
    for _ in range(50):
        nested = pa.list_(nested)
    yield "nested lists", pa.array([None], nested)
    view = np.array([1_000_000, int.from_bytes(b"xxxx", "little"), 0, 0], np.int32)
    shown = [None, pa.py_buffer(np.tile(view, 100_000)), pa.py_buffer(1_000_000 * b"x")]
    yield "views of one long text", pa.Array.from_buffers(pa.string_view(), 100_000, shown)
    yield "lists of nulls", pa.FixedSizeListArray.from_arrays(pa.nulls(MANY), 1)
    yield "decimal256", pa.array([1], pa.decimal256(40, 0))
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int8)), [100_000 * "x"])
    yield "one long word many times", long


def many_dictionaries() -> bytes:
    """One large dictionary and a thousand small additions to it, each with a batch that refers to all of it."""
    first = pa.array([f"{number:040}" for number in range(10_000)])
    sink = pa.BufferOutputStream()
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("edge", kind), ("set", pa.int64())])
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        words = first
        for number in range(30):
            words = pa.concat_arrays([words, pa.array([f"more {number}"])])
            column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), words)
            writer.write_batch(pa.record_batch([column, pa.array([1])], schema=schema))
    return bytes(sink.getvalue())


def many_batches(count: int) -> bytes:
    """A stream of record batches without rows."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"edge": pa.array([], pa.int64()), "set": pa.array([], pa.int64())})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(count):
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def npy_head(rows: int, kind: str = "<i8", shape: tuple[int, ...] | None = None, fortran: bool = False) -> bytes:
    out = io.BytesIO()
    described = {"descr": kind, "fortran_order": fortran, "shape": (rows,) if shape is None else shape}
    np.lib.format.write_array_header_1_0(out, described)
    return out.getvalue()


def archive(members: Mapping[str, bytes], method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as target:
        for name, content in members.items():
            target.writestr(f"{name}.npy", content)
    return out.getvalue()


def squeezed(bytes_each: int, method: int) -> bytes:
    """An npz whose three columns are zeros."""
    out = io.BytesIO()
    piece = bytes(1 << 20)
    with zipfile.ZipFile(out, "w", method) as target:
        for name in ("tail", "head", "capacity"):
            with target.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(npy_head(bytes_each // 8))
                for _ in range(bytes_each >> 20):
                    member.write(piece)
    return out.getvalue()


def _archives() -> Iterator[Bomb]:
    refused = frozenset({"invalid_body", "too_large"})

    def bomb(name: str, body: bytes) -> Bomb:
        return Bomb(f"npz {name}", NPZ, body, refused)

    yield bomb("zeros by bzip2", squeezed(32 << 20, zipfile.ZIP_BZIP2))
    yield bomb("zeros by lzma", squeezed(4 << 20, zipfile.ZIP_LZMA))
    yield bomb("zeros by deflate", squeezed(32 << 20, zipfile.ZIP_DEFLATED))
    names = ("tail", "head", "capacity")
    plain = archive(dict.fromkeys(names, npy_head(3) + bytes(24)), zipfile.ZIP_DEFLATED)
    yield bomb("lying about its sizes", declaring(squeezed(8 << 20, zipfile.ZIP_DEFLATED), 910 << 20))
    yield bomb("lying about small sizes", declaring(squeezed(32 << 20, zipfile.ZIP_DEFLATED), 152))
    yield bomb("overlapping members", overlapping(plain))
    yield bomb("thousands of members", archive({f"tail{n}": b"" for n in range(20_000)}, zipfile.ZIP_STORED))
    claims = {
        "claiming rows it has not": npy_head(10**12),
        "of no bytes a row": npy_head(10**12, "|V0"),
        "of empty text": npy_head(10**12, "<U0"),
        "of a shape of nothing": npy_head(0, shape=(0, 10**12)),
        "of objects": npy_head(3, "|O") + bytes(24),
        "of structures": npy_head(3, [("a", "<i8")]) + bytes(24),  # type: ignore[arg-type]  # a list where numpy writes text
        "in Fortran order of many axes": npy_head(0, shape=(1,) * 40, fortran=True) + bytes(8),
    }
    for name, member in claims.items():
        yield bomb(name, archive(dict.fromkeys(names, member), zipfile.ZIP_DEFLATED))
        yield Bomb(f"npy {name}", NPY, member, refused)


def declaring(body: bytes, size: int) -> bytes:
    """An archive whose directory claims `size` bytes for each member."""
    out = bytearray(body)
    at = out.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<I", out, at + 24, size)
        at = out.find(b"PK\x01\x02", at + 46)
    return bytes(out)


def overlapping(body: bytes) -> bytes:
    """An archive all of whose members are its first one."""
    out = bytearray(body)
    at = out.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<I", out, at + 42, 0)
        at = out.find(b"PK\x01\x02", at + 46)
    return bytes(out)


def _texts() -> Iterator[Bomb]:
    refused = frozenset({"invalid_body", "too_large", "capacity_overflow"})
    banner = "%%MatrixMarket matrix coordinate integer general\n"
    edges = '"tail":[0],"head":[1],"capacity"'
    bodies = {
        f"{CSV} one enormous field": "tail,head,capacity\n" + 8_000_000 * "x" + ",b,1\n",
        f"{CSV} an open quote": 'tail,head,capacity\n"' + 2_000_000 * "x,1\n",
        f"{CSV} an enormous header": 1_000_000 * "tail," + "\n",
        "text/x-dimacs billions of vertices": "p max 99999999999 1\na 1 2 3\n",
        "text/x-dimacs billions of arcs": "p max 2 99999999999\na 1 2 3\n",
        "text/x-matrix-market billions of rows": f"{banner}99999999999 99999999999 1\n1 2 3\n",
        "text/x-matrix-market billions of entries": f"{banner}2 2 99999999999\n1 2 3\n",
        f"{JSON} an exponent of a billion": f"{{{edges}:[1e1000000000]}}",
        f"{JSON} an exponent below all": f"{{{edges}:[1e-1000000000]}}",
        f"{JSON} an endless exponent": f"{{{edges}:[1e{'9' * 4000}]}}",
        f"{JSON} billions of vertices": f'{{"n_vertices":99999999999,{edges}:[1]}}',
        f"{JSON} one enormous label": f'{{"tail":["{4_000_000 * "x"}"],"head":["b"],"capacity":[1]}}',
        f"{JSON} brackets": 60_000 * "[",
    }
    for name, text in bodies.items():
        media_type, _, what = name.partition(" ")
        yield Bomb(name, media_type, text.encode(), refused)
    amounts = {"an exponent of a billion": "1e1000000000", "an exponent below all": "1e-1000000000"}
    for what, number in amounts.items():
        yield Bomb(f"{CSV} {what}", CSV, f"tail,head,capacity\na,b,{number}\n".encode(), refused)


def _encoded(media_type: str) -> Iterator[Bomb]:
    """Bodies that decode to much more than was sent."""
    refused = frozenset({"too_large", "invalid_body"})
    blank = bytes(1 << 20).replace(b"\0", b" ")
    packer = zstandard.ZstdCompressor().compressobj()
    zeros = b"".join(packer.compress(blank) for _ in range(512)) + packer.flush()
    yield Bomb(f"zstd {media_type} of blanks", media_type, zeros, refused, "zstd")
    once = gzip.compress(64 * blank)
    yield Bomb(f"gzip {media_type} of blanks", media_type, once, refused, "gzip")
    yield Bomb(f"gzip in gzip {media_type}", media_type, gzip.compress(once), refused, "gzip")
    members = 100_000 * gzip.compress(b"", mtime=0)
    yield Bomb(f"gzip {media_type} of many empty members", media_type, members, refused, "gzip")
