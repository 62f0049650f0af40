"""Cheapest flows of random networks, held against NetworkX and against every flow there is; each is proven as well."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import networkx as nx
import numpy as np
import pytest

from gpu_engine.checks.costs import CostProof, prove_cheapest
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Infeasible, Unbounded
from gpu_engine.footprint import Footprint
from gpu_engine.mincost import cheapest, process, solver, successive
from gpu_engine.mincost.cheapest import CheapestFlow, cheapest_flow
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, UnitArray
from tests.cases import cases
from tests.random_networks import random_edges, random_terminals

SEEDS = cases(150)


@pytest.fixture(autouse=True)
def solved_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without a process for each of hundreds of problems."""

    def run(module: str, data: bytes, limit: int, control: Control) -> tuple[bytes, int]:
        status, flow = process.solved(data)
        return status.encode() + b"\n" + flow, 0

    with monkeypatch.context() as patch:
        patch.setattr(solver, "run", run)
        yield


def random_costs(rng: np.random.Generator, edges: EdgeList) -> UnitArray:
    """Up to 20 a unit; some negative where edges are directed and it is allowed to be."""
    cost = rng.integers(0, int(rng.choice([1, 5, 20])) + 1, edges.n_edges)
    below = rng.random(edges.n_edges) < rng.choice([0, 0, 0.2])
    cost[below & ~np.broadcast_to(edges.undirected, edges.n_edges)] *= -1
    return cost.astype(np.int64)


def maximum(network: Network, terminals: Terminals) -> int:
    engine = CpuEngine(network)
    return engine.solve(engine.open(terminals)).value


def by_networkx(edges: EdgeList, cost: UnitArray, terminals: Terminals, value: int) -> int:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(edges.n_vertices))
    graph.add_node("from", demand=-value)
    graph.add_node("to", demand=value)

    def add(tail: object, head: object, capacity: int, weight: int) -> None:
        limit = {} if capacity == INFINITE else {"capacity": capacity}
        graph.add_edge(tail, head, weight=weight, **limit)

    undirected = np.broadcast_to(edges.undirected, edges.n_edges)
    for row in range(edges.n_edges):
        tail, head = int(edges.tail[row]), int(edges.head[row])
        add(tail, head, int(edges.capacity[row]), int(cost[row]))
        if undirected[row]:
            add(head, tail, int(edges.capacity[row]), int(cost[row]))
    for vertex, supply in zip(terminals.sources.tolist(), terminals.supply.tolist(), strict=True):
        add("from", vertex, supply, 0)
    for vertex, demand in zip(terminals.sinks.tolist(), terminals.demand.tolist(), strict=True):
        add(vertex, "to", demand, 0)
    return int(nx.network_simplex(graph)[0])


def proven(network: Network, cost: UnitArray, terminals: Terminals, value: int, found: CheapestFlow) -> CostProof:
    return prove_cheapest(network, cost, terminals, found.flow, value, found.potential, found.sink_potential)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_networks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:  # each way to a flow by itself
        monkeypatch.setattr(cheapest, "_by_few_paths", lambda *_: None)
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, 14)
    cost, terminals = random_costs(rng, edges), random_terminals(rng, edges.n_vertices)
    network = Network(edges)
    try:
        most = maximum(network, terminals)
    except Unbounded:
        most = 50
    value = most if rng.random() < 0.5 else int(rng.integers(0, most + 1))
    try:
        expected = by_networkx(edges, cost, terminals, value)
    except nx.NetworkXUnbounded:
        with pytest.raises(Unbounded, match="costs less than nothing"):
            cheapest_flow(network, cost, terminals, value)
        return
    found = cheapest_flow(network, cost, terminals, value)
    proof = proven(network, cost, terminals, value, found)
    assert (proof.failures, proof.cost, proof.dual_bound) == ((), expected, expected)
    if most < 50:
        with pytest.raises(Infeasible):
            cheapest_flow(network, cost, terminals, most + 1)


