"""Push-relabel for long and narrow networks: right at every limit, from either side, and chosen where it is faster."""

from dataclasses import replace

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.cpu.drain import move_ahead, negate
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.pseudoflow import saturate_unlimited, undo_saturation
from gpu_engine.cpu.push_relabel import push_excess
from gpu_engine.cpu.scratch import Scratch
from gpu_engine.generators import generate
from gpu_engine.incremental import Patience
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import BoolArray
from tests.cases import cases
from tests.oracle import maximum_flow
from tests.property.test_drain import Instance, check_drained, check_pseudoflow
from tests.property.test_smallcut import kernel_view

SEEDS_A_CASE = 100

MOST_OF_REPAIRS = 8.0
"""Ten closings of one edge in 500, each undone, may push over so many times as many arcs as the solve."""


def long_instance(seed: int) -> Instance:
    """Layers of a few vertices, with arcs that lead on, back, and along; terminals at the ends or anywhere."""
    rng = np.random.default_rng(seed)
    width, layers = int(rng.integers(1, 5)), int(rng.integers(20, 60))
    n = width * layers
    m = int(rng.integers(1, 5)) * n
    tail = rng.integers(0, n, m)
    head = np.clip(tail + rng.integers(-width, 2 * width + 1, m), 0, n - 1)
    network = Network(EdgeList(n, tail.astype(np.int32), head.astype(np.int32), np.ones(m, np.int64), True))
    top = int(rng.choice([2, 20, 1 << 50]))
    residual = rng.integers(0, top, network.n_arcs)
    excess = np.zeros(n, np.int64)
    some = rng.permutation(n)[: int(rng.integers(1, n // 3))]
    excess[some] = rng.integers(-top, top, len(some))
    if rng.random() < 0.5:  # all of it lies at the ends
        excess[width:-width] = 0
        excess[:width], excess[-width:] = np.abs(excess[:width]) + 1, -np.abs(excess[-width:]) - 1
    role = (rng.random(n) < rng.choice([0, 0.1])).astype(np.int8)
    return Instance(network, residual, excess, role)


def pushed(
    before: Instance, limit: float, scratch: Scratch, *, behind: bool, trial: float
) -> tuple[Instance, bool, BoolArray]:
    """The instance after it, whether it has ended, and the source side then."""
    given = before.copy()
    n = given.network.n_vertices
    flow, forest = kernel_view(given), scratch.forest(n)
    saturated = saturate_unlimited(flow, None)
    if behind:
        negate(flow.excess)
        ended = push_excess(flow, forest, limit, trial, Control().slots, 0)
        negate(flow.excess)
        side = forest.label[:n] <= n
    else:
        ended = push_excess(flow, forest, limit, trial, Control().slots, None)
        side = forest.label[:n] == n + 1
    undo_saturation(flow, saturated, None)
    return given, ended, side


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("start", range(0, cases(600), SEEDS_A_CASE))
def test_any_limit_leaves_a_pseudoflow_and_an_end_is_a_minimum_cut(start: int, behind: bool) -> None:
    ended, scratch = 0, Scratch()
    for seed in range(start, start + SEEDS_A_CASE):
        before, rng = long_instance(seed), np.random.default_rng(seed)
        limit = float(rng.choice([0.0, 2000.0, 1e9, 1e9]))
        after, is_whole, side = pushed(before, limit, scratch, behind=behind, trial=float(rng.choice([0.1, np.inf])))
        at = f"seed {seed}"
        check_pseudoflow(before, after, at)
        if is_whole:
            ended += 1
            check_drained(before, after, side, at, exact=not behind)
    assert SEEDS_A_CASE / 10 < ended < SEEDS_A_CASE


@pytest.mark.parametrize("start", range(0, cases(600), SEEDS_A_CASE))
def test_each_algorithm_goes_on_where_the_one_before_left_off(start: int) -> None:
    """However soon that is, in a network that is taken for thin."""
    scratch = Scratch()
    for seed in range(start, start + SEEDS_A_CASE):
        before, rng = long_instance(seed), np.random.default_rng(seed)
        given, n = before.copy(), before.network.n_vertices
        flow, forest = kernel_view(given), scratch.forest(n)
        saturated = saturate_unlimited(flow, None)
        assert move_ahead(flow, forest, float(rng.integers(1, 3000)), True, False, np.inf, Control().slots, None)
        undo_saturation(flow, saturated, None)
        check_drained(before, given, forest.label[:n] == n + 1, f"seed {seed}", exact=True)


def test_a_cancelled_one_says_so_and_leaves_a_pseudoflow() -> None:
    before, control = long_instance(1), Control()
    given = before.copy()
    control.cancel()
    flow = kernel_view(given)
    saturated = saturate_unlimited(flow, None)
    assert not push_excess(flow, Scratch().forest(given.network.n_vertices), 1e9, np.inf, control.slots, None)
    undo_saturation(flow, saturated, None)
    check_pseudoflow(before, given, "cancelled")


def unrolled(seed: int, *, tight: bool) -> tuple[EdgeList, Terminals]:
    """A network of 20 places over 800 steps, with a few sources at the beginning and sinks at the end; ``tight``: they
    supply more than the steps between let pass."""
    rng, places, steps = np.random.default_rng(seed), 20, 800
    n = places * steps
    tail = np.repeat(np.arange(n - places), 3)
    head = (tail // places + 1) * places + rng.integers(0, places, len(tail))
    capacity = rng.integers(1, 100, len(tail))
    edges = EdgeList(n, tail.astype(np.int32), head.astype(np.int32), capacity)
    first, last = rng.permutation(places)[:3], n - 1 - rng.permutation(places)[:3]
    if tight:
        first, last = np.arange(places), np.arange(n - places, n)
    return edges, Terminals.of(first.tolist(), last.tolist())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tight", [False, True])
def test_unrolled_networks(seed: int, tight: bool) -> None:
    """Where little is turned back it takes a few passes; else it says so, and the pseudoflow algorithm solves. Repairs,
    in which its trees took two to twelve times the pushes of the solve, take fewer."""
    edges, terminals = unrolled(seed, tight=tight)
    engine = CpuEngine(Network(edges))
    state = engine.open(terminals)
    report = engine.solve(state)
    assert engine.certificate(state).valid
    assert report.value == maximum_flow(edges, edges.capacity, terminals)
    if not tight:
        assert report.counters["global_relabels"] >= 1
        assert report.counters["arcs_scanned"] < 8 * (edges.n_vertices + engine.network.n_arcs)
    pushes, rng = 0, np.random.default_rng(seed)
    for _ in range(10):
        rows = np.sort(rng.choice(edges.n_edges, edges.n_edges // 500, replace=False))
        for capacity in (np.zeros_like(rows), edges.capacity[rows]):
            engine.update(rows, capacity)
            state.patience = Patience()  # has learned nothing: what is tried does not depend on how long it takes
            again = engine.solve(state)
            assert engine.certificate(state).valid
            pushes += again.counters["pushes"]
    assert again.value == report.value
    assert pushes < MOST_OF_REPAIRS * report.counters["pushes"]


def solved(edges: EdgeList) -> tuple[int, dict[str, int]]:
    """The size of the network, vertices and arcs, and the counters of a cold solve, the answer of which is checked."""
    assert edges.source is not None
    assert edges.sink is not None
    terminals = Terminals.of([edges.source], [edges.sink])
    engine = CpuEngine(Network(edges))
    state = engine.open(terminals)
    report = engine.solve(state)
    assert engine.certificate(state).valid
    assert report.value == maximum_flow(edges, edges.capacity, terminals)
    return edges.n_vertices + engine.network.n_arcs, dict(report.counters)


def scanned(edges: EdgeList) -> float:
    """What a cold solve scans and pushes over, in sizes of the network."""
    size, counters = solved(edges)
    return (counters["arcs_scanned"] + counters["pushes"]) / size


def mirrored(edges: EdgeList) -> EdgeList:
    return replace(edges, tail=edges.head, head=edges.tail, source=edges.sink, sink=edges.source)


def renumbered(edges: EdgeList) -> EdgeList:
    """The same network with its vertices numbered backwards."""
    assert edges.source is not None
    assert edges.sink is not None
    last = edges.n_vertices - 1
    ends = {"source": last - edges.source, "sink": last - edges.sink}
    return replace(edges, tail=last - edges.tail, head=last - edges.head, **ends)


@pytest.mark.parametrize(
    ("family", "parameters", "most"),
    [
        ("chains", {"length": 5000}, 9),
        ("line", {"length": 10_000}, 2),
        ("rlg", {"rows": 2, "columns": 10_000}, 1.72),
        ("rlg", {"rows": 3, "columns": 10_000}, 1.8),
        ("rlg", {"rows": 20, "columns": 5000}, 3),
        ("grid", {"rows": 10, "columns": 2000}, 3.5),
    ],
)
def test_long_and_narrow_networks_take_few_passes(family: str, parameters: dict[str, int], most: float) -> None:
    """They took twice to nine times as many, in attempts and in trees that are as long as the network. It does not
    matter which way the flow goes, nor which way the numbers of the vertices run."""
    edges = generate(family, seed=1, **parameters)
    assert scanned(edges) < most
    assert scanned(mirrored(edges)) < 1.3 * most
    assert scanned(renumbered(edges)) < 1.3 * most


def ladder(length: int, seed: int) -> EdgeList:
    """Two rails with rungs of 1 between them, from one end of one rail to the other end of the other."""
    rng, rung = np.random.default_rng(seed), np.arange(length)
    rails = np.concatenate([rung[:-1], length + rung[:-1]])
    tail, head = np.concatenate([rails, rung]), np.concatenate([rails + 1, length + rung])
    capacity = np.concatenate([rng.integers(1, 10**6, len(rails)), np.ones_like(rung)])
    columns = tail.astype(np.int32), head.astype(np.int32), capacity
    return EdgeList(2 * length, *columns, source=0, sink=2 * length - 1)


@pytest.mark.parametrize("seed", range(3))
def test_excess_that_does_not_come_nearer_is_left_to_the_trees(seed: int) -> None:
    """A rail is full soon, and what is stuck there leaves by one rung after the other, each a little farther back."""
    assert scanned(ladder(20_000, seed)) < 18


@pytest.mark.parametrize("seed", range(3))
def test_trees_that_meet_at_their_leaves(seed: int) -> None:
    """The incremental search pushes over a tenth of the arcs that the trees of the pseudoflow algorithm push over."""
    edges = generate("merge", seed=seed, levels=12)
    for one in (edges, mirrored(edges)):
        size, counters = solved(one)
        assert counters["pushes"] < 0.3 * size
        assert counters["relabels"] == 0
