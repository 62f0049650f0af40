"""How the host waits for a solve on a device, on a CuPy that is not there: `gpu_engine.cuda.waiting` is read anew
beside a stand-in, and drains that count what they are told stand for those on a device."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_engine.control import WORK_DONE, Control
from tests.stand_ins import read_beside


class Drains:
    """They clear their records as they begin, and with them the first cancel; a later one ends them."""

    def __init__(self, cleared: int) -> None:
        self.cleared = cleared
        self.cancels = 0

    def cancel(self) -> None:
        self.cancels += 1

    def progress(self) -> NDArray[np.int64]:
        return np.zeros(len(WORK_DONE), np.int64)

    @property
    def done(self) -> bool:
        return self.cancels > self.cleared

    def record(self) -> None:
        pass


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Any:
    return read_beside(monkeypatch, "waiting")


def waited(waiting: Any, drains: Drains, control: Control, limit_ms: float) -> bool:
    waiting.cupy.cuda = SimpleNamespace(Event=lambda **_: drains)
    in_time: bool = waiting.wait(control, drains, limit_ms)
    return in_time


@pytest.mark.timeout(60)
@pytest.mark.parametrize("cleared", [0, 1, 2])
def test_a_cancel_is_sent_until_the_drains_end(waiting: Any, cleared: int) -> None:
    control, drains = Control(), Drains(cleared)
    control.cancel()
    assert waited(waiting, drains, control, float("inf")), "that was a cancel, and no lack of time"
    assert drains.cancels == cleared + 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("cleared", [0, 1])
def test_so_is_the_end_of_the_time(waiting: Any, cleared: int) -> None:
    drains = Drains(cleared)
    assert not waited(waiting, drains, Control(), 0.0)
    assert drains.cancels == cleared + 1
