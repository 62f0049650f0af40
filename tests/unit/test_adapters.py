"""What the client makes of other libraries' graphs, without a service."""

import math
from collections.abc import Callable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from headrace import InvalidInput, from_osmnx, from_pandapower, lanes, maxflow
from headrace._bodies import graph_body
from headrace._floats import places_of, rounded
from headrace._nx import can_run, convert_from_nx, convert_to_nx
from headrace._nx.running import PARAMETERS


def streets() -> nx.MultiDiGraph:
    """As OSMnx makes them: OSM ids, x and y, parallel streets by key, lanes as text, lists or not at all."""
    city = nx.MultiDiGraph(crs="EPSG:4326")
    for node, x, y in ((261_720_123, 8.69, 49.41), (4_000_000_001, 8.70, 49.42), (7, 8.71, 49.40)):
        city.add_node(node, x=x, y=y, street_count=3)
    city.add_edge(261_720_123, 4_000_000_001, 0, osmid=1, oneway=True, lanes="3", length=100.5, travel_time=9.04567)
    city.add_edge(261_720_123, 4_000_000_001, 1, osmid=2, oneway=True, lanes=["2", "4"], travel_time=12.0)
    city.add_edge(4_000_000_001, 7, 0, osmid=[3, 4], oneway=False, lanes="4", travel_time=3.5)
    city.add_edge(7, 4_000_000_001, 0, osmid=[3, 4], oneway=False, travel_time=3.5)
    return city


def test_streets_keep_their_keys_and_places() -> None:
    roads = from_osmnx(streets())
    assert roads.columns["capacity"] == [3, 2, 2, 1]
    assert roads.columns["cost"] == [9.046, 12.0, 3.5, 3.5]
    assert roads.columns["vertex_labels"] == [261_720_123, 4_000_000_001, 7]
    assert roads.edges[1] == (261_720_123, 4_000_000_001, 1)
    assert roads.rows[7, 4_000_000_001, 0] == 3
    assert roads.x.tolist() == [8.69, 8.70, 8.71]
    assert roads.y.tolist() == [49.41, 49.42, 49.40]
    assert not roads.columns["undirected"]
    assert b"261720123" in bytes(graph_body(roads, {}).data)  # type: ignore[arg-type]  # no file


def test_capacity_of_streets_by_attribute_and_by_function() -> None:
    city = streets()
    assert from_osmnx(city, capacity=lambda street: 1800 * lanes(street)).columns["capacity"] == [
        5400,
        3600,
        3600,
        1800,
    ]
    with pytest.raises(InvalidInput, match=r"\(261720123, 4000000001, 1\) has no attribute 'length'"):
        from_osmnx(city, capacity="length")
    with pytest.raises(InvalidInput, match="no capacity"):
        from_osmnx(city, capacity=lambda street: None)  # type: ignore[arg-type,return-value]
    del city.edges[7, 4_000_000_001, 0]["travel_time"]
    with pytest.raises(InvalidInput, match="'travel_time'"):
        from_osmnx(city)
    with pytest.raises(InvalidInput, match="MultiDiGraph"):
        from_osmnx(nx.DiGraph())


@pytest.mark.parametrize(
    ("street", "expected"),
    [
        ({}, 1),
        ({"oneway": True}, 1),
        ({"lanes": "1", "oneway": False}, 1),
        ({"lanes": "5", "oneway": False}, 2),
        ({"lanes": ["3", "2"], "oneway": True}, 2),
        ({"lanes": "2;3", "oneway": True}, 2),
        ({"lanes": "3; 2", "oneway": True}, 2),
        ({"lanes": "4", "oneway": "True"}, 4),
        ({"lanes": "4", "oneway": ["no"]}, 2),
        ({"lanes": "4", "oneway": ["yes", True]}, 4),
        ({"lanes": "many", "oneway": True}, 1),
        ({"lanes": 4, "oneway": [True, False]}, 2),
        ({"lanes": float("nan"), "oneway": True}, 1),
        ({"lanes": "0", "oneway": True}, 1),
    ],
)
def test_lanes(street: dict[str, Any], expected: int) -> None:
    assert lanes(street) == expected


def substation() -> SimpleNamespace:
    """Two lines, one of them double, a transformer, a coupler, and a switch at the end of a line."""
    rows = {"from_bus": [1, 2], "to_bus": [2, 5], "max_i_ka": [0.5, 0.4], "parallel": [1, 2], "df": [1.0, 0.5]}
    switches = {"bus": [1, 1, 2], "element": [3, 5, 5], "et": ["l", "b", "b"], "closed": [False, True, False]}
    return SimpleNamespace(
        bus=pd.DataFrame({"vn_kv": [110.0, 110.0, 110.0, 20.0]}, index=[1, 2, 5, 9]),
        line=pd.DataFrame({**rows, "in_service": [True, True]}, index=[0, 3]),
        trafo=pd.DataFrame({"hv_bus": [5], "lv_bus": [9], "sn_mva": [40.0], "in_service": [False]}),
        switch=pd.DataFrame(switches),
    )


