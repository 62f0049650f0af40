"""What every engine must do on a random network: agree with the judge after every update."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from gpu_engine.checks.flows import prove_flow
from gpu_engine.engine import Engine, FlowState, Mode
from gpu_engine.errors import Unbounded
from gpu_engine.networks.free import free_vertices
from gpu_engine.networks.network import Network
from tests.oracle import maximum_flow
from tests.random_networks import random_caps, random_edges, random_terminals, random_update


def check_sequence(make_engine: Callable[[Network], Engine], seed: int, steps: int, largest: int = 30) -> None:
    """Solve, compare with the judge, update, and again; what fails names its seed and step."""
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, largest)
    terminals = random_terminals(rng, edges.n_vertices)
    network = Network(edges)
    engine = make_engine(network)
    try:
        state = engine.open(terminals)
    except Unbounded:
        return
    for step in range(steps):
        at = f"seed {seed} step {step}"
        report = engine.solve(state, cold=rng.random() < 0.05)
        value = maximum_flow(edges, network.capacity, terminals)
        certificate = engine.certificate(state)
        assert certificate.valid, f"{at}: {certificate.failures}"
        assert report.value == certificate.value == value, at
        assert engine.solve(state).mode is Mode.UNCHANGED, at
        if rng.random() < 0.3:
            check_flow_and_cut(engine, state, value, at)
        if network.n_edges == 0:
            return
        try:
            engine.update(*random_update(rng, network.capacity))
        except Unbounded:
            continue
        if rng.random() < 0.1:
            engine.solve(state)
            saved = engine.export(state)
            engine.close(state)
            state = engine.restore(terminals, saved)


def check_flow_and_cut(engine: Engine, state: FlowState, value: int, at: str) -> None:
    network, terminals = engine.network, state.terminals
    flow = engine.flow(state)
    proof = prove_flow(network, terminals, flow, acyclic=True)
    assert proof.failures == (), at
    assert prove_flow(network, terminals, engine.flow(state, acyclic=False)).failures == (), at
    assert proof.value == int(proof.supplied.sum()) == value, at
    assert engine.certificate(state).valid, at  # undisturbed
    nearest, farthest = engine.cut(state), engine.cut(state, near="sinks")
    assert (nearest.source_side <= farthest.source_side).all(), at
    for cut in (nearest, farthest):
        caps = sum(cap for v, cap in zip(terminals.sources, terminals.supply, strict=True) if not cut.source_side[v])
        caps += sum(cap for v, cap in zip(terminals.sinks, terminals.demand, strict=True) if cut.source_side[v])
        assert cut.value == int(network.capacity[cut.edges].sum()) + int(caps) == value, at
        paid = terminals.paid_by(cut.source_side)
        assert int(paid.supply.sum() + paid.demand.sum()) == caps, at


def check_forks(make_engine: Callable[[Network], Engine], seed: int, overlays: int, largest: int = 30) -> None:
    """Overlays on a fork agree with the judge, some for other terminals and some given up; meanwhile the engine that
    the fork came from is updated."""
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, largest)
    terminals = random_terminals(rng, edges.n_vertices)
    engine = make_engine(Network(edges))
    try:
        state = engine.open(terminals)
    except Unbounded:
        return
    value = engine.solve(state).value
    assert engine.certificate(state).valid
    fork, base = engine.fork(state), engine.network.capacity.copy()
    rows, capacity = np.empty(0, np.int64), np.empty(0, np.int64)
    for step in range(overlays):
        at = f"seed {seed} step {step}"
        if edges.n_edges:
            rows, capacity = random_update(rng, base)
        other = None
        if (kind := rng.random()) < 0.2:
            other = random_terminals(rng, edges.n_vertices)
        elif kind < 0.5:
            other = random_caps(rng, terminals)
        under = base.copy()
        under[rows] = capacity
        try:
            tried = fork.overlay(rows, capacity, other)
        except Unbounded:
            fork.drop()
            assert (fork.engine.network.capacity == base).all(), at
            with pytest.raises(Unbounded):
                free_vertices(Network(replace(edges, capacity=under)), other or terminals)
            continue
        if rng.random() < 0.1:
            continue  # given up before it was solved
        report = fork.engine.solve(tried)
        proof = fork.engine.certificate(tried, complete=rng.random() < 0.3)
        assert (fork.engine.network.capacity == under).all(), at
        wanted = maximum_flow(edges, under, other or terminals)
        assert proof.valid, f"{at}: {proof.failures}"
        assert report.value == proof.value == wanted, at
        if other is not None or rng.random() < 0.2:
            check_flow_and_cut(fork.engine, tried, wanted, at)
        if edges.n_edges and rng.random() < 0.2:
            with suppress(Unbounded):
                engine.update(*random_update(rng, engine.network.capacity))
    fork.drop()
    assert (fork.engine.network.capacity == base).all()
    tried = fork.overlay(rows[:0], capacity[:0])
    assert fork.engine.solve(tried).mode is Mode.UNCHANGED
    assert fork.engine.certificate(tried).value == value
    now = maximum_flow(edges, engine.network.capacity, terminals)
    assert engine.solve(state).value == engine.certificate(state).value == now
