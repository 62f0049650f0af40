"""Coordinates of vertices as callers of the client have them, and what of them travels."""

from decimal import Decimal
from typing import Any

import networkx as nx
import numpy as np
import pytest
from headrace import InvalidInput, from_osmnx
from headrace._bodies import graph_body

from tests.unit.test_sdk_bodies import as_json, as_npz

PAIR: dict[str, Any] = {"tail": [0], "head": [1], "capacity": [3]}


class Projected:
    """What pyproj has in place of a text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def to_string(self) -> str:
        return self.text


@pytest.mark.parametrize(
    "column", [list, tuple, np.array, lambda c: np.array(c, np.float32), lambda c: [*map(Decimal, c)]]
)
def test_columns_travel_as_npz(column: Any) -> None:
    body = as_npz(graph_body(None, {**PAIR, "x": column([1.5, 2, 4]), "y": column([1, 0, -2]), "crs": "EPSG:32632"}))
    assert (body["x"], body["y"], body["crs"], body["n_vertices"]) == ([1.5, 2, 4], [1, 0, -2], "EPSG:32632", 3)


def test_names_travel_as_json() -> None:
    named = {
        "tail": ["a"],
        "head": ["b"],
        "capacity": [3],
        "vertex_labels": ["a", "b"],
        "x": [1e-7, 2.5],
        "y": [1, 1e22],
    }
    body = as_json(graph_body(None, named))  # type: ignore[arg-type]
    assert (body["x"], body["y"]) == ([1e-7, 2.5], [1, 1e22])
    assert "crs" not in body


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"x": [1, float("nan")], "y": [1, 2]}, "row 1: x is missing"),
        ({"x": [1, 2], "y": [float("inf"), 2]}, "row 0: y is not finite"),
        ({"x": [1, None], "y": [1, 2]}, "row 1: x is missing"),
        ({"x": ["1", "2"], "y": [1, 2]}, "x is a column"),
        ({"x": [True, 2], "y": [1, 2]}, "x is a column"),
        ({"x": np.array(["1", "2"]), "y": [1, 2]}, "x is a column"),
        ({"x": [[1, 2]], "y": [1, 2]}, "x is a column"),
        ({"x": "lon", "y": "lat"}, "x is a column"),
        ({"x": {1, 2}, "y": [1, 2]}, "x is a set"),
        ({"x": {0: 1, 1: 2}, "y": [1, 2]}, "x is a column"),
        ({"x": 3, "y": 4}, "x is a column"),
        ({"x": [1, 2], "y": [1, 2], "crs": 4326}, "crs is a text"),
        ({"x": [1, 2], "y": [1, 2], "crs": "E" * 65}, "crs is a text"),
    ],
)
def test_what_is_no_column_of_places(columns: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        graph_body(None, {**PAIR, **columns})


def network(*nodes: Any, **attributes: Any) -> Any:
    graph = nx.DiGraph(**attributes)
    for i, node in enumerate(nodes):
        graph.add_node(node, x=i / 4, y=-i, lon=i + 100)
    graph.add_edge(nodes[0], nodes[1], capacity=3)
    return graph


def test_a_networkx_graph_that_says_its_system() -> None:
    body = as_json(graph_body(network("a", "b", "c", crs="epsg:4326"), {}))
    assert (body["x"], body["y"], body["crs"]) == ([0, 0.25, 0.5], [0, -1, -2], "epsg:4326")
    assert "x" not in as_json(graph_body(network("a", "b"), {})), "numbers of nobody knows what"
    given = as_json(graph_body(network("a", "b"), {"crs": "EPSG:3857"}))
    assert (given["x"], given["crs"]) == ([0, 0.25], "EPSG:3857")
    assert as_json(graph_body(network("a", "b", crs=Projected("EPSG:32632")), {}))["crs"] == "EPSG:32632"
    assert "x" not in as_json(graph_body(network("a", "b", crs=Projected("+proj=" * 20)), {}))


def test_numbered_nodes_in_any_order() -> None:
    """The numbers are those of the vertices, whose coordinates stand in their order."""
    body = as_npz(graph_body(network(2, 0, 1, crs="EPSG:4326"), {}))
    assert body["x"] == [0.25, 0.5, 0]


def test_attributes_that_are_named() -> None:
    body = as_json(graph_body(network("a", "b"), {"x": "lon", "y": "y"}))
    assert (body["x"], body["y"]) == ([100, 101], [0, -1])
    with pytest.raises(InvalidInput, match="the node 'a' has no attribute 'lat'"):
        graph_body(network("a", "b"), {"x": "lon", "y": "lat"})


def test_a_node_without_a_place() -> None:
    graph = network("a", "b", crs="EPSG:4326")
    graph.add_node("c")
    assert "x" not in as_json(graph_body(graph, {}))


def test_streets() -> None:
    city = nx.MultiDiGraph(crs="EPSG:4326")
    city.add_node(101, x=8.69, y=49.41)
    city.add_node(102, x=8.7, y=49.42)
    city.add_edge(101, 102, lanes="2")
    body = as_json(graph_body(from_osmnx(city), {}))
    assert (body["x"], body["y"], body["crs"]) == ([8.69, 8.7], [49.41, 49.42], "EPSG:4326")
    city.add_node(103)
    assert "x" not in from_osmnx(city).columns
