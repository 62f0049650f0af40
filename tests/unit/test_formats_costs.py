"""Costs of edges through every format that has a place for them: exact, signed, with decimals of their own."""

import io
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from gpu_engine import formats
from gpu_engine.errors import CostOverflow, EngineError, InvalidNetwork
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import AS_WRITTEN, Precision
from gpu_engine.networks.validate import check, largest_cost
from gpu_engine.types import INFINITE

EDGES = EdgeList(
    n_vertices=3,
    tail=np.array([0, 1, 0], np.int32),
    head=np.array([1, 2, 2], np.int32),
    capacity=np.array([3, INFINITE, 4]),
    cost=np.array([-125, 0, 1_000_007]),
    cost_decimals=2,
)
WRITERS: dict[str, Callable[[EdgeList], bytes]] = {
    "application/json": formats.write_json,
    "application/x-npz": formats.write_npz,
    "application/vnd.apache.arrow.stream": formats.write_arrow,
    "text/csv": formats.write_csv,
}


def json(**members: str) -> bytes:
    rest = "".join(f', "{name}": {text}' for name, text in members.items())
    return f'{{"tail": [0, 1], "head": [1, 2], "capacity": [1, 2]{rest}}}'.encode()


def npz(cost: object, **more: object) -> bytes:
    out = io.BytesIO()
    columns = {"tail": [0, 1], "head": [1, 2], "capacity": [1, 2], "cost": cost, **more}
    np.savez(out, **{name: np.asarray(column) for name, column in columns.items()})
    return out.getvalue()


def arrow(cost: pa.Array, **metadata: str) -> bytes:
    table = pa.table({"tail": [0, 1], "head": [1, 2], "capacity": [1, 2], "cost": cost}).replace_schema_metadata(
        metadata
    )
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def read_json(body: bytes, precision: Precision = AS_WRITTEN) -> tuple[list[int], int]:
    edges = formats.read(body, "application/json", precision=precision)
    assert edges.cost is not None
    return edges.cost.tolist(), edges.cost_decimals


@pytest.mark.parametrize("media_type", WRITERS)
@pytest.mark.parametrize("undirected", [False, True])
def test_costs_come_back_as_they_were(media_type: str, undirected: bool) -> None:
    edges = replace(EDGES, undirected=undirected, cost=np.abs(EDGES.cost) if undirected else EDGES.cost)
    again = formats.read(WRITERS[media_type](edges), media_type)
    assert (again.cost.tolist(), again.cost_decimals) == (edges.cost.tolist(), 2)
    assert again.decimals == 0


@pytest.mark.parametrize("media_type", WRITERS)
def test_without_costs_nothing_is_written_of_them(media_type: str) -> None:
    body = WRITERS[media_type](replace(EDGES, cost=None, cost_decimals=0))
    assert b"cost" not in body
    assert formats.read(body, media_type).cost is None


def test_the_packed_form_has_them() -> None:
    again = formats.unpack(formats.pack(EDGES))
    assert (again.cost.tolist(), again.cost_decimals) == ([-125, 0, 1_000_007], 2)
    assert b"cost" not in formats.pack(replace(EDGES, cost=None))


def test_every_column_at_once_in_arrow() -> None:
    """There are as many as a stream may have."""
    edges = replace(EDGES, undirected=np.array([False, True, True]), closed=np.array([True, False, False]))
    edges = replace(edges, edge_ids=np.array([7, 8, 9]))
    again = formats.read_arrow(formats.write_arrow(edges))
    assert again.cost.tolist() == EDGES.cost.tolist()


@pytest.mark.parametrize(
    ("text", "more", "units", "decimals"),
    [
        ("[1, -2]", {}, [1, -2], 0),
        ("[1.5, -0.25]", {}, [150, -25], 2),
        ('["1.5", -2]', {}, [15, -20], 1),
        ("[1, -2]", {"cost_decimals": "2"}, [100, -200], 2),
        ("[1.005, -1.005]", {"cost_decimals": "2", "decimals": "0", "rounding": '"down"'}, [100, -101], 2),
        ("[1.005, -1.005]", {"cost_decimals": "2", "decimals": "0", "rounding": '"up"'}, [101, -100], 2),
        ("[1.015, -1.015]", {"cost_decimals": "2", "decimals": "0", "rounding": '"nearest"'}, [102, -102], 2),
        ("[0.123, -1]", {"decimals": "0", "rounding": '"nearest"'}, [123, -1000], 3),
    ],
)
def test_numbers_of_json(text: str, more: dict[str, str], units: list[int], decimals: int) -> None:
    assert read_json(json(cost=text, **more)) == (units, decimals)


def test_places_beside_the_body_count_for_more() -> None:
    assert read_json(json(cost="[1.25, -3]", cost_decimals="2"), Precision(cost_decimals=4)) == ([12500, -30000], 4)


