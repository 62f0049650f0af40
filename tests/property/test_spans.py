"""Curves that are found in what is left of a network between two factors: held against the lines of all cuts of small
networks, and in larger ones against a solve of the whole network at each factor."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gpu_engine.checks.nested import Way, way_of_cuts
from gpu_engine.checks.together import Drawn, End, Rows, together_failures
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Engine, FlowState
from gpu_engine.errors import CapacityOverflow, EngineError, Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.free import SINK, SOURCE, free_vertices
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.parametric import spans
from gpu_engine.parametric.curve import Curve, Line, Point, curve
from gpu_engine.parametric.links import Links
from gpu_engine.parametric.probes import Answer, Prober, Scaled
from gpu_engine.parametric.spans import SpanProber
from gpu_engine.parametric.together import together
from gpu_engine.types import INFINITE, MAX_TOTAL, VertexArray
from tests.cases import cases
from tests.graphs import drawn
from tests.property.test_parametric import check, lines_of_all_cuts, proven

SEEDS_A_CASE = 50
SEEDS_OF_LARGE = 5


def random_case(rng: np.random.Generator, n: int, m: int, most: int) -> tuple[EdgeList, Terminals, Scaled]:
    """Supplies, demands, edges that leave sources without a cap, edges that enter such sinks, or any are scaled."""
    tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
    capacity = rng.integers(0, most, m)
    capacity[rng.random(m) < 0.02] = INFINITE
    undirected = (False, True, rng.random(m) < 0.5)[int(rng.integers(3))]
    edges, vertices = EdgeList(n, tail, head, capacity, undirected), rng.permutation(n)
    k = int(rng.integers(1, n // 2 + 1))
    sources, sinks = vertices[:k], vertices[k : k + int(rng.integers(1, n - k + 1))]
    supply, demand = (rng.integers(0, most, len(ends)) for ends in (sources, sinks))
    kind = ("supply", "demand", "leaving", "entering", "any")[int(rng.integers(5))]
    (supply if kind == "leaving" else demand)[rng.random(k if kind == "leaving" else len(sinks)) < 0.7] = INFINITE
    supply[rng.random(k) < (0.2 if kind == "any" else 0)] = INFINITE
    terminals = Terminals.of(sources, sinks, supply, demand)
    if kind in ("supply", "demand"):
        return edges, terminals, Scaled(supply=kind == "supply", demand=kind == "demand")
    if kind == "any":
        return edges, terminals, Scaled(np.flatnonzero(rng.random(m) < rng.choice([0.2, 0.6, 1])))
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


def grid(k: int, seed: int) -> tuple[EdgeList, Terminals, Scaled]:
    """Undirected, half of the edges scaled, and k vertices each that supply and demand."""
    rng, at = np.random.default_rng(seed), np.arange(k * k, dtype=np.int32).reshape(k, k)
    tail = np.concatenate((at[:, :-1].ravel(), at[:-1].ravel()))
    head = np.concatenate((at[:, 1:].ravel(), at[1:].ravel()))
    edges, ends = EdgeList(k * k, tail, head, rng.integers(1, 1001, len(tail)), True), rng.permutation(k * k)
    terminals = Terminals.of(ends[:k], ends[k : 2 * k], rng.integers(1, 1000, k), rng.integers(1, 1000, k))
    return edges, terminals, Scaled(np.flatnonzero(rng.random(len(tail)) < 0.5))


def test_where_edges_anywhere_are_scaled_hardly_anything_is_solved() -> None:
    edges, terminals, scaled = grid(30, 1)
    found, whole, between = both(edges, terminals, scaled, Fraction(10))
    assert (found.factors, found.lines) == (whole.factors, whole.lines)
    assert len(found.lines) > 30
    assert sum(between) < edges.n_vertices * len(found.lines) // 3


def test_what_is_drawn_together_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of the proof of a network between two factors, altered, is seen."""
    asked: list[tuple[Rows, End, End, Way, Drawn]] = []

    def failures(rows: Rows, first: End, last: End, way: Way, drawn: Drawn) -> list[str]:
        asked.append((rows, first, last, way, drawn))
        return together_failures(*asked[-1])

    monkeypatch.setattr(spans, "together_failures", failures)
    edges, terminals, scaled = grid(12, 2)
    both(edges, terminals, scaled, Fraction(10))
    rng = np.random.default_rng(3)
    assert len(asked) > 5
    for rows, first, last, way, made in asked:
        assert not together_failures(rows, first, last, way, made)
        arc, vertex = int(rng.integers(len(rows.head))), int(rng.integers(2, len(made.label)))
        more = first.flow.copy()
        more[arc] += 1
        assert together_failures(rows, first._replace(flow=more), last, way, made)
        side = last.side.copy()
        side[vertex] ^= True
        assert together_failures(rows, first, last._replace(side=side), way, made)
        assert together_failures(rows, first._replace(value=first.value + 1), last, way, made)
        label = made.label.copy()
        label[vertex] = (label[vertex] + 1) % (label.max() + 1)
        assert together_failures(rows, first, last, way, made._replace(label=label))
        capacity = made.rows.constant.copy()
        capacity[int(rng.integers(len(capacity)))] += 1
        assert together_failures(rows, first, last, way, made._replace(rows=made.rows._replace(constant=capacity)))


