"""Whatever network is written is read back the same."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_engine.formats import (
    pack,
    read_arrow,
    read_csv,
    read_dimacs,
    read_json,
    read_npz,
    unpack,
    write_arrow,
    write_csv,
    write_dimacs,
    write_json,
    write_npz,
)
from gpu_engine.networks.coordinates import Coordinates
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import INFINITE, MAX_TOTAL
from tests.cases import cases

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
INTEGER = st.integers(-(2**63), 2**63 - 1)
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
CRS = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=64)
CAPACITY = st.one_of(st.integers(0, 50), st.integers(0, MAX_TOTAL), st.just(INFINITE))


@st.composite
def names(draw: st.DrawFn, size: int) -> Any:
    """None, int64[size] or a list of text; unique."""
    kind = draw(st.sampled_from(["none", "integers", "text"]))
    if kind == "none":
        return None
    if kind == "text":
        return draw(st.lists(TEXT, min_size=size, max_size=size, unique=True))
    return np.array(draw(st.lists(INTEGER, min_size=size, max_size=size, unique=True)), dtype=np.int64)


@st.composite
def places(draw: st.DrawFn, size: int) -> Coordinates | None:
    if draw(st.booleans()):
        return None
    x, y = (np.array(draw(st.lists(FLOAT, min_size=size, max_size=size)), np.float64) for _ in "xy")
    return Coordinates(x, y, draw(CRS))


@st.composite
def networks(draw: st.DrawFn) -> EdgeList:
    n = draw(st.integers(1, 12))
    m = draw(st.integers(0, 20))
    vertex = st.integers(0, n - 1)
    column = {"min_size": m, "max_size": m}
    flags = st.one_of(st.booleans(), st.lists(st.booleans(), **column).map(lambda f: np.array(f, dtype=bool)))
    closed = np.array(draw(st.lists(st.booleans(), **column)), dtype=bool)
    return EdgeList(
        n_vertices=n,
        tail=np.array(draw(st.lists(vertex, **column)), dtype=np.int32),
        head=np.array(draw(st.lists(vertex, **column)), dtype=np.int32),
        capacity=np.array(draw(st.lists(CAPACITY, **column)), dtype=np.int64),
        undirected=draw(flags),
        decimals=draw(st.integers(0, 9)),
        edge_ids=draw(names(m)),
        vertex_labels=draw(names(n)),
        source=draw(st.none() | vertex),
        sink=draw(st.none() | vertex),
        closed=closed if closed.any() and draw(st.booleans()) else None,
        coordinates=draw(places(n)),
    )


def assert_same(one: EdgeList, two: EdgeList) -> None:
    for column in ("tail", "head", "capacity", "undirected"):
        first, second = np.asarray(getattr(one, column)), np.asarray(getattr(two, column))
        assert first.dtype == second.dtype, column
        np.testing.assert_array_equal(first, second, err_msg=column)
    assert (one.closed is None) == (two.closed is None)
    if one.closed is not None and two.closed is not None:
        np.testing.assert_array_equal(one.closed, two.closed)
    assert (one.coordinates is None) == (two.coordinates is None)
    if one.coordinates is not None and two.coordinates is not None:
        assert one.coordinates.crs == two.coordinates.crs
        assert one.coordinates.x.tobytes() == two.coordinates.x.tobytes()
        assert one.coordinates.y.tobytes() == two.coordinates.y.tobytes()
    for field in ("n_vertices", "decimals", "source", "sink"):
        assert getattr(one, field) == getattr(two, field), field
    for names_ in ("edge_ids", "vertex_labels"):
        first, second = getattr(one, names_), getattr(two, names_)
        # An empty list has no kind: what has no rows is the same as none.
        assert (first is None or len(first) == 0) == (second is None or len(second) == 0), names_
        if first is not None and len(first):
            assert isinstance(first, np.ndarray) == isinstance(second, np.ndarray), names_
            assert list(first) == list(second), names_


@given(networks())
@settings(max_examples=cases(200), deadline=None)
def test_pack(edges: EdgeList) -> None:
    assert_same(unpack(pack(edges)), edges)


@pytest.mark.parametrize(("write", "read"), [(write_arrow, read_arrow), (write_json, read_json), (write_npz, read_npz)])
@given(edges=networks())
@settings(max_examples=cases(150), deadline=None)
def test_formats_that_hold_everything(write: Any, read: Any, edges: EdgeList) -> None:
    assert_same(read(write(edges)), edges)


@given(networks())
@settings(max_examples=cases(150), deadline=None)
def test_dimacs_holds_directed_finite_networks(edges: EdgeList) -> None:
    finite = np.where(edges.capacity == INFINITE, 1, edges.capacity) % (MAX_TOTAL // 20)
    plain = EdgeList(
        n_vertices=edges.n_vertices,
        tail=edges.tail,
        head=edges.head,
        capacity=finite,
        source=edges.source,
        sink=edges.sink,
    )
    assert_same(read_dimacs(write_dimacs(plain)), plain)


@given(networks())
@settings(max_examples=cases(150), deadline=None)
def test_csv_holds_edges_between_names(edges: EdgeList) -> None:
    labels = [f'v{k},"{"x" * k}' for k in range(edges.n_vertices)]
    named = EdgeList(
        n_vertices=edges.n_vertices,
        tail=edges.tail,
        head=edges.head,
        capacity=edges.capacity,
        undirected=edges.undirected,
        decimals=edges.decimals,
        vertex_labels=labels,
    )
    again = read_csv(write_csv(named))
    assert again.vertex_labels is not None or again.n_edges == 0
    for end in ("tail", "head"):
        assert [(again.vertex_labels or [])[v] for v in getattr(again, end)] == [labels[v] for v in getattr(named, end)]
    np.testing.assert_array_equal(
        np.broadcast_to(again.undirected, again.n_edges), np.broadcast_to(named.undirected, named.n_edges)
    )
    amounts = [None if c == INFINITE else int(c) * 10 ** (9 - edges.decimals) for c in named.capacity]
    assert amounts == [None if c == INFINITE else int(c) * 10 ** (9 - again.decimals) for c in again.capacity]