def test_few_units_need_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight trucks through a long network took OR-tools 14 s; amounts in hundredths are no more units."""
    rng, width, length = np.random.default_rng(1), 6, 400
    step = np.repeat(np.arange(length - 1) * width, 2 * width)
    tail, head = step + rng.integers(0, width, len(step)), step + width + rng.integers(0, width, len(step))
    network = Network(EdgeList(width * length, tail.astype(np.int32), head.astype(np.int32), np.full(len(step), 100)))
    terminals = Terminals.of(range(width), range(width * (length - 1), width * length))
    cost, value = rng.integers(0, 100, len(step)), maximum(network, terminals)
    monkeypatch.setattr(cheapest, "solve", None)
    found = cheapest_flow(network, cost, terminals, value)
    assert proven(network, cost, terminals, value, found).failures == ()
    assert value >= 100
    assert not found.by_solver


def corridor(length: int, width: int, most: int) -> EdgeList:
    """Each vertex leads to the next one along, and to those beside it and from them."""
    at = np.arange(length * width, dtype=np.int32).reshape(length, width)
    tail = np.concatenate([at[:-1].ravel(), at[:, :-1].ravel(), at[:, 1:].ravel()])
    head = np.concatenate([at[1:].ravel(), at[:, 1:].ravel(), at[:, :-1].ravel()])
    return EdgeList(length * width, tail, head, np.random.default_rng(2).integers(most // 2, most, len(tail)))


def test_many_units_through_a_long_corridor_need_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """OR-tools looks at each edge as often as the corridor is long: it took 5 s for what takes 0.5."""
    network, terminals = Network(corridor(2500, 2, 1000)), Terminals.of([0], [4999])
    cost, value = np.random.default_rng(5).integers(1, 50, network.n_edges), maximum(network, terminals)
    monkeypatch.setattr(cheapest, "solve", None)
    found = cheapest_flow(network, cost, terminals, value)
    assert proven(network, cost, terminals, value, found).failures == ()
    assert value > 500


@pytest.mark.parametrize("seed", range(SEEDS // 5))
def test_searches_in_rounds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From none that is tried anyway, in corridors that are long enough for rounds."""
    monkeypatch.setattr(cheapest, "SEARCHES", 0)
    monkeypatch.setattr(cheapest, "FEW_UNITS", -1)
    monkeypatch.setattr(cheapest, "FEW_STEPS", 0)
    rng = np.random.default_rng(seed)
    edges = corridor(int(rng.integers(16, 60)), int(rng.integers(1, 4)), int(rng.choice([6, 40])))
    edges = replace(edges, capacity=rng.integers(1, 30, edges.n_edges), undirected=bool(rng.integers(2)))
    network, terminals = Network(edges), Terminals.of([0], [edges.n_vertices - 1])
    cost, value = rng.integers(0, 9, edges.n_edges), maximum(network, terminals)
    found = cheapest_flow(network, cost, terminals, value)
    proof = proven(network, cost, terminals, value, found)
    assert (proof.failures, proof.cost) == ((), by_networkx(edges, cost, terminals, value))
    with pytest.raises(Infeasible):
        cheapest_flow(network, cost, terminals, value + 1)


def rounds_at(pace: int, length: int, used: int = 24) -> tuple[bool, list[int]]:
    """Whether 1000 units were sent over a way of this length, if so many are in a round, and the searches of each."""
    excess, asked = np.array([1000, -1000]), list[int]()

    def search(times: int) -> bool:
        asked.append(times)
        excess[-2] -= pace
        return bool(excess[-2] <= 0)

    return successive._in_rounds(search, excess, length, used), asked


def test_a_pace_that_would_not_do_is_given_up() -> None:
    """Thousands of paths of as many lengths, of one unit each, through a network that is not so long."""
    assert rounds_at(0, 1600) == (False, [100])
    assert rounds_at(50, 1600) == (False, [100])
    assert rounds_at(100, 1600) == (True, [100] * 10)
    assert rounds_at(1000, 1600) == (True, [100])
    assert rounds_at(1000, 32) == (False, [])  # all of that has been tried
    assert rounds_at(1000, 15, used=0) == (False, [])