def test_power_lines() -> None:
    columns = from_pandapower(substation()).columns
    assert columns["edge_ids"] == ["line 0", "line 3", "trafo 0", "switch 1", "switch 2"]
    assert columns["capacity"] == [95.263, round(math.sqrt(3) * 110 * 0.4, 3), 40.0, math.inf, math.inf]
    assert np.asarray(columns["closed"]).tolist() == [False, True, True, False, True]
    assert columns["vertex_labels"] == [1, 2, 5, 9]
    assert columns["undirected"] is True


def test_what_ends_at_a_bus_out_of_service_is_closed() -> None:
    net = substation()
    net.bus["in_service"] = [True, True, False, True]
    assert np.asarray(from_pandapower(net).columns["closed"]).tolist() == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("table", "message"), [("trafo3w", "three windings"), ("impedance", "impedances"), ("dcline", "DC lines")]
)
def test_what_joins_buses_and_is_not_read_is_refused(table: str, message: str) -> None:
    net = substation()
    setattr(net, table, pd.DataFrame({"from_bus": [1], "to_bus": [2], "in_service": [True]}))
    with pytest.raises(InvalidInput, match=message):
        from_pandapower(net)
    getattr(net, table)["in_service"] = False
    assert len(np.asarray(from_pandapower(net).columns["edge_ids"])) == 5


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ([1, 2.0, math.inf], [1, 2.0, math.inf]),
        ([0.1, 1 / 3], [0.1, 0.333333333]),
        ([1e9 + 1 / 3, 1], [1e9 + 0.33333333, 1]),
        ([0.5, 1e17], [0.5, 1e17]),
        ([Decimal("0.12345678901"), 0.25], [Decimal("0.12345678901"), 0.25]),
        ([-1 / 3], [-0.333333333]),
        ([None, 0.5], [None, 0.5]),
    ],
)
def test_floats_have_as_many_places_as_fit(amounts: list[Any], expected: list[Any]) -> None:
    assert rounded(amounts) == expected


def test_floats_without_room_for_fractions() -> None:
    with pytest.raises(InvalidInput, match="no room"):
        rounded([0.5, 1e19])
    assert places_of([Decimal("1.50"), 0.125, Decimal("Infinity"), math.nan]) == 3


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "reason"),
    [
        ("maximum_flow", ("G", 0, 1), {}, None),
        ("maximum_flow", ("G", 0, 1, "width", None), {"residual": None, "cutoff": None}, None),
        ("maximum_flow", ("G", 0, 1, "width", print), {}, "flow_func"),
        ("minimum_cut", ("G", 0, 1), {"flow_func": print}, "flow_func"),
        ("minimum_cut_value", ("G", 0, 1), {"residual": "R"}, "residual"),
        ("maximum_flow_value", ("G", 0, 1), {"cutoff": 3}, "cutoff"),
        ("maximum_flow", ("G", 0, 1), {"capacity": len}, None),
        ("maximum_flow", ("G", 0, 1), {"capacity": 3}, "names an attribute"),
        ("max_flow_min_cost", ("G", 0, 1), {"capacity": len}, "names an attribute"),
        ("network_simplex", ("G", "demand", None), {}, "names an attribute"),
        ("capacity_scaling", ("G",), {"heap": object}, None),
        ("hopcroft_karp_matching", ("G", {1, 2}), {}, None),
        ("pagerank", ("G",), {}, "no question"),
    ],
)
def test_what_the_backend_can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str | None) -> None:
    said = can_run(name, args, kwargs)
    assert said is True if reason is None else isinstance(said, str) and reason in said


def test_the_backend_has_what_it_says() -> None:
    import _headrace_networkx as told
    from headrace import _nx as backend

    assert set(told.FUNCTIONS) == set(PARAMETERS)
    assert all(callable(getattr(backend, name)) for name in PARAMETERS)
    assert all(hasattr(nx, name) or hasattr(nx.bipartite, name) for name in PARAMETERS)


def test_conversion_holds_no_copy() -> None:
    graph = nx.path_graph(3)
    converted = convert_from_nx(graph, name="maximum_flow")
    assert convert_to_nx(converted) is graph
    assert convert_from_nx(converted) is converted
    assert (converted.is_directed(), converted.is_multigraph()) == (False, False)
    assert convert_to_nx(7) == 7


