"""Forks of flow states against OR-tools: overlays one after the other, and the state they come from untouched."""

import numpy as np
import pytest

from gpu_engine.cpu.engine import CpuEngine, fork_on_host
from gpu_engine.engine import FlowState, Fork
from gpu_engine.errors import Unbounded
from gpu_engine.footprint import Room, unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE
from tests.cases import cases
from tests.congruence import check_flow_and_cut, check_forks


@pytest.mark.parametrize("first", range(0, cases(1000), 50))
def test_overlays_agree_with_ortools_and_change_nothing_else(first: int) -> None:
    for seed in range(first, first + 50):
        check_forks(CpuEngine, seed, overlays=6)


class Elsewhere(CpuEngine):
    """Its states are forked as those of an engine on a device are."""

    def fork(self, state: FlowState, room: Room = unlimited, *, on_host: bool = True) -> Fork:
        return fork_on_host(self, self._own(state).terminals, state, room)


@pytest.mark.parametrize("first", range(0, cases(200), 50))
def test_overlays_on_the_host_agree_as_well(first: int) -> None:
    for seed in range(first, first + 50):
        check_forks(Elsewhere, seed, overlays=6)


def test_a_fork_outlives_a_thousand_overlays() -> None:
    for seed in range(900_000, 900_003):
        check_forks(CpuEngine, seed, overlays=1000, largest=60)


def test_a_refused_overlay_leaves_nothing_behind() -> None:
    """Between the other terminals only unlimited edges lie, which is found out after the change was made."""
    edges = EdgeList(4, np.arange(3, dtype=np.int32), np.arange(1, 4, dtype=np.int32), np.array([5, INFINITE, 5]))
    engine = CpuEngine(Network(edges))
    state = engine.open(Terminals.of([0], [3]))
    engine.solve(state)
    fork = engine.fork(state)
    with pytest.raises(Unbounded):
        fork.overlay(np.array([0]), np.array([1]), Terminals.of([1], [2]))
    assert fork.engine.network.capacity[0] == 5
    assert fork.engine.solve(fork.overlay(np.array([2]), np.array([2]))).value == 2


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_terminal_that_passed_flow_on_and_is_without_a_cap_now_holds_none_back(mirrored: bool) -> None:
    """The middle vertex of a path keeps 3 of the 5 that come and passes 2 on, so that on balance it takes. With one
    unit at the beginning, all of it may stay there, and nothing may come out of it any more."""
    tail, head = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
    if mirrored:
        tail, head = head, tail
    engine = CpuEngine(Network(EdgeList(3, tail, head, np.array([5, 2]))))

    def terminals(end: int, middle: int) -> Terminals:
        one, two, caps, caps_of_two = [0], [1, 2], [end], [middle, INFINITE]
        return Terminals.of(two, one, caps_of_two, caps) if mirrored else Terminals.of(one, two, caps, caps_of_two)

    state = engine.open(terminals(INFINITE, 3))
    assert engine.solve(state).value == 5
    fork = engine.fork(state)
    overlay = fork.overlay(np.empty(0, np.int64), np.empty(0, np.int64), terminals(1, INFINITE))
    assert fork.engine.solve(overlay).value == 1
    check_flow_and_cut(fork.engine, overlay, 1, "a path")
