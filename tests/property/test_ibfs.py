"""The incremental search between two forests: right at every limit, and whole without one."""

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.cpu import greedy, ibfs
from gpu_engine.cpu.pseudoflow import saturate_unlimited, undo_saturation
from gpu_engine.cpu.reach import list_ends
from gpu_engine.cpu.scratch import Scratch
from gpu_engine.cpu.sides import OUTSIDE
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.types import BoolArray
from tests.cases import cases
from tests.property.test_drain import Instance, check_drained, check_pseudoflow, random_instance
from tests.property.test_smallcut import kernel_view

SEEDS_A_CASE = 200


def searched(instance: Instance, limit: float, scratch: Scratch, *, first: bool) -> tuple[Instance, bool, BoolArray]:
    """Lend, search, take back: the instance then, whether the search has ended, and its source side."""
    given = instance.copy()
    n = given.network.n_vertices
    flow, side = kernel_view(given), np.zeros(n, np.bool_)
    pushed = saturate_unlimited(flow, None)
    if first:
        reach = scratch.reach(n)
        greedy.first_fit(flow, reach.excesses, list_ends(flow, reach).n_excesses, Control().slots)
    ended = ibfs.search(flow, scratch.forests(n), side, limit, Control().slots)
    undo_saturation(flow, pushed, None)
    return given, ended, side


