"""Flows that a look around two terminals finds: right, proven, and kept through updates, questions and forks."""

import dataclasses

import numpy as np
import pytest

from gpu_engine.checks.certificate import certify
from gpu_engine.checks.pairs import Witness, certify_pair, ledger
from gpu_engine.control import Control
from gpu_engine.cpu import near
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.scratch import SCRATCH
from gpu_engine.cpu.state import CpuFlowState
from gpu_engine.engine import Mode
from gpu_engine.errors import Cancelled, Unbounded
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE
from tests.cases import cases
from tests.oracle import maximum_flow
from tests.random_networks import random_network

LARGE = 20_000


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look may go as far as it likes, in small networks too."""
    monkeypatch.setattr(near, "SHARE", 1e9)
    monkeypatch.setattr(near, "STREET_SHARE", 1e9)
    monkeypatch.setattr(near, "MOST_ARCS", 1 << 30)


def digraph(seed: int = 0) -> EdgeList:
    """So many vertices, with four random arcs each, that a look ends long before it has seen all."""
    rng = np.random.default_rng(seed)
    tail = np.repeat(np.arange(LARGE, dtype=np.int32), 4)
    head = rng.integers(0, LARGE, len(tail), np.int32)
    return EdgeList(LARGE, tail, head, rng.integers(1, 9, len(tail)), False)


def solved(engine: CpuEngine, terminals: Terminals) -> CpuFlowState:
    state = engine.open(terminals)
    engine.solve(state)
    assert state.near is not None, "the look was to find it"
    return state


def drawn_terminals(rng: np.random.Generator, n_vertices: int) -> Terminals:
    source, sink = rng.choice(n_vertices, 2, replace=False)
    supply, demand = ([int(rng.integers(0, 20))] if rng.random() < 0.3 else None for _ in range(2))
    return Terminals.of([source], [sink], supply, demand)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("first", range(0, cases(400), 50))
def test_flows_agree_with_another_solver_through_updates_and_questions(first: int) -> None:
    found = 0
    for seed in range(first, first + 50):
        edges, rng = random_network(seed), np.random.default_rng(seed)
        engine, capacity, states = CpuEngine(Network(edges)), edges.capacity.copy(), []
        for _ in range(3):
            try:
                states.append(engine.open(drawn_terminals(rng, edges.n_vertices)))
            except Unbounded:
                continue
        for step in range(5):
            for state in states:
                report = engine.solve(state, cold=bool(rng.random() < 0.2))
                found += state.near is not None
                proven = engine.certificate(state, complete=bool(rng.random() < 0.2))
                other = maximum_flow(edges, capacity, state.terminals)
                assert proven.value == report.value == other, f"seed {seed}, step {step}"
                assert proven.valid, f"seed {seed}, step {step}: {proven.failures}"
                ask_something(engine, state, rng)
            assert (engine._capacity == engine.network.arc_capacity()).all(), f"seed {seed}: a flow was left behind"
            rows = rng.choice(len(capacity), min(len(capacity), int(rng.integers(1, 4))), replace=False)
            amounts = np.where(rng.random(len(rows)) < 0.03, INFINITE, rng.integers(0, 20, len(rows)))
            try:
                engine.update(rows, amounts)
            except Unbounded:
                break
            capacity[rows] = amounts
    assert found > 50


def ask_something(engine: CpuEngine, state: CpuFlowState, rng: np.random.Generator) -> None:
    """A question that needs the arrays, now and then."""
    drawn = rng.random()
    if drawn < 0.1:
        engine.flow(state)
    elif drawn < 0.2:
        assert engine.cut(state).value == state.value
    elif drawn < 0.3:
        engine.bottlenecks(state)
    elif drawn < 0.4 and engine.network.n_edges:
        fork = engine.fork(state)
        row, units = int(rng.integers(0, engine.network.n_edges)), int(rng.integers(0, 20))
        overlay = fork.overlay(np.array([row]), np.array([units]))
        report = fork.engine.solve(overlay)
        assert fork.engine.certificate(overlay).value == report.value


def test_what_a_look_finds_is_a_list_until_the_arrays_are_wanted() -> None:
    engine = CpuEngine(Network(digraph()))
    state = solved(engine, Terminals.of([3], [1500]))
    proven = engine.certificate(state, complete=False)
    assert (proven.valid, proven.complete, proven.value) == (True, False, state.value)
    assert state.near is not None, "a proof of the value needs no arrays"
    whole = engine.certificate(state)
    assert state.near is None, "a complete proof reads the arrays"
    assert (whole.valid, whole.complete, whole.value) == (True, True, state.value)
    assert engine.solve(state).mode is Mode.UNCHANGED
    assert engine.cut(state).value == proven.value == engine.network.capacity[engine.cut(state).edges].sum()


def test_an_update_elsewhere_leaves_the_list_and_one_of_the_flow_or_the_cut_is_repaired() -> None:
    engine = CpuEngine(Network(digraph()))
    network, terminals = engine.network, Terminals.of([3], [1500])
    state = solved(engine, terminals)
    assert state.near is not None
    inside = np.zeros(LARGE, bool)
    inside[state.near.side] = True
    tail, head = network.edge_ends(np.arange(network.n_edges))
    carries = np.isin(network.edge_arc, state.near.arcs)
    elsewhere = np.flatnonzero(~carries & (inside[tail] == inside[head]))
    before = state.value
    engine.update(elsewhere[:50], np.full(50, 1000))
    assert state.near is not None
    assert engine.solve(state).mode is Mode.UNCHANGED
    assert engine.certificate(state, complete=False).value == before
    paid = np.flatnonzero(carries & (inside[tail] != inside[head]))[:1]
    engine.update(paid, np.zeros(1, np.int64))
    assert state.near is None
    report = engine.solve(state)
    assert report.mode is Mode.WARM
    assert engine.certificate(state).value == report.value < before


def test_a_list_that_is_wrong_fails_its_proof_and_the_arrays_are_solved_instead() -> None:
    engine = CpuEngine(Network(digraph()))
    state = solved(engine, Terminals.of([3], [1500]))
    assert state.near is not None
    value = state.value
    state.near = dataclasses.replace(state.near, units=state.near.units + 1)
    assert not engine.certificate(state, complete=False).valid
    report = engine.solve(state, cold=True)
    assert state.near is None
    assert report.value == value == engine.certificate(state).value


@pytest.mark.parametrize("supply", [[1], None])
def test_a_flow_beyond_a_cap_is_found_out(supply: list[int] | None) -> None:
    """Two units flow, and a cut of two is there; but the source, or the sink, gives or takes one at most."""
    network = Network(EdgeList(3, np.array([0, 1]), np.array([1, 2]), np.array([2, 3]), False))
    terminals = Terminals.of([0], [2], supply, None if supply else [1])
    arcs = network.edge_arc
    lists = Witness(arcs, np.array([2, 2]), 2, np.array([0], np.int32), 1, holds_sink=False)
    proven = certify_pair(network, terminals, network.arc_capacity(), lists, ledger(3, network.n_arcs))
    assert not proven.valid


@pytest.mark.usefixtures("always")
def test_filled_arrays_are_a_settled_state() -> None:
    for seed in range(cases(60)):
        rng = np.random.default_rng(seed)
        engine = CpuEngine(Network(random_network(seed)))
        try:
            state = engine.open(drawn_terminals(rng, engine.network.n_vertices))
        except Unbounded:
            continue
        engine.solve(state)
        arrays = engine.export(state)
        assert state.near is None
        residual = engine.network.arc_capacity() - arrays["flow"].astype(np.int64)
        claimed = certify(engine.network, state.terminals, residual, state.excess, state.source_side)
        assert claimed.valid, f"seed {seed}: {claimed.failures}"
        assert claimed.value == state.value, f"seed {seed}"


def test_networks_in_which_a_look_does_not_end_are_solved_as_ever() -> None:
    edges = generate("grid", seed=1, rows=60, columns=60)
    engine = CpuEngine(Network(edges))
    state = engine.open(Terminals.of([0], [3599]))
    engine.solve(state)
    assert state.near is None, "the look has gone on for too long"
    engine = CpuEngine(Network(digraph()))
    wide = engine.open(Terminals.of([3, 4], [1500]))
    engine.solve(wide)
    assert wide.near is None, "it takes one source and one sink"


def test_a_cancelled_look_leaves_no_flow_behind() -> None:
    engine, control = CpuEngine(Network(digraph())), Control()
    state = engine.open(Terminals.of([3], [1500]))
    control.cancel()
    with pytest.raises(Cancelled):
        engine.solve(state, control)
    assert (state.near, state.solved) == (None, False)
    assert (engine._capacity == engine.network.arc_capacity()).all()
    assert engine.solve(state).value == engine.certificate(state).value


def test_marks_of_looks_begin_again_when_their_numbers_are_used_up() -> None:
    engine = CpuEngine(Network(digraph()))
    value = solved(engine, Terminals.of([3], [1500])).value
    desk = SCRATCH.desk(LARGE)
    desk.epoch = near.LAST_EPOCH
    desk.node[:] = 2
    assert solved(engine, Terminals.of([3], [1500])).value == value
    assert 0 < SCRATCH.desk(LARGE).epoch < near.LAST_EPOCH
