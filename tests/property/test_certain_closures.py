"""Closures whose cost nested cuts show: equal to another solver's answers, and all of them in chains."""

import numpy as np
import pytest

from gpu_engine.checks.detours import room_round
from gpu_engine.checks.domains import Closures, Trees, closures_cost_the_most
from gpu_engine.checks.levels import cost_all_they_carry
from gpu_engine.closures.domains import domains
from gpu_engine.closures.nested import levels
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Cancelled, Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, BoolArray, UnitArray
from service.worker.questions.closing import Candidates
from service.worker.questions.closing_vertices import VertexCandidates
from tests.cases import cases
from tests.graphs import drawn
from tests.oracle import maximum_flow
from tests.random_networks import random_network, random_terminals

SEEDS_A_CASE = 100


def chain_like(rng: np.random.Generator) -> EdgeList:
    """A chain of bridges, squares and triangles with ends that hang on them; equal capacities, few, or unlimited ones,
    edges both ways or one."""
    pairs: list[tuple[int, int]] = []
    n = 1
    for _ in range(int(rng.integers(1, 5))):
        at = n - 1
        kind = int(rng.integers(0, 4))
        if kind == 0:
            pairs += [(at, n)]
        elif kind == 1:
            pairs += [(at, n), (n, n + 1), (at, n + 1)]
        elif kind == 2:
            pairs += [(at, n), (n, n + 2), (at, n + 1), (n + 1, n + 2)]
        else:
            pairs += [(at, n), (at, n + 1)]
        n = 1 + max(map(max, pairs))
    tail, head = np.array(pairs, np.int32).T
    capacity = rng.integers(1, int(rng.choice([2, 4, 40])), len(pairs))
    capacity[rng.random(len(pairs)) < rng.choice([0, 0.2])] = INFINITE
    capacity[rng.random(len(pairs)) < rng.choice([0, 0.1])] = 0
    undirected = rng.random(len(pairs)) < rng.choice([0, 0.5, 1])
    return EdgeList(n, tail, head, capacity, undirected, source=0, sink=n - 1)


def certain(candidates: Candidates, network: Network, terminals: Terminals, flow: UnitArray, value: int) -> BoolArray:
    most = candidates.carried(network, flow, value)
    return candidates.certain(network, terminals, flow, value, most, Control())


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("first", range(0, cases(600), SEEDS_A_CASE))
def test_what_is_shown_is_so(first: int, chained: bool) -> None:
    shown = paired = costless = 0
    for seed in range(first, first + SEEDS_A_CASE):
        rng = np.random.default_rng(seed)
        edges = chain_like(rng) if chained else random_network(seed)
        several = not chained or edges.n_vertices < 4 or rng.random() < 0.3
        terminals = random_terminals(rng, edges.n_vertices) if several else Terminals.of([0], [edges.n_vertices - 1])
        network = Network(edges)
        engine = CpuEngine(network)
        try:
            state = engine.open(terminals)
            value = engine.solve(state).value
        except Unbounded:
            continue
        flow = engine.flow(state, acyclic=True)
        sets = [rng.choice(edges.n_edges, int(rng.integers(0, min(4, edges.n_edges + 1))), False) for _ in range(6)]
        ends = np.cumsum([0, *map(len, sets)])
        for candidates in (
            Candidates.single(np.arange(edges.n_edges)),
            Candidates(ends, np.concatenate(sets).astype(np.int64)),
            VertexCandidates.single_vertices(network, np.arange(edges.n_vertices, dtype=np.int32), lambda _: None),
        ):
            most = candidates.carried(network, flow, value)
            alike, costs = candidates.alike(network, terminals), dict[int, int]()
            for i in np.flatnonzero(alike >= 0).tolist():
                capacity = np.array(edges.effective)
                capacity[candidates.edges(i)] = 0
                cost = maximum_flow(edges, capacity, terminals)
                assert costs.setdefault(int(alike[i]), cost) == cost, f"seed {seed} {type(candidates)} {i}"
                paired += list(alike).count(alike[i]) > 1
            for i in np.flatnonzero(certain(candidates, network, terminals, flow, value)).tolist():
                capacity = np.array(edges.effective)
                capacity[candidates.edges(i)] = 0
                assert maximum_flow(edges, capacity, terminals) == value - most[i], (
                    f"seed {seed} {type(candidates)} {i}"
                )
                shown += most[i] > 0
            for i in np.flatnonzero(candidates.costless(network, flow, Control())).tolist():
                capacity = np.array(edges.effective)
                capacity[candidates.edges(i)] = 0
                assert maximum_flow(edges, capacity, terminals) == value, f"seed {seed} {type(candidates)} {i}"
                costless += most[i] > 0
    assert shown > SEEDS_A_CASE
    assert costless > SEEDS_A_CASE // 10
    assert paired > SEEDS_A_CASE


