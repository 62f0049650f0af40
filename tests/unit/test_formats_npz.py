"""npz archives: both sets of names, paired arcs, and sizes checked before allocation."""

import contextlib
import io
import re
import zipfile
from typing import Any

import numpy as np
import pytest

from gpu_engine.errors import CapacityOverflow, EngineError, InvalidNetwork, TooLarge
from gpu_engine.formats import Limits, read_npy, read_npz
from gpu_engine.types import INFINITE


def archive(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def own(**changes: Any) -> bytes:
    return archive(**({"tail": np.array([0, 1]), "head": np.array([1, 2]), "capacity": np.array([3, 4])} | changes))


def research(**changes: Any) -> bytes:
    r"""A path 0 - 1 - 2, undirected: each edge as two arcs."""
    arrays: dict[str, Any] = {
        "n": np.int64(3),
        "src": np.array([0, 1, 1, 2], dtype=np.int32),
        "dst": np.array([1, 0, 2, 1], dtype=np.int32),
        "cap": np.array([5, 5, 6, 6]),
        "s": np.int64(0),
        "t": np.int64(2),
        "undirected": np.bool_(True),
    }
    return archive(**(arrays | changes))


def test_own_names() -> None:
    edges = read_npz(
        own(
            n_vertices=7,
            decimals=2,
            source=0,
            sink=6,
            undirected=np.array([True, False]),
            edge_ids=np.array(["x", "y"]),
            capacity=np.array([3, 0]),
            unlimited=np.array([False, True]),
        )
    )
    assert (edges.n_vertices, edges.decimals, edges.source, edges.sink) == (7, 2, 0, 6)
    assert edges.capacity.tolist() == [3, INFINITE]
    assert edges.edge_ids == ["x", "y"]
    assert np.asarray(edges.undirected).tolist() == [True, False]


def test_paired_arcs_are_one_undirected_edge() -> None:
    edges = read_npz(research())
    assert edges.tail.tolist() == [0, 1]
    assert edges.head.tolist() == [1, 2]
    assert edges.capacity.tolist() == [5, 6]
    assert edges.undirected is True
    assert (edges.source, edges.sink) == (0, 2)
    assert read_npz(research(undirected=np.bool_(False))).n_edges == 4


def test_float_capacities() -> None:
    edges = read_npz(own(capacity=np.array([0.5, np.inf])))
    assert (edges.capacity.tolist(), edges.decimals) == ([5, INFINITE], 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cap": np.array([5, 5, 6, 7])}, "row 2: arc is no pair"),
        ({"dst": np.array([1, 0, 2, 0])}, "row 2: arc is no pair"),
        ({"src": np.array([0, 1, 1]), "dst": np.array([1, 0, 2])}, "src has 3 rows, dst has 3, cap has 4"),
        ({"n": np.int64(2)}, "row 1: head is no vertex"),
        ({"n": np.float64(3)}, "n must be one whole number"),
        ({"t": np.int64(3)}, "sink 3 is no vertex"),
        ({"undirected": np.array([True, True])}, "one flag"),
    ],
)
def test_research_archives_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidNetwork, match=message):
        read_npz(research(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capacity": np.array([3, -4])}, "row 1: capacity is negative"),
        ({"capacity": np.array([True, False])}, "capacity must be a column of numbers"),
        ({"capacity": np.array([3.0, np.nan])}, "row 1: capacity is not a number"),
        ({"capacity": np.array([[3, 4]])}, "capacity must be a column of numbers"),
        ({"capacity": np.array([3])}, "capacity has 1 row,"),
        ({"tail": np.array([0, -1])}, "row 1: tail"),
        ({"tail": np.array([0.0, 1.0])}, "tail must be a column of integers"),
        ({"tail": np.array([0, 1], dtype=object)}, "object are not read"),
        ({"edge_ids": np.array([1, 1])}, "edge id 1 occurs"),
        ({"edge_ids": np.array([1, 2**63], np.uint64)}, "row 1: edge_ids is too large"),
        ({"tail": np.array([2**64 - 1, 1], np.uint64)}, "row 0: tail is too large"),
        ({"edge_ids": np.array([65, 0x110000], "<u4").view("<U1")}, "row 1: edge_ids is no text"),
        ({"edge_ids": np.array([65, 66, 67, 0x7FFFFFFF], ">u4").view(">U2")}, "row 1: edge_ids is no text"),
        ({"edge_ids": np.array([[2**32 - 1, 65], [66, 67]], "<u4").view("<U2").T}, "row 0: edge_ids is no text"),
        ({"x": [0, 0], "y": [0, 0], "crs": np.array([2**31], "<u4").view("<U1")}, "crs is no text"),
        ({"undirected": np.array([1, 0])}, "undirected must be boolean"),
        ({"decimals": 12}, "decimals must be"),
        ({"colour": 12}, "unknown array 'colour'"),
        ({"src": np.array([1])}, "unknown array 'src'"),
    ],
)
def test_own_archives_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidNetwork, match=message):
        read_npz(own(**changes))


