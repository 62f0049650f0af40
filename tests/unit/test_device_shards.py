"""Updates of a network over several devices when one of them is full, without any: `gpu_engine.cuda.sharded.engine` is
read anew beside stand-ins for what needs CuPy, and shards that add up what they are told stand for those on devices."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_engine.errors import OutOfMemory
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from tests.graphs import diamond
from tests.stand_ins import read_beside
from tests.unit.test_device_full import Full


class Devices:
    """What is on them: the changes that each flow state has, and in what order things were done."""

    def __init__(self) -> None:
        self.free = 100
        """So many updates of a state there is memory for."""
        self.done: list[str] = []

    def shards(self, topology: object, columns: list[int]) -> "Shards":
        return Shards(self, columns)

    def call(self, method: Any) -> Any:
        """As `gpu_engine.cuda.memory.device_call`: what fails for want of memory is made once more."""

        def guarded(*given: Any) -> Any:
            for _ in range(2):
                try:
                    return method(*given)
                except Full:
                    continue
            raise OutOfMemory("the device is full")

        return guarded


class Shards:
    def __init__(self, devices: Devices, columns: list[int]) -> None:
        self.devices, self.columns = devices, columns
        self.devices.free -= 1
        if self.devices.free < 0:
            raise Full

    def zero_flow(self, *, sum_pairs: bool) -> None:
        self.devices.done.append("zero_flow")

    def update(self, edges: Any, **how: bool) -> dict[str, int]:
        self.columns += edges.change.tolist()
        return dict.fromkeys(("gained", "lacking", "holding", "overflow"), 0)


class Places:
    def __init__(self, devices: Devices, numbers: list[int]) -> None:
        self.devices, self.numbers = devices, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def barrier(self) -> None:
        self.devices.done.append("barrier")

    def trim(self) -> None:
        pass

    def wait(self) -> None:
        pass


class Edges:
    def __init__(self, topology: object, arcs: object, change: Any, both: object) -> None:
        self.change = change


class State(SimpleNamespace):
    """Solved, and on the devices."""

    def __init__(self, **own: Any) -> None:
        super().__init__(**own, columns=[], solved=True, touched=False, value=0, lacking=0, holding=0)

    def forget_columns(self) -> None:
        self.columns, self.solved = None, False


@pytest.fixture
def devices() -> Devices:
    return Devices()


@pytest.fixture
def sharded(monkeypatch: pytest.MonkeyPatch, devices: Devices) -> Any:
    stand_ins = {
        "launch.arrays": {"residuals": object},
        "memory": {"DeviceFull": Full, "device_call": devices.call},
        "sharded.certify": {"certify": object},
        "sharded.drain": {"Stopped": object},
        "sharded.launch": {"Shards": devices.shards, "ChangedEdges": Edges},
        "sharded.places": {"Places": lambda numbers: Places(devices, numbers)},
        "sharded.solving": {"settle": object, "start_from_zero": object},
        "sharded.state": {"ShardedFlowState": State, "Columns": SimpleNamespace(of=lambda *_: [])},
        "sharded.topology": {
            "Topology": object,
            "topology_of": lambda *_: "on the devices",
            "arcs_of": lambda *_: None,
        },
    }
    return read_beside(monkeypatch, "sharded.engine", stand_ins)


@pytest.fixture
def engine(sharded: Any, devices: Devices) -> Any:
    """It has two flow states on the devices."""
    engine = sharded.ShardedEngine(Network(diamond().edges), [0, 1])
    for ends in ([0], [3]), ([1], [3]):
        engine.open(Terminals.of(*ends))
    engine._topology = "on the devices"
    return engine


def test_an_update_is_made_once_in_each_state(engine: Any) -> None:
    before = engine.network.capacity[0]
    engine.update(np.array([0]), before[None] + 5)
    assert [state.columns for state in engine._states] == [[5], [5]]
    assert all(state.solved and state.touched for state in engine._states)


@pytest.mark.parametrize("free", [0, 1])
def test_a_device_that_is_full_has_no_part_of_an_update_twice(engine: Any, devices: Devices, free: int) -> None:
    """The first state has it by then, and the network too: it is laid out anew, and the update is made."""
    before, devices.free = engine.network.capacity[0], free
    engine.update(np.array([0]), before[None] + 5)
    assert engine.network.capacity[0] == before + 5
    assert engine._topology is None
    assert [(state.columns, state.solved) for state in engine._states] == [(None, False)] * 2


def test_pair_sums_wait_for_the_capacities_of_other_shards(engine: Any, devices: Devices) -> None:
    engine._forget()
    engine._columns(engine._states[0])
    assert devices.done.index("barrier") < devices.done.index("zero_flow")
