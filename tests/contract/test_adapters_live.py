"""Functions in the shape of other libraries, on a service, beside answers that are known."""

import gc
import math
import os
import threading
from collections.abc import Iterator
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
from headrace import Client, from_osmnx, from_pandapower, maxflow
from headrace import _nx as backend
from headrace._kept import Content, Kept, _end, kept

from tests.unit.test_adapters import streets, substation


@pytest.fixture(autouse=True)
def address(service_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_URL", service_url)


@pytest.fixture(scope="module")
def client(service_url: str) -> Iterator[Client]:
    with Client(service_url) as client:
        yield client


class Owner:
    """Something that has a graph."""


def content(capacity: int) -> Content:
    return Content.of({"tail": np.array([0]), "head": np.array([1]), "capacity": np.array([capacity])})


def names(client: Client, beginning: str) -> set[str]:
    return {graph.name for graph in client.graphs() if graph.name.startswith(beginning)}


def test_no_more_graphs_are_kept_than_are_wanted(client: Client, service_url: str) -> None:
    graphs, owner = Kept("bounded", service_url, None), Owner()
    for capacity in range(1, 7):
        assert graphs.ask(owner, content(capacity), lambda graph: graph.max_flow(0, 1).value, at_most=3) == capacity
    assert len(graphs) == len(names(client, "bounded-")) == 3


def test_a_graph_goes_with_its_owners(client: Client, service_url: str) -> None:
    graphs, owners = Kept("owned", service_url, None), [Owner(), Owner()]
    for owner in owners:
        graphs.ask(owner, content(1), lambda graph: graph.info)
    del owners[0], owner
    gc.collect()
    last = Owner()
    graphs.ask(last, content(2), lambda graph: graph.info)
    assert len(names(client, "owned-")) == 2
    owners.clear()
    gc.collect()
    graphs.ask(last, content(2), lambda graph: graph.info)
    assert len(names(client, "owned-")) == 1


def test_a_graph_that_somebody_deleted_is_uploaded_again(client: Client, service_url: str) -> None:
    graphs, owner = Kept("lost", service_url, None), Owner()
    graphs.ask(owner, content(4), lambda graph: graph.info)
    for name in names(client, "lost-"):
        client.delete_graph(name)
    assert graphs.ask(owner, content(4), lambda graph: graph.max_flow(0, 1).value) == 4


def test_threads_share_graphs(client: Client, service_url: str) -> None:
    """With more graphs than are kept, so that each thread deletes what another one asks about."""
    graphs, owner, wrong = Kept("shared", service_url, None), Owner(), list[object]()

    def work(first: int) -> None:
        for capacity in range(first, first + 6):
            try:
                value = graphs.ask(owner, content(capacity), lambda graph: graph.max_flow(0, 1).value, at_most=4)
            except Exception as error:  # told below, as a thread cannot fail a test
                wrong.append(error)
            else:
                wrong.extend([value] if value != capacity else [])

    threads = [threading.Thread(target=work, args=(first,)) for first in (1, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_prefix_for_keys_that_have_one(client: Client, service_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_KEPT_PREFIX", "team-")
    graphs, owner = Kept("nx", service_url, None), Owner()
    graphs.ask(owner, content(4), lambda graph: graph.info)
    assert len(names(client, "team-nx-")) == 1


def test_each_address_has_graphs_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    here = kept("nx")
    assert kept("nx") is here
    assert kept("csgraph") is not here
    monkeypatch.setenv("HEADRACE_URL", "http://127.0.0.1:9")
    assert kept("nx") is not here
    monkeypatch.setenv("HEADRACE_URL", "")
    assert kept("nx") is not here


def random_graph(seed: int, *, directed: bool, fractions: bool) -> nx.Graph:
    """Nodes of several kinds, self-loops, antiparallel edges, edges without limit and without capacity."""
    random = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(8, 0.4, seed=seed, directed=directed)
    for _, _, data in graph.edges(data=True):
        draw = int(random.integers(0, 20))
        if draw < 19:
            data["capacity"] = draw / 8 if fractions else draw
    graph.add_edge(3, 3, capacity=5)
    return nx.relabel_nodes(graph, {1: "one", 2: (2, 2)})


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_of_networkx(seed: int) -> None:
    directed, fractions = bool(seed % 2), bool(seed // 2 % 2)
    graph = random_graph(seed, directed=directed, fractions=fractions)
    try:
        theirs = nx.maximum_flow_value(graph, 0, 7)
    except nx.NetworkXUnbounded:
        with pytest.raises(nx.NetworkXUnbounded):
            backend.maximum_flow(backend.convert_from_nx(graph), 0, 7)
        return
    value, flow = backend.maximum_flow(backend.convert_from_nx(graph), 0, 7)
    cut_value, (source_side, sink_side) = backend.minimum_cut(backend.convert_from_nx(graph), 0, 7)
    assert value == cut_value == theirs
    assert backend.maximum_flow_value(backend.convert_from_nx(graph), 0, 7) == theirs
    assert {u: set(flow[u]) for u in graph} == {u: set(graph[u]) for u in graph}
    for u, v in graph.edges:
        assert 0 <= flow[u][v] <= graph[u][v].get("capacity", float("inf"))
    for u in graph:
        net = sum(flow[u].values()) - sum(flow[v].get(u, 0) for v in graph)
        assert net == {0: value, 7: -value}.get(u, 0)
    assert source_side | sink_side == set(graph)
    assert not source_side & sink_side
    crossing = (graph[u][v].get("capacity") for u, v in nx.edge_boundary(graph, source_side, sink_side))
    assert sum(crossing) == theirs
    assert isinstance(value, float if fractions else int)


def test_multigraphs_have_flows_by_key() -> None:
    graph = nx.MultiGraph()
    graph.add_edge("a", "b", key="road", capacity=2)
    graph.add_edge("b", "a", key="rail", capacity=3)
    graph.add_edge("b", "c", capacity=4)
    value, flow = backend.maximum_flow(backend.convert_from_nx(graph), "c", "a")
    assert value == 4
    assert flow["c"] == {"b": {0: 4}}
    assert flow["b"]["c"] == {0: 0}
    assert sum(flow["b"]["a"].values()) == 4
    assert flow["a"]["b"] == {"road": 0, "rail": 0}


def test_bad_nodes_and_amounts() -> None:
    graph = nx.DiGraph([(0, 1, {"capacity": -3})])
    for question in ((0, 1), (0, 9), (0, 0)):
        with pytest.raises(nx.NetworkXError):
            backend.maximum_flow(backend.convert_from_nx(graph), *question)
    with pytest.raises(nx.NetworkXError, match="9"):
        backend.max_flow_min_cost(backend.convert_from_nx(graph), 9, 1)
    graph[0][1]["capacity"] = float("nan")
    with pytest.raises(nx.NetworkXError, match="not a number"):
        backend.maximum_flow(backend.convert_from_nx(graph), 0, 1)


def test_cheapest_flows_with_fractions() -> None:
    graph = nx.DiGraph()
    graph.add_node("a", demand=-0.3)
    graph.add_node("c", demand=0.1)
    graph.add_node("d", demand=0.2)
    graph.add_edge("a", "c", weight=0.5, capacity=1)
    graph.add_edge("c", "d", weight=1.25)
    cost, flow = backend.network_simplex(backend.convert_from_nx(graph))
    assert cost == pytest.approx(0.4)
    assert flow == {"a": {"c": 0.3}, "c": {"d": 0.2}, "d": {}}


@pytest.mark.parametrize("seed", range(4))
def test_trees_and_least_cuts_of_random_graphs(seed: int) -> None:
    """Each pair has its minimum cut in the tree: the value, and the sides that the tree falls into."""
    random = np.random.default_rng(seed)
    graph = nx.connected_watts_strogatz_graph(7, 4, 0.5, seed=seed)
    for _, _, data in graph.edges(data=True):
        data["weight"] = data["capacity"] = int(random.integers(0, 9)) / (4 if seed % 2 else 1)
    graph = nx.relabel_nodes(graph, {0: "zero"})
    tree = backend.gomory_hu_tree(backend.convert_from_nx(graph))
    assert nx.is_tree(tree)
    assert set(tree) == set(graph)
    values = {pair: nx.minimum_cut_value(graph, *pair) for pair in combinations(graph, 2)}
    for pair, value in values.items():
        path = nx.shortest_path(tree, *pair)
        least = min(pairwise(path), key=lambda edge: tree.edges[edge]["weight"])
        assert tree.edges[least]["weight"] == value
        sides = tree.copy()
        sides.remove_edge(*least)
        side = nx.node_connected_component(sides, pair[0])
        assert nx.cut_size(graph, side, weight="capacity") == value
    least_cut, (one, other) = backend.stoer_wagner(backend.convert_from_nx(graph))
    assert least_cut == min(values.values()) == nx.cut_size(graph, one, weight="capacity")
    assert sorted(map(str, [*one, *other])) == sorted(map(str, graph))


def test_trees_of_odd_graphs() -> None:
    alone = nx.Graph()
    with pytest.raises(nx.NetworkXError):
        backend.gomory_hu_tree(backend.convert_from_nx(alone))
    alone.add_node("a")
    assert list(backend.gomory_hu_tree(backend.convert_from_nx(alone))) == ["a"]
    alone.add_node("b")
    assert list(backend.gomory_hu_tree(backend.convert_from_nx(alone)).edges(data="weight")) == [("a", "b", 0)]
    endless = nx.Graph([("a", "b"), ("b", "c", {"capacity": 2})])
    weights = [weight for *_, weight in backend.gomory_hu_tree(backend.convert_from_nx(endless)).edges(data="weight")]
    assert {type(weight): weight for weight in weights} == {int: 2, float: math.inf}
    parallel = nx.MultiGraph([("a", "b", {"weight": 2}), ("a", "b", {"weight": 3}), ("b", "c"), ("c", "a"), ("a", "a")])
    assert backend.stoer_wagner(backend.convert_from_nx(parallel))[0] == 2
    for wrong in (nx.DiGraph([(0, 1)]), nx.Graph([(0, 1, {"weight": -1})]), nx.empty_graph(2), nx.empty_graph(1)):
        with pytest.raises((nx.NetworkXError, nx.NetworkXNotImplemented)):
            backend.stoer_wagner(backend.convert_from_nx(wrong))


def test_matchings_of_odd_graphs() -> None:
    graph = nx.Graph([("a", 1), ("a", 2), ("b", 1), (("c",), 2)])
    found = backend.hopcroft_karp_matching(backend.convert_from_nx(graph), ["a", "b", ("c",)])
    assert len(found) == 4
    assert all(found[found[node]] == node for node in found)
    with pytest.raises(nx.NetworkXError):
        backend.hopcroft_karp_matching(backend.convert_from_nx(nx.Graph([(0, 1), (1, 2), (2, 0)])))
    with pytest.raises(nx.NetworkXError, match="top nodes"):
        backend.hopcroft_karp_matching(backend.convert_from_nx(nx.Graph([(0, 1), (1, 2)])), [0, 1])
    assert backend.hopcroft_karp_matching(backend.convert_from_nx(nx.Graph([(0, 1)])), [0]) == {0: 1, 1: 0}


IMAGE = np.array([[9, 8, 1], [9, 2, 1], [1, 1, 1]])
"""Foreground at the top left."""


@pytest.mark.parametrize("kind", [maxflow.GraphInt, maxflow.GraphFloat])
def test_an_image(kind: type[maxflow.Graph]) -> None:
    """Value and segments as PyMaxflow 1.3.2 gives them."""
    graph = kind()
    pixels = graph.add_grid_nodes(IMAGE.shape)
    graph.add_grid_edges(pixels, weights=2, structure=maxflow.vonNeumann_structure(2, True), symmetric=True)
    graph.add_grid_tedges(pixels, IMAGE, 10 - IMAGE)
    assert graph.maxflow() == 19
    expected = [[False, False, True], [False, True, True], [True, True, True]]
    assert graph.get_grid_segments(pixels).tolist() == expected
    assert [graph.get_segment(0), graph.get_segment(8)] == [0, 1]


def test_periodic_images_with_weights_by_pixel() -> None:
    """Value as PyMaxflow 1.3.2 gives it. A negative capacity of a terminal is part of every cut."""
    graph = maxflow.GraphFloat()
    pixels = graph.add_grid_nodes((2, 3))
    graph.add_grid_edges(pixels, IMAGE[:2] / 4, structure=[[0, 1, 0], [4, 0, 2], [0, 3, 0]], periodic=[False, True])
    graph.add_grid_tedges(pixels, [[5, 0.5, 0], [0, 7, 1]], [[0, 4, 4], [3, 0, 9]])
    graph.add_tedge(0, -1, 2.5)
    assert graph.maxflow() == 9.0
    assert graph.get_grid_segments(pixels).tolist() == [[True, True, True], [True, False, True]]


def test_streets_and_power_lines(client: Client) -> None:
    city = from_osmnx(streets())
    roads = client.put_graph("streets", city)
    found = roads.max_flow(261_720_123, 7, fields=["flow"])
    assert found.value == 2
    assert city.edges[int(found.flow.edges[-1])] == (4_000_000_001, 7, 0)  # type: ignore[union-attr]  # it was asked for
    assert float(roads.min_cost_flow(261_720_123, 7).cost) == pytest.approx(2 * (9.046 + 3.5))
    power = client.put_graph("power", from_pandapower(substation()))
    assert float(power.max_flow(1, 2).value) == pytest.approx(95.263)
    power.reopen(["trafo 0"])
    assert power.max_flow(2, 9).value == 40


def test_the_end_of_a_process_deletes_its_graphs_and_that_of_its_child_does_not(
    client: Client, service_url: str
) -> None:
    graphs, owner = Kept("parent", service_url, None), Owner()
    graphs.ask(owner, content(4), lambda graph: graph.info)
    _end(graphs._client, graphs._graphs, os.getpid() + 1, service_url, None)
    assert len(names(client, "parent-")) == 1
    _end(graphs._client, graphs._graphs, os.getpid(), service_url, None)
    assert not names(client, "parent-")
