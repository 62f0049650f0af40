"""Flows as routes on random networks: acyclic, as short as OR-tools finds them, and made of paths."""

from collections import Counter
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from ortools.graph.python import min_cost_flow

from gpu_engine.checks.flows import prove_flow, prove_paths
from gpu_engine.control import Control
from gpu_engine.cpu.cycles import cancel_cycles
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.state import CpuFlowState
from gpu_engine.errors import Cancelled, Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.paths import decompose
from gpu_engine.types import INFINITE, UnitArray
from tests.cases import cases
from tests.graphs import drawn
from tests.oracle import PLENTY
from tests.random_networks import random_edges, random_terminals, random_update

SEEDS_A_CASE = 100


def solved(seed: int, largest: int = 30) -> tuple[CpuEngine, CpuFlowState, EdgeList] | None:
    """Cold, or warm after an update of every other one; None where the flow has no bound."""
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, largest)
    engine = CpuEngine(Network(edges))
    try:
        state = engine.open(random_terminals(rng, edges.n_vertices))
        engine.solve(state)
        if seed % 2 and edges.n_edges:
            engine.update(*random_update(rng, engine.network.capacity))
            engine.solve(state)
    except Unbounded:
        return None
    return engine, state, edges


def carried(edges: EdgeList, flow: UnitArray) -> list[tuple[int, int, int]]:
    """From, to and amount of each edge with flow."""
    ends = zip(edges.tail.tolist(), edges.head.tolist(), flow.tolist(), strict=True)
    return [(tail, head, amount) if amount > 0 else (head, tail, -amount) for tail, head, amount in ends if amount]


def is_acyclic(edges: EdgeList, flow: UnitArray) -> bool:
    return bool(nx.is_directed_acyclic_graph(nx.DiGraph([(a, b) for a, b, _ in carried(edges, flow)])))


def used_pairs(edges: EdgeList, flow: UnitArray) -> set[tuple[int, int]]:
    """The pairs of vertices between which the flow uses links on balance."""
    net: Counter[tuple[int, int]] = Counter()
    for tail, head, amount in carried(edges, flow):
        net[tail, head] += amount
        net[head, tail] -= amount
    return {pair for pair, amount in net.items() if amount}


def least_length(
    network: Network, edges: EdgeList, terminals: Terminals, value: int, used: set[tuple[int, int]] | None = None
) -> int:
    """Of all flows of the value, or of those on the pairs of vertices that may be ``used``, by OR-tools."""
    solver = min_cost_flow.SimpleMinCostFlow()
    both = np.broadcast_to(edges.undirected, (edges.n_edges,)).tolist()
    rows = zip(edges.tail.tolist(), edges.head.tolist(), network.capacity.tolist(), both, strict=True)
    for tail, head, capacity, either in rows:
        for a, b in ((tail, head), (head, tail))[: 1 + either]:
            if used is None or (a, b) in used:
                solver.add_arc_with_capacity_and_unit_cost(a, b, min(capacity, value), 1)
    source, sink = edges.n_vertices, edges.n_vertices + 1
    for v, cap in zip(terminals.sources.tolist(), terminals.supply.tolist(), strict=True):
        solver.add_arc_with_capacity_and_unit_cost(source, v, min(cap, value), 0)
    for v, cap in zip(terminals.sinks.tolist(), terminals.demand.tolist(), strict=True):
        solver.add_arc_with_capacity_and_unit_cost(v, sink, min(cap, value), 0)
    solver.set_node_supply(source, value)
    solver.set_node_supply(sink, -value)
    assert solver.solve() == solver.OPTIMAL
    return int(solver.optimal_cost())


def checked(seed: int, found: tuple[CpuEngine, CpuFlowState, EdgeList]) -> UnitArray:
    """The flow, proven, acyclic, and no longer than as it was found."""
    engine, state, edges = found
    flow = engine.flow(state)
    proof = prove_flow(engine.network, state.terminals, flow)
    assert (proof.failures, proof.value) == ((), state.value), seed
    assert is_acyclic(edges, flow), seed
    assert np.abs(flow).sum() <= np.abs(engine.flow(state, acyclic=False)).sum(), seed
    assert engine.certificate(state).valid, seed  # undisturbed
    return flow


