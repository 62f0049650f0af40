"""Random changes of structure on resident states, mixed with updates, against a load from scratch."""

from typing import Any

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure, present_of, since_load, with_inserted
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import CapacityTable, Change
from gpu_engine.types import INFINITE
from service.worker.graph import Graph
from tests.cases import cases
from tests.random_networks import random_edges, random_terminals, random_update

BATCHES = 10
SEEDS = range(cases(100))


def graph_of(edges: EdgeList) -> Graph:
    network = Network(edges)
    return Graph("g", "0" * 32, 1, 1, network, CpuEngine(network), CapacityTable(network, edges))


def room(needed: Any) -> None:
    """There is always room."""


def random_structure(rng: np.random.Generator, graph: Graph) -> tuple[Structure, Change]:
    """Up to three vertices, up to twenty edges of every kind, and up to a quarter of the edges deleted."""
    network = graph.network
    n_vertices, k = int(rng.integers(0, 4)), int(rng.integers(0, 20))
    tail, head = rng.integers(0, network.n_vertices + n_vertices, (2, k)).astype(np.int32)
    undirected = rng.random(k) < rng.choice([0, 0, 0.5])
    live = network.live(np.arange(network.n_edges))
    deleted = np.sort(rng.choice(live, int(rng.integers(0, len(live) // 4 + 1)), replace=False))
    capacity = rng.integers(0, 30, k)
    capacity[rng.random(k) < rng.choice([0, 0, 0.05])] = INFINITE
    rows = np.concatenate([deleted, network.n_edges + np.arange(k)])
    own = np.concatenate([np.zeros(len(deleted), np.int64), capacity])
    structure = Structure(n_vertices, None, tail, head, undirected, deleted=deleted)
    return structure, Change(rows, own, np.zeros(len(rows), np.bool_))


def value_from_scratch(edges: EdgeList, terminals: Terminals) -> int:
    engine = CpuEngine(Network(edges))
    return engine.solve(engine.open(terminals)).value


def live_edges(graph: Graph) -> EdgeList:
    return present_of(graph.network.edge_list(), graph.network)


@pytest.mark.parametrize("seed", SEEDS)
def test_states_are_carried_over(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loaded = random_edges(rng)
    graph = graph_of(loaded)
    for _ in range(3):
        try:
            solved = graph.open(random_terminals(rng, loaded.n_vertices))
            graph.solve(solved, Control(), lambda: None)
        except Unbounded:
            continue
    done: list[Structure] = []
    for _ in range(BATCHES):
        structure, change = random_structure(rng, graph)
        graph.restructure(structure, change, room)
        done.append(structure)
        audits = [solved.state.audit for solved in graph.states.values()]
        assert all(audit is None or len(audit.role) == graph.network.n_vertices for audit in audits)
        if graph.network.n_edges and rng.random() < 0.5:
            rows, capacity = random_update(rng, graph.network.capacity)
            keep = np.isin(rows, graph.network.live(rows))
            order = np.argsort(rows[keep])
            closed = np.zeros(len(order), np.bool_)
            graph.update(Change(rows[keep][order], capacity[keep][order], closed))
        edges = live_edges(graph)
        for solved in list(graph.states.values()):
            answer = graph.solve(solved, Control(), lambda: None, complete=bool(rng.integers(2)))
            assert answer.report.value == value_from_scratch(edges, solved.terminals)
            engine, state = graph.engine, solved.state
            assert engine.certificate(state, complete=True).valid
            cut = engine.cut(state)
            again = CpuEngine(Network(edges))
            fresh = again.open(solved.terminals)
            again.solve(fresh)
            expected = again.cut(fresh)
            assert (cut.source_side == expected.source_side).all()
            assert (cut.value, cut.unique) == (expected.value, expected.unique)
            rows = graph.network.live(np.arange(graph.network.n_edges))
            assert cut.edges.tolist() == rows[expected.edges].tolist()
            flow = engine.flow(state)
            gone = np.flatnonzero(graph.network.deleted)
            assert not flow[gone].any()
    made = with_inserted(loaded, done)
    assert_same_topology(Network(made), graph.network)
    since = since_load(graph.network, None)
    assert since is None or np.array_equal(Network(with_inserted(loaded, [since])).edge_arc, graph.network.edge_arc)


def assert_same_topology(one: Network, other: Network) -> None:
    for name in ("row_offsets", "head", "reverse_arc", "edge_arc"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    rows = np.arange(one.n_edges)
    assert np.array_equal(one.edge_tail(rows), other.edge_tail(rows))
    assert np.array_equal(one.edge_head(rows), other.edge_head(rows))
    assert np.array_equal(one.is_undirected(rows), other.is_undirected(rows))


@pytest.mark.parametrize("seed", SEEDS)
def test_names_grow(seed: int) -> None:
    """Numbers, integers and texts; looked up before or not."""
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, 8)
    m, n = edges.n_edges, edges.n_vertices
    ids = (None, rng.permutation(m) * 7 - 20, [f"e{i}" for i in range(m)])[seed % 3]
    labels = (None, [f"v{i}" for i in range(n)], np.arange(n) * 3)[seed // 3 % 3]
    network = Network(EdgeList(n, edges.tail, edges.head, edges.capacity, edges.undirected, 0, ids, labels))
    for time in range(4):
        if rng.random() < 0.5:
            network.edge_ids.rows(network.edge_ids.of(np.arange(network.n_edges)))
        k, more = int(rng.integers(0, 40)), int(rng.integers(0, 40))
        tail, head = rng.integers(0, network.n_vertices + more, (2, k)).astype(np.int32)
        new_ids = (None, rng.permutation(k) * 7 + 1000 * time + 5000, [f"é{time}.{i}" for i in range(k)])[seed % 3]
        new_labels = (None, [f"w{time}.{i}" for i in range(more)], rng.permutation(more) - 1000 * (time + 1))
        structure = Structure(more, new_labels[seed // 3 % 3], tail, head, np.zeros(k, np.bool_), new_ids)
        network = grow(network, structure).network
        for names in (network.edge_ids, network.vertex_labels):
            rows = np.arange(names.count)
            assert names.rows(names.of(rows)).tolist() == rows.tolist()
            assert names.rows(names.take(rows)).tolist() == rows.tolist()
        assert network.edge_ids.rows([-1]).tolist() == [-1] or seed % 3 == 1
