"""A worker whose device does nothing any more: it ends, and the next process answers. The device is a stand-in."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import FlowState, SolveReport
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from service.protocol import Kind, MaxFlowArgs, Operation, PatchArgs, WatchArgs
from service.settings import Settings
from service.store.feed.record import VALUE_CHANGED
from service.store.keys import Keys
from service.worker import process, starting
from service.worker.process import DEVICE_LOST, Worker
from tests.graphs import diamond
from tests.heartbeats import forked
from tests.service_fixtures import Caller, StartWorker, result
from tests.serving import PATIENCE_S, eventually

FAULT = "cudaErrorIllegalAddress: an illegal memory access was encountered"


class Device:
    """What the engines below solve on."""

    def __init__(self) -> None:
        self.is_well, self.fails = True, False

    def fault(self, choice: str) -> str:
        del choice
        return "" if self.is_well else FAULT


def engine_on(device: Device, *, for_good: bool) -> type[CpuEngine]:
    """As an engine on a device, whose solves fail once the device does, for good or not."""

    class OnDevice(CpuEngine):
        def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
            if not device.fails:
                return super().solve(state, control, cold=cold)
            device.is_well = not for_good
            raise RuntimeError(FAULT)

    return OnDevice


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    device = Device()
    monkeypatch.setattr(process, "device_label", lambda choice, number: "a GPU")
    monkeypatch.setattr(process, "device_fault", device.fault)
    return device


@pytest.fixture
def ended(settings: Settings, device: Device) -> Iterator[Callable[[bool], "Future[int]"]]:
    """Start a worker of failing engines; its exit status, once it has one."""
    started: list[Worker] = []

    def start(for_good: bool) -> "Future[int]":
        worker = Worker(settings, "w0", engine_on(device, for_good=for_good))
        started.append(worker)
        return pool.submit(worker.run)

    with forked(), ThreadPoolExecutor() as pool:
        yield start
        for worker in started:
            worker.stop()


def told(caller: Caller) -> list[dict[str, Any]]:
    """What the watches of the graph were told of their values."""
    events = [event for _, event in caller.run(caller.dispatcher.feed.after("g", "0-0", 100))]
    return [json.loads(event.data) for event in events if event.type == VALUE_CHANGED]


def test_what_a_lost_device_leaves_is_done_by_the_next_process(
    ended: Callable[[bool], "Future[int]"], device: Device, caller: Caller, start_worker: StartWorker
) -> None:
    status = ended(True)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    device.fails = True
    asked = [
        caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[0], sinks=[3])),
        caller.submit(Kind.PATCH, "g", PatchArgs(batch=[Operation(op="set", edges=[0], amounts=["1"])])),
        caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[0], sinks=[3])),
    ]
    assert status.result(PATIENCE_S) == DEVICE_LOST
    device.is_well = True
    start_worker("w0")
    replies = [caller.run(caller.dispatcher.wait(command, PATIENCE_S)) for command in asked]
    answers = [result(reply) for reply in replies if reply is not None]
    expected = CpuEngine(Network(diamond().edges))
    state = expected.open(Terminals.of([0], [3]))
    assert answers[0]["value"] == expected.solve(state).value
    expected.update(np.array([0]), np.array([1]))
    assert answers[1]["version"] == 2
    assert answers[2]["value"] == expected.solve(state).value


def test_a_failure_that_the_device_survives_is_told(
    ended: Callable[[bool], "Future[int]"], device: Device, caller: Caller
) -> None:
    status = ended(False)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    device.fails = True
    for _ in range(2):
        reply = caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[0], sinks=[3]))
        assert reply.problem is not None
        assert reply.problem.code == "engine_error"
        assert FAULT in reply.problem.detail
    assert not status.done()


def test_a_watch_is_told_nothing_of_a_lost_device(
    ended: Callable[[bool], "Future[int]"], device: Device, caller: Caller, start_worker: StartWorker
) -> None:
    """But by the next process what there is to see."""
    status = ended(True)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    caller.ask(Kind.WATCH, "g", WatchArgs(watch="w", sources=[0], sinks=[3]))
    device.fails = True
    caller.submit(Kind.PATCH, "g", PatchArgs(batch=[Operation(op="set", edges=[0], amounts=["1"])], solve="none"))
    assert status.result(PATIENCE_S) == DEVICE_LOST
    device.is_well = True
    start_worker("w0")
    eventually(lambda: bool(told(caller)))
    assert [(each["value"], each.get("error")) for each in told(caller)] == [(3, None)]


def test_a_device_that_nobody_asks_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, ended: Callable[[bool], "Future[int]"], device: Device, caller: Caller
) -> None:
    """Where two engines are tried, the other one answers, and no command ever fails."""
    monkeypatch.setattr(process, "LOOK_AT_DEVICE_S", 0.01)
    status = ended(True)
    caller.wait_ready()
    device.is_well = False
    assert status.result(PATIENCE_S) == DEVICE_LOST


def test_a_device_that_is_lost_from_the_beginning_is_no_worker(
    ended: Callable[[bool], "Future[int]"], device: Device, client: Any, keys: Keys
) -> None:
    """Who held its name, over and over, would keep others from its graphs."""
    device.is_well = False
    assert ended(True).result(PATIENCE_S) == DEVICE_LOST
    assert not client.exists(keys.lease("w0"))
    assert not client.hexists(keys.workers, "w0")


@pytest.mark.parametrize(
    ("engine", "gpu", "is_missing", "is_well", "instead"),
    [
        ("auto", None, False, False, "cpu"),
        ("auto", None, False, True, "auto"),
        ("auto", None, True, False, "auto"),
        ("auto", 2, False, False, "auto"),
        ("cuda", None, False, False, "cuda"),
    ],
)
def test_auto_does_without_a_device_that_is_lost_from_the_beginning(
    engine: str, gpu: int | None, is_missing: bool, is_well: bool, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "missing_device", lambda: "there is none" if is_missing else "")
    monkeypatch.setattr(starting, "device_fault", lambda choice: "" if is_well else FAULT)
    assert starting.without_lost_device(Settings(engine=engine), gpu).engine == instead
