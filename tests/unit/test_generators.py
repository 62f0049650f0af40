"""Families: their sizes, their seeds, and values of tiny instances that can be worked out by hand."""

import sys
from typing import Any

import numpy as np
import pytest
from ortools.graph.python.max_flow import SimpleMaxFlow

from gpu_engine.errors import InvalidNetwork
from gpu_engine.generators import FAMILIES, generate
from gpu_engine.generators._near import pairs_within
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import INFINITE

SMALL: dict[str, dict[str, Any]] = {
    "genrmf": {"a": 4, "b": 5},
    "genrmf-long": {"a": 3},
    "genrmf-wide": {"a": 5},
    "rlg": {"rows": 6, "columns": 9},
    "rlg-long": {"rows": 8},
    "rlg-wide": {"rows": 10},
    "chains": {"length": 30},
    "line": {"width": 3, "length": 20},
    "ac": {"n_vertices": 30},
    "rmat": {"scale": 8, "edge_factor": 8},
    "rmat-ms": {"scale": 11, "edge_factor": 8},
    "grid": {"rows": 10, "columns": 12},
    "vision": {"rows": 10, "columns": 12},
    "rgg": {"n_vertices": 600, "degree": 12.0},
    "delaunay": {"n_vertices": 800},
    "road": {"rows": 12, "columns": 20, "terminals": 5},
    "digraph": {"n_vertices": 300},
    "tree": {"n_vertices": 300},
    "merge": {"levels": 5},
    "zigzag": {"pairs": 50},
    "bipartite": {"left": 60, "right": 50},
    "dispatch": {"requests": 60, "vehicles": 50},
}


def max_flow_value(edges: EdgeList) -> int:
    flags = np.broadcast_to(edges.undirected, edges.n_edges)
    finite = edges.capacity[edges.capacity != INFINITE]
    capacity = np.minimum(edges.capacity, 2 * finite.sum() + 1)
    solver = SimpleMaxFlow()
    solver.add_arcs_with_capacity(edges.tail, edges.head, capacity)
    solver.add_arcs_with_capacity(edges.head[flags], edges.tail[flags], capacity[flags])
    assert solver.solve(edges.source, edges.sink) == solver.OPTIMAL
    return int(solver.optimal_flow())


def test_every_family_has_a_small_instance() -> None:
    assert set(SMALL) == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_columns_are_well_formed_and_flow_gets_through(family: str) -> None:
    edges = generate(family, seed=7, **SMALL[family])
    assert edges.tail.dtype == edges.head.dtype == np.int32
    assert edges.capacity.dtype == np.int64
    assert len(edges.tail) == len(edges.head) == len(edges.capacity)
    ends = np.concatenate([edges.tail, edges.head])
    assert ends.min() >= 0
    assert ends.max() < edges.n_vertices
    assert edges.capacity.min() >= 0
    assert not np.any(edges.tail == edges.head)
    assert edges.source != edges.sink
    assert max_flow_value(edges) > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_same_seed_same_network(family: str) -> None:
    one, again, other = (generate(family, seed=seed, **SMALL[family]) for seed in (3, 3, 4))
    for column in ("tail", "head", "capacity", "undirected"):
        np.testing.assert_array_equal(getattr(one, column), getattr(again, column))
    columns = ("tail", "head", "capacity")
    assert one.n_edges != other.n_edges or any(np.any(getattr(one, c) != getattr(other, c)) for c in columns)


@pytest.mark.parametrize(
    ("family", "parameters", "n_vertices", "n_edges"),
    [
        ("genrmf-long", {"a": 9}, 5832, 26487),
        ("genrmf-wide", {"a": 20}, 8000, 38000),
        ("rlg-long", {"rows": 80}, 12802, 38320),
        ("rlg-wide", {"rows": 115}, 13227, 39560),
        ("ac", {"n_vertices": 300}, 300, 44850),
        ("grid", {"rows": 100, "columns": 100}, 10002, 39800),
    ],
)
def test_sizes_are_those_of_the_published_families(
    family: str, parameters: dict[str, int], n_vertices: int, n_edges: int
) -> None:
    edges = generate(family, seed=1, **parameters)
    assert (edges.n_vertices, edges.n_edges) == (n_vertices, n_edges)


@pytest.mark.parametrize("seed", range(5))
def test_genrmf_value_with_one_capacity_is_that_of_a_frame(seed: int) -> None:
    """Between frames every vertex has one edge of capacity 7, within a frame nothing limits: 3 * 3 * 7."""
    assert max_flow_value(generate("genrmf", seed=seed, a=3, b=4, c1=7, c2=7)) == 63


