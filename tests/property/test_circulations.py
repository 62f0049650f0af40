"""Flows with lower bounds of random networks, held against every set of vertices and against HiGHS."""

import numpy as np
import pytest
from scipy.optimize import linprog

from gpu_engine.checks.circulations import Barrier, barrier, prove_circulation
from gpu_engine.circulations.solver import find_circulation
from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, CapacityOverflow, InvalidTerminals, NotDirected, OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.networks.bounds import LowerBounds
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray, UnitArray
from tests.cases import cases
from tests.graphs import drawn
from tests.random_networks import random_edges

SMALL = cases(2_400)
LARGE = cases(150)
NONE = Terminals.of([], [], may_be_empty=True)


def random_bounds(rng: np.random.Generator, network: Network) -> LowerBounds:
    """Of some directed edges and terminals, none to all of them; now and then above the capacity of an edge."""
    n, m = network.n_vertices, network.n_edges
    vertices = rng.permutation(n)
    sides = [int(count) for count in rng.integers(0, 3, 2)]
    sources, sinks = vertices[: sides[0]], vertices[sides[0] : sum(sides)]

    def caps(count: int) -> UnitArray:
        amounts = rng.integers(0, 20, count)
        amounts[rng.random(count) < rng.choice([0, 0.5, 1])] = INFINITE
        return amounts

    def least(most: UnitArray, odds: float) -> UnitArray:
        wanted = rng.integers(0, np.minimum(most, 15) + 1)
        return np.where(rng.random(len(most)) < odds, wanted, 0).astype(np.int64)

    terminals = Terminals.of(sources, sinks, caps(len(sources)), caps(len(sinks)), may_be_empty=True)
    odds = float(rng.choice([0, 0.1, 0.3, 1]))
    lower = least(network.capacity, odds) + (rng.random(m) < rng.choice([0, 0, 0.02]))
    rows = np.flatnonzero(~network.is_undirected(np.arange(m)))
    more = least(terminals.supply, 0.7), least(terminals.demand, 0.7)
    return LowerBounds.of(network, terminals, rng.permutation(rows), lower[rows], *more)


class ByHand:
    """What each set of vertices, a number whose bits are its members, must and can be entered and left by."""

    def __init__(self, network: Network, bounds: LowerBounds) -> None:
        every, ends = np.arange(network.n_edges), bounds.terminals
        ways = network.edge_tail(every).tolist(), network.edge_head(every).tolist()
        columns = network.capacity.tolist(), bounds.lower.tolist(), network.is_undirected(every).tolist()
        self.edges = list(zip(*ways, *columns, strict=True))
        self.edges += [(head, tail, most, 0, True) for tail, head, most, _, both in self.edges if both]
        self.supply = list(zip(ends.sources.tolist(), ends.supply.tolist(), bounds.supply.tolist(), strict=True))
        self.demand = list(zip(ends.sinks.tolist(), ends.demand.tolist(), bounds.demand.tolist(), strict=True))

    def enter(self, members: int) -> tuple[int, int]:
        must = sum(low for tail, head, _, low, _ in self.edges if members >> tail & 1 and not members >> head & 1)
        can = sum(most for tail, head, most, _, _ in self.edges if members >> head & 1 and not members >> tail & 1)
        must += sum(low for v, _, low in self.demand if members >> v & 1)
        return must, can + sum(most for v, most, _ in self.supply if members >> v & 1)

    def leave(self, members: int) -> tuple[int, int]:
        must = sum(low for tail, head, _, low, _ in self.edges if members >> head & 1 and not members >> tail & 1)
        can = sum(most for tail, head, most, _, _ in self.edges if members >> tail & 1 and not members >> head & 1)
        must += sum(low for v, _, low in self.supply if members >> v & 1)
        return must, can + sum(most for v, most, _ in self.demand if members >> v & 1)

    def feasible(self, n: int) -> bool:
        if any(low > most for _, _, most, low, _ in self.edges):
            return False
        sums = [way(members) for members in range(1 << n) for way in (self.enter, self.leave)]
        return all(must <= can for must, can in sums)


def by_highs(network: Network, bounds: LowerBounds) -> bool:
    """Whether HiGHS finds a flow: a column for each edge, and for what each terminal supplies or takes."""
    m, n, ends = network.n_edges, network.n_vertices, bounds.terminals
    every = np.arange(m)
    k = m + len(ends.sources) + len(ends.sinks)
    balance = np.zeros((n, k))
    np.add.at(balance, (network.edge_head(every), every), 1)
    np.add.at(balance, (network.edge_tail(every), every), -1)
    balance[ends.sources, m + np.arange(len(ends.sources))] = 1
    balance[ends.sinks, m + len(ends.sources) + np.arange(len(ends.sinks))] = -1
    most = np.concatenate([network.capacity, ends.supply, ends.demand]).astype(float)
    most[most >= float(MAX_TOTAL)] = np.inf
    low = np.concatenate([bounds.lower, bounds.supply, bounds.demand]).astype(float)
    low[:m][network.is_undirected(every)] = -most[:m][network.is_undirected(every)]
    if (low > most).any():
        return False
    if k == 0:
        return True
    status = linprog(np.zeros(k), A_eq=balance, b_eq=np.zeros(n), bounds=np.column_stack([low, most])).status
    assert status in (0, 2)
    return bool(status == 0)


