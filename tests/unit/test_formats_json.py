"""Columnar JSON: names, exact decimals, and refusals with column and row."""

import io
import json
from typing import Any

import numpy as np
import pytest

from gpu_engine.errors import CapacityOverflow, CostOverflow, InvalidNetwork, TooLarge
from gpu_engine.formats import Limits, from_columns, read_json, read_npz, write_json
from gpu_engine.types import INFINITE


def body(**changes: Any) -> bytes:
    fields: dict[str, Any] = {"tail": [0, 1], "head": [1, 2], "capacity": [3, 4]}
    return json.dumps(fields | changes).encode()


def test_integers_are_indices() -> None:
    edges = read_json(body(n_vertices=5, source=0, sink=4, edge_ids=["x", "y"], undirected=[True, False]))
    assert edges.n_vertices == 5
    assert edges.tail.tolist() == [0, 1]
    assert edges.capacity.tolist() == [3, 4]
    assert edges.edge_ids == ["x", "y"]
    assert np.asarray(edges.undirected).tolist() == [True, False]
    assert (edges.source, edges.sink) == (0, 4)
    assert edges.vertex_labels is None


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_of_another_encoding_is_refused(encoding: str) -> None:
    """As everywhere else: JSON that is sent is UTF-8 (RFC 8259, section 8.1)."""
    with pytest.raises(InvalidNetwork, match=r"not JSON: .*UTF-16"):
        read_json(body().decode().encode(encoding))
    assert read_json(body().decode().encode("utf-8-sig")).n_vertices == 3


def test_strings_are_numbered_as_they_appear() -> None:
    edges = read_json(body(tail=["b", "c"], head=["a", "b"], source="c", sink="a"))
    assert edges.vertex_labels == ["b", "a", "c"]
    assert edges.tail.tolist() == [0, 2]
    assert edges.head.tolist() == [1, 0]
    assert (edges.source, edges.sink) == (2, 1)


def test_labels_give_the_order_and_isolated_vertices() -> None:
    edges = read_json(body(tail=[700, 600], head=[600, 500], vertex_labels=[400, 500, 600, 700], source=400))
    assert edges.n_vertices == 4
    assert edges.tail.tolist() == [3, 2]
    assert edges.source == 0
    assert isinstance(edges.vertex_labels, np.ndarray)


@pytest.mark.parametrize(
    ("capacity", "units", "decimals"),
    [
        ("[1, 2]", [1, 2], 0),
        ("[0.1, 0.3]", [1, 3], 1),
        ("[1.50, 2]", [15, 20], 1),
        ("[1.0, 2e2]", [1, 200], 0),
        ("[0.000000001, 1]", [1, 10**9], 9),
        ("[1e-3, 123456789.123]", [1, 123456789123], 3),
        ('["0.25", "inf"]', [25, INFINITE], 2),
        ('[7, "inf"]', [7, INFINITE], 0),
        ("[0, 0.0]", [0, 0], 0),
        ("[1152921504606846976, 0]", [1 << 60, 0], 0),
        ("[1e17, 0.5]", [10**18, 5], 1),
        ("[100000000000000.1, 0.00]", [1000000000000001, 0], 1),
    ],
)
def test_capacities_are_exact(capacity: str, units: list[int], decimals: int) -> None:
    edges = read_json(f'{{"tail":[0,1],"head":[1,2],"capacity":{capacity}}}'.encode())
    assert edges.capacity.tolist() == units
    assert edges.decimals == decimals


def test_stated_decimals_scale_and_bind() -> None:
    assert read_json(body(capacity=[1.5, 2], decimals=2)).capacity.tolist() == [150, 200]
    assert read_json(body(capacity=[1, 2], decimals=2)).capacity.tolist() == [100, 200]
    with pytest.raises(InvalidNetwork, match="row 1: capacity has more than 1 decimal"):
        read_json(body(capacity=[1.5, 2.25], decimals=1))


