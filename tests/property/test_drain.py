"""`drain` against OR-tools and its own contract, from random pseudoflows with random roles, plain and mirrored."""

from dataclasses import dataclass
from threading import Timer

import numpy as np
import pytest
from numpy.typing import NDArray
from ortools.graph.python import max_flow

from gpu_engine.control import Control
from gpu_engine.cpu.drain import drain
from gpu_engine.cpu.scratch import Scratch
from gpu_engine.cpu.sides import OUTSIDE
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.types import BoolArray, UnitArray
from tests.cases import cases

SEEDS_A_CASE = 100
UNLIMITED = 1


@dataclass
class Instance:
    network: Network
    residual: UnitArray
    excess: UnitArray
    role: NDArray[np.int8]

    @property
    def tail(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.network.n_vertices), np.diff(self.network.row_offsets))

    def mirror(self) -> "Instance":
        return Instance(self.network, self.residual[self.network.reverse_arc].copy(), -self.excess, self.role)

    def copy(self) -> "Instance":
        return Instance(self.network, self.residual.copy(), self.excess.copy(), self.role)


def random_links(rng: np.random.Generator) -> tuple[int, NDArray[np.int64]]:
    """Random graph, path with chords, grid, or two parts without a link between them."""
    n = int(rng.integers(1, 40))
    shape = rng.integers(4)
    if shape == 0:
        return n, rng.integers(0, n, (2, int(rng.integers(0, 5 * n))))
    if shape == 1:
        chords = rng.integers(0, n, (2, int(rng.integers(0, 6))))
        return n, np.hstack([np.array([np.arange(n - 1), np.arange(1, n)]), chords])
    if shape == 2:
        side = int(rng.integers(2, 8))
        cell = np.arange(side * side).reshape(side, side)
        across = np.array([cell[:, :-1].ravel(), cell[:, 1:].ravel()])
        return side * side, np.hstack([across, np.array([cell[:-1].ravel(), cell[1:].ravel()])])
    links = rng.integers(0, n, (2, 3 * n))
    return 2 * n, np.hstack([links, n + rng.integers(0, n, (2, 2 * n))])