@pytest.mark.parametrize(
    ("cost", "more", "units"),
    [
        ([150, -25], {"cost_decimals": 2}, [150, -25]),
        ([3, -4], {}, [3, -4]),
        ([1.5, -0.25], {}, [150, -25]),
        (np.array([0.1, -0.25], np.float32), {}, [10, -25]),
        (np.array([3, 4], np.uint64), {}, [3, 4]),
    ],
)
def test_numbers_of_npz(cost: object, more: dict[str, object], units: list[int]) -> None:
    assert formats.read_npz(npz(cost, **more)).cost.tolist() == units


@pytest.mark.parametrize(
    ("cost", "units"),
    [
        (pa.array([150, -25]), [150, -25]),
        (pa.array([1.5, -0.25]), [150, -25]),
        (pa.array([Decimal("1.50"), Decimal("-0.25")]), [150, -25]),
    ],
)
def test_numbers_of_arrow(cost: pa.Array, units: list[int]) -> None:
    assert formats.read_arrow(arrow(cost, cost_decimals="2")).cost.tolist() == units


@pytest.mark.parametrize(
    ("body", "media_type", "code", "rows", "told"),
    [
        (json(cost="[1]"), "application/json", "invalid_body", [], "cost has 1 row, tail has 2"),
        (json(cost="7"), "application/json", "invalid_body", [], "cost must be an array"),
        (json(cost='[1, "inf"]'), "application/json", "invalid_body", [1], "cost is not finite"),
        (json(cost='[1, "-inf"]'), "application/json", "invalid_body", [1], "cost is not a number"),
        (json(cost='[1, "-+2"]'), "application/json", "invalid_body", [1], "cost is"),
        (json(cost="[1, true]"), "application/json", "invalid_body", [1], "cost is no number"),
        (json(cost="[1, 1e30]"), "application/json", "cost_overflow", [1], "cost is too large"),
        (json(cost="[1, 2.123]", cost_decimals="2"), "application/json", "invalid_body", [1], "more than 2 decimals"),
        (json(cost="[1, 2]", cost_decimals="12"), "application/json", "invalid_body", [], "cost_decimals must be"),
        (npz([1, np.iinfo(np.int64).min]), "application/x-npz", "cost_overflow", [1], "cost is too large"),
        (npz([1, np.nan]), "application/x-npz", "invalid_body", [1], "cost is not a number"),
        (npz([1, -np.inf]), "application/x-npz", "invalid_body", [1], "cost is not finite"),
        (npz(["a", "b"]), "application/x-npz", "invalid_body", [], "cost must be a column of numbers"),
        (arrow(pa.array(["a", "b"])), "application/vnd.apache.arrow.stream", "invalid_body", [], "cost must be"),
        (b"tail,head,capacity,cost\n0,1,1,2\n1,2,1,x\n", "text/csv", "invalid_body", [], "line 3: cost is not"),
    ],
)
def test_refusals(body: bytes, media_type: str, code: str, rows: list[int], told: str) -> None:
    with pytest.raises(EngineError) as refused:
        formats.read(body, media_type)
    assert refused.value.code == code
    assert told in refused.value.message
    assert list(refused.value.rows) == rows


def test_an_undirected_edge_costs_nothing_at_least() -> None:
    with pytest.raises(InvalidNetwork, match="1 undirected edge costs less than nothing") as refused:
        check(replace(EDGES, undirected=np.array([True, False, False])))
    assert (refused.value.rows, refused.value.where.field) == ([0], "/cost")


def test_the_largest_costs_leave_room_for_sums() -> None:
    limit = largest_cost(3)
    check(replace(EDGES, cost=np.array([limit, -limit, 0])))
    with pytest.raises(CostOverflow, match="2 costs are beyond") as refused:
        check(replace(EDGES, cost=np.array([limit + 1, 0, -limit - 1])))
    assert refused.value.rows == [0, 2]


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/json", json(cost_decimals="2")),
        ("application/json", json(cost="null", cost_decimals="0")),
        ("application/x-npz", formats.write_npz(replace(EDGES, cost=None))),
        ("application/vnd.apache.arrow.stream", formats.write_arrow(replace(EDGES, cost=None))),
        ("text/csv", formats.write_csv(replace(EDGES, cost=None))),
    ],
)
def test_places_of_costs_that_are_not_there_are_refused(media_type: str, body: bytes) -> None:
    """They would be kept to nothing, and whoever stated them believes that there are some."""
    stated = Precision(cost_decimals=None if b"cost_decimals" in body else 2)
    with pytest.raises(InvalidNetwork, match="the edges have no costs") as caught:
        formats.read(body, media_type, precision=stated)
    of_body = stated.cost_decimals is None
    where = caught.value.where
    assert (where.field, where.parameter) == (("/cost_decimals", None) if of_body else (None, "cost_decimals"))


def test_so_are_those_that_a_column_of_numbers_states() -> None:
    out = io.BytesIO()
    np.savez(out, tail=[0], head=[1], capacity=[1], cost_decimals=2)
    with pytest.raises(InvalidNetwork, match="the edges have no costs"):
        formats.read(out.getvalue(), "application/x-npz")
    table = pa.table({"tail": [0], "head": [1], "capacity": [1]}).replace_schema_metadata({"cost_decimals": "1"})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InvalidNetwork, match="the edges have no costs"):
        formats.read(sink.getvalue(), "application/vnd.apache.arrow.stream")