def test_vertices_that_a_cut_between_divides_are_not_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_more(links: Links, *known: Any) -> tuple[VertexArray, int]:
        label, k = together(links, *known)
        return np.where(label == k - 1, k - 2, label).astype(np.int32), k - 1

    monkeypatch.setattr(spans, "together", one_more)
    edges, terminals, scaled = grid(12, 2)
    with pytest.raises(EngineError, match="without a proof"):
        both(edges, terminals, scaled, Fraction(10))


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


def test_a_cut_of_elsewhere_is_refused() -> None:
    """A fault of the engine is found where the cut of an end is added up."""
    edges, terminals = hub(5)
    engine = CpuEngine(Network(edges))
    state = engine.open(terminals)
    engine.solve(state)

    class Wrong(Prober):
        def ask(self, factor: Fraction) -> Answer:
            answer = super().ask(factor)
            return answer if factor else answer._replace(side=~answer.side)

    prober = SpanProber(Wrong.of(engine, state, terminals, Scaled(supply=True), proven))
    with pytest.raises(EngineError, match="another line"):
        curve(prober, Fraction(0), Fraction(9), 10)


def test_networks_that_wait_have_at_most_four_times_the_arcs_of_all() -> None:
    """A dense core that no factor divides, and hundreds of vertices beside it that fall to the source side one by one:
    of the vertices fewer are left in each span, of the arcs nearly all."""
    n_leaves, n_core = 900, 120
    leaf, core = np.arange(n_leaves) + 2, np.arange(n_core) + 2 + n_leaves
    one, other = (ends[np.triu_indices(n_core, 1)] for ends in np.meshgrid(core, core, indexing="ij"))
    source, sink = np.zeros(n_leaves + n_core, np.int64), np.ones(n_leaves + n_core, np.int64)
    inner = np.concatenate([leaf, core])
    tail, head = np.concatenate([source, inner, one]), np.concatenate([inner, sink, other])
    leaves = np.concatenate([10 * np.arange(1, n_leaves + 1), 1 + np.arange(n_core) % 9])
    capacity = np.concatenate([np.ones_like(inner), leaves, np.ones_like(one)])
    undirected = np.arange(len(tail)) >= 2 * len(inner)
    n = 2 + len(inner)
    network = Network(EdgeList(n, tail.astype(np.int32), head.astype(np.int32), capacity, undirected))
    engine, ends = CpuEngine(network), Terminals.of([0], [1])
    state = engine.open(ends)
    engine.solve(state)
    prober = SpanProber(Prober.of(engine, state, ends, Scaled(np.arange(len(inner))), proven))
    most = 0

    def probe(factor: Fraction) -> Point:
        nonlocal most
        point = prober(factor)
        waiting = {id(span.links): len(span.links.head) for span in prober._waiting}
        most = max(most, sum(waiting.values()))
        return point

    curve(probe, Fraction(0), Fraction(10 * n_leaves + 10), 6)
    assert most <= 4 * network.n_arcs