@pytest.mark.parametrize(("shape", "share"), [("Moebius ladder", 1.0), ("squared ring", 1.0), ("ring of squares", 0.6)])
def test_flow_that_goes_all_the_way_round_is_seen_at_once(shape: str, share: float) -> None:
    n = 2000
    at, square = np.arange(n), np.arange(n).reshape(-1, 4)
    tail, head = np.concatenate([at, at]), np.concatenate([np.roll(at, -1), np.roll(at, -2)])
    if shape == "Moebius ladder":
        tail, head = np.concatenate([at, at[: n // 2]]), np.concatenate([np.roll(at, -1), at[n // 2 :]])
    if shape == "ring of squares":
        behind = np.roll(square[:, :2], -1, axis=0)
        tail = np.concatenate([square[:, k] for k in (0, 1, 3, 2, 2, 3)])
        head = np.concatenate([*(square[:, k] for k in (1, 2, 0, 3)), behind[:, 0], behind[:, 1]])
    network = Network(EdgeList(n, tail.astype(np.int32), head.astype(np.int32), np.full(len(tail), 3), True))
    terminals = Terminals.of([0], [n // 4 if shape == "Moebius ladder" else n // 2])
    engine = CpuEngine(network)
    state = engine.open(terminals)
    value, flow = engine.solve(state).value, engine.flow(state, acyclic=True)
    candidates = Candidates.single(np.arange(len(tail)))
    some = (candidates.carried(network, flow, value) > 0) & ~certain(candidates, network, terminals, flow, value)
    assert some.sum() > n // 2
    assert candidates.costless(network, flow, Control())[some].mean() >= share


def test_what_is_no_way_round_is_seen() -> None:
    """A triangle from 0 by 1 and 2, and two arcs to and fro."""
    network = Network(drawn(3, [(0, 1, 5), (1, 2, 4), (2, 0, 6)], undirected=True))
    arcs, residual, used = network.edge_arc, network.arc_capacity(), np.zeros(6, np.bool_)

    def room(way: list[int]) -> int:
        found = int(room_round(network.head, network.reverse_arc, residual, np.array(way, np.int32), used))
        assert not used.any()
        return found

    one, two, three = arcs.tolist()
    assert room([one, two, three]) == room([two, three, one]) == 4
    assert room([one, three, two]) == 0
    assert room([one, two]) == 0
    assert room([one, int(network.reverse_arc[one])]) == 0
    assert room([one, two, three, one, two, three]) == 0
    assert room([one, int(network.reverse_arc[one]), one, int(network.reverse_arc[one])]) == 0
    residual[two] = 0
    assert room([one, two, three]) == 0


@pytest.mark.parametrize("shape", ["path", "comb", "ring", "uneven ring", "double ring"])
def test_chains_need_no_tries(shape: str) -> None:
    k, rng = 500, np.random.default_rng(4)
    spine, tooth = np.arange(k - 1), np.arange(k)
    tail = spine if shape == "path" else np.concatenate([spine, tooth if shape == "comb" else [k - 1]])
    head = spine + 1 if shape == "path" else np.concatenate([spine + 1, k + tooth if shape == "comb" else [0]])
    capacity = np.full(len(tail), 7) if shape == "ring" else rng.integers(1, 100, len(tail))
    if shape == "double ring":
        tail, head = np.tile(tail, 2), np.tile(head, 2)
        capacity = rng.integers(1, 100, len(tail))
    n = int(head.max()) + 1
    network = Network(EdgeList(n, tail.astype(np.int32), head.astype(np.int32), capacity, True))
    terminals = Terminals.of([0], [k // 2])
    engine = CpuEngine(network)
    state = engine.open(terminals)
    value, flow = engine.solve(state).value, engine.flow(state, acyclic=True)
    single = Candidates.single(np.arange(len(tail)))  # in a double ring flow goes by the other edge of a pair
    for candidates in (
        *([] if shape == "double ring" else [single]),
        VertexCandidates.all_but(network, terminals, lambda _: None),
    ):
        carries = candidates.carried(network, flow, value) > 0
        assert carries.sum() >= k // 2 - 1
        assert certain(candidates, network, terminals, flow, value)[carries].all()


def test_a_false_order_shows_nothing() -> None:
    """Levels are only a hint: what a cut pays is added up."""
    edges = EdgeList(4, np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]), np.array([3, 5, 9, 5]), False)
    network, terminals, flow = Network(edges), Terminals.of([0], [3]), np.array([3, 5, 3, 5])
    offsets, rows, most = np.arange(5), np.arange(4), np.array([3, 5, 3, 5])
    for seed in range(200):
        level = np.random.default_rng(seed).integers(0, 4, 4).astype(np.int32)
        assert not cost_all_they_carry(network, terminals, level, flow, 8, offsets, rows, most - 1).any()
    found = cost_all_they_carry(network, terminals, np.array([0, 1, 1, 2], np.int32), flow, 8, offsets, rows, most)
    assert found.tolist() == [True, True, True, False]


def test_a_false_tree_shows_nothing() -> None:
    """Trees on levels are only a hint as well."""
    edges = EdgeList(4, np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]), np.array([3, 5, 9, 5]), False)
    network, terminals, flow = Network(edges), Terminals.of([0], [3]), np.array([3, 5, 3, 5])
    offsets, most, shown = np.arange(5), np.array([3, 5, 3, 5]), 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        level = rng.integers(0, int(rng.choice([1, 2, 4])), 4).astype(np.int32)
        parent = np.array([rng.integers(-1, 4) for _ in range(4)], np.int32)
        about = network, terminals, level, Trees(parent, bool(seed % 2)), flow, 8
        assert not closures_cost_the_most(*about, Closures(offsets, np.arange(4), most - 1)).any()
        assert not closures_cost_the_most(*about, Closures(offsets, np.arange(4), most + 1)).any()
        shown += int(closures_cost_the_most(*about, Closures(offsets, np.arange(4), most)).sum())
    assert shown > 20


def test_a_cancel_ends_the_search_for_cuts() -> None:
    network, control = Network(EdgeList(2, np.array([0]), np.array([1]), np.array([3]), False)), Control()
    control.cancel()
    with pytest.raises(Cancelled):
        list(levels(network, Terminals.of([0], [1]), np.array([3]), control))
    with pytest.raises(Cancelled):
        list(domains(network, np.array([3]), np.zeros(2, np.int32), control))
