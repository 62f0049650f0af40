"""The curve of the value against a factor, held against the lines of all cuts of small networks."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from gpu_engine.cpu.engine import CpuEngine, fork_on_host
from gpu_engine.engine import Engine, FlowState
from gpu_engine.errors import CapacityOverflow, Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.parametric.curve import Curve, Line, Point, curve
from gpu_engine.parametric.probes import Prober, Scaled
from gpu_engine.parametric.spans import SpanProber
from gpu_engine.types import INFINITE, MAX_TOTAL
from tests.cases import cases
from tests.graphs import drawn
from tests.property.test_cut_unique import random_case

SEEDS_A_CASE = 100


def lines_of_all_cuts(edges: EdgeList, terminals: Terminals, scaled: Scaled) -> set[Line]:
    undirected = np.broadcast_to(np.asarray(edges.undirected), len(edges.tail))
    rows = list(zip(edges.tail.tolist(), edges.head.tolist(), edges.capacity.tolist(), undirected, strict=True))
    found, times = set(), set(scaled.rows.tolist())
    for side in product((False, True), repeat=edges.n_vertices):
        pays = [
            (capacity, row in times)
            for row, (tail, head, capacity, either) in enumerate(rows)
            if (side[tail] and not side[head]) or (either and side[head] and not side[tail])
        ]
        ends = zip(terminals.sources.tolist(), terminals.supply.tolist(), strict=True)
        pays += [(cap, scaled.supply) for v, cap in ends if not side[v]]
        ends = zip(terminals.sinks.tolist(), terminals.demand.tolist(), strict=True)
        pays += [(cap, scaled.demand) for v, cap in ends if side[v]]
        if all(cap != INFINITE for cap, _ in pays):
            found.add(Line(sum(c for c, is_in in pays if not is_in), sum(c for c, is_in in pays if is_in)))
    return found


def proven(engine: Engine, state: FlowState, terminals: Terminals) -> int:
    value = engine.solve(state).value
    certificate = engine.certificate(state)
    assert certificate.valid
    assert certificate.value == value
    return value


def solved(
    edges: EdgeList, terminals: Terminals, scaled: Scaled, first: Fraction, last: Fraction, limit: int = 10_000
) -> Curve:
    engine = CpuEngine(Network(edges))
    state = engine.open(terminals)
    engine.solve(state)
    before = engine.network.capacity.copy()
    prober = SpanProber(Prober.of(engine, state, terminals, scaled, proven))
    found = curve(prober, first, last, limit)
    assert (engine.network.capacity == before).all()
    assert engine.certificate(state).valid
    return found


def check(found: Curve, lines: set[Line], first: Fraction, last: Fraction, at: str) -> None:
    assert found.complete, at
    assert (found.factors[0], found.factors[-1]) == (first, last), at
    assert len(found.factors) == len(found.lines) + 1, at
    assert all(a < b for a, b in pairwise(found.factors)), at
    assert all(a.rate > b.rate for a, b in pairwise(found.lines)), f"{at}: concave, and no segment twice"
    for line, (begin, end) in zip(found.lines, pairwise(found.factors), strict=True):
        assert line in lines, f"{at}: each segment is a cut"
        for factor in (begin, (begin + end) / 2, end):
            assert line.at(factor) == min(one.at(factor) for one in lines), f"{at}: at {factor}"
    assert found.probes <= 4 * len(found.lines) + 2, at


@pytest.mark.parametrize("first", range(0, cases(1000), SEEDS_A_CASE))
def test_the_curve_is_the_least_of_all_cuts(first: int) -> None:
    several = 0
    for seed in range(first, first + SEEDS_A_CASE):
        edges, terminals = random_case(seed)
        rng = np.random.default_rng(seed + 1_000_000)
        edges.capacity[edges.capacity != INFINITE] *= rng.integers(1, 9)
        rows = np.flatnonzero(rng.random(edges.n_edges) < rng.choice([0.2, 0.6, 1]))
        scaled = (Scaled(rows), Scaled(supply=True), Scaled(demand=True), Scaled(rows))[int(rng.integers(4))]
        begin = Fraction(int(rng.integers(0, 3)), int(rng.integers(1, 4)))
        end = begin + Fraction(int(rng.integers(1, 20)), int(rng.integers(1, 4)))
        rows_without_limit = edges.capacity[scaled.rows] == INFINITE
        as_it_is = Scaled(scaled.rows[~rows_without_limit], scaled.supply, scaled.demand)
        try:
            found = solved(edges, terminals, scaled, begin, end)
        except Unbounded:
            continue
        check(found, lines_of_all_cuts(edges, terminals, as_it_is), begin, end, f"seed {seed}")
        several += len(found.lines) > 1
    assert several > 1


def city() -> tuple[EdgeList, Terminals]:
    """s->u 4, s->v 3, u->v 2, u->t 2, v->t 4."""
    return drawn(4, [(0, 1, 4), (0, 2, 3), (1, 2, 2), (1, 3, 2), (2, 3, 4)]), Terminals.of([0], [3])


def test_the_city() -> None:
    edges, terminals = city()
    found = solved(edges, terminals, Scaled(np.array([3, 4])), Fraction(0), Fraction(2))
    assert found.factors == (0, Fraction(7, 6), 2)
    assert found.lines == (Line(0, 6), Line(7, 0))


def test_a_limit_ends_it_and_says_so() -> None:
    edges, terminals = city()
    found = solved(edges, terminals, Scaled(np.array([3, 4])), Fraction(0), Fraction(2), limit=1)
    assert not found.complete
    assert found.factors == (0, Fraction(7, 6))
    assert found.lines == (Line(0, 6),)


def test_a_state_from_elsewhere_is_asked_alike() -> None:
    edges, terminals = city()
    engine = CpuEngine(Network(edges))
    state = engine.open(terminals)
    engine.solve(state)
    fork = fork_on_host(engine, terminals, state)
    empty = np.empty(0, np.int64)
    prober = Prober.of(fork.engine, fork.overlay(empty, empty), terminals, Scaled(np.array([3, 4])), proven)
    fork.engine.solve(fork.overlay(empty, empty))
    assert curve(prober, Fraction(0), Fraction(2), 9).lines == (Line(0, 6), Line(7, 0))


@pytest.mark.parametrize(
    ("scaled", "factor"),
    [
        (Scaled(np.array([0])), Fraction(1, 1 << 20)),
        (Scaled(np.array([0])), Fraction(1 << 20)),
        (Scaled(supply=True), Fraction(1, 1 << 20)),
        (Scaled(supply=True), Fraction(1 << 20)),
    ],
)
def test_no_room_in_whole_numbers_is_refused(scaled: Scaled, factor: Fraction) -> None:
    edges = drawn(2, [(0, 1, MAX_TOTAL >> 10)])
    terminals = Terminals.of([0], [1], [MAX_TOTAL >> 10])
    with pytest.raises(CapacityOverflow, match="multiplied by 1048576"):
        solved(edges, terminals, scaled, factor, factor + 1)


@pytest.mark.parametrize("factor", [Fraction(10**39), Fraction(1, 10**39)])
def test_a_factor_beyond_all_numbers_is_refused_where_nothing_is_scaled(factor: Fraction) -> None:
    with pytest.raises(CapacityOverflow):
        solved(drawn(2, [(0, 1, 0)]), Terminals.of([0], [1]), Scaled(np.array([0])), factor, factor + 1)


def test_a_network_is_multiplied_within_its_limits() -> None:
    network = Network(drawn(2, [(0, 1, MAX_TOTAL >> 10), (0, 1, INFINITE)]))
    larger = network.multiplied(1 << 10)
    assert larger.capacity.tolist() == [MAX_TOTAL, INFINITE]
    assert (larger.finite_total, network.finite_total) == (MAX_TOTAL, MAX_TOTAL >> 10)
    with pytest.raises(CapacityOverflow):
        network.multiplied((1 << 10) + 1)


def test_nothing_scaled_is_one_segment() -> None:
    edges, terminals = city()
    found = solved(edges, terminals, Scaled(np.empty(0, np.int64)), Fraction(0), Fraction(5))
    assert (found.factors, found.lines) == ((0, 5), (Line(6, 0),))


def test_many_lines_are_found_with_two_answers_each() -> None:
    """The lines of a curve that touches each of them, and of some that it touches at one point only."""
    lines = [Line(i * i, 400 - 2 * i) for i in range(200)] + [Line(400 * 400, 0)]

    def probe(factor: Fraction) -> Point:
        line = min(lines, key=lambda one: (one.at(factor), one.rate))
        return Point(factor, line.at(factor), line)

    told: list[float] = []
    found = curve(probe, Fraction(0), Fraction(300), 10_000, lambda _, covered: told.append(covered))
    assert found.complete
    assert found.probes <= 2 * len(found.lines) + 2
    assert told == sorted(told)
    assert told[-1] == 1
    for limit in (1, 2, 50):
        cut_short = curve(probe, Fraction(0), Fraction(300), limit)
        assert not cut_short.complete
        assert cut_short.lines == found.lines[:limit]
        assert cut_short.factors == found.factors[: limit + 1]


def test_a_curve_without_end_is_given_up() -> None:
    """Each answer is a new line, as a fault could make them."""

    def probe(factor: Fraction) -> Point:
        value = -(factor**2)
        return Point(factor, value, Line(0, 0) if not factor else Line(int(factor**2), -int(2 * factor) - 1))

    asked: list[Fraction] = []

    def counted(factor: Fraction) -> Point:
        asked.append(factor)
        return probe(factor)

    curve(counted, Fraction(0), Fraction(1 << 40), 3)
    assert len(asked) <= 4 * 3 + 200
