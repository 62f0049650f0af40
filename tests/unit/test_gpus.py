"""One worker for each GPU that is asked for, and clear words where there is none. This machine needs to have none."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpu_engine import devices
from service.beginning import REFUSED
from service.host import gpus
from service.host.gpus import NO_GPU, NoSuchGpu, WorkerPlan, check_engine, choose, plan
from service.host.supervisor import CannotServe
from service.host.workers import named
from service.settings import Settings

FOUR = ["H200"] * 4


def four() -> list[str]:
    return FOUR


@pytest.mark.parametrize(
    ("wanted", "numbers"), [("all", [0, 1, 2, 3]), ("1", [0]), ("4", [0, 1, 2, 3]), ("0,2", [0, 2]), ("3,", [3])]
)
def test_which_gpus_are_meant(wanted: str, numbers: list[int]) -> None:
    assert choose(wanted, FOUR) == numbers


@pytest.mark.parametrize(
    ("wanted", "there", "said"),
    [
        ("all", [], NO_GPU),
        ("5", FOUR, "not so many, but 0 (H200), 1 (H200)"),
        ("0,4", FOUR, "there is no GPU 4"),
        ("1,2,1", FOUR, "GPU 1 is named twice"),
        ("0", FOUR, "say all"),
        ("-1", FOUR, "say all"),
        ("1, 2", FOUR, "say all"),
        ("both", FOUR, "say all"),
        ("", FOUR, "say all"),
    ],
)
def test_what_is_not_there_is_refused(wanted: str, there: list[str], said: str) -> None:
    with pytest.raises(NoSuchGpu) as refused:
        choose(wanted, there)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_workers_are_named_by_their_gpus_and_those_without_one_stay_on_the_host() -> None:
    assert plan(Settings(workers=2), list_devices=four) == [WorkerPlan("cpu-0"), WorkerPlan("cpu-1")]
    assert [w.arguments for w in plan(Settings(gpus="0,2"), list_devices=four)] == [
        ["--name", "gpu-0", "--gpu", "0"],
        ["--name", "gpu-2", "--gpu", "2"],
    ]
    *bound, beside = plan(Settings(gpus="1", workers=1), list_devices=four)
    assert [worker.name for worker in bound] == ["gpu-0"]
    assert beside == WorkerPlan("cpu-0", None, {"HEADRACE_ENGINE": "cpu"})
    with pytest.raises(NoSuchGpu, match="HEADRACE_ENGINE is cpu"):
        plan(Settings(gpus="all", engine="cpu"), list_devices=four)


def test_one_worker_has_all_gpus_of_an_engine_for_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(devices.VISIBLE, raising=False)
    peers = Settings(gpus="3,1", engine="cuda-peers")
    assert plan(peers, list_devices=four) == [WorkerPlan("gpu-3", environment={devices.VISIBLE: "3,1"})]
    monkeypatch.setenv(devices.VISIBLE, "7,5,2,0")
    assert plan(peers, list_devices=four) == [WorkerPlan("gpu-3", environment={devices.VISIBLE: "0,5"})]
    *_, beside = plan(Settings(gpus="all", engine="cuda-peers", workers=1), list_devices=four)
    assert (beside.name, beside.environment["HEADRACE_ENGINE"]) == ("cpu-0", "cpu")


def test_workers_of_another_machine_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    redis_url = "redis://somewhere"
    monkeypatch.setattr(gpus.plan, "__defaults__", ("", four))
    assert named(Settings(redis_url=redis_url), "pod-3") == [WorkerPlan("pod-3")]
    assert [worker.name for worker in named(Settings(redis_url=redis_url, gpus="2"), "pod-3")] == [
        "pod-3-gpu-0",
        "pod-3-gpu-1",
    ]
    for settings, name in ((Settings(redis_url=redis_url), "a name"), (Settings(redis_url=None), "pod-3")):
        with pytest.raises(CannotServe):
            named(settings, name)


@pytest.mark.parametrize(
    ("before", "number", "after"),
    [({}, 2, "2"), ({devices.VISIBLE: "5, 7"}, 1, "7"), ({devices.VISIBLE: "GPU-ab,GPU-cd"}, 0, "GPU-ab")]
    + [({devices.VISIBLE: hidden}, 1, "-1") for hidden in ("5", "", "-1")],
)
def test_a_process_sees_its_own_device_alone(before: dict[str, str], number: int, after: str) -> None:
    devices.bind(number, before)
    assert before == {devices.VISIBLE: after}


@pytest.mark.parametrize("count", [0, 2])
def test_devices_are_listed_as_cuda_counts_them(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class CUDARuntimeError(RuntimeError): ...

    def get_count() -> int:
        if not count:
            raise CUDARuntimeError("no driver")
        return count

    properties: Callable[[int], dict[str, bytes]] = lambda number: {"name": b"H%d" % number}  # noqa: E731
    runtime = SimpleNamespace(
        getDeviceCount=get_count, getDeviceProperties=properties, CUDARuntimeError=CUDARuntimeError
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupy.cuda", SimpleNamespace(runtime=runtime))
    assert devices.devices() == [f"H{number}" for number in range(count)]


@pytest.mark.parametrize(
    ("engine", "faulty", "told"),
    [("cuda", None, ""), ("cuda", 0, "fault of 0"), ("auto", 1, ""), ("cuda-peers", 1, "fault of 1")],
)
@pytest.mark.parametrize("full", [None, 0])
def test_a_device_that_does_nothing_any_more_is_found(
    engine: str, faulty: int | None, told: str, full: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the devices that this engine uses: the current one, or all. One that is full is well."""
    current = [0]

    class Full(RuntimeError):
        status = 2

    class Device(AbstractContextManager[None]):
        def __init__(self, number: int) -> None:
            self.number = number

        def __enter__(self) -> None:
            current.append(self.number)

        def __exit__(self, *given: object) -> None:
            current.pop()

    def stream(*, non_blocking: bool) -> SimpleNamespace:
        assert non_blocking  # it waits for nothing else
        if current[-1] == faulty:
            raise RuntimeError(f"fault of {faulty}")
        if current[-1] == full:
            raise Full("cudaErrorMemoryAllocation: out of memory")
        return SimpleNamespace(synchronize=lambda: None)

    runtime = SimpleNamespace(getDeviceCount=lambda: 2, getDevice=lambda: current[-1])
    cuda = SimpleNamespace(runtime=runtime, Device=Device, Stream=stream)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    assert devices.device_fault(engine) == told
    assert current == [0]


