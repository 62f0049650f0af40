"""How a cancel reaches pairs on a device, without one: `gpu_engine.cuda.pairs` is read anew beside stand-ins for what
needs CuPy, and a kernel that counts what it is told stands for one on a device."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import gpu_engine
from gpu_engine.control import Control
from gpu_engine.errors import Cancelled


class Kernel:
    """Its memory is cleared late, and the first cancels with it; a later one ends it, as does the last of its pairs."""

    def __init__(self, cleared: int, looks: int = 1 << 30) -> None:
        self.cleared, self.looks = cleared, looks
        self.cancels = 0

    def cancel(self) -> None:
        self.cancels += 1

    @property
    def done(self) -> bool:
        self.looks -= 1
        return self.cancels > self.cleared or self.looks < 0

    def record(self) -> None:
        pass

    def synchronize(self) -> None:
        assert self.done, "it would be waited for until all pairs are solved"


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> Any:
    names = {
        "launch.pairs": {"WARPS_OF_A_BLOCK": 4, "PairKernel": object, "warp_words": object},
        "memory": {"device_call": lambda call: call, "next_stream": object},
    }
    for name, members in names.items():
        stand_in: Any = ModuleType(f"gpu_engine.cuda.{name}")
        vars(stand_in).update(members)
        monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    monkeypatch.setitem(sys.modules, "cupy", ModuleType("cupy"))
    path = Path(gpu_engine.__file__).parent / "cuda" / "pairs.py"
    spec = importlib.util.spec_from_file_location("pairs_beside_stand_ins", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wait(pairs: Any, kernel: Kernel, control: Control) -> None:
    pairs.cupy.cuda = SimpleNamespace(Event=lambda **_: kernel)
    pairs.DeviceSeat._wait(None, kernel, control)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("cleared", [0, 1, 2])
def test_a_cancel_is_sent_until_the_pairs_end(pairs: Any, cleared: int) -> None:
    control, kernel = Control(), Kernel(cleared)
    control.cancel()
    with pytest.raises(Cancelled):
        wait(pairs, kernel, control)
    assert kernel.cancels == cleared + 1


@pytest.mark.timeout(60)
def test_pairs_that_nobody_cancels_end_by_themselves(pairs: Any) -> None:
    kernel = Kernel(0, looks=3)
    wait(pairs, kernel, Control())
    assert kernel.cancels == 0
