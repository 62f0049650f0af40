"""The attempt from both sides and the greedy first flow: right at every budget, whole where they say so."""

from threading import Timer

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.cpu import greedy
from gpu_engine.cpu.budget import Budget
from gpu_engine.cpu.drain import AHEAD, BEHIND, EITHER, TOO_LONG, drain_kernel
from gpu_engine.cpu.pseudoflow import Pseudoflow, saturate_unlimited, undo_saturation
from gpu_engine.cpu.reach import list_ends
from gpu_engine.cpu.scratch import Scratch
from gpu_engine.cpu.smallcut import GAVE_UP, SINK_CUT, SOURCE_CUT, attempt
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.types import BoolArray
from tests.cases import cases
from tests.property.test_drain import Instance, check_drained, check_pseudoflow, random_instance

SEEDS_A_CASE = 100


def kernel_view(instance: Instance) -> Pseudoflow:
    network = instance.network
    topology = network.row_offsets.view(np.uint32), network.head.view(np.uint32), network.reverse_arc.view(np.uint32)
    return Pseudoflow(*topology, instance.residual, instance.excess, instance.role)


def attempted(instance: Instance, budget: Budget) -> tuple[Instance, int, BoolArray]:
    """Lend, attempt, take back; what it says, and the source side if it found a cut."""
    given = instance.copy()
    flow, reach = kernel_view(given), Scratch().reach(given.network.n_vertices)
    pushed = saturate_unlimited(flow, None)
    outcome = attempt(flow, reach, list_ends(flow, reach), budget, Control().slots)
    undo_saturation(flow, pushed, None)
    side = np.zeros(given.network.n_vertices, np.bool_)
    if outcome.kind == SOURCE_CUT:
        side[reach.ahead[: outcome.reached]] = True
    elif outcome.kind != GAVE_UP:
        side = given.role == 0
        side[reach.behind[: outcome.reached]] = False
    return given, outcome.kind, side


@pytest.mark.parametrize("first", range(0, cases(2000), SEEDS_A_CASE))
def test_attempts_of_any_budget_leave_a_pseudoflow_and_end_with_a_minimum_cut(first: int) -> None:
    ended = 0
    for seed in range(first, first + SEEDS_A_CASE):
        before, rng = random_instance(seed), np.random.default_rng(seed)
        limit, phase = rng.choice([0.0, 5.0, 40.0, 300.0, 1e9], 2).tolist()
        budget = Budget(limit, phase, may_grow=True, equal=seed % 2 == 1, one_way=seed % 4 == 3)
        after, result, side = attempted(before, budget)
        at = f"seed {seed}"
        check_pseudoflow(before, after, at)
        ordinary = before.role == 0
        assert (np.sign(after.excess) * np.sign(before.excess) >= 0)[ordinary].all(), at
        assert (np.abs(after.excess) <= np.abs(before.excess))[ordinary & (before.excess < 0)].all(), at
        if result != GAVE_UP:
            ended += 1
            check_drained(before, after, side, at, exact=True)
        else:
            assert limit < 1e9 or phase < 1e9, at
    assert 0 < ended < SEEDS_A_CASE


@pytest.mark.parametrize(
    ("branch", "ends_with", "expected"),
    [(2, SOURCE_CUT, [True, False, False]), (0, SINK_CUT, [True, True, False])],
)
def test_the_least_cut_if_the_excesses_are_exhausted_and_the_greatest_if_the_deficits_are(
    branch: int, ends_with: int, expected: list[bool]
) -> None:
    r"""
    excess 5 at 0 --1--> 1 --1--> 2 deficit 5: either link is a minimum cut; the side of the branch to 3 has more to see
    """
    links = np.array([[0, 1, branch], [1, 2, 3]], np.int32)
    network = Network(EdgeList(4, links[0], links[1], np.ones(3, np.int64)))
    before = Instance(network, network.arc_capacity(), np.array([5, 0, -5, 0]), np.zeros(4, np.int8))
    _, result, side = attempted(before, Budget(1e9, 1e9, may_grow=False, equal=False, one_way=False))
    assert result == ends_with
    assert side[:3].tolist() == expected


@pytest.mark.parametrize("begin", [EITHER, AHEAD, BEHIND])
@pytest.mark.parametrize("mirrored", [False, True])
def test_either_side_may_flood(begin: int, mirrored: bool) -> None:
    given_up = 0
    for seed in range(3000, 3300):
        before = random_instance(seed)
        given = before.mirror() if mirrored else before.copy()
        n, scratch, control = given.network.n_vertices, Scratch(), Control()
        side = np.zeros(n, np.bool_)
        working = scratch.forest(n), scratch.reach(n), scratch.forests(n)
        # A repair, of a network that was found narrow, in few steps.
        kind = begin, seed % 2 == 1, seed % 4 == 3, 10.0 if seed % 8 == 5 else np.inf
        done = drain_kernel(kernel_view(given), *working, side, *kind, control.slots, 0 if mirrored else None)
        after = given.mirror() if mirrored else given
        assert done == (control.slots[Control.NARROW] != TOO_LONG)
        if not done:  # it may say so
            assert kind[2] or kind[3] < np.inf
            given_up += kind[3] < np.inf
            assert not side.any()
            check_pseudoflow(before, after, f"seed {seed}")
            continue
        check_drained(before, after, side, f"seed {seed}", exact=begin == (BEHIND if mirrored else AHEAD))
    assert given_up > 0


