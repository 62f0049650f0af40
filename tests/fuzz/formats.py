"""Every format parser against damaged and invented input: a network, or a refusal with a listed code, soon."""

import io
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, seed
from hypothesis import settings as examples
from hypothesis import strategies as st

from benchmarks.results import Row
from gpu_engine import formats
from gpu_engine.errors import EngineError
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import check
from service.errors import STATUS
from tests import bombs

HANG_S: Final = 5
SMALL_BYTES: Final = 4096
LIMITS: Final = formats.Limits(
    max_vertices=100_000, max_edges=100_000, max_bytes_decompressed=4 << 20, max_expansion=200
)

SMALL: Final = EdgeList(
    n_vertices=4,
    tail=np.array([0, 0, 1, 2], np.int32),
    head=np.array([1, 2, 3, 3], np.int32),
    capacity=np.array([30, 25, 40, 20], np.int64),
    decimals=1,
    edge_ids=["a", "b", "c", "d"],
    vertex_labels=["s", "u", "v", "t"],
    source=0,
    sink=3,
)
PLAIN: Final = EdgeList(4, SMALL.tail, SMALL.head, SMALL.capacity, source=0, sink=3)


def npy_of(matrix: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, matrix)
    return out.getvalue()


MATRIX: Final = b"""%%MatrixMarket matrix coordinate real general
4 4 4
1 2 3
1 3 2.5
2 4 4
3 4 2
"""

VIEWS: Final = bombs.stream(
    {"tail": pa.array(["s", "a vertex with a long name"], pa.string_view()), "head": ["t", "t"], "capacity": [3, 4]}
)

SEEDS: Final[dict[str, list[bytes]]] = {
    "application/json": [
        formats.write_json(SMALL),
        b'{"n_vertices":4,"tail":[0,0],"head":[1,2],"capacity":[3,"inf"],"undirected":[true,false]}',
    ],
    "application/vnd.apache.arrow.stream": [formats.write_arrow(SMALL), formats.write_arrow(PLAIN), VIEWS],
    "application/x-npz": [formats.write_npz(SMALL), formats.write_npz(PLAIN)],
    "application/x-npy": [npy_of(np.array([[0.0, 2.5], [0.0, 0.0]])), npy_of(np.array([[0, 1], [0, 0]], np.int32))],
    "text/x-dimacs": [
        formats.write_dimacs(PLAIN),
        b"p min 3 3\nn 1 4\nn 3 -4\na 1 2 0 4 2\na 2 3 0 5 -1\na 1 3 0 1 7\n",
    ],
    "text/csv": [formats.write_csv(SMALL), formats.write_csv(PLAIN)],
    "text/x-matrix-market": [MATRIX, b"%%MatrixMarket matrix coordinate integer symmetric\n2 2 1\n2 1 3\n"],
    "text/x-adjacency-matrix": [b"0 3 2\n0 0 1\n0 0 0\n", b"0,1\n2.5,inf\n"],
}
"""Well-formed documents of each kind, to be damaged."""


@cache
def small_bombs() -> dict[str, list[bytes]]:
    """By media type: to be damaged as well, as one that slips through a check must not get far."""
    small: dict[str, list[bytes]] = {media_type: [] for media_type in SEEDS}
    for bomb in bombs.graphs():
        if bomb.encoding is None and len(bomb.body) < SMALL_BYTES:
            small[bomb.media_type].append(bomb.body)
    return small


TOKENS: Final = [
    *(b"-1", b"0", b"1", b"9" * 19, b"9" * 40, b"1e999", b"1e-999", b"nan", b"inf", b"-inf", b"true", b"null", b"0x1"),
    *(b"[", b"{", b'"', b"[" * 3000, b",", b"\n", b"\r", b"\0", b"%", b"p max 99999999999 1\n", b"a 1 2 3\n", b"c\n"),
    *(
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"2147483648",
        b"(",
        b"object",
        b"|O",
        b"PK\x03\x04",
        b"\xff\xff\xff\xff",
    ),
]


@st.composite
def damaged(draw: st.DrawFn, wholes: list[bytes]) -> bytes:
    """A well-formed document after a few cuts, flips, repeats and insertions."""
    data = bytearray(draw(st.sampled_from(wholes)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        match draw(st.sampled_from(["cut", "flip", "token", "repeat", "truncate", "bytes"])):
            case "cut":
                del data[at:end]
            case "flip" if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "token":
                data[at:end] = draw(st.sampled_from(TOKENS))
            case "repeat":
                data[at:at] = data[at:end] * draw(st.integers(1, 50))
            case "truncate":
                del data[at:]
            case _:
                data[at:end] = draw(st.binary(max_size=8))
    return bytes(data)


def documents(media_type: str) -> st.SearchStrategy[bytes]:
    wholes = SEEDS[media_type]
    tokens = st.lists(st.sampled_from(TOKENS) | st.binary(max_size=4), max_size=12).map(b" ".join)
    bad = small_bombs()[media_type]
    return damaged(wholes) | damaged(wholes) | damaged(bad or wholes) | tokens | st.binary(max_size=80)


class Hang(Exception):
    """A reader was not done in time."""


@contextmanager
def in_time(limit_s: int = HANG_S) -> Iterator[None]:
    """Raises `Hang` between two byte codes once the limit has passed."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise Hang(f"not read within {limit_s} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(limit_s)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(data: bytes, media_type: str) -> str:
    """What a load would answer to this body: "read", or the code it is refused with."""
    try:
        formats.reading_bytes(data, media_type, LIMITS)
        edges = formats.read(data, media_type, LIMITS)
        check(edges)
        formats.pack(edges)
    except EngineError as error:
        if error.code not in STATUS:
            raise LookupError(f"{error.code} is no listed code") from error
        return error.code
    return "read"


def checker(media_type: str, cases: int, seed_: int, seen: Counter[str]) -> Callable[[], Any]:
    """A Hypothesis test of one reader."""

    @seed(seed_)
    @examples(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(documents(media_type))
    def reads_or_refuses(data: bytes) -> None:
        with in_time():
            seen[outcome(data, media_type)] += 1

    return reads_or_refuses


def run(cases: int, seed_: int) -> Iterator[Row]:
    """All readers, about `cases` in all: one row each, `failed` if it did neither read nor refuse."""
    for media_type in SEEDS:
        seen: Counter[str] = Counter()
        began = time.perf_counter()
        row: Row = {"what": media_type, "seed": seed_, "failed": 0}
        try:
            checker(media_type, cases // len(SEEDS), seed_, seen)()
        except Exception as error:
            row |= {"failed": 1, "error": f"{type(error).__name__}: {error} {getattr(error, '__notes__', '')}"}
        minutes = round((time.perf_counter() - began) / 60, 2)
        yield row | {"cases": seen.total(), "minutes": minutes, "answers": dict(seen)}