@pytest.mark.parametrize("name", ["undirected", "closed", "unlimited"])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_, np.dtype("U1")])
def test_a_column_of_yes_and_no_without_rows_may_have_any_type(name: str, dtype: Any) -> None:
    """NumPy takes an empty list for floats."""
    nothing = np.array([], np.int64)
    empty = own(tail=nothing, head=nothing, capacity=nothing, n_vertices=3, **{name: np.array([], dtype)})
    assert read_npz(empty).n_edges == 0


def test_huge_capacities_are_an_overflow() -> None:
    for capacity in (np.array([1, 2**62]), np.array([1, 2**64 - 1], dtype=np.uint64), np.array([1.0, 1e300])):
        with pytest.raises(CapacityOverflow, match="row 1"):
            read_npz(own(capacity=capacity))


def test_every_truncation_is_refused() -> None:
    whole = own()
    for cut in range(0, len(whole), 5):
        with pytest.raises(InvalidNetwork):
            read_npz(whole[:cut])


@pytest.mark.parametrize("seed", range(3))
def test_damage_never_raises_anything_else(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = np.frombuffer(own(edge_ids=np.array(["x", "y"]), n_vertices=5), dtype=np.uint8)
    for _ in range(200):
        damaged = whole.copy()
        damaged[rng.integers(0, len(whole), 3)] = rng.integers(0, 256, 3)
        with contextlib.suppress(EngineError):
            read_npz(damaged.tobytes(), Limits(max_bytes_decompressed=1 << 20))


def test_bomb_is_refused_by_its_declared_size() -> None:
    zeros = np.zeros(1 << 20, dtype=np.int64)
    packed = archive(tail=zeros, head=zeros, capacity=zeros)
    assert len(packed) < 50_000
    with pytest.raises(TooLarge, match="decompressed"):
        read_npz(packed, Limits(max_bytes_decompressed=1 << 24))


@pytest.mark.parametrize(
    ("shape", "items"),
    [((10**12,), b""), ((-1,), bytes(8)), ((True,), bytes(8)), ((False,), b""), ((1, True), bytes(8))],
)
def test_header_whose_shape_is_none_of_its_bytes_is_refused(shape: tuple[int, ...], items: bytes) -> None:
    """NumPy takes `True` for an integer in a header, and breaks down over it later."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": shape})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as members:
        for name in ("tail", "head", "capacity"):
            members.writestr(f"{name}.npy", header.getvalue() + items)
    with pytest.raises(InvalidNetwork, match="shape and type need"):
        read_npz(buffer.getvalue())
    with pytest.raises(InvalidNetwork, match="shape and type need"):
        read_npy(header.getvalue() + items)


def test_limits() -> None:
    with pytest.raises(TooLarge):
        read_npz(own(), Limits(max_edges=1))
    with pytest.raises(TooLarge):
        read_npz(own(n_vertices=100), Limits(max_vertices=99))
    with pytest.raises(TooLarge, match="2 edges join few of these vertices, 0 to 2400901600: send ids as text"):
        read_npz(own(head=np.array([1, 2400901600])))


def test_ids_of_a_small_map_are_no_numbers() -> None:
    told = (
        "the largest vertex is 26161164; 2 edges join few of these vertices, 0 to 26161164: send ids as text, or each "
        "once in `vertex_labels`, or say `n_vertices` if so many are meant"
    )
    ids = np.array([1, 26161164])
    with pytest.raises(InvalidNetwork, match=f"^{re.escape(told)}$"):
        read_npz(own(head=ids))
    assert read_npz(own(head=ids, n_vertices=26161165)).n_vertices == 26161165
    assert read_npz(own(head=np.array([1, 999_999]))).n_vertices == 1_000_000
    with pytest.raises(InvalidNetwork, match="the largest vertex is 1000000; 2 edges join few"):
        read_npz(own(head=np.array([1, 1_000_000])))
    many = 70_000
    edges = read_npz(own(tail=np.arange(many), head=np.arange(many) * 16, capacity=np.ones(many)))
    assert edges.n_vertices == 16 * (many - 1) + 1