@pytest.mark.parametrize("m", [0, 2])
def test_nothing_needs_no_solver(m: int) -> None:
    """Nor is memory asked for its process."""
    ends = np.arange(m, dtype=np.int32)
    network, asked = Network(EdgeList(3, ends, ends + 1, np.full(m, 5))), list[Footprint]()
    terminals, cost = Terminals.of([2], [0]), np.full(m, 2**40)
    found = cheapest_flow(network, cost, terminals, 0, room=asked.append)
    proof = proven(network, cost, terminals, 0, found)
    assert (proof.failures, proof.cost, found.by_solver) == ((), 0, False)
    assert sum(one.host for one in asked) < 1_000_000


def test_a_small_network_needs_no_solver_for_many_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process takes longer to start than that."""
    rng, n = np.random.default_rng(1), 300
    tail, head = rng.integers(0, n, (2, 4 * n)).astype(np.int32)
    network = Network(EdgeList(n, tail, head, rng.integers(100, 200, 4 * n)))
    terminals = Terminals.of(range(10), range(10, 20))
    cost, value = rng.integers(1, 1000, 4 * n), maximum(network, terminals)
    monkeypatch.setattr(cheapest, "solve", None)
    found = cheapest_flow(network, cost, terminals, value)
    assert proven(network, cost, terminals, value, found).failures == ()
    assert value > 1000


@pytest.mark.parametrize("seed", range(60))
def test_every_flow_of_a_small_network(seed: int) -> None:
    """Each capacity is at most 2 and there are at most 5 edges, so that all flows can be looked at."""
    rng = np.random.default_rng(1000 + seed)
    n, m = 3, int(rng.integers(1, 6))
    tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
    edges = EdgeList(n, tail, head, rng.integers(0, 3, m).astype(np.int64), rng.random(m) < 0.3)
    cost = random_costs(rng, edges) + rng.integers(-2, 1, m) * ~edges.undirected
    terminals = Terminals.of([0], [2])
    cheapest: dict[int, int] = {}
    spans = [range(-c if both else 0, c + 1) for c, both in zip(edges.capacity.tolist(), edges.undirected, strict=True)]
    for flow in product(*spans):
        net = np.zeros(n, int)
        np.add.at(net, head, flow)
        np.subtract.at(net, tail, flow)
        if net[1] == 0 and net[2] >= 0:
            price = int(
                sum(c * (abs(f) if both else f) for c, f, both in zip(cost, flow, edges.undirected, strict=True))
            )
            cheapest[int(net[2])] = min(price, cheapest.get(int(net[2]), price))
    network = Network(edges)
    for value, price in cheapest.items():
        found = cheapest_flow(network, cost, terminals, value)
        proof = proven(network, cost, terminals, value, found)
        assert (proof.failures, proof.cost) == ((), price), value


@pytest.mark.parametrize("seed", range(30))
def test_no_proof_of_a_flow_that_could_be_had_for_less(seed: int) -> None:
    """Whatever potentials come with it: a flow that costs more than another of its value is found out."""
    rng = np.random.default_rng(seed)
    edges = replace(random_edges(rng, 10), undirected=False)
    terminals = Terminals.of([0], [1])
    network = Network(replace(edges, capacity=np.minimum(edges.capacity, 20)))
    cost = random_costs(rng, edges) + 1
    value = maximum(network, terminals)
    dear = cheapest_flow(network, -cost, terminals, value)  # which costs most
    best = cheapest_flow(network, cost, terminals, value)
    if (dear.flow @ cost) == (best.flow @ cost):
        return
    for potential, beyond in ((best.potential, best.sink_potential), (dear.potential, dear.sink_potential)):
        proof = prove_cheapest(network, cost, terminals, dear.flow, value, potential, beyond)
        assert not proof.valid
        assert proof.dual_bound < proof.cost