def proven(network: Network, bounds: LowerBounds) -> bool:
    """Whether there is a flow, which is proven either way: what stands in its way is added up by hand."""
    found = find_circulation(network, bounds)
    if not isinstance(found, Barrier):
        assert prove_circulation(network, bounds, found).failures == ()
        return True
    assert found.valid
    by_hand = ByHand(network, bounds)
    if found.way == "carry":
        over = [(low, most) for _, _, most, low, _ in by_hand.edges if low > most]
        assert (found.must, found.can) == tuple(map(sum, zip(*over, strict=True)))
        assert len(over) == len(found.edges) == len(found.bound)
        return False
    members = sum(1 << v for v in found.vertices.tolist())
    must, can = getattr(by_hand, found.way)(members)
    assert (found.must, found.can) == (must, can)
    assert (network.capacity[found.edges] > 0).all()
    assert (bounds.lower[found.bound] > 0).all()
    return False


@pytest.mark.parametrize("part", range(8))
def test_every_set_of_vertices_says_the_same(part: int) -> None:
    found = []
    for seed in range(part, SMALL, 8):
        rng = np.random.default_rng(seed)
        network = Network(random_edges(rng, 7))
        bounds = random_bounds(rng, network)
        found.append(proven(network, bounds))
        assert found[-1] == ByHand(network, bounds).feasible(network.n_vertices), seed
    assert 0.2 < np.mean(found) < 0.8


def test_highs_says_the_same() -> None:
    found = []
    for seed in range(LARGE):
        rng = np.random.default_rng(seed)
        network = Network(random_edges(rng, 40))
        bounds = random_bounds(rng, network)
        found.append(proven(network, bounds))
        assert found[-1] == by_highs(network, bounds), seed
    assert 0.05 < np.mean(found) < 0.95


def bounded(
    edges: EdgeList, lower: dict[int, int], terminals: Terminals = NONE, supply: int = 0, demand: int = 0
) -> tuple[Network, LowerBounds]:
    """A network with lower bounds of some edges, and for its terminals, all of a side alike."""
    network = Network(edges)
    rows = np.array([*lower], np.int64)
    sides = np.full(len(terminals.sources), supply), np.full(len(terminals.sinks), demand)
    return network, LowerBounds.of(network, terminals, rows, np.array([*lower.values()], np.int64), *sides)


def refused(network: Network, bounds: LowerBounds) -> Barrier:
    found = find_circulation(network, bounds)
    assert isinstance(found, Barrier)
    assert found.valid
    return found


def test_a_circulation_goes_round() -> None:
    ring = drawn(3, [(0, 1, 5), (1, 2, 5), (2, 0, 5)])
    flow = find_circulation(*bounded(ring, {1: 3}))
    assert isinstance(flow, np.ndarray)
    assert flow.tolist() == [3, 3, 3]
    assert find_circulation(*bounded(ring, {0: 2, 1: 2, 2: 2})).tolist() == [2, 2, 2]  # type: ignore[union-attr]
    found = refused(*bounded(drawn(3, [(0, 1, 5), (1, 2, 5), (2, 0, 2)]), {1: 3}))
    assert (found.way, found.must, found.can) == ("leave", 3, 2)
    assert (found.vertices.tolist(), found.edges.tolist(), found.bound.tolist()) == ([2], [2], [1])


def test_what_an_edge_cannot_carry_is_at_fault_alone() -> None:
    found = refused(*bounded(drawn(3, [(0, 1, 5), (1, 2, 0), (2, 2, 3)]), {0: 5, 1: 2, 2: 4}))
    assert (found.way, found.edges.tolist(), found.vertices.tolist()) == ("carry", [1, 2], [])
    assert (found.must, found.can) == (6, 3)


def test_a_loop_carries_its_bound_and_nothing_else_does() -> None:
    flow = find_circulation(*bounded(drawn(2, [(1, 1, 7), (0, 1, 9)]), {0: 4}))
    assert isinstance(flow, np.ndarray)
    assert flow.tolist() == [4, 0]


