"""The host's part of a drain on a device, without one: `gpu_engine.cuda.settling` is read anew beside stand-ins for
what needs CuPy, and drains that say what they are told stand for those on a device."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_engine.control import Control
from gpu_engine.cuda.layout import CANCELLED_DRAIN, ENDED_DRAIN, LEFT_DRAIN
from gpu_engine.errors import Cancelled
from gpu_engine.incremental import TooSlow
from tests.stand_ins import read_beside

TOPOLOGY = SimpleNamespace(n=4, n_arcs=6, row_offsets=None)


class Drains:
    """They end one after the other as ``script`` says, a list for each launch."""

    def __init__(self, script: list[list[int]]) -> None:
        self.script = script
        self.started: list[dict[str, bool]] = []
        self.went_on: list[dict[str, bool]] = []

    def start(self, _rows: object, _state: object, **how: bool) -> None:
        self.started.append(how)

    def go_on(self, _rows: object, _state: object, **how: bool) -> None:
        self.went_on.append(how)

    def results(self) -> list[dict[str, int]]:
        counted = {"pushes": 1, "relabels": 2, "global_relabels": 2, "arcs_scanned": 4, "rounds": 5, "levels": 10}
        return [{"status": status, "gained": 7, **counted} for status in self.script.pop(0)]


@pytest.fixture
def settling(monkeypatch: pytest.MonkeyPatch) -> Any:
    stand_ins = {
        "launch.arrays": {"Topology": object},
        "launch.drain": {"Drains": object},
        "state": {"CudaFlowState": object},
        "waiting": {"wait": object, "WORK": slice(Control.PUSHES, Control.PUSHES + 4)},
    }
    return read_beside(monkeypatch, "settling", stand_ins)


def a_state(*, solved: bool) -> SimpleNamespace:
    return SimpleNamespace(solved=solved, value=100, depth=0, holding=0)


def settled(
    settling: Any, state: SimpleNamespace, script: list[list[int]], sides: list[bool], *, in_time: bool = True
) -> tuple[Drains, Control, list[float]]:
    """The drains, the control and the limits in milliseconds that they were waited for with."""
    drains, control, limits = Drains(script), Control(), []
    settling.Drains = lambda *_: drains
    settling.wait = lambda _control, _drains, limit_ms: limits.append(limit_ms) or in_time
    settling.settle(TOPOLOGY, state, control, sides, 50.0 if state.solved else math.inf)
    return drains, control, limits


def test_what_is_left_is_gone_on_with_until_nothing_is(settling: Any) -> None:
    state = a_state(solved=True)
    script = [[ENDED_DRAIN, LEFT_DRAIN], [LEFT_DRAIN], [ENDED_DRAIN]]
    drains, control, limits = settled(settling, state, script, [True, False])
    assert [(how["deficits"], how["leaving"], how["trusting"]) for how in drains.started] == [
        (True, False, True),
        (False, True, True),
    ]
    assert len(drains.went_on) == 2
    assert state.value == 100 + 4 * 7
    assert control.progress() == {"pushes": 4, "relabels": 8, "global_relabels": 8, "arcs_scanned": 16}
    assert 50 >= limits[0] > limits[1] > limits[2], "one limit holds for all"
    assert state.depth == 0, "of a solve from zero alone"


def test_the_depth_is_that_of_the_first_drain_of_a_solve_from_zero(settling: Any) -> None:
    state = a_state(solved=False)
    settled(settling, state, [[LEFT_DRAIN], [ENDED_DRAIN]], [False])
    assert state.depth == 10 // 2


@pytest.mark.parametrize(("in_time", "error"), [(True, Cancelled), (False, TooSlow)])
@pytest.mark.parametrize("script", [[[CANCELLED_DRAIN, LEFT_DRAIN]], [[ENDED_DRAIN, LEFT_DRAIN], [CANCELLED_DRAIN]]])
def test_who_is_stopped_leaves_something_to_repair(
    settling: Any, script: list[list[int]], in_time: bool, error: type[Exception]
) -> None:
    state = a_state(solved=True)
    with pytest.raises(error):
        settled(settling, state, [list(ends) for ends in script], [True, False], in_time=in_time)
    assert state.holding == 1
