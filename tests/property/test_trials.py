"""Trials of changes on one solved flow against OR-tools: each by itself, whatever was tried before it."""

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.trying import CpuTrials
from gpu_engine.engine import Engine, Fork
from gpu_engine.errors import Unbounded
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.trials import Changes
from gpu_engine.types import INFINITE
from tests.cases import cases
from tests.oracle import maximum_flow
from tests.random_networks import random_edges, random_terminals, random_update


def solved_fork(engine: Engine, terminals: Terminals) -> Fork:
    state = engine.open(terminals)
    engine.solve(state)
    assert engine.certificate(state).valid
    return engine.fork(state)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("first", range(0, cases(400), 100))
def test_trials_agree_with_ortools(first: int, far: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Near searches reach everything in networks as small as these. Where they reach nothing, the far ones do it, from
    both ends."""
    if far:
        monkeypatch.setattr("gpu_engine.cpu.trying.NEAR", 2)
    n_finite = n_done = 0
    for seed in range(first, first + 100):
        rng = np.random.default_rng(seed)
        edges = random_edges(rng)
        terminals = random_terminals(rng, edges.n_vertices)
        network = Network(edges)
        base = network.capacity.copy()
        try:
            fork = solved_fork(CpuEngine(network), terminals)
        except Unbounded:
            continue
        trials = fork.trials(2)
        several = [random_update(rng, base) for _ in range(12)] if edges.n_edges else []
        nothing = np.empty(0, np.int64)
        several = [*several, (nothing, nothing)]
        first_time, second_time = (one.run(Changes.of(several), Control()) for one in (trials[0], trials[0]))
        assert (first_time.value == second_time.value).all()
        assert (first_time.done == second_time.done).all()
        assert first_time.done[-1]
        assert not first_time.warm[-1]
        for (rows, capacity), value, done in zip(several, first_time.value, first_time.done, strict=True):
            if (base[rows] == INFINITE).any() or (capacity == INFINITE).any():
                assert not done, seed
                continue
            n_finite += 1
            n_done += bool(done)
            under = base.copy()
            under[rows] = capacity
            assert not done or value == maximum_flow(edges, under, terminals), seed
        assert (fork.engine.network.capacity == base).all()
    assert n_done > 0.9 * n_finite > 100


@pytest.mark.parametrize(
    ("family", "parameters"),
    [("genrmf-wide", {"a": 6}), ("digraph", {"n_vertices": 600}), ("tree", {"n_vertices": 600})],
)
@pytest.mark.parametrize("far", [False, True])
def test_every_closure_of_a_larger_network_is_done_and_right(
    family: str, parameters: dict[str, int], far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if far:
        monkeypatch.setattr("gpu_engine.cpu.trying.NEAR", 8)
    edges = generate(family, seed=1, **parameters)
    terminals, network = Terminals.of([edges.source], [edges.sink]), Network(edges)
    (trials,) = solved_fork(CpuEngine(network), terminals).trials(1)
    rows = np.arange(network.n_edges)
    tried = trials.run(Changes.closing(np.arange(network.n_edges + 1), rows), Control())
    assert tried.done.all()
    for row in rows[::7].tolist():
        under = network.capacity.copy()
        under[row] = 0
        assert tried.value[row] == maximum_flow(edges, under, terminals)


def test_closures_around_a_hub_are_right_over_and_over() -> None:
    """Each sink has room for one unit more, so that what one loses goes to many others, always through the hub."""
    k = 30
    tail, head = np.r_[:k, np.full(k, 2 * k)].astype(np.int32), np.r_[np.full(k, 2 * k), k : 2 * k].astype(np.int32)
    edges = EdgeList(2 * k + 1, tail, head, np.r_[np.full(k, 20), np.full(k, 9)])
    terminals, network = Terminals.of(range(k), range(k, 2 * k), [8] * k), Network(edges)
    (trials,) = solved_fork(CpuEngine(network), terminals).trials(1)
    changes = Changes.closing(np.arange(2 * k + 1), np.arange(2 * k))
    tried, again = trials.run(changes, Control()), trials.run(changes, Control())
    assert tried.done.all()
    assert (tried.value == again.value).all()
    for row in range(2 * k):
        under = network.capacity.copy()
        under[row] = 0
        assert tried.value[row] == maximum_flow(edges, under, terminals)


def test_what_a_cancel_leaves_is_not_done_and_what_comes_next_is_right() -> None:
    edges = generate("genrmf-wide", seed=1, a=4)
    terminals, network = Terminals.of([edges.source], [edges.sink]), Network(edges)
    (trials,) = solved_fork(CpuEngine(network), terminals).trials(1)
    changes = Changes.closing(np.arange(network.n_edges + 1), np.arange(network.n_edges))
    cancelled = Control()
    cancelled.cancel()
    assert not trials.run(changes, cancelled).done.any()
    assert trials.run(changes, Control()).done.all()


def test_overlays_and_trials_do_not_see_each_other() -> None:
    edges = generate("genrmf-wide", seed=1, a=4)
    terminals, network = Terminals.of([edges.source], [edges.sink]), Network(edges)
    fork = solved_fork(CpuEngine(network), terminals)
    rows, closed = np.arange(9), np.zeros(9, np.int64)
    (trials,) = fork.trials(1)
    changes = Changes.of([(rows, closed), (rows[:0], closed[:0])])
    alone = trials.run(changes, Control())
    under = fork.engine.solve(fork.overlay(rows, closed)).value
    beside = trials.run(changes, Control())
    assert alone.value.tolist() == beside.value.tolist()
    assert beside.value[0] == under
    fork.drop()
    assert fork.engine.solve(fork.overlay(rows[:0], closed[:0])).value == alone.value[1]


def test_a_state_that_is_not_solved_has_no_trials() -> None:
    edges = generate("genrmf-wide", seed=1, a=4)
    engine = CpuEngine(Network(edges))
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    assert not engine.fork(state).trials(2)


def test_what_cannot_be_proven_is_not_done() -> None:
    edges = generate("genrmf-wide", seed=1, a=4)
    terminals, network = Terminals.of([edges.source], [edges.sink]), Network(edges)
    (trials,) = solved_fork(CpuEngine(network), terminals).trials(1)
    assert isinstance(trials, CpuTrials)
    row, vertex = 40, int(network.edge_head(np.array([40]))[0])
    for excess in (trials._base[2], trials._work[2], trials._seen[0]):
        excess[vertex] += 1  # a unit that came from nowhere
    closing = Changes.closing(np.array([0, 1]), np.array([row]))
    assert not trials.run(closing, Control()).done.any()


def test_a_change_at_a_hub_is_tried_if_there_are_threads_enough() -> None:
    """An overlay copies all arcs, one after the other; a trial looks at each arc of the hub, far apart.

        leaf 1
    (s)  ...   (hub) --> (t)
        leaf n
    """
    n = 70_000
    leaves = np.arange(3, n + 3)
    tail = np.concatenate([np.zeros(n, np.int64), leaves, [2]])
    head = np.concatenate([leaves, np.full(n, 2), [1]])
    network = Network(EdgeList(n + 3, tail.astype(np.int32), head.astype(np.int32), np.repeat([1, 9], [2 * n, 1])))
    engine = CpuEngine(network)
    state = engine.open(Terminals.of([0], [1]))
    engine.solve(state)
    changes = Changes.of([(np.array([2 * n]), np.array([7])), (np.array([0]), np.array([0]))])
    for threads, wanted in ((1, [False, True]), (2, [True, True])):
        tried = engine.fork(state).trials(threads)[0].run(changes, Control())
        assert tried.done.tolist() == wanted
        assert (tried.value[tried.done] == np.array([7, 9])[tried.done]).all()