def test_without_cupy_there_are_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy.cuda", None)
    assert devices.devices() == []


@pytest.mark.parametrize(
    ("engine", "lacking"),
    [("cuda", devices.NO_CUPY), ("cuda-peers", devices.NO_DEVICE), ("cuda:ecl", devices.NO_DEVICE)],
)
def test_an_engine_that_cannot_be_had_is_refused(engine: str, lacking: str) -> None:
    with pytest.raises(CannotServe) as refused:
        check_engine(Settings(engine=engine), lambda: lacking)
    assert f"HEADRACE_ENGINE is {engine}: {lacking}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_engine_that_can_be_had_is_not_refused() -> None:
    for engine in ("cuda", "cuda:ecl", "cuda-peers"):
        check_engine(Settings(engine=engine), lambda: "")
    for engine in ("auto", "cpu"):
        check_engine(Settings(engine=engine), lambda: devices.NO_CUPY)


def test_a_worker_says_in_one_line_which_presets_there_are() -> None:
    environment = os.environ | {"HEADRACE_ENGINE": "cuda:nope"}
    command = [sys.executable, "-m", "service.worker", "--name", "w"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (REFUSED, 1)
    assert "HEADRACE_ENGINE is cuda:nope: no preset 'nope'; there are default, " in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("service.cli", "serve", "--data-dir", "data", "--port", "0"),
        ("service.cli", "worker", "--redis-url", "redis://127.0.0.1:1"),
        ("service.worker", "--name", "w"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_it_is_refused_in_one_line_before_anything_is_started(command: tuple[str, ...], tmp_path: Path) -> None:
    """It was said by the tracebacks of five workers."""
    environment = os.environ | {"HEADRACE_ENGINE": "cuda", devices.VISIBLE: "-1"}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    status = REFUSED if command[0] == "service.worker" else 1
    assert (done.returncode, done.stdout, [*tmp_path.iterdir()]) == (status, "", [])
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("headrace: HEADRACE_ENGINE is cuda: ")