def random_instance(seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    n, (tail, head) = random_links(rng)
    m = len(tail)
    top = int(rng.choice([2, 20, 1 << 50]))
    edges = EdgeList(n, tail.astype(np.int32), head.astype(np.int32), np.ones(m, np.int64), True)
    network = Network(edges)
    residual = rng.integers(0, top, network.n_arcs)
    residual[rng.random(len(residual)) < rng.choice([0, 0.5])] = 0
    excess = rng.integers(-top, top, n)
    excess[rng.random(n) < rng.choice([0, 0.6, 0.9])] = 0
    if rng.random() < 0.3:
        excess[excess > 0] *= 100  # far more than can leave
    if rng.random() < 0.3:
        excess = np.abs(excess)
    role = rng.choice(3, n, p=((0.8, 0.1, 0.1), (1, 0, 0), (0.6, 0.3, 0.1))[int(rng.integers(3))]).astype(np.int8)
    return Instance(network, residual, excess, role)


def most_drained(instance: Instance) -> int:
    """By OR-tools: how much excess can reach deficits and unlimited vertices."""
    network, role, excess = instance.network, instance.role, instance.excess
    n = network.n_vertices
    solver = max_flow.SimpleMaxFlow()
    keep = (role[instance.tail] != OUTSIDE) & (role[network.head] != OUTSIDE)
    solver.add_arcs_with_capacity(instance.tail[keep], network.head[keep], instance.residual[keep])
    total = int(excess[(role == 0) & (excess > 0)].sum()) + 1
    for v in np.flatnonzero(role != OUTSIDE).tolist():
        if role[v] == UNLIMITED:
            solver.add_arc_with_capacity(v, n + 1, total)
        elif excess[v] > 0:
            solver.add_arc_with_capacity(n, v, int(excess[v]))
        elif excess[v] < 0:
            solver.add_arc_with_capacity(v, n + 1, -int(excess[v]))
    solver.add_arc_with_capacity(n, n + 1, 0)
    assert solver.solve(n, n + 1) == solver.OPTIMAL
    return int(solver.optimal_flow())


def check_pseudoflow(before: Instance, after: Instance, at: str) -> None:
    """Bounds, pair sums, and excess recomputed from the change of residuals; nothing outside has moved."""
    reverse = before.network.reverse_arc
    assert (after.residual >= 0).all(), at
    pushed = before.residual - after.residual
    assert (pushed == -pushed[reverse]).all(), at
    outflow = np.zeros(len(before.excess), np.int64)
    np.add.at(outflow, before.tail, pushed)
    assert (after.excess == before.excess - outflow).all(), at
    assert (outflow[before.role == OUTSIDE] == 0).all(), at


def check_drained(before: Instance, after: Instance, side: BoolArray, at: str, *, exact: bool = False) -> None:
    check_pseudoflow(before, after, at)
    ordinary, inside = before.role == 0, before.role != OUTSIDE
    assert side[ordinary & (after.excess > 0)].all(), at
    assert not side[~ordinary | (after.excess < 0)].any(), at
    leaves = side[before.tail] & ~side[before.network.head] & inside[before.network.head]
    assert (after.residual[leaves] == 0).all(), at
    if exact:
        assert (after.excess[ordinary] >= np.minimum(before.excess[ordinary], 0)).all(), at
    unlimited = before.role == UNLIMITED
    assert (after.excess[unlimited] >= before.excess[unlimited]).all(), at
    drained = before.excess[ordinary & (before.excess > 0)].sum() - after.excess[ordinary & (after.excess > 0)].sum()
    assert drained == most_drained(before), at


def run(instance: Instance, control: Control, *, mirrored: bool, exact: bool = False) -> tuple[Instance, BoolArray]:
    """Solve a copy; mirrored, the mirror image of the mirror image."""
    given = instance.mirror() if mirrored else instance.copy()
    arrays = given.residual, given.excess, given.role
    side = drain(given.network, *arrays, control, Scratch(), mirrored=mirrored, exact=exact)
    return (given.mirror() if mirrored else given), side


@pytest.mark.parametrize("first", range(0, cases(3000), SEEDS_A_CASE))
def test_random_pseudoflows(first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        before = random_instance(seed)
        exact = seed % 4 < 2
        after, side = run(before, Control(), mirrored=seed % 2 == 1, exact=exact)
        check_drained(before, after, side, f"seed {seed}", exact=exact)


def grid_instance(side: int, seed: int) -> Instance:
    """Excess on the left edge of a grid, unlimited vertices on the right."""
    rng = np.random.default_rng(seed)
    cell = np.arange(side * side, dtype=np.int32).reshape(side, side)
    tail = np.concatenate([cell[:, :-1].ravel(), cell[:-1].ravel()])
    head = np.concatenate([cell[:, 1:].ravel(), cell[1:].ravel()])
    network = Network(EdgeList(side * side, tail, head, np.ones(len(tail), np.int64), True))
    excess, role = np.zeros(side * side, np.int64), np.zeros(side * side, np.int8)
    excess[cell[:, 0]] = 1_000_000
    role[cell[:, -1]] = UNLIMITED
    return Instance(network, rng.integers(0, 1000, network.n_arcs), excess, role)


@pytest.mark.parametrize("mirrored", [False, True])
def test_cancelled_drains_can_be_finished(mirrored: bool) -> None:
    before = grid_instance(150, seed=7)
    state = before
    for delay_s in (0.0, 0.0005, 0.001, 0.002, 0.004):
        control = Control()
        stopper = Timer(delay_s, control.cancel)
        stopper.start()
        state, side = run(state, control, mirrored=mirrored)
        stopper.join()
        check_pseudoflow(before, state, f"after {delay_s} s")
    after, side = run(state, Control(), mirrored=mirrored)
    check_drained(before, after, side, "finished")


def test_cancelled_before_it_starts_changes_nothing() -> None:
    before, control = grid_instance(20, seed=1), Control()
    control.cancel()
    after, side = run(before, control, mirrored=False)
    assert not side.any()
    assert (after.residual == before.residual).all()
    assert (after.excess == before.excess).all()


def test_counters_rise() -> None:
    control = Control()
    run(grid_instance(40, seed=2), control, mirrored=False)
    progress = control.progress()
    assert min(progress[name] for name in ("pushes", "relabels", "arcs_scanned")) > 0


@pytest.mark.parametrize("mirrored", [False, True])
def test_huge_numbers_stay_exact(mirrored: bool) -> None:
    """a --inf--> b --inf--> two unlimited vertices; all of 2**60 arrives."""
    #   0 -- 1 -- 2
    #         \-- 3
    network = Network(EdgeList(4, *np.array([[0, 1, 1], [1, 2, 3]], np.int32), np.ones(3, np.int64)))
    before = Instance(
        network,
        np.full(network.n_arcs, 1 << 61),
        np.array([1 << 60, 0, 0, 0]),
        np.array([0, 0, UNLIMITED, UNLIMITED], np.int8),
    )
    after, side = run(before, Control(), mirrored=mirrored)
    check_pseudoflow(before, after, "huge")
    assert after.excess[2:].sum() == 1 << 60
    assert not side.any()


def test_nothing_to_do() -> None:
    before = grid_instance(5, seed=3)
    before.excess[:] = -1
    after, side = run(before, Control(), mirrored=False)
    assert not side.any()
    assert (after.residual == before.residual).all()
