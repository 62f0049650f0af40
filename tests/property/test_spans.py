"""Curves that are found between cuts: held against the lines of all cuts of small networks, and in larger ones against
a solve of the whole network at each factor."""

from fractions import Fraction

import numpy as np
import pytest

from gpu_engine.checks.nested import Way, are_nested, way_of_cuts
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Engine, FlowState
from gpu_engine.errors import CapacityOverflow, Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.free import SINK, SOURCE, free_vertices
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.parametric.curve import Curve, Line, Point, curve
from gpu_engine.parametric.probes import Prober, Scaled
from gpu_engine.parametric.spans import SpanProber
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray
from tests.cases import cases
from tests.graphs import drawn
from tests.property.test_parametric import check, lines_of_all_cuts, proven

SEEDS_A_CASE = 50
SEEDS_OF_LARGE = 5


def random_case(rng: np.random.Generator, n: int, m: int, most: int) -> tuple[EdgeList, Terminals, Scaled]:
    """Supplies, demands, edges that leave sources without a cap, or edges that enter such sinks are scaled."""
    tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
    capacity = rng.integers(0, most, m)
    capacity[rng.random(m) < 0.02] = INFINITE
    undirected = (False, True, rng.random(m) < 0.5)[int(rng.integers(3))]
    edges, vertices = EdgeList(n, tail, head, capacity, undirected), rng.permutation(n)
    k = int(rng.integers(1, n // 2 + 1))
    sources, sinks = vertices[:k], vertices[k : k + int(rng.integers(1, n - k + 1))]
    supply, demand = (rng.integers(0, most, len(ends)) for ends in (sources, sinks))
    kind = ("supply", "demand", "leaving", "entering")[int(rng.integers(4))]
    (supply if kind == "leaving" else demand)[rng.random(k if kind == "leaving" else len(sinks)) < 0.7] = INFINITE
    terminals = Terminals.of(sources, sinks, supply, demand)
    if kind in ("supply", "demand"):
        return edges, terminals, Scaled(supply=kind == "supply", demand=kind == "demand")
    role = free_vertices(Network(edges), terminals).role
    of_source = role[tail] == SOURCE if kind == "leaving" else role[head] == SINK
    either = role[head] == SOURCE if kind == "leaving" else role[tail] == SINK
    return edges, terminals, Scaled(np.flatnonzero(of_source | (either & np.asarray(undirected))))


def both(edges: EdgeList, terminals: Terminals, scaled: Scaled, last: Fraction) -> tuple[Curve, Curve, list[int]]:
    """The curve from 0, found between cuts and in the whole network, and the vertices of each network solved between
    cuts."""
    engine = CpuEngine(Network(edges))
    state = engine.open(terminals)
    engine.solve(state)
    solved: list[int] = []

    def solve(asked: Engine, there: FlowState, ends: Terminals) -> int:
        solved.append(asked.network.n_vertices)
        return proven(asked, there, ends)

    found = curve(SpanProber(Prober.of(engine, state, terminals, scaled, solve)), Fraction(0), last, 10_000)
    between = solved[2:]
    return found, curve(Prober.of(engine, state, terminals, scaled, solve), Fraction(0), last, 10_000), between


@pytest.mark.parametrize("first", range(0, cases(1000), SEEDS_A_CASE))
def test_a_curve_between_cuts_is_the_least_of_all_cuts(first: int) -> None:
    several = 0
    for seed in range(first, first + SEEDS_A_CASE):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 9))
        try:
            edges, terminals, scaled = random_case(rng, n, int(rng.integers(n, 3 * n)), 20)
            last = Fraction(int(rng.integers(1, 40)), int(rng.integers(1, 4)))
            found, _, between = both(edges, terminals, scaled, last)
        except Unbounded:
            continue
        limited = Scaled(scaled.rows[edges.capacity[scaled.rows] != INFINITE], scaled.supply, scaled.demand)
        check(found, lines_of_all_cuts(edges, terminals, limited), Fraction(0), last, f"seed {seed}")
        assert all(vertices <= n + 2 for vertices in between), f"seed {seed}"
        several += len(found.lines) > 2
    assert several > 2


