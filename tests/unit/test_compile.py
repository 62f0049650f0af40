"""Two processes compile the kernels: the second one only where there is something to compile, and a core for it."""

import gc
import os
import threading
import time
from pathlib import Path

import pytest

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.kernels.cache import VARIABLE
from gpu_engine.kernels.compiling import Compiling
from service.worker import compile as compiling
from service.worker.compile import Second, Turn, compile_kernels
from tests.serving import PATIENCE_S

TWO_CORES = {0, 1}


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: TWO_CORES)


def test_kernels_of_the_second_process_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))  # nothing is cached there
    known: set[str] = set()
    with Second() as second:
        second.begin(known)
        process = second._process
        second.begin(known)
        assert second._process is process is not None
        ends_at = time.monotonic() + PATIENCE_S
        while not known and time.monotonic() < ends_at:
            time.sleep(0.05)
        heard = set(known)  # others are added meanwhile
        assert all(kernel.startswith("gpu_engine.") for kernel in heard)
        assert heard
        assert process.poll() is None
    assert process.poll() is not None


def test_one_core_has_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    with Second() as second:
        second.begin(set())
        assert second._process is None
        second.join()


def test_a_second_process_that_fails_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling.sys, "executable", "/bin/false")
    known: set[str] = set()
    with Second() as second:
        second.begin(known)
        second.join()
    assert known == set()


def test_there_is_none_where_all_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm-up before the tests filled the cache, or the first of these two calls does."""
    heard: list[Compiling] = []
    thresholds = gc.get_threshold()
    compile_kernels(CpuEngine, "cpu", heard.append)
    assert gc.get_threshold() == thresholds
    heard.clear()
    monkeypatch.setattr(compiling.subprocess, "Popen", None)
    assert compile_kernels(CpuEngine, "cpu", heard.append) == "cpu"
    assert heard == []


def test_who_starts_beside_another_waits_for_it(tmp_path: Path) -> None:
    first, second = Turn(tmp_path / "cache"), Turn(tmp_path / "cache")
    assert first.take()
    threading.Timer(0.3, first.give_back).start()
    assert not second.take()
    third, taken = Turn(tmp_path / "cache"), list[bool]()
    waiting = threading.Thread(target=lambda: taken.append(third.take()))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()  # the second one has it now
    second.give_back()
    waiting.join(60)
    assert taken == [False]
    third.give_back()
    assert first.take()
    first.give_back()


def test_a_cache_that_cannot_be_written_keeps_nobody_waiting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    turn = Turn(tmp_path / "file")
    assert turn.take()
    turn.give_back()