def test_the_shortest_of_several_proofs_is_told() -> None:
    """Two stores lack something, the second more; what lies elsewhere has no part in it."""
    plan = drawn(6, [(0, 1, 3), (0, 2, 1), (4, 5, 9)])
    found = refused(*bounded(plan, {}, Terminals.of([0], [1, 2]), demand=4))
    assert (found.way, found.vertices.tolist(), found.edges.tolist()) == ("enter", [2], [1])
    assert (found.must, found.can) == (4, 1)
    found = refused(*bounded(plan, {}, Terminals.of([1, 4], [2], demand=[9]), supply=4))
    assert (found.way, found.vertices.tolist(), found.must, found.can) == ("leave", [1], 4, 0)


def test_edges_without_a_limit_carry_what_they_must() -> None:
    chain = drawn(3, [(0, 1, INFINITE), (1, 2, INFINITE)])
    network, bounds = bounded(chain, {0: MAX_TOTAL // 2}, Terminals.of([0], [2]), demand=MAX_TOTAL // 2)
    flow = find_circulation(network, bounds)
    assert isinstance(flow, np.ndarray)
    assert flow.tolist() == [MAX_TOTAL // 2] * 2
    with pytest.raises(CapacityOverflow, match="lower bounds add up"):
        bounded(chain, {0: MAX_TOTAL, 1: MAX_TOTAL})
    wide = drawn(3, [(0, 1, MAX_TOTAL), (1, 2, INFINITE)])
    with pytest.raises(CapacityOverflow, match="beyond what must flow"):
        find_circulation(*bounded(wide, {1: 1}, Terminals.of([0], [2], [5])))


def test_what_no_bound_can_be() -> None:
    both = drawn(3, [(0, 1, 5), (1, 2, 5)], [False, True])
    assert bounded(both, {0: 1, 1: 0})[1].lower.tolist() == [1, 0]
    with pytest.raises(NotDirected) as refusal:
        bounded(both, {0: 1, 1: 1})
    assert (refusal.value.where.edges, refusal.value.where.rows) == ([1], [1])
    with pytest.raises(InvalidTerminals) as above:
        bounded(both, {}, Terminals.of([0], [2], demand=[3]), demand=4)
    assert (above.value.where.vertices, above.value.where.field) == ([2], "/min_demand")


def test_a_cancel_and_a_lack_of_memory_end_it() -> None:
    network, bounds = bounded(drawn(3, [(0, 1, 5), (1, 2, 5)]), {0: 3}, Terminals.of([0], [2]), demand=1)
    control = Control()
    control.cancel()
    with pytest.raises(Cancelled):
        find_circulation(network, bounds, control)

    for most in (0, 300, 700, 1_000):
        left = most

        def room(needed: Footprint) -> None:
            nonlocal left
            left -= needed.host
            if left < 0:
                raise OutOfMemory("no room")

        with pytest.raises(OutOfMemory):
            find_circulation(network, bounds, room=room)


BROKEN = [
    ([2, 3], "less than its lower bound"),
    ([6, 6], "outside its bounds"),
    ([4, 3], "not conserved"),
    ([3, 3], "less than what must flow"),
]


@pytest.mark.parametrize(("flow", "fault"), BROKEN)
def test_a_flow_that_breaks_a_bound_is_not_proven(flow: list[int], fault: str) -> None:
    network, bounds = bounded(drawn(3, [(0, 1, 5), (1, 2, 5)]), {0: 3}, Terminals.of([0], [2]), demand=4)
    assert fault in "; ".join(prove_circulation(network, bounds, np.array(flow)).failures)
    assert prove_circulation(network, bounds, np.array([4, 4])).failures == ()
    supplied = LowerBounds(bounds.terminals, bounds.lower, np.array([4]), np.array([0]))
    assert prove_circulation(network, supplied, np.array([3, 3])).failures == (
        "less than what must flow does at vertex 0",
    )


def test_a_set_that_can_do_what_it_must_proves_nothing() -> None:
    network, bounds = bounded(drawn(3, [(0, 1, 5), (1, 2, INFINITE)]), {0: 3}, Terminals.of([0], [2]), demand=9)

    def of(members: list[bool], way: str) -> Barrier:
        inside: BoolArray = np.array(members)
        return barrier(network, bounds, inside, "enter" if way == "enter" else "leave")

    assert (of([False, False, True], "enter").can, of([False, False, True], "enter").valid) == (None, False)
    assert (of([False, True, True], "enter").must, of([False, True, True], "enter").can) == (9, 5)
    assert of([False, True, True], "enter").valid
    assert (of([True, False, False], "leave").must, of([True, False, False], "leave").can) == (0, 5)
    assert not of([True, False, False], "leave").valid
    assert not of([True, True, True], "enter").valid  # the source has no cap
    network, bounds = bounded(drawn(3, [(0, 1, 5), (1, 2, INFINITE)]), {}, Terminals.of([0], [2]), demand=5)
    enough = barrier(network, bounds, np.array([False, True, True]), "enter")
    assert (enough.must, enough.can, enough.valid) == (5, 5, False)
