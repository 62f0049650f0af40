"""Paths and cycles of cheapest flows: together they are the flow, and nothing that goes round costs anything."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest

from gpu_engine.checks.flows import prove_flow, prove_paths, prove_rest
from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, Unbounded
from gpu_engine.mincost.cheapest import cheapest_flow
from gpu_engine.mincost.cycles import cycles_of
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.paths import Paths, decompose
from gpu_engine.types import UnitArray
from service.worker.graph import NotProven
from service.worker.questions import flows
from tests.cases import cases
from tests.graphs import drawn
from tests.property.test_mincost import maximum, random_costs, solved_here
from tests.random_networks import random_edges, random_terminals

__all__ = ["solved_here"]
SEEDS_A_CASE = 40


def ends_of(edges: EdgeList, flow: UnitArray, row: int) -> tuple[int, int]:
    """From where to where an edge carries its flow."""
    ends = int(edges.tail[row]), int(edges.head[row])
    return ends if flow[row] > 0 else ends[::-1]


def is_acyclic(edges: EdgeList, flow: UnitArray) -> bool:
    used = [ends_of(edges, flow, row) for row in np.flatnonzero(flow).tolist()]
    return bool(nx.is_directed_acyclic_graph(nx.MultiDiGraph(used)))


def carried_by(edges: EdgeList, flow: UnitArray, paths: Paths) -> Counter[int]:
    """What all paths together carry along each edge; each is followed from its source to its sink."""
    used: Counter[int] = Counter()
    for i, amount in enumerate(paths.amounts.tolist()):
        at = int(paths.sources[i])
        for row in paths.edges[paths.offsets[i] : paths.offsets[i + 1]].tolist():
            begin, at = ends_of(edges, flow, row)[0], ends_of(edges, flow, row)[1]
            used[row] += amount * int(np.sign(flow[row]))
            assert begin != at
        assert at == paths.sinks[i]
    return used


@pytest.mark.parametrize("first", range(0, cases(200), SEEDS_A_CASE))
def test_paths_and_cycles_add_up_to_the_flow(first: int) -> None:
    with_cycles = 0
    for seed in range(first, first + SEEDS_A_CASE):
        rng = np.random.default_rng(seed)
        edges = random_edges(rng, 14)
        cost, terminals, network = random_costs(rng, edges), random_terminals(rng, edges.n_vertices), Network(edges)
        if seed % 2:
            cost[~np.broadcast_to(edges.undirected, edges.n_edges)] -= 3
        try:
            value = maximum(network, terminals)
            flow = cheapest_flow(network, cost, terminals, value).flow
        except Unbounded:
            continue
        proof = prove_flow(network, terminals, flow)
        paths, cycles = flows.read_paths_and_cycles(
            network, terminals, flow, proof, edges.n_edges + 1, Control(), lambda _: None
        )
        assert is_acyclic(edges, flow - cycles), seed
        assert not np.any((np.abs(cycles) > np.abs(flow)) | (cycles * np.sign(flow) < 0)), seed
        undirected = np.broadcast_to(edges.undirected, edges.n_edges)
        assert np.where(undirected, np.abs(cycles), cycles) @ cost <= 0, f"{seed}: without its cycles it is cheaper"
        used = carried_by(edges, flow, paths)
        assert [used[row] for row in range(edges.n_edges)] == (flow - cycles).tolist(), seed
        assert (int(paths.amounts.sum()), paths.rest) == (value, 0), seed
        with_cycles += bool(cycles.any())
    assert with_cycles > 3


@pytest.mark.parametrize("seed", range(20))
def test_rings_vanish(seed: int) -> None:
    """Edge by edge: two that lead to and fro are a cycle, which on balance is nothing, and so is a self-loop."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, int, int]] = []
    for _ in range(20):
        ring = rng.permutation(9)[: int(rng.integers(1, 6))].tolist()
        amount = int(rng.integers(1, 9))
        rows += [(a, b, amount) for a, b in zip(ring, ring[1:] + ring[:1], strict=True)]
    edges = drawn(9, rows)
    assert cycles_of(Network(edges), edges.capacity).tolist() == edges.capacity.tolist()