def test_neighbourhoods() -> None:
    assert maxflow.vonNeumann_structure().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert maxflow.vonNeumann_structure(2, True).tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert maxflow.moore_structure().tolist() == [[1, 1, 1], [1, 0, 1], [1, 1, 1]]
    assert maxflow.moore_structure(2, True).tolist() == [[0, 0, 0], [0, 0, 1], [1, 1, 1]]
    assert maxflow.moore_structure(3).sum() == 26


@pytest.mark.parametrize(
    "mistake",
    [
        lambda graph, nodes: graph.add_edge(0, 9, 1, 1),
        lambda graph, nodes: graph.add_edge(0, 1, -1, 1),
        lambda graph, nodes: graph.add_grid_edges(nodes, structure=np.ones((2, 2))),
        lambda graph, nodes: graph.add_grid_edges(nodes, structure=np.ones(3)),
        lambda graph, nodes: graph.add_grid_tedges(nodes, "many", 1),
        lambda graph, nodes: graph.get_grid_segments(nodes),
    ],
)
def test_mistakes_with_images(mistake: Callable[[maxflow.GraphInt, Any], object]) -> None:
    graph = maxflow.GraphInt()
    with pytest.raises(InvalidInput):
        mistake(graph, graph.add_grid_nodes((2, 3)))


@pytest.mark.parametrize(
    ("kind", "mistake", "told"),
    [
        (maxflow.GraphInt, lambda graph: graph.add_tedge(0, math.inf, 0), "a whole number is not inf: use GraphFloat"),
        (
            maxflow.GraphInt,
            lambda graph: graph.add_edge(0, 1, math.inf, 0),
            "a whole number is not inf: use GraphFloat",
        ),
        (maxflow.GraphInt, lambda graph: graph.add_tedge(0, math.nan, 0), "not nan or -inf"),
        (maxflow.GraphInt, lambda graph: graph.add_tedge(0, 1e19, 0), "a capacity is 1152921504606846976 at most"),
        (maxflow.GraphInt, lambda graph: graph.add_tedge(0, 2**63, 0), "a capacity is 1152921504606846976 at most"),
        (maxflow.GraphFloat, lambda graph: graph.add_tedge(0, -math.inf, 0), "not nan or -inf"),
        (maxflow.GraphFloat, lambda graph: graph.add_tedge(0.7, 1, 0), "a node is a whole number"),
        (maxflow.GraphInt, lambda graph: graph.add_nodes(-1), "there is no shape"),
        (
            maxflow.GraphInt,
            lambda graph: graph.add_grid_edges([0, 1], 2**33, [0, 0, 2**31 + 1]),  # 2**33 once it has wrapped around
            "a weight times its place in structure, is 1152921504606846976 at most",
        ),
    ],
)
def test_numbers_that_a_graph_cut_cannot_hold(
    kind: type[maxflow.Graph], mistake: Callable[[maxflow.Graph], object], told: str
) -> None:
    graph = kind()
    graph.add_nodes(2)
    with pytest.raises(InvalidInput, match=told):
        mistake(graph)


def test_terminals_that_no_cut_can_pay_are_refused() -> None:
    whole, free = maxflow.GraphInt(), maxflow.GraphFloat()
    for graph in (whole, free):
        graph.add_nodes(2)
    for _ in range(8):
        whole.add_tedge(0, 2**60, 0)  # together 2**63, which is a negative int64
    with pytest.raises(InvalidInput, match=r"add up to 2\*\*63 or more"):
        whole.maxflow()
    free.add_tedge(1, math.inf, math.inf)
    with pytest.raises(InvalidInput, match="node 1 has no limit from the source nor to the sink"):
        free.maxflow()


def test_edges_are_counted_as_pymaxflow_counts_them() -> None:
    graph = maxflow.GraphInt(10, 10)
    nodes = graph.add_grid_nodes((3, 4))
    graph.add_grid_edges(nodes, structure=maxflow.moore_structure(2, True), symmetric=True, periodic=[True, False])
    assert (graph.get_node_count(), graph.get_edge_num()) == (12, 2 * (12 + 9 + 9 + 9))
    graph.reset()
    assert (graph.get_node_num(), graph.get_edge_count(), graph.maxflow()) == (0, 0, 0)


def test_the_type_of_amounts_is_chosen_as_in_pymaxflow() -> None:
    assert maxflow.Graph[int] is maxflow.GraphInt
    assert maxflow.Graph[float](2, 2).maxflow() == 0
    with pytest.raises(InvalidInput, match=r"Graph\[int\] or Graph\[float\], not Graph\[str\]"):
        maxflow.Graph[str]