@pytest.mark.parametrize(
    ("capacity", "message"),
    [
        ("[1, -2]", "row 1: capacity is negative"),
        ("[1.5, -2]", "row 1: capacity is negative"),
        ("[1, true]", "row 1: capacity is neither"),
        ("[1, null]", "row 1: capacity is neither"),
        ("[1, [2]]", "row 1: capacity is neither"),
        ("[1, NaN]", "row 1: capacity is not a number"),
        ("[1, Infinity]", "'Infinity'.; without quotes that is no JSON number: an unlimited amount is the string"),
        ("[1, -Infinity]", "row 1: capacity is not a number"),
        ('[1, "x"]', "row 1: capacity is not a number"),
        ('[1, ""]', "row 1: capacity is not a number"),
        ('[1, "0x10"]', "row 1: capacity is not a number"),
        ('[1, " 2"]', "row 1: capacity is not a number"),
        ("[1, 0.1234567890123]", "row 1: capacity has more than 9 decimals"),
        ("[1, 1e-400]", "row 1: capacity has more than 9 decimals"),
        ("[1, 1.00000000000000000000000000000000001]", "row 1: capacity has more than 9 decimals"),
        ("[1]", "capacity has 1 row,"),
        ("3", "capacity must be an array"),
    ],
)
def test_capacities_refused(capacity: str, message: str) -> None:
    with pytest.raises(InvalidNetwork, match=message):
        read_json(f'{{"tail":[0,1],"head":[1,2],"capacity":{capacity}}}'.encode())


@pytest.mark.parametrize(
    "huge", ["1e19", "9223372036854775807", "1152921504606846977", "1e300", "99999999999999999999999", "2e18"]
)
def test_huge_capacities_are_an_overflow(huge: str) -> None:
    with pytest.raises(CapacityOverflow, match="row 1"):
        read_json(f'{{"tail":[0,1],"head":[1,2],"capacity":[1,{huge}]}}'.encode())


def test_sum_of_scale_and_size_is_an_overflow() -> None:
    with pytest.raises(CapacityOverflow, match="row 0"):
        read_json(body(capacity=[10**15, 1e-9]))
    with pytest.raises(CapacityOverflow, match="row 0"):
        read_json(b'{"tail":[0],"head":[1],"capacity":[1e28],"decimals":9}')


BIG = 2 * 10**15
OF_BIG = "row 0: {} is too large: the limit is 1152921504606846976 units; a unit is 10^-9, "


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'"capacity": [{BIG}, 0.000000001]', "since row 1 has 9 decimals"),
        (f'"capacity": ["{BIG}", "1e-9"]', "since row 1 has 9 decimals"),
        (f'"capacity": [{BIG}, 1], "decimals": 9', "as decimals=9 says"),
        (f'"capacity": [{BIG}, 0.1], "decimals": 9, "rounding": "down"', "as decimals=9 says"),
        (f'"capacity": [{BIG}, 1], "lower": [0, 1e-9]', "since lower has 9 decimals"),
        (f'"capacity": [{BIG}, 1], "vertices": [0], "vertex_capacity": [1e-9]', "since vertex_capacity has 9 decimals"),
    ],
)
def test_an_overflow_says_what_made_the_unit_so_small(text: str, told: str) -> None:
    with pytest.raises(CapacityOverflow) as refused:
        read_json(f'{{"tail": [0, 1], "head": [1, 2], {text}}}'.encode())
    assert str(refused.value) == OF_BIG.format("capacity") + told


