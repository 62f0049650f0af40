"""Updates of more than half of all edges: all flows are solved from zero after them, and are right."""

import numpy as np
import pytest

from gpu_engine.cpu.engine import ANEW, LEAST_ANEW, CpuEngine
from gpu_engine.engine import Mode
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import EdgeArray, UnitArray

N_VERTICES, N_EDGES = 1500, 2 * LEAST_ANEW
MOST = N_EDGES // ANEW + 1


def a_network(seed: int, capacity: UnitArray | None = None) -> Network:
    rng, n = np.random.default_rng(seed), N_VERTICES
    tail, head = (rng.integers(0, n - 1, N_EDGES).astype(np.int32) for _ in range(2))
    tail[::1000], head[::1000] = n - 1, 1  # all that leaves the last vertex
    drawn = rng.integers(0, 50, N_EDGES)
    return Network(EdgeList(n, tail, head, drawn if capacity is None else capacity))


TERMINALS = (Terminals.of([N_VERTICES - 1], [1]), Terminals.of(np.arange(2, 40), np.arange(40, 90)))
"""The first is found by a look around its ends, so its flow is a list until an update touches it."""


def an_update(seed: int, size: int) -> tuple[EdgeArray, UnitArray]:
    rng = np.random.default_rng([seed, size])
    return rng.choice(N_EDGES, size, replace=False), rng.integers(0, 80, size)


@pytest.mark.parametrize("size", [1, MOST - 1, MOST, N_EDGES])
def test_values_are_those_of_a_new_network(size: int) -> None:
    for seed in range(3):
        engine = CpuEngine(a_network(seed))
        states = [engine.open(terminals) for terminals in TERMINALS]
        for state in states:
            engine.solve(state)
        for turn in range(3):
            engine.update(*an_update(seed + 100 * turn, size))
            anew = CpuEngine(a_network(seed, np.array(engine.network.capacity)))
            for state, terminals in zip(states, TERMINALS, strict=True):
                report = engine.solve(state)
                assert report.value == anew.solve(anew.open(terminals)).value, seed
                assert (report.mode is Mode.COLD) or size < MOST
                assert engine.certificate(state, complete=False).valid
                assert engine.solve(state).mode is Mode.UNCHANGED


def test_a_small_update_comes_before_the_solve() -> None:
    for seed in range(3):
        engine = CpuEngine(a_network(seed))
        states = [engine.open(terminals) for terminals in TERMINALS]
        for state in states:
            engine.solve(state)
        engine.certificate(states[1])
        assert (bool(states[0].near), bool(states[1].audit)) == (True, True)
        engine.update(*an_update(seed, MOST))
        assert [(state.audit, state.near) for state in states] == 2 * [(None, None)]  # they are of another flow
        engine.update(*an_update(seed, 3))
        anew = CpuEngine(a_network(seed, np.array(engine.network.capacity)))
        for state, terminals in zip(states, TERMINALS, strict=True):
            assert engine.solve(state).value == anew.solve(anew.open(terminals)).value, seed


def test_a_fork_is_as_before_once_such_an_overlay_is_dropped() -> None:
    engine = CpuEngine(a_network(7))
    state = engine.open(TERMINALS[1])
    value = engine.solve(state).value
    fork = engine.fork(state)
    large, small = an_update(7, MOST), an_update(7, 1)
    fork.overlay(*large)  # not solved before it is undone
    for change in (small, large, small):
        anew = CpuEngine(engine.network.fork())
        anew.update(*change)
        assert fork.engine.solve(fork.overlay(*change)).value == anew.solve(anew.open(TERMINALS[1])).value
    fork.drop()
    assert engine.solve(state).value == value