@pytest.mark.parametrize("first", range(0, cases(40), SEEDS_OF_LARGE))
def test_a_curve_between_cuts_is_that_of_the_whole_network(first: int) -> None:
    for seed in range(first, first + SEEDS_OF_LARGE):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(50, 300))
        try:
            found, whole, between = both(*random_case(rng, n, int(rng.integers(n, 4 * n)), 1000), Fraction(10))
        except Unbounded:
            continue
        assert (found.factors, found.lines) == (whole.factors, whole.lines), f"seed {seed}"
        assert sum(between) <= n * (2 + len(found.lines)) // 2, f"seed {seed}: {between} of {n}"


def hub(k: int) -> tuple[EdgeList, Terminals]:
    """k sources and k sinks around a hub; each source has an edge that is full at a factor of its own."""
    rows = [(v, 2 * k, 3 * v + 3) for v in range(k)] + [(2 * k, k + v, 3 * k) for v in range(k)]
    return drawn(2 * k + 1, rows), Terminals.of(range(k), range(k, 2 * k), [1 + v % 2 for v in range(k)])


def test_around_a_hub_hardly_anything_is_solved() -> None:
    edges, terminals = hub(60)
    found, whole, between = both(edges, terminals, Scaled(supply=True), Fraction(1000))
    assert (found.factors, found.lines) == (whole.factors, whole.lines)
    assert len(found.lines) > 30
    assert sum(between) < 10 * edges.n_vertices


def test_what_has_room_between_cuts_is_answered() -> None:
    """Beside the vertex that the factor is about there is more than may be multiplied by 3."""
    rows = [(0, 1, 4), (1, 4, 3), (2, 3, MAX_TOTAL >> 1), (3, 4, 1)]
    edges, terminals = drawn(5, rows), Terminals.of([0, 2], [4])
    engine = CpuEngine(Network(edges))
    state = engine.open(terminals)
    engine.solve(state)
    prober = Prober.of(engine, state, terminals, Scaled(np.array([0])), proven)
    with pytest.raises(CapacityOverflow):
        prober(Fraction(3, 4) * Fraction(7, 5))
    found = curve(SpanProber(prober), Fraction(0), Fraction(1), 10)
    assert found.factors == (0, Fraction(3, 4), 1)
    assert found.lines == (Line(1, 4), Line(4, 0))


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize(
    ("row", "way"),
    [(0, Way.GROWS), (1, Way.EITHER), (2, Way.SHRINKS), (3, Way.GROWS)],
    ids=["s-a", "a-b", "b-t", "s-t"],
)
def test_which_way_cuts_go(row: int, way: Way, undirected: bool) -> None:
    network = Network(drawn(4, [(0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 1)], undirected))
    role = free_vertices(network, Terminals.of([0], [3])).role
    rows = np.array([row])
    assert way_of_cuts(network, role, rows, supply=False, demand=False) is way
    capped = free_vertices(network, Terminals.of([0], [3], [1], [1])).role
    assert way_of_cuts(network, capped, rows, supply=False, demand=False) is Way.EITHER
    nothing = np.empty(0, np.int64)
    assert way_of_cuts(network, capped, nothing, supply=True, demand=False) is Way.GROWS
    assert way_of_cuts(network, capped, nothing, supply=False, demand=True) is Way.SHRINKS
    assert way_of_cuts(network, role, rows[:1] * 0, supply=False, demand=True) is Way.EITHER


@pytest.mark.parametrize(("way", "rises", "falls"), [(Way.GROWS, True, False), (Way.SHRINKS, False, True)])
def test_cuts_that_are_not_within_each_other_are_seen(way: Way, rises: bool, falls: bool) -> None:
    less, more = np.array([True, False, False]), np.array([True, True, False])
    assert (are_nested(way, less, more), are_nested(way, more, less)) == (rises, falls)
    assert not are_nested(Way.EITHER, less, less)
    assert not are_nested(way, more, np.array([True, False, True]))


def test_a_cut_of_elsewhere_is_refused() -> None:
    """A fault of the engine is found where cuts at both ends are compared, or where they are added up."""
    edges, terminals = hub(5)
    engine = CpuEngine(Network(edges))
    state = engine.open(terminals)
    engine.solve(state)

    class Wrong(Prober):
        def ask(self, factor: Fraction) -> tuple[Point, BoolArray]:
            point, side = super().ask(factor)
            return point, side if factor else ~side

    prober = SpanProber(Wrong.of(engine, state, terminals, Scaled(supply=True), proven))
    with pytest.raises(RuntimeError, match="within each other"):
        curve(prober, Fraction(0), Fraction(9), 10)
