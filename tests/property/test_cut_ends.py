"""The cut nearest the sources and the one nearest the sinks: held against a list of all cuts of small networks."""

from itertools import product

import numpy as np
import pytest

from gpu_engine.cpu import derive
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.state import CpuFlowState
from gpu_engine.engine import Cut
from gpu_engine.errors import Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, BoolArray, End, UnitArray
from tests.cases import cases
from tests.graphs import drawn
from tests.property.test_cut_unique import random_case
from tests.random_networks import random_update

SEEDS_A_CASE = 100
ENDS: tuple[End, End] = ("sources", "sinks")


def paid(edges: EdgeList, capacity: UnitArray, terminals: Terminals, side: BoolArray) -> tuple[int, list[int]]:
    """What a cut of this source side pays, INFINITE if it cannot; and the rows of the edges it pays for."""
    undirected = np.broadcast_to(np.asarray(edges.undirected), len(edges.tail))
    leaves = side[edges.tail] & ~side[edges.head]
    crosses = (leaves | (undirected & side[edges.head] & ~side[edges.tail])) & (capacity > 0)
    caps = [*terminals.supply[~side[terminals.sources]], *terminals.demand[side[terminals.sinks]]]
    all_paid = [*capacity[crosses].tolist(), *map(int, caps)]
    return INFINITE if INFINITE in all_paid else sum(all_paid), np.flatnonzero(crosses).tolist()


def nearest_cuts(edges: EdgeList, capacity: UnitArray, terminals: Terminals) -> tuple[int, BoolArray, BoolArray]:
    """The value of the minimum cuts, and the intersection and the union of their source sides."""
    sides = [np.array(side) for side in product((False, True), repeat=edges.n_vertices)]
    values = [paid(edges, capacity, terminals, side)[0] for side in sides]
    least = min(values)
    minimum = np.array([side for side, value in zip(sides, values, strict=True) if value == least])
    return least, minimum.all(axis=0), minimum.any(axis=0)


def on_host(engine: CpuEngine, state: CpuFlowState, near: End) -> Cut:
    """As an engine reads it whose memory is elsewhere: from a copy of the state."""
    arrays = state.residual.copy(), state.excess.copy(), state.source_side.copy()
    return derive.cut(engine.network, derive.HostCopy(state.terminals, state.role, *arrays, state.value), None, near)


def check(engine: CpuEngine, state: CpuFlowState, edges: EdgeList, at: str) -> bool:
    """Whether the two cuts are different ones, both being what the list of all says."""
    capacity = engine.network.capacity
    value, *expected = nearest_cuts(edges, capacity, state.terminals)
    found = [engine.cut(state, near=near) for near in ENDS]
    for near, cut, side in zip(ENDS, found, expected, strict=True):
        again = on_host(engine, state, near)
        assert np.array_equal(cut.source_side, side), f"{at}: nearest the {near}"
        assert paid(edges, capacity, state.terminals, cut.source_side) == (value, cut.edges.tolist()), at
        assert np.array_equal(again.source_side, side), at
        assert (again.edges.tolist(), again.value, again.unique) == (cut.edges.tolist(), value, cut.unique), at
        assert cut.value == value, at
    assert found[0].unique is found[1].unique, at
    return not np.array_equal(*expected)


def check_updates(seed: int) -> bool:
    """Warm and cold solves of one random network with capped terminals; whether its ends ever differed."""
    edges, terminals = random_case(seed)
    rng, engine, differ = np.random.default_rng(seed), CpuEngine(Network(edges)), False
    try:
        state = engine.open(terminals)
    except Unbounded:
        return False
    for step in range(3):
        engine.solve(state, cold=rng.random() < 0.2)
        differ |= check(engine, state, edges, f"seed {seed} step {step}")
        try:
            if len(edges.tail):
                engine.update(*random_update(rng, engine.network.capacity))
        except Unbounded:
            continue
    return differ


