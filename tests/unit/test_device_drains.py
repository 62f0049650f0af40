"""How kernels that wait for each other are launched, without devices: `gpu_engine.cuda.sharded.drain` is read anew
beside stand-ins for what needs CuPy."""

from contextlib import nullcontext
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

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
