"""How kernels that wait for each other are launched, without devices: `gpu_engine.cuda.sharded.drain` is read anew
beside stand-ins for what needs CuPy."""

from contextlib import nullcontext
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_engine.cuda.layout import GIVEN_UP, STOP
from tests.stand_ins import read_beside

ONE_BY_ONE = Lock()


@pytest.fixture
def drains(monkeypatch: pytest.MonkeyPatch) -> Any:
    stand_ins = {
        "launch.words": {"Word": object},
        "launch.drain": {"PATIENCE": 1.0, "ROUND_LIMIT": 1},
        "memory": {"ONE_BY_ONE": ONE_BY_ONE},
        "module": {"kernel": object},
        "sharded.launch": {"Shards": object},
        "sharded.places": {"Place": object},
        "waiting": {"wait": object},
    }
    return read_beside(monkeypatch, "sharded.drain", stand_ins)


def test_nobody_gives_memory_back_before_all_kernels_of_a_drain_are_launched(drains: Any) -> None:
    """CUDA would wait for the first one, which waits for the second one, and let nobody launch that."""
    launched: list[bool] = []
    kernels = object.__new__(drains.Kernels)
    kernels._shards = SimpleNamespace(places=SimpleNamespace(barrier=lambda: None))
    kernels._places = [SimpleNamespace(on=nullcontext)] * 2
    kernels._kernels = [(lambda *_: launched.append(ONE_BY_ONE.locked()), 1)] * 2
    kernels._arguments = lambda rank: rank
    kernels.start()
    assert launched == [True, True]
    assert not ONE_BY_ONE.locked()


class Told:
    """The memory in which a device is told something, or which has failed."""

    def __init__(self, *, fails: bool = False) -> None:
        self.words: list[int] = []
        self.fails = fails

    def write(self, word: int) -> None:
        if self.fails:
            raise Failed
        self.words.append(word)


class Failed(RuntimeError):
    """As CUDARuntimeError."""


def test_one_device_is_told_to_stop_and_all_that_are_well_to_give_up(drains: Any) -> None:
    """The one that is told to stop tells the others. Those that wait for one that failed are told one by one."""
    drains.cupy.cuda = SimpleNamespace(runtime=SimpleNamespace(CUDARuntimeError=Failed))
    kernels = object.__new__(drains.Kernels)
    kernels._words = told = [Told(), Told(fails=True), Told()]
    kernels.cancel()
    assert [each.words for each in told] == [[STOP], [], []]
    kernels.give_up()
    assert [each.words for each in told] == [[STOP, GIVEN_UP], [], [GIVEN_UP]]