def test_an_overflow_of_another_column_says_so_too() -> None:
    ends = '"tail": [0, 1], "head": [1, 2]'
    with pytest.raises(CostOverflow) as of_cost:
        read_json(f'{{{ends}, "capacity": [1, 2], "cost": [{-BIG}, 0.000000001]}}'.encode())
    assert str(of_cost.value) == OF_BIG.format("cost") + "since row 1 has 9 decimals"
    np.savez(archive := io.BytesIO(), tail=[0, 1], head=[1, 2], capacity=[float(BIG), 1e-9])
    with pytest.raises(CapacityOverflow) as of_floats:
        read_npz(archive.getvalue())
    assert str(of_floats.value) == OF_BIG.format("capacity") + "since row 1 has 9 decimals"
    with pytest.raises(CapacityOverflow) as of_whole:
        read_json(f'{{{ends}, "capacity": [{10**19}, 1]}}'.encode())
    assert "; a unit" not in str(of_whole.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tail": [0, -1]}, "row 1: tail is no vertex"),
        ({"tail": [0, 3], "n_vertices": 3}, "row 1: tail is no vertex 0 .. 2"),
        ({"tail": [0, 1.0]}, "row 1: tail is neither an integer nor text"),
        ({"tail": [0, "a"]}, "row 1: tail is text and row 0 is an integer"),
        ({"tail": [True, 1]}, "row 0: tail"),
        ({"tail": ["a", "b"]}, "both be integers or both be text"),
        ({"tail": [0, 10**19]}, r"row 1: tail is too large \(10000000000000000000\): integers are .* sent as text"),
        ({"tail": [0]}, "head has 2 rows, tail has 1"),
        ({"tail": None}, "tail must be an array"),
        ({"edge_ids": [5, 5]}, "edge id 5 occurs more than once"),
        ({"edge_ids": [5]}, "edge_ids has 1 row,"),
        ({"edge_ids": 5}, "edge_ids must be an array"),
        ({"vertex_labels": [0, 1]}, "row 1: head is no vertex label"),
        ({"vertex_labels": [0, 1, 1, 2]}, "vertex label 1 occurs more than once"),
        ({"vertex_labels": [0, 1, 2], "n_vertices": 4}, "n_vertices is 4, and there are 3 labels: each vertex has one"),
        ({"tail": ["s", "a"], "head": ["a", "t"], "n_vertices": 2}, "n_vertices is 2, and there are 3 labels"),
        ({"vertex_labels": [0, 1, 2], "source": "0"}, "source '0' is no vertex label: these are integers"),
        ({"tail": ["a", "b"], "head": ["b", "c"], "sink": 1}, "sink 1 is no vertex label: these are text"),
        ({"vertex_labels": ["0", "1", "2"]}, "tail must name vertices as vertex_labels"),
        ({"vertex_labels": [], "tail": ["a"], "head": ["b"], "capacity": [1]}, "row 0: tail is no vertex label .'a'."),
        ({"undirected": 1}, "undirected must be"),
        ({"undirected": [True, 0]}, "row 1: undirected is not"),
        ({"undirected": [True]}, "undirected has 1 row,"),
        ({"n_vertices": True}, "n_vertices must be a whole number"),
        ({"n_vertices": -1}, "n_vertices is negative"),
        ({"decimals": 10}, "decimals must be"),
        ({"decimals": 1.0}, "decimals must be"),
        ({"source": 7}, "source 7 is no vertex"),
        ({"source": -1}, "source -1 is no vertex"),
        ({"sink": "a"}, "sink must be a vertex index"),
        ({"colour": 1}, "unknown field 'colour'"),
        ({"tail": ["\ud800", "b"], "head": ["b", "c"]}, "names must be text: half a surrogate pair is no character"),
    ],
)
def test_bodies_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidNetwork, match=message):
        read_json(body(**changes))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"tail":[],"tail":[],"head":[],"capacity":[]}',
        b'{"tail":[0],"head":[1],"capacity":[' + b"9" * 5000 + b"]}",
        b'{"tail":[0],"head":[1],"capacity":[1e99999999999999999999]}',
        body()[:-1],
        body() + b"x",
    ],
)
def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidNetwork):
        read_json(text)


def test_limits() -> None:
    with pytest.raises(TooLarge):
        read_json(body(), Limits(max_edges=1))
    with pytest.raises(TooLarge):
        read_json(body(n_vertices=10**12))


def test_empty_columns() -> None:
    edges = read_json(body(tail=[], head=[], capacity=[]))
    assert (edges.n_vertices, edges.n_edges) == (0, 0)


def test_parsed_columns_may_hold_floats() -> None:
    edges = from_columns({"tail": [0], "head": [1], "capacity": [0.1]})
    assert (edges.capacity.tolist(), edges.decimals) == ([1], 1)


def test_written_text_is_plain_json() -> None:
    edges = read_json(body(tail=["é", "b"], head=["b", "c"], capacity=["1.25", "inf"], source="é"))
    written = json.loads(write_json(edges))
    assert written["tail"] == ["é", "b"]
    assert written["capacity"] == [1.25, "inf"]
    assert written["source"] == "é"
