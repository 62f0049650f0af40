"""How kernels that wait for each other are launched, without devices: `gpu_engine.cuda.sharded.drain` is read anew
beside stand-ins for what needs CuPy."""

import importlib.util
import sys
from contextlib import nullcontext
from pathlib import Path
from threading import Lock
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import gpu_engine

ONE_BY_ONE = Lock()


@pytest.fixture
def drains(monkeypatch: pytest.MonkeyPatch) -> Any:
    names = {
        "launch.drain": {"PATIENCE": 1.0, "ROUND_LIMIT": 1},
        "memory": {"ONE_BY_ONE": ONE_BY_ONE},
        "module": {"kernel": object},
        "sharded.launch": {"Shards": object},
        "sharded.places": {"Place": object},
        "waiting": {"wait": object},
    }
    for name, members in names.items():
        stand_in: Any = ModuleType(f"gpu_engine.cuda.{name}")
        vars(stand_in).update(members)
        monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    path = Path(gpu_engine.__file__).parent / "cuda" / "sharded" / "drain.py"
    spec = importlib.util.spec_from_file_location("drain_beside_stand_ins", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