@pytest.mark.parametrize("first", range(0, cases(800), SEEDS_A_CASE))
def test_both_ends_are_what_all_cuts_say(first: int) -> None:
    differ = [check_updates(seed) for seed in range(first, first + SEEDS_A_CASE)]
    assert differ.count(True) > SEEDS_A_CASE // 5, "there is something to tell apart"


def larger(seed: int) -> tuple[EdgeList, Terminals]:
    """A ring with short links, along which a search has to walk, and terminals with caps or without."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    m = int(rng.integers(n, 4 * n))
    tail = rng.integers(0, n, m).astype(np.int32)
    head = ((tail + rng.integers(1, 5, m)) % n).astype(np.int32)
    capacity = rng.integers(0, int(rng.choice([2, 3, 20])), m).astype(np.int64)
    n_sources, n_sinks = (int(count) for count in rng.integers(1, 8, 2))
    supply, demand = (rng.integers(1, 20, count).astype(np.int64) for count in (n_sources, n_sinks))
    for caps in (supply, demand):
        caps[rng.random(len(caps)) < rng.choice([0, 1])] = INFINITE
    ends = rng.permutation(n)[: n_sources + n_sinks]
    undirected = (False, True, rng.random(m) < 0.5)[int(rng.integers(3))]
    edges = EdgeList(n, tail, head, capacity, undirected)
    return edges, Terminals.of(ends[:n_sources], ends[n_sources:], supply, demand)


def check_larger(seed: int) -> bool:
    """Whether the cut is the only one. Two ways to find out, one from each end, say the same: it is if both ends pay
    for the same edges and caps."""
    edges, terminals = larger(seed)
    engine = CpuEngine(Network(edges))
    state = engine.open(terminals)
    engine.solve(state)
    least, greatest = (engine.cut(state, near=near) for near in ENDS)
    same = least.edges.tolist() == greatest.edges.tolist() and (
        terminals.paid_by(least.source_side).key == terminals.paid_by(greatest.source_side).key
    )
    assert (least.unique, greatest.unique) == (same, same), f"seed {seed}"
    return same


@pytest.mark.parametrize("many", [0, derive.MANY], ids=["from each end", "all of T"])
@pytest.mark.parametrize("first", range(0, cases(600), SEEDS_A_CASE))
def test_both_ends_of_larger_networks_say_whether_there_is_another_cut(
    first: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derive, "MANY", many)
    only = [check_larger(seed) for seed in range(first, first + SEEDS_A_CASE)]
    assert min(only.count(True), only.count(False)) > SEEDS_A_CASE // 20, "both answers are tried often"


@pytest.mark.parametrize(("near", "side", "cut"), [("sources", [0], [0]), ("sinks", [0, 1, 2], [2])])
def test_a_chain_is_cut_at_either_end(near: End, side: list[int], cut: list[int]) -> None:
    engine = CpuEngine(Network(drawn(4, [(0, 1, 3), (1, 2, 3), (2, 3, 3)])))
    state = engine.open(Terminals.of([0], [3]))
    engine.solve(state)
    found = engine.cut(state, near=near)
    assert (np.flatnonzero(found.source_side).tolist(), found.edges.tolist(), found.unique) == (side, cut, False)


@pytest.mark.parametrize(("near", "side"), [("sources", []), ("sinks", [0, 1])])
def test_a_cap_is_the_cut_at_either_end(near: End, side: list[int]) -> None:
    """Supply and demand limit alike: the cut pays the one that is nearer."""
    engine = CpuEngine(Network(drawn(2, [(0, 1, 9)])))
    state = engine.open(Terminals.of([0], [1], [4], [4]))
    engine.solve(state)
    found = engine.cut(state, near=near)
    caps = state.terminals.paid_by(found.source_side)
    assert (np.flatnonzero(found.source_side).tolist(), found.edges.tolist()) == (side, [])
    assert (caps.supply.tolist(), caps.demand.tolist()) == (([4], []) if near == "sources" else ([], [4]))