def test_the_flow_between_two_vertices_and_back() -> None:
    """What leads to and fro is a cycle, and the rest is one path; an undirected edge is used against its direction."""
    network = Network(drawn(3, [(0, 1, 5), (1, 0, 2), (2, 1, 3), (2, 2, 4)], [False, False, True, False]))
    flow, ends = np.array([5, 2, -3, 4]), Terminals.of([0], [2])
    assert cycles_of(network, flow).tolist() == [2, 2, 0, 4]
    proof = prove_flow(network, ends, flow)
    paths, _ = flows.read_paths_and_cycles(network, ends, flow, proof, 1, Control(), lambda _: None)
    assert (paths.amounts.tolist(), paths.edges.tolist()) == ([3], [0, 2])


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ([3, 0, -3, 0], ()),
        ([5, 2, -3, 0], ("in a cycle",)),
        ([3, 0, -3, 1], ("in a cycle",)),
        ([3, 0, -2, 0], ("not conserved", "not cycles alone")),
        ([2, 0, -2, 0], ("not cycles alone",)),
        ([3, 0, 0, 0], ("not conserved", "not cycles alone")),
        ([6, 3, -3, 0], ("in a cycle", "more than in the flow")),
        ([0, -3, -3, 0], ("bounds", "more than in the flow")),
    ],
)
def test_what_is_wrong_with_the_rest(rest: list[int], told: tuple[str, ...]) -> None:
    network = Network(drawn(3, [(0, 1, 9), (1, 0, 9), (2, 1, 3), (2, 2, 4)], [False, False, True, False]))
    flow, ends = np.array([5, 2, -3, 4]), Terminals.of([0], [2])
    proof = prove_flow(network, ends, flow)
    found = prove_rest(network, ends, flow, proof, np.array(rest))
    assert len(found.failures) == len(told)
    assert all(words in failure for words, failure in zip(told, found.failures, strict=True))


def test_the_other_way_round_is_no_less() -> None:
    """An undirected edge that carries the rest against the flow is found, although each carries what it may."""
    network = Network(drawn(2, [(0, 1, 3), (0, 1, 3)], [True, True]))
    flow, ends = np.array([3, -1]), Terminals.of([0], [1])
    proof = prove_flow(network, ends, flow)
    assert prove_rest(network, ends, flow, proof, np.array([2, 0])).failures == ()
    wrong = prove_rest(network, ends, flow, proof, np.array([1, 1]))
    assert wrong.failures == ("an edge carries more than in the flow with its cycles",)


@pytest.mark.parametrize("name", ["cycles_of", "decompose"])
def test_what_fails_its_proof_is_not_answered(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    network, ends, flow = Network(drawn(2, [(0, 1, 3)])), Terminals.of([0], [1]), np.array([3])
    proof = prove_flow(network, ends, flow)
    right = decompose(network, ends, flow, proof, 1)
    assert prove_paths(network, flow, 3, right) == []
    wrong = {"cycles_of": np.array([1]), "decompose": decompose(network, ends, np.array([2]), proof, 1)}[name]
    monkeypatch.setattr(flows, name, lambda *_: wrong)
    with pytest.raises(NotProven, match="the paths could not be proven"):
        flows.read_paths_and_cycles(network, ends, flow, proof, 1, Control(), lambda _: None)


def test_a_cancel_stops_it() -> None:
    rows = [(v, v + 1, 1) for v in range(9999)] + [(9999, 0, 1)]
    edges, control = drawn(10_000, rows), Control()
    control.cancel()
    with pytest.raises(Cancelled):
        cycles_of(Network(edges), edges.capacity, control)
