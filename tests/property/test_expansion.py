"""The cheapest way to let more flow, held against NetworkX on a network with every edge that may be widened twice."""

from collections.abc import Iterator
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import CapacityOverflow, EngineError, Unbounded
from gpu_engine.footprint import Footprint
from gpu_engine.mincost import augmenting, expansion, process, solver
from gpu_engine.mincost.cheapest import CheapestFlow
from gpu_engine.mincost.expansion import Candidates, TooMuch, cheapest_expansion
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, MAX_TOTAL
from tests.cases import cases
from tests.graphs import drawn
from tests.property.test_mincost import by_networkx, maximum
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


def doubled(edges: EdgeList, candidates: Candidates) -> EdgeList:
    undirected = np.broadcast_to(edges.undirected, edges.n_edges)
    return EdgeList(
        edges.n_vertices,
        np.concatenate([edges.tail, edges.tail[candidates.rows]]),
        np.concatenate([edges.head, edges.head[candidates.rows]]),
        np.concatenate([edges.capacity, candidates.most]),
        np.concatenate([undirected, undirected[candidates.rows]]),
    )


def random_candidates(rng: np.random.Generator, edges: EdgeList) -> Candidates:
    rows = np.flatnonzero(rng.random(edges.n_edges) < rng.choice([0.3, 1]))
    price = rng.integers(0, 9, len(rows))
    most = rng.integers(0, 40, len(rows))
    most[rng.random(len(rows)) < rng.choice([0, 0.5, 1])] = INFINITE
    return Candidates(rng.permutation(rows), price.astype(np.int64), most.astype(np.int64))


@pytest.mark.parametrize("from_flow", [False, True])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_networks(seed: int, from_flow: bool) -> None:
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, 12)
    terminals = random_terminals(rng, edges.n_vertices)
    network, candidates = Network(edges), random_candidates(rng, edges)
    engine = CpuEngine(network)
    try:
        state = engine.open(terminals)
    except Unbounded:
        return
    value = engine.solve(state).value
    flow = engine.flow(state, acyclic=False) if from_flow else None
    more = int(rng.integers(0, 30))
    wider = doubled(edges, candidates)
    price = np.concatenate([np.zeros(edges.n_edges, np.int64), candidates.price])
    try:
        expected = by_networkx(wider, price, terminals, value + more)
    except nx.NetworkXUnfeasible:
        with pytest.raises(TooMuch) as refused:
            cheapest_expansion(network, terminals, candidates, value, more, flow=flow)
        assert refused.value.most < value + more
        return
    found = cheapest_expansion(network, terminals, candidates, value, more, flow=flow)
    assert found.from_flow is from_flow
    assert found.proof.valid, found.proof.failures
    assert found.proof.cost == expected
    assert found.proof.cost == int((found.add * candidates.price).sum())
    assert (found.add <= np.minimum(candidates.most, more)).all()
    widened = edges.capacity.copy()
    limited = widened[candidates.rows] != INFINITE
    widened[candidates.rows[limited]] += found.add[limited]
    assert (found.add[~limited] == 0).all()
    assert maximum(Network(replace(edges, capacity=widened)), terminals) >= value + more


@pytest.mark.parametrize("price", [1, 1 << 40])
def test_what_would_take_too_many_searches_is_left_to_the_solver(monkeypatch: pytest.MonkeyPatch, price: int) -> None:
    """Few searches are enough here, unless none is allowed, or distances have no room."""
    edges = drawn(3, [(0, 1, 5), (1, 2, 2)])
    candidates = Candidates(np.array([0, 1]), np.array([price, 2]), np.full(2, INFINITE))
    given = Network(edges), Terminals.of([0], [2]), candidates, 2, 7
    flow = np.array([2, 2])
    assert cheapest_expansion(*given, flow=flow).from_flow is (price == 1)
    monkeypatch.setattr(augmenting, "SEARCHES", 0)
    found = cheapest_expansion(*given, flow=flow)
    assert not found.from_flow
    assert found.proof.valid
    assert found.add.tolist() == [4, 7]


def test_the_city() -> None:
    edges = drawn(4, [(0, 1, 4), (0, 2, 3), (1, 2, 2), (1, 3, 2), (2, 3, 4)])
    candidates = Candidates(np.array([0, 1, 3, 4]), np.array([1, 1, 5, 3]), np.full(4, INFINITE))
    found = cheapest_expansion(Network(edges), Terminals.of([0], [3]), candidates, 6, 2)
    assert found.proof.cost == 7
    assert found.add.tolist() == [0, 1, 0, 2]


def test_what_costs_nothing_is_not_added_in_vain() -> None:
    """Both edges are there twice at no price; only the narrow one has to be widened, and by one unit."""
    edges = drawn(3, [(0, 1, 5), (1, 2, 2)])
    candidates = Candidates(np.array([1, 0]), np.zeros(2, np.int64), np.full(2, INFINITE))
    found = cheapest_expansion(Network(edges), Terminals.of([0], [2]), candidates, 2, 1)
    assert found.add.tolist() == [1, 0]


@pytest.mark.parametrize("undirected", [False, True])
def test_an_edge_with_room_is_used_before_the_one_beside_it(monkeypatch: pytest.MonkeyPatch, undirected: bool) -> None:
    """A solver may use an edge that costs nothing in place of the one that is there."""
    edges = drawn(2, [(0, 1, 5)], undirected)
    candidates = Candidates(np.array([0]), np.zeros(1, np.int64), np.full(1, INFINITE))
    zero = np.zeros(2, np.int64)
    monkeypatch.setattr(expansion, "cheapest_flow", lambda *given: CheapestFlow(np.array([4, 2]), zero, 0))
    found = cheapest_expansion(Network(edges), Terminals.of([0], [1]), candidates, 5, 1)
    assert (found.add.tolist(), found.proof.failures) == ([1], ())


def test_too_much_is_refused_with_what_can_be_had() -> None:
    edges = drawn(3, [(0, 1, 5), (1, 2, 2)])
    candidates = Candidates(np.array([1]), np.array([1]), np.array([100]))
    with pytest.raises(TooMuch) as refused:
        cheapest_expansion(Network(edges), Terminals.of([0], [2]), candidates, 2, 4)
    assert refused.value.most == 5


def test_sums_beyond_exact_ones_are_told_without_rows_that_nobody_sent() -> None:
    edges = drawn(3, [(0, 1, 5), (1, 2, 2)])
    candidates = Candidates(np.array([0, 1]), np.array([1, 1]), np.array([INFINITE, INFINITE]))
    with pytest.raises(CapacityOverflow, match="max_add") as refused:
        cheapest_expansion(Network(edges), Terminals.of([0], [2]), candidates, 2, MAX_TOTAL - 9)
    assert (refused.value.where.field, refused.value.where.rows) == ("/raise_by", [])


def test_memory_is_asked_for_before_it_is_taken() -> None:
    asked: list[Footprint] = []

    def room(needed: Footprint) -> None:
        asked.append(needed)
        raise EngineError("no room")

    edges = drawn(3, [(0, 1, 5), (1, 2, 2)])
    candidates = Candidates(np.array([1]), np.array([1]), np.array([100]))
    network = Network(edges)
    CpuEngine(network)
    with pytest.raises(EngineError, match="no room"):
        cheapest_expansion(network, Terminals.of([0], [2]), candidates, 2, 1, room=room)
    assert asked[0].host > network.nbytes