@pytest.mark.parametrize("start", range(0, cases(3000), SEEDS_A_CASE))
def test_searches_of_any_limit_leave_a_pseudoflow_and_end_with_a_minimum_cut(start: int) -> None:
    ended, scratch = 0, Scratch()
    for seed in range(start, start + SEEDS_A_CASE):
        before, rng = random_instance(seed), np.random.default_rng(seed)
        limit = float(rng.choice([0.0, 3.0, 20.0, 100.0, 1e9, 1e9]))
        after, is_whole, side = searched(before, limit, scratch, first=bool(seed % 2))
        at = f"seed {seed}"
        check_pseudoflow(before, after, at)
        ordinary = before.role == 0
        assert (np.sign(after.excess) * np.sign(before.excess) >= 0)[ordinary].all(), at
        if is_whole:
            ended += 1
            check_drained(before, after, side, at, exact=True)
        else:
            assert limit < 1e9, at
    assert SEEDS_A_CASE / 4 < ended < SEEDS_A_CASE


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        ("zigzag", {"pairs": 300}),
        ("bipartite", {"left": 400, "right": 300, "degree": 3, "undirected": True}),
        ("grid", {"rows": 16, "columns": 16}),
        ("rlg", {"rows": 8, "columns": 12}),
        ("tree", {"n_vertices": 500}),
        ("rmat", {"scale": 9}),
        ("delaunay", {"n_vertices": 300}),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_orphans_find_their_way_on_deep_and_on_bushy_networks(
    family: str, parameters: dict[str, int], seed: int
) -> None:
    """Layers by the hundred, subtrees that move as a whole, and vertices that leave one forest for the other."""
    edges = generate(family, seed=seed, **parameters)
    network = Network(edges)
    n = network.n_vertices
    residual, excess, role = network.arc_capacity(), np.zeros(n, np.int64), np.zeros(n, np.int8)
    rng = np.random.default_rng(seed)
    some = rng.permutation(n)[: n // 3]
    excess[some] = rng.integers(1, 20, len(some)) * np.where(rng.random(len(some)) < 0.5, 1, -1)
    before = Instance(network, np.minimum(residual, 1 << 40), excess, role)
    after, is_whole, side = searched(before, 1e12, Scratch(), first=False)
    assert is_whole
    check_drained(before, after, side, f"{family} {seed}", exact=True)


def dispatch(seed: int, most: int = 10) -> Instance:
    """Requests and vehicles near each other, with amounts: deep layers, in which vertices move again and again."""
    edges = generate("dispatch", seed=seed, requests=1000, vehicles=1000, within_reach=14.0, most=most)
    assert edges.source is not None
    assert edges.sink is not None
    ends = np.array([edges.source, edges.sink])
    inner = ~(np.isin(edges.tail, ends) | np.isin(edges.head, ends))
    excess = np.zeros(edges.n_vertices, np.int64)
    np.add.at(excess, edges.head, np.where(edges.tail == edges.source, edges.capacity, 0))
    np.subtract.at(excess, edges.tail, np.where(edges.head == edges.sink, edges.capacity, 0))
    excess[ends] = 0
    network = Network(EdgeList(edges.n_vertices, edges.tail[inner], edges.head[inner], edges.capacity[inner]))
    return Instance(network, network.arc_capacity(), excess, np.zeros(edges.n_vertices, np.int8))


@pytest.mark.parametrize("start", range(0, cases(60), 20))
def test_vertices_that_move_forget_which_arcs_were_tried(start: int) -> None:
    """The arc that led a vertex to its new layer is one of several: those before it may lead there as well."""
    scratch = Scratch()
    for seed in range(start, start + 20):
        before = dispatch(seed)
        after, is_whole, side = searched(before, 1e12, scratch, first=bool(seed % 2))
        assert is_whole
        check_drained(before, after, side, f"seed {seed}", exact=True)


def partners_at_random(seed: int, scale: int) -> Instance:
    """As many on the left as on the right, three partners for each on the left, and the same amount for all."""
    edges = generate("bipartite", seed=seed, left=2000, right=2000, degree=3)
    network = Network(EdgeList(edges.n_vertices, edges.tail, edges.head, np.full(edges.n_edges, scale)))
    excess, role = np.zeros(edges.n_vertices, np.int64), np.zeros(edges.n_vertices, np.int8)
    excess[edges.head[edges.tail == edges.source]] = scale
    excess[edges.tail[edges.head == edges.sink]] = -scale
    role[[edges.source or 0, edges.sink or 0]] = OUTSIDE
    return Instance(network, network.arc_capacity(), excess, role)


SERVED = ("first fit", "fewest first", "Karp and Sipser", "as chosen")


def served(before: Instance, how: str) -> Instance:
    """The instance after a greedy flow."""
    after, n = before.copy(), before.network.n_vertices
    flow, reach, slots = kernel_view(after), Scratch().reach(n), Control().slots
    ends, memory = list_ends(flow, reach), (np.zeros(n, np.int32), np.zeros(n, np.uint32))
    if how == "first fit":
        greedy.first_fit(flow, reach.excesses, ends.n_excesses, slots)
    elif how == "fewest first":
        greedy.fewest_first(flow, reach.excesses, ends.n_excesses, memory[1], slots)
    elif how == "Karp and Sipser":
        greedy.match(flow, *memory, slots)
    else:
        greedy.first_flow(flow, ends, reach, memory[0], slots)
    check_pseudoflow(before, after, how)
    assert (np.sign(after.excess) * np.sign(before.excess) >= 0).all(), how
    return after


@pytest.mark.parametrize(
    ("before", "best"),
    [
        (partners_at_random(1, 1), "Karp and Sipser"),
        (partners_at_random(2, 7), "Karp and Sipser"),
        (dispatch(1, 1), "fewest first"),
        (dispatch(2, 10), "fewest first"),
    ],
    ids=["at random", "at random, alike", "near each other", "near each other, with amounts"],
)
def test_the_first_flow_is_the_one_that_leaves_less_for_the_time_it_takes(before: Instance, best: str) -> None:
    found = {how: served(before, how) for how in SERVED}
    left = {how: after.excess[after.excess > 0].sum() for how, after in found.items()}
    assert left["fewest first"] < 0.9 * left["first fit"]
    assert left[best] <= 1.02 * min(left.values())
    assert (found["as chosen"].residual == found[best].residual).all()


def test_a_cancelled_search_says_so_and_leaves_a_pseudoflow() -> None:
    before = random_instance(7)
    given, control = before.copy(), Control()
    control.cancel()
    n = given.network.n_vertices
    flow, side = kernel_view(given), np.zeros(n, np.bool_)
    pushed = saturate_unlimited(flow, None)
    assert not ibfs.search(flow, Scratch().forests(n), side, 1e9, control.slots)
    assert not side.any()
    undo_saturation(flow, pushed, None)
    check_pseudoflow(before, given, "cancelled")


@pytest.mark.parametrize("scale", [1, 40])
def test_a_cancel_is_heard_while_neighbours_are_served(scale: int) -> None:
    """By first fit, and (chains of partners with equal amounts) by the rule of Karp and Sipser."""
    n = 4000
    left, rng = np.arange(n, dtype=np.int32), np.random.default_rng(scale)
    tail, head = np.concatenate([left, left[1:]]), np.concatenate([left + n, left[1:] + n - 1])
    network = Network(EdgeList(2 * n, tail, head, np.full(2 * n - 1, 100)))
    excess = rng.integers(1, scale + 1, 2 * n) * np.repeat([1, -1], n)
    given = Instance(network, network.arc_capacity(), excess.copy(), np.zeros(2 * n, np.int8))
    flow, reach, partners, control = kernel_view(given), Scratch().reach(2 * n), np.zeros(2 * n, np.int32), Control()
    ends = list_ends(flow, reach)
    control.cancel()
    greedy.first_flow(flow, ends, reach, partners, control.slots)
    assert given.excess.tolist() == excess.tolist()
    greedy.first_flow(flow, ends, reach, partners, Control().slots)
    assert np.abs(given.excess).sum() < np.abs(excess).sum() / 2