@pytest.mark.parametrize("first", range(0, cases(1000), SEEDS_A_CASE))
def test_flows_are_acyclic_and_the_shortest_there_are(first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        if found := solved(seed):
            engine, state, edges = found
            least = least_length(engine.network, edges, state.terminals, state.value)
            assert int(np.abs(checked(seed, found)).sum()) == least, seed


@pytest.mark.parametrize("first", range(1000, 1000 + cases(500), SEEDS_A_CASE))
def test_where_not_all_roads_fit_flows_are_the_shortest_on_their_links(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_engine.cpu.routes.open_links", lambda offsets, head, *_: np.zeros(len(head), np.bool_))
    for seed in range(first, first + SEEDS_A_CASE):
        if found := solved(seed):
            engine, state, edges = found
            used = used_pairs(edges, engine.flow(state, acyclic=False))
            least = least_length(engine.network, edges, state.terminals, state.value, used)
            assert int(np.abs(checked(seed, found)).sum()) == least, seed


@pytest.mark.parametrize("steps", [0, 10, 40, 100, 200, 400])
def test_a_search_that_is_given_up_leaves_a_flow(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first part or the second, on all roads or on those in use."""
    for some in ("ALL_STEPS", "USED_STEPS"):
        monkeypatch.setattr(f"gpu_engine.cpu.routes.{some}", 0)
    monkeypatch.setattr("gpu_engine.cpu.routes.FEW_STEPS", steps)
    for seed in range(2000, 2050):
        if found := solved(seed):
            checked(seed, found)


@pytest.mark.parametrize("first", range(5000, 5000 + cases(500), SEEDS_A_CASE))
def test_cycles_go_where_there_is_no_time_for_more(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each amount only gets smaller, and what terminals give and get stays."""
    monkeypatch.setattr("gpu_engine.cpu.routes._shorten", lambda *_: False)
    for seed in range(first, first + SEEDS_A_CASE):
        found = solved(seed, 60)
        if found is None:
            continue
        engine, state, edges = found
        raw, flow = engine.flow(state, acyclic=False), engine.flow(state)
        before, after = (prove_flow(engine.network, state.terminals, some) for some in (raw, flow))
        assert after.failures == (), seed
        assert is_acyclic(edges, flow), seed
        assert (np.abs(flow) <= np.abs(raw)).all(), seed
        assert before.supplied.tolist() == after.supplied.tolist(), seed
        assert before.delivered.tolist() == after.delivered.tolist(), seed


def rings(n: int, seed: int) -> tuple[Network, UnitArray]:
    """A circulation of many cycles that share edges, by edge."""
    rng = np.random.default_rng(seed)
    pairs: Counter[tuple[int, int]] = Counter()
    for _ in range(3 * n):
        ring = rng.permutation(n)[: int(rng.integers(2, n + 1))].tolist()
        amount = int(rng.integers(1, 9))
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
            pairs[a, b] += amount
    edges = drawn(n, [(a, b, amount) for (a, b), amount in pairs.items()])
    return Network(edges), edges.capacity.copy()


@pytest.mark.parametrize("seed", range(20))
def test_a_circulation_vanishes(seed: int) -> None:
    network, flow = rings(12, seed)
    arcs = np.zeros(network.n_arcs, np.int64)
    np.add.at(arcs, network.edge_arc, flow)
    arcs -= arcs[network.reverse_arc]
    control = Control()
    cancel_cycles(network.row_offsets, network.head, network.reverse_arc, arcs, control.slots)
    assert not arcs.any()


def test_a_cancel_stops_it() -> None:
    found = solved(2)
    assert found is not None
    engine, state, _ = found
    control = Control()
    control.cancel()
    with pytest.raises(Cancelled):
        engine.flow(state, control)


def test_a_cycle_beside_the_way_goes_with_the_shorter_flow() -> None:
    r"""The flow of 1 goes 0 > 1, and there is one round 2 > 3 > 4, and one round 1 > 5 > 6.

    0 --1--> 1    2 --> 3 --> 4 --> 2    1 --> 5 --> 6 --> 1
    """
    network = Network(drawn(7, [(0, 1, 1), (2, 3, 1), (3, 4, 1), (4, 2, 1), (1, 5, 1), (5, 6, 1), (6, 1, 1)]))
    engine = CpuEngine(network)
    state = engine.open(Terminals.of([0], [1]))
    engine.solve(state)
    state.residual[network.edge_arc] = 0
    state.residual[network.reverse_arc[network.edge_arc]] = 1
    assert engine.certificate(state).valid
    assert engine.flow(state, acyclic=False).tolist() == [1] * 7
    assert engine.flow(state).tolist() == [1] + [0] * 6


@pytest.mark.parametrize("first", range(9000, 9000 + cases(500), SEEDS_A_CASE))
def test_paths_add_up_to_the_flow(first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        found = solved(seed)
        if found is None:
            continue
        engine, state, edges = found
        flow = engine.flow(state)
        proof = prove_flow(engine.network, state.terminals, flow)
        whole = decompose(engine.network, state.terminals, flow, proof, edges.n_edges)
        used: Counter[int] = Counter()
        ends = {row: (a, b) for row, (a, b, _) in zip(np.flatnonzero(flow).tolist(), carried(edges, flow), strict=True)}
        for i, amount in enumerate(whole.amounts.tolist()):
            rows = whole.edges[whole.offsets[i] : whole.offsets[i + 1]].tolist()
            places = [int(whole.sources[i]), *(ends[row][1] for row in rows)]
            assert [ends[row][0] for row in rows] == places[:-1], seed
            assert places[-1] == whole.sinks[i], seed
            assert len(set(places)) == len(places), f"{seed}: a path comes to a vertex twice"
            used.update(dict.fromkeys(rows, amount))
        assert used == Counter({row: abs(int(flow[row])) for row in ends}), seed
        assert whole.count == len(whole.amounts) <= len(ends), seed
        assert prove_paths(engine.network, flow, state.value, whole) == [], seed
        few = decompose(engine.network, state.terminals, flow, proof, 2)
        assert few.amounts.tolist() == whole.amounts[:2].tolist(), seed
        assert (few.count, few.rest) == (whole.count, int(whole.amounts[2:].sum())), seed
        assert prove_paths(engine.network, flow, state.value, few) == [], seed


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        ({}, []),
        ({"amounts": [2, 1]}, ["the paths do not add up to the value", "the paths do not add up to the flow"]),
        ({"amounts": [4, 1]}, ["path 0 does not follow the flow from its source to its sink"]),
        ({"amounts": [3, 0], "rest": 2}, ["path 1 does not follow the flow from its source to its sink"]),
        ({"edges": [1, 0, 2]}, ["path 0 does not follow the flow from its source to its sink"]),
        ({"sinks": [1, 2]}, ["path 0 does not follow the flow from its source to its sink"]),
        ({"sources": [0, 1]}, ["path 1 does not follow the flow from its source to its sink"]),
        ({"rest": 1}, ["the paths do not add up to the value"]),
        ({"count": 1}, ["the paths do not add up to the flow"]),
    ],
)
def test_what_is_wrong_with_paths(claim: dict[str, object], wrong: list[str]) -> None:
    """
    ::

        0 --3--> 1 --3--> 2      and 2 --2-- 0, undirected
    """
    network = Network(drawn(3, [(0, 1, 3), (1, 2, 3), (2, 0, 2)], [False, False, True]))
    flow = np.array([3, 3, -2])
    paths = {"sources": [0, 0], "sinks": [2, 2], "amounts": [3, 2], "offsets": [0, 2, 3], "edges": [0, 1, 2]}
    paths |= {"count": 2, "rest": 0} | claim
    columns = {name: np.array(value) if isinstance(value, list) else value for name, value in paths.items()}
    found = prove_paths(network, flow, 5, SimpleNamespace(**columns))  # type: ignore[arg-type]  # any such columns
    assert found[: len(wrong)] == wrong
    assert bool(found) == bool(wrong)


def test_amounts_near_the_largest_and_edges_without_limit() -> None:
    edges = drawn(4, [(0, 1, INFINITE), (1, 2, PLENTY), (2, 3, INFINITE), (1, 3, 7)])
    engine = CpuEngine(Network(edges))
    state = engine.open(Terminals.of([0], [3]))
    engine.solve(state)
    flow = engine.flow(state)
    assert flow.tolist() == [PLENTY + 7, PLENTY, PLENTY, 7]
    proof = prove_flow(engine.network, state.terminals, flow)
    found = decompose(engine.network, state.terminals, flow, proof, 9)
    assert found.amounts.tolist() == [PLENTY, 7]


def test_paths_are_listed_as_far_as_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three paths of three edges each share two, and the network has five: they do not fit, the first one does."""
    monkeypatch.setattr("gpu_engine.paths.MOST_EDGES", 4)
    edges = drawn(4, [(0, 1, 9), (1, 2, 9), (2, 3, 1), (2, 3, 2), (2, 3, 4)])
    engine = CpuEngine(Network(edges))
    state = engine.open(Terminals.of([0], [3]))
    engine.solve(state)
    flow = engine.flow(state)
    found = decompose(engine.network, state.terminals, flow, prove_flow(engine.network, state.terminals, flow), 9)
    assert (found.amounts.tolist(), found.edges.tolist()) == ([4], [0, 1, 4])
    assert (found.count, found.rest) == (3, 3)
    assert prove_paths(engine.network, flow, 7, found) == []