def matched(edges: EdgeList) -> int:
    """What the greedy flow leaves unmatched of the smaller side."""
    network = Network(edges)
    n = network.n_vertices
    residual, excess, role = network.arc_capacity(), np.zeros(n, np.int64), np.zeros(n, np.int8)
    from_source, to_sink = edges.tail == edges.source, edges.head == edges.sink
    np.add.at(excess, edges.head[from_source], edges.capacity[from_source])
    np.subtract.at(excess, edges.tail[to_sink], edges.capacity[to_sink])
    role[[edges.source, edges.sink]] = 2
    before = Instance(network, residual, excess, role)
    after = before.copy()
    flow, reach = kernel_view(after), Scratch().reach(n)
    ends = list_ends(flow, reach)
    assert greedy.stand_beside(flow, ends, reach)
    greedy.match(flow, np.empty(n, np.int32), reach.trail, Control().slots)
    check_pseudoflow(before, after, "greedy")
    assert (np.sign(after.excess) * np.sign(before.excess) >= 0).all()
    return int(min(after.excess[after.excess > 0].sum(), -after.excess[after.excess < 0].sum()))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("undirected", [False, True])
def test_the_greedy_flow_is_whole_on_paths(seed: int, undirected: bool) -> None:
    assert matched(generate("zigzag", seed=seed, pairs=200, undirected=undirected)) == 0


@pytest.mark.parametrize("seed", range(10))
def test_the_greedy_flow_leaves_little_on_random_bipartite_graphs(seed: int) -> None:
    """As many stay alone as must, or a handful more."""
    for degree, skew in ((2, 1.0), (3, 1.0), (4, 2.0), (8, 1.0)):
        edges = generate("bipartite", seed=seed, left=500, right=500, degree=degree, skew=skew)
        alone = 500 - maximum(edges)
        assert alone <= matched(edges) <= alone + 5, (degree, skew)


def maximum(edges: EdgeList) -> int:
    """The size of a maximum matching, by SciPy."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    inner = (edges.tail != edges.source) & (edges.head != edges.sink)
    ones = np.ones(int(inner.sum()))
    matrix = coo_array((ones, (edges.tail[inner], edges.head[inner] - 500)), shape=(500, 500)).tocsr()
    return int((maximum_bipartite_matching(matrix) >= 0).sum())


SHAPES = {
    "both sides at once": ("digraph", {"n_vertices": 60_000, "leaving": 3000, "entering": 3000}),
    "greedy": ("bipartite", {"left": 60_000, "right": 60_000, "degree": 6}),
    "long path": ("zigzag", {"pairs": 60_000}),
    "flood": ("grid", {"rows": 200, "columns": 200}),
    "hub": ("rmat", {"scale": 14}),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_drain_cancelled_at_any_stage_leaves_a_pseudoflow_that_can_be_finished(shape: str, mirrored: bool) -> None:
    family, parameters = SHAPES[shape]
    edges = generate(family, seed=1, **parameters)
    network = Network(edges)
    n = network.n_vertices
    residual, excess, role = network.arc_capacity(), np.zeros(n, np.int64), np.zeros(n, np.int8)
    row = slice(network.row_offsets[edges.source], network.row_offsets[edges.source + 1])
    np.add.at(excess, network.head[row], np.minimum(residual[row], 1 << 40))
    role[edges.source], role[edges.sink] = 2, 1
    before = Instance(network, np.minimum(residual, 1 << 40), excess, role)
    state = before.mirror() if mirrored else before
    scratch = Scratch()
    for delay_s in (0.0, 0.0002, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016):
        control, given, side = Control(), state.copy(), np.zeros(n, np.bool_)
        stopper = Timer(delay_s, control.cancel)
        stopper.start()
        working = scratch.forest(n), scratch.reach(n), scratch.forests(n)
        how = EITHER, False, False, np.inf
        drain_kernel(kernel_view(given), *working, side, *how, control.slots, 0 if mirrored else None)
        stopper.join()
        state = given
        check_pseudoflow(before, state.mirror() if mirrored else state, f"after {delay_s} s")
    side = np.zeros(n, np.bool_)
    working = scratch.forest(n), scratch.reach(n), scratch.forests(n)
    assert drain_kernel(
        kernel_view(state), *working, side, EITHER, False, False, np.inf, Control().slots, 0 if mirrored else None
    )
    check_drained(before, state.mirror() if mirrored else state, side, "finished")
