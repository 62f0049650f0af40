"""Flows by edge that are read from the links that carry them: feasible, of the same value, and without cycles."""

import numpy as np
import pytest

from gpu_engine.checks.flows import prove_flow
from gpu_engine.control import Control
from gpu_engine.cpu import carried, edge_flows
from gpu_engine.cpu.carried import Carried, carried_by, part_of
from gpu_engine.cpu.edge_flows import flow_of_few
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Cancelled
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, UnitArray
from tests.cases import cases
from tests.random_networks import random_network

SEEDS_A_CASE = 50


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Any links are few, and none lead a shorter way; how many edges lay on them, for each flow that was read."""
    monkeypatch.setattr(carried, "FEW", 1)
    monkeypatch.setattr(edge_flows, "is_dense", lambda *_: True)
    read: list[int] = []

    def counted(network: Network, state: edge_flows.Ends, few: Carried, *rest: Control, acyclic: bool) -> UnitArray:
        read.append(len(few.rows))
        return flow_of_few(network, state, few, *rest, acyclic=acyclic)

    monkeypatch.setattr(edge_flows, "flow_of_few", counted)
    return read


def finite(seed: int) -> EdgeList:
    edges = random_network(seed)
    edges.capacity[edges.capacity == INFINITE] = 7
    return edges


@pytest.mark.parametrize("first", range(0, cases(400), SEEDS_A_CASE))
def test_flows_of_few_links_are_flows_of_the_network(first: int, always: list[int]) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        edges, rng = finite(seed), np.random.default_rng(seed)
        if edges.n_edges == 0:
            continue
        engine = CpuEngine(Network(edges))
        k = int(rng.integers(1, max(2, edges.n_vertices // 3)))
        ends = rng.choice(edges.n_vertices, 2 * k, replace=False).astype(np.int32)
        caps = [np.where(rng.random(k) < 0.6, rng.integers(0, 12, k), INFINITE) for _ in range(2)]
        state = engine.open(Terminals.of(ends[:k], ends[k:], *caps))
        for step in range(4):
            value = engine.solve(state).value
            for acyclic in (True, False):
                flow = engine.flow(state, acyclic=acyclic)
                proof = prove_flow(engine.network, state.terminals, flow, acyclic=acyclic)
                assert not proof.failures, f"seed {seed}, step {step}: {proof.failures}"
                assert proof.value == value, f"seed {seed}, step {step}"
            rows = rng.choice(edges.n_edges, min(edges.n_edges, 3), replace=False)
            engine.update(rows, rng.integers(0, 15, len(rows)))
    assert len(always) > 8 * SEEDS_A_CASE * 0.8
    assert max(always) > 5


def test_a_part_has_the_rows_of_the_network_in_their_order() -> None:
    for seed in range(cases(60)):
        edges, rng = finite(seed), np.random.default_rng(seed)
        network = Network(edges)
        if network.n_arcs == 0:
            continue
        capacity = network.arc_capacity()
        residual = capacity.copy()
        arcs = rng.choice(network.n_arcs, max(1, network.n_arcs // 3), replace=False)
        arcs = arcs[capacity[arcs] > 0]
        residual[arcs] -= 1
        np.add.at(residual, network.reverse_arc[arcs], 1)
        ends = rng.choice(network.n_vertices, 2, replace=False).astype(np.int32)
        few = carried_by_any(network, residual)
        part = part_of(network, Terminals.of(ends[:1], ends[1:]), few)
        assert (np.diff(part.row_offsets) >= 0).all()
        assert (part.reverse_arc[part.reverse_arc] == np.arange(len(part.head))).all()
        tails = part.vertices[part.head[part.reverse_arc]]
        heads = part.vertices[part.head]
        assert (tails == np.repeat(part.vertices, np.diff(part.row_offsets))).all(), f"seed {seed}"
        key = tails.astype(np.int64) * network.n_vertices + heads
        assert (np.diff(key) > 0).all(), f"seed {seed}: heads rise in a row"
        whole = network.head[network.reverse_arc].astype(np.int64) * network.n_vertices + network.head
        at = np.searchsorted(whole, key)
        assert (whole[at] == key).all(), f"seed {seed}"
        assert (capacity[at] == part.capacity).all(), f"seed {seed}"
        assert (capacity[at] - residual[at] == part.flow).all(), f"seed {seed}"


def carried_by_any(network: Network, residual: UnitArray) -> Carried:
    capacity = network.arc_capacity()
    rows = np.flatnonzero(network.edge_arc >= 0)
    units = (capacity - residual)[network.edge_arc[rows]]
    return Carried(rows[units != 0], units[units != 0])


def test_links_are_counted_before_they_are_listed() -> None:
    n = 4000
    tail = np.arange(n - 1, dtype=np.int32)
    network = Network(EdgeList(n, tail, tail + 1, np.full(n - 1, 2), False))
    capacity = network.arc_capacity()
    residual = capacity.copy()
    assert carried_by(network, capacity, residual) is not None
    few = network.edge_arc[: (n - 1) // carried.FEW]
    residual[few], residual[network.reverse_arc[few]] = 1, 1
    found = carried_by(network, capacity, residual)
    assert found is not None
    assert found.rows.tolist() == list(range(len(few)))
    assert (found.units == 1).all()
    one_more = network.edge_arc[len(few)]
    residual[one_more], residual[network.reverse_arc[one_more]] = 1, 1
    assert carried_by(network, capacity, residual) is None
    residual[:] = 0
    assert carried_by(network, capacity, residual) is None


def test_parallel_edges_of_few_links_count_each() -> None:
    n = 640
    tail = np.concatenate((np.arange(n - 1, dtype=np.int32), np.zeros(128, np.int32)))
    head = np.concatenate((np.arange(1, n, dtype=np.int32), np.ones(128, np.int32)))
    network = Network(EdgeList(n, tail, head, np.ones(len(tail), np.int64), False))
    capacity, first = network.arc_capacity(), network.edge_arc[:1]
    residual = capacity.copy()
    residual[first] -= 3
    residual[network.reverse_arc[first]] += 3
    assert carried_by(network, capacity, residual) is None, "one link, but one edge in six"


def test_a_flow_of_few_links_can_be_cancelled(always: list[int]) -> None:
    edges = EdgeList(3, np.array([0, 1]), np.array([1, 2]), np.array([2, 3]), False)
    engine, control = CpuEngine(Network(edges)), Control()
    state = engine.open(Terminals.of([0], [2]))
    engine.solve(state)
    control.cancel()
    with pytest.raises(Cancelled):
        engine.flow(state, control)
    assert engine.flow(state).tolist() == [2, 2]
    assert len(always) == 2
