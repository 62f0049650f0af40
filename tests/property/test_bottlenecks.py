"""Bottlenecks held against a list of all cuts of small networks, and components against SciPy's."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gpu_engine.control import Control
from gpu_engine.cpu.bottlenecks import BETWEEN, LEAST, components
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Bottlenecks
from gpu_engine.errors import Cancelled, OutOfMemory, Unbounded
from gpu_engine.footprint import Footprint
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from tests.cases import cases
from tests.graphs import drawn
from tests.property.test_cut_unique import minimum_cuts, random_case

SEEDS_A_CASE = 250


def paid(found: Bottlenecks) -> dict[tuple[str, int], bool]:
    """By kind and row or vertex, as `minimum_cuts` names them: whether every minimum cut pays it."""
    columns = {
        "edge": (found.edges, found.in_every),
        "source": (found.sources, found.source_in_every),
        "sink": (found.sinks, found.sink_in_every),
    }
    return {
        (kind, row): every
        for kind, (rows, in_every) in columns.items()
        for row, every in zip(rows.tolist(), in_every.tolist(), strict=True)
    }


def check(edges: EdgeList, terminals: Terminals, at: str) -> tuple[int, int] | None:
    """How many are in some cut and in every cut; None where the flow has no bound."""
    engine = CpuEngine(Network(edges))
    try:
        state = engine.open(terminals)
    except Unbounded:
        return None
    engine.solve(state)
    found = paid(engine.bottlenecks(state))
    _, cuts = minimum_cuts(edges, terminals)
    assert set(found) == frozenset.union(*cuts), at
    every = {one for one, is_in in found.items() if is_in}
    assert every == frozenset.intersection(*cuts), at
    return len(found), len(every)


@pytest.mark.parametrize("first", range(0, cases(2000), SEEDS_A_CASE))
def test_all_cuts_say_the_same(first: int) -> None:
    counts = [check(*random_case(seed), f"seed {seed}") for seed in range(first, first + SEEDS_A_CASE)]
    solved = [count for count in counts if count is not None]
    assert sum(some > every > 0 for some, every in solved) > 0, "both kinds are met"


@pytest.mark.parametrize("undirected", [False, True])
def test_a_path_is_cut_anywhere_and_a_cycle_nowhere(undirected: bool) -> None:
    """
    ::

        0 -- 2 --> 1 -- 2 --> 2 -- 2 --> 3       all three limit the flow, and none alone
                   1 -- 5 --> 4 -- 5 --> 1       and a cycle beside them does not
    """
    edges = drawn(5, [(0, 1, 2), (1, 2, 2), (2, 3, 2), (1, 4, 5), (4, 1, 5)], undirected)
    engine = CpuEngine(Network(edges))
    state = engine.open(Terminals.of([0], [3]))
    engine.solve(state)
    found = engine.bottlenecks(state)
    assert found.edges.tolist() == [0, 1, 2]
    assert not found.in_every.any()


@pytest.mark.parametrize("seed", range(30))
def test_components_are_those_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    present = rng.random((n, n)) < rng.choice([0.02, 0.05, 0.2])
    tail, head = np.nonzero(present)
    offsets = np.zeros(n + 1, np.int32)
    np.cumsum(present.sum(1), out=offsets[1:])
    residual = rng.integers(0, 3, len(head)).astype(np.int64)
    place = np.where(rng.random(n) < 0.8, BETWEEN, LEAST).astype(np.int8)
    found = components(offsets, head.astype(np.int32), residual, place, Control().slots)
    inside = np.flatnonzero(place == BETWEEN)
    kept = (residual > 0) & (place[tail] == BETWEEN) & (place[head] == BETWEEN)
    graph = csr_array((np.ones(kept.sum()), (tail[kept], head[kept])), (n, n))
    _, expected = connected_components(graph, connection="strong")
    assert (found[place != BETWEEN] == -1).all()
    assert (found[inside] >= 0).all()
    pairs = set(zip(found[inside].tolist(), expected[inside].tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}), seed


def test_a_long_path_takes_no_recursion_and_room_is_asked_for() -> None:
    n, asked = 50_000, list[Footprint]()
    rows = np.arange(n - 1, dtype=np.int32)
    edges = EdgeList(n, rows, rows + 1, np.full(n - 1, 3, np.int64))
    network = Network(edges)
    engine = CpuEngine(network, asked.append)
    state = engine.open(Terminals.of([0], [n - 1]))
    engine.solve(state)
    asked.clear()
    found = engine.bottlenecks(state)
    assert len(found.edges) == n - 1
    assert Footprint(24 * n) in asked


def test_it_can_be_cancelled_and_refused_memory() -> None:
    edges = drawn(3, [(0, 1, 2), (1, 2, 2)])
    engine = CpuEngine(Network(edges))
    state = engine.open(Terminals.of([0], [2]))
    engine.solve(state)
    control = Control()
    control.cancel()
    with pytest.raises(Cancelled):
        engine.bottlenecks(state, control)

    def refuse(needed: Footprint) -> None:
        raise OutOfMemory("no room")

    cramped = CpuEngine(Network(edges))
    other = cramped.open(Terminals.of([0], [2]))
    cramped.solve(other)
    cramped._room = refuse
    with pytest.raises(OutOfMemory):
        cramped.bottlenecks(other)