@pytest.mark.parametrize("seed", range(5))
def test_grid_of_unit_capacities_carries_one_unit_a_row(seed: int) -> None:
    r"""
    s ==> o <-> o <-> o ==> t
          |     |     |
    s ==> o <-> o <-> o ==> t
    """
    for undirected in (False, True):
        edges = generate("grid", seed=seed, rows=2, columns=3, max_capacity=1, undirected=undirected)
        assert max_flow_value(edges) == 2


def test_acyclic_dense_of_unit_capacities_has_value_n_minus_1() -> None:
    assert max_flow_value(generate("ac", seed=0, n_vertices=9, max_capacity=1)) == 8


def test_level_graph_of_one_row_is_three_parallel_paths() -> None:
    """s -3-> o =3x1=> o =3x1=> o -3-> t"""
    edges = generate("rlg", seed=0, rows=1, columns=3, max_capacity=1)
    assert edges.tail.tolist() == [0, 0, 0, 1, 1, 1, 3, 2]
    assert edges.head.tolist() == [1, 1, 1, 2, 2, 2, 0, 4]
    assert max_flow_value(edges) == 3


def test_road_chains_visit_every_vertex_between_junctions_once() -> None:
    edges = generate("road", seed=5, rows=6, columns=6, kept=1.0, mean_chain=4.0, terminals=2)
    links = np.broadcast_to(edges.undirected, edges.n_edges)
    degree = np.bincount(np.concatenate([edges.tail[links], edges.head[links]]), minlength=edges.n_vertices)
    assert np.all(degree[36:-2] == 2)
    assert degree[-2:].tolist() == [0, 0]
    assert degree[:36].sum() == 2 * 60


@pytest.mark.parametrize("max_capacity", [1, 100])
def test_nothing_flows_into_a_closed_sink(max_capacity: int) -> None:
    edges = generate("digraph", seed=2, n_vertices=300, max_capacity=max_capacity, closed=True)
    assert max_flow_value(edges) == 0
    assert edges.capacity[-3:].tolist() == [0, 0, 0]
    assert edges.capacity[:-3].min() >= 1


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("undirected", [False, True])
def test_a_zigzag_can_be_matched_whole(shuffled: bool, undirected: bool) -> None:
    r"""
    left   0   1   2          n = 3 pairs, 2 * 3 - 1 edges on the path
           | \ | \ |
    right  0   1   2
    """
    edges = generate("zigzag", seed=4, pairs=3, shuffled=shuffled, undirected=undirected)
    assert edges.n_edges == 5 + 2 * 3
    assert max_flow_value(edges) == 3


@pytest.mark.parametrize("undirected", [False, True])
def test_a_tree_is_one_piece(undirected: bool) -> None:
    edges = generate("tree", seed=1, n_vertices=200, shortcuts=0, undirected=undirected)
    assert max_flow_value(edges) == (2 if undirected else 1)
    assert edges.n_edges == 2 * 199


@pytest.mark.parametrize("radius", [0.013, 0.3, 2.0])
def test_pairs_within_a_radius_are_those_of_the_full_distance_matrix(radius: float) -> None:
    points = np.random.default_rng(11).random((150, 2))
    distance = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    expected = np.argwhere(np.triu(distance < radius, k=1))
    found = np.stack(pairs_within(points, radius), axis=1)
    np.testing.assert_array_equal(found[np.lexsort(found.T[::-1])], expected)


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        ("genrmf", {"a": 0, "b": 3}),
        ("genrmf", {"a": 2, "b": 2, "c1": 5, "c2": 4}),
        ("rlg", {"rows": 0, "columns": 3}),
        ("chains", {"length": 1}),
        ("line", {"width": 0}),
        ("line", {"max_capacity": 0}),
        ("ac", {"n_vertices": 1}),
        ("rmat", {"scale": 0}),
        ("rmat", {"terminals": "none"}),
        ("grid", {"rows": 2, "columns": 1}),
        ("vision", {"max_capacity": 0}),
        ("rgg", {"degree": 0.0}),
        ("delaunay", {"n_vertices": 3}),
        ("road", {"terminals": 10**6}),
        ("digraph", {"n_vertices": 3}),
        ("digraph", {"entering": 0}),
        ("tree", {"n_vertices": 1}),
        ("merge", {"levels": 0}),
        ("merge", {"levels": 25}),
        ("zigzag", {"pairs": 0}),
        ("bipartite", {"degree": 0}),
        ("dispatch", {"vehicles": 0}),
        ("dispatch", {"within_reach": 0.0}),
        ("nonsense", {}),
    ],
)
def test_parameters_without_an_instance_are_refused(family: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidNetwork):
        generate(family, seed=0, **parameters)


def test_delaunay_without_scipy_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    with pytest.raises(ImportError, match="needs SciPy"):
        generate("delaunay", seed=0, n_vertices=10)
