"""DIMACS ``max``: what is read, what is refused and on which line."""

import contextlib

import numpy as np
import pytest

from gpu_engine.errors import CapacityOverflow, EngineError, InvalidNetwork, TooLarge
from gpu_engine.formats import Limits, read_dimacs, write_dimacs
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import INFINITE, MAX_TOTAL

DIAMOND = b"""c     2
c   1   4
c     3
p max 4 5
n 1 s
n 4 t
a 1 2 3
a 1 3 2
a 2 3 10
a 2 4 2
a 3 4 4
"""


def test_reads_arcs_and_terminals_from_zero() -> None:
    edges = read_dimacs(DIAMOND)
    assert edges.n_vertices == 4
    assert (edges.source, edges.sink) == (0, 3)
    assert edges.tail.tolist() == [0, 0, 1, 1, 2]
    assert edges.head.tolist() == [1, 2, 2, 3, 3]
    assert edges.capacity.tolist() == [3, 2, 10, 2, 4]
    assert edges.tail.dtype == np.int32
    assert edges.capacity.dtype == np.int64


@pytest.mark.parametrize(
    "change",
    [
        (b"\n", b"\r\n"),
        (b"a 1 2 3", b"a   1\t2 3  "),
        (b"a 2 3 10\n", b"\nc between\n   \na 2 3 10\n"),
        (b"4 4\n", b"4 4"),
    ],
)
def test_blanks_comments_and_line_ends_do_not_matter(change: tuple[bytes, bytes]) -> None:
    assert read_dimacs(DIAMOND.replace(*change)).capacity.tolist() == [3, 2, 10, 2, 4]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ((b"a 2 3 10", b"a 2 3"), 9),
        ((b"a 2 3 10", b"a 2 3 10 1"), 9),
        ((b"a 2 3 10\na 2 4 2", b"a 2 3 10 2\na 4 2"), 9),
        ((b"a 2 3 10", b"a 2 x 10"), 9),
        ((b"a 2 3 10", b"a 2 3 -10"), 9),
        ((b"a 2 3 10", b"a 2 3 1.5"), 9),
        ((b"a 2 3 10", b"a 2 3 nan"), 9),
        ((b"a 2 3 10", b"a 2 5 10"), 9),
        ((b"a 2 3 10", b"a 0 3 10"), 9),
        ((b"a 2 3 10", b"a 99999999999999999999 3 10"), 9),
        ((b"a 2 3 10", b"e 2 3 10"), 9),
        ((b"a 2 3 10", b" a 2 3 10"), 9),
        ((b"a 2 3 10", "a 2 3 \u0661".encode()), 9),
        ((b"a 2 3 10", b"a 2 3\x0010"), 9),
        ((b"a 3 4 4\n", b"a 3 4 " + bytes(9)), 11),
        ((b"a 3 4 4\n", b""), 10),
        ((b"p max 4 5", b"p sp 4 5"), 4),
        ((b"p max 4 5", b"p min 4 5"), 7),
        ((b"p max 4 5", b"p max 4"), 4),
        ((b"p max 4 5", b"p max 4 -5"), 4),
        ((b"n 4 t", b"n 1 s"), 6),
        ((b"n 4 t", b"n 4 q"), 6),
        ((b"c     2", b"n 1 s"), 1),
        ((b"c   1   4", b"p max 4 5"), 2),
    ],
)
def test_refuses_with_the_line(change: tuple[bytes, bytes], line: int) -> None:
    with pytest.raises(InvalidNetwork) as refusal:
        read_dimacs(DIAMOND.replace(*change, 1))
    assert refusal.value.where.lines[0] == line


def test_terminal_outside_is_refused() -> None:
    with pytest.raises(InvalidNetwork, match="sink 9 is no vertex"):
        read_dimacs(DIAMOND.replace(b"n 4 t", b"n 9 t"))


@pytest.mark.parametrize("text", [b"", b"\n", b"c only\n", b"\0\0", b"p max 0 0 0"])
def test_text_without_problem_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidNetwork):
        read_dimacs(text)


@pytest.mark.parametrize("cut", range(0, len(DIAMOND) - 2, 3))
def test_every_truncation_is_refused_or_nothing_is_missing(cut: int) -> None:
    with pytest.raises(InvalidNetwork):
        read_dimacs(DIAMOND[:cut])


@pytest.mark.parametrize("capacity", [MAX_TOTAL + 1, INFINITE, 2**64 - 1, 10**19, 10**40])
def test_huge_capacity_is_an_overflow(capacity: int) -> None:
    with pytest.raises(CapacityOverflow) as refusal:
        read_dimacs(DIAMOND.replace(b"10", str(capacity).encode()))
    assert refusal.value.where.lines == [9]


def test_limits_hold_before_the_arcs_are_read() -> None:
    with pytest.raises(TooLarge):
        read_dimacs(b"p max 1000000000000 1\n")
    with pytest.raises(TooLarge):
        read_dimacs(DIAMOND, Limits(max_edges=4))
    with pytest.raises(TooLarge):
        read_dimacs(DIAMOND, Limits(max_vertices=3))


def test_empty_network() -> None:
    edges = read_dimacs(b"p max 3 0\n")
    assert (edges.n_vertices, edges.n_edges) == (3, 0)
    assert read_dimacs(write_dimacs(edges)).n_vertices == 3


def test_writes_undirected_as_two_arcs_and_infinity_as_more_than_all() -> None:
    edges = EdgeList(
        n_vertices=3,
        tail=np.array([0, 1], dtype=np.int32),
        head=np.array([1, 2], dtype=np.int32),
        capacity=np.array([7, INFINITE]),
        undirected=np.array([True, False]),
        decimals=1,
        source=0,
        sink=2,
    )
    assert write_dimacs(edges).decode().splitlines() == [
        "c capacities are in units of 1e-1",
        "c edges without limit have one more than all capacities together",
        "c undirected edges are two arcs: the second ones stand at the end",
        "p max 3 3",
        "n 1 s",
        "n 3 t",
        "a 1 2 7",
        "a 2 3 15",
        "a 2 1 7",
    ]


def test_random_bytes_never_raise_anything_else() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        text = np.frombuffer(DIAMOND, dtype=np.uint8).copy()
        text[rng.integers(0, len(text), 3)] = rng.integers(0, 256, 3)
        with contextlib.suppress(EngineError):
            read_dimacs(text.tobytes())
