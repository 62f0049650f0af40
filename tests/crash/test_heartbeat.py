"""Whom the lease stays with: a worker that is busy keeps it, one that is dead, stopped or hung loses it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from service.worker.membership import heartbeat
from service.worker.membership.heartbeat import BEATS_PER_LEASE, HUNG_S, NAME_TAKEN, Life
from tests.serving import eventually

LEASE_S = 1.0
SLACK_S = 4.0
"""A busy machine starts processes late."""

WORKER = """
import ctypes, sys, threading
from gpu_engine.cpu.engine import CpuEngine
from service.settings import Settings
from service.worker.process import Worker
worker = Worker(Settings(), "w0", CpuEngine)
def obey():
    for line in sys.stdin:
        if line == "busy\\n":
            for _ in range(2):
                sum(range(10**8))  # one call of C, which holds the interpreter's lock
            print("done", flush=True)
        if line == "hang\\n":
            ctypes.PyDLL(None).sleep(1000)  # the same, but it does nothing
    worker.stop()
threading.Thread(target=obey, daemon=True).start()
sys.exit(worker.run())
"""


class Shown:
    """A worker process of its own, told by lines what to do."""

    def __init__(self, settings: Settings) -> None:
        self.keys = Keys(settings.redis_prefix)
        self.redis: Any = connect(settings)
        environment = {
            "HEADRACE_REDIS_URL": settings.redis_location,
            "HEADRACE_REDIS_PREFIX": settings.redis_prefix,
            "HEADRACE_LEASE_S": str(LEASE_S),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def holder(self) -> bytes | None:
        found: bytes | None = self.redis.get(self.keys.lease("w0"))
        return found

    def heartbeats(self) -> list[int]:
        """Process ids of its children."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for thread in threads for pid in thread.read_text().split()]

    def is_ready(self) -> bool:
        return b'"ready":true' in (self.redis.hget(self.keys.workers, "w0") or b"") and len(self.heartbeats()) == 1


@contextmanager
def started(settings: Settings) -> Iterator[Shown]:
    shown = Shown(settings)
    try:
        eventually(shown.is_ready)
        time.sleep(LEASE_S)  # its heartbeat process has begun
        yield shown
    finally:
        shown.process.kill()
        shown.process.communicate()
        shown.redis.close()


@pytest.fixture
def shown(settings: Settings) -> Iterator[Shown]:
    with started(settings) as process:
        yield process


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return heartbeat.running(pid)[0] == "Z"  # its parent is dead, and whoever inherited it has not looked yet


def seconds_until(holds: Callable[[], bool]) -> float:
    began = time.monotonic()
    eventually(holds)
    return time.monotonic() - began


def test_a_worker_whose_interpreter_is_busy_keeps_its_lease(shown: Shown) -> None:
    """Found by attack: an answer of 8 million rows silenced the heartbeat for 5.6 s, and others were refused."""
    token, began, silent_s = shown.holder(), time.monotonic(), 0.0
    shown.say("busy")
    assert shown.process.stdout is not None
    os.set_blocking(shown.process.stdout.fileno(), False)
    while shown.process.stdout.readline() != "done\n":
        assert shown.holder() == token is not None
        time.sleep(0.01)
        report = shown.redis.hget(shown.keys.workers, "w0")
        beat_at = float(report.partition(b'"beat_at":')[2].partition(b",")[0])
        silent_s = max(silent_s, time.time() - beat_at)
    assert time.monotonic() - began > LEASE_S
    assert silent_s > LEASE_S, "nothing was shown: its own heartbeat went on"


@pytest.mark.parametrize("how", ["kill", "stop", "hang"])
def test_a_worker_that_does_nothing_any_more_loses_its_lease(shown: Shown, how: str) -> None:
    """At the latest a lease after its last sign of life, and half of one if it was not the kernel that stopped it."""
    (beside,) = shown.heartbeats()
    if how == "hang":
        shown.say("hang")
    else:
        shown.process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)
    assert seconds_until(lambda: shown.holder() is None) < 2 * LEASE_S + SLACK_S
    if how == "kill":
        assert seconds_until(lambda: is_gone(beside)) < SLACK_S
    if how == "stop":
        shown.process.send_signal(signal.SIGCONT)
        eventually(lambda: shown.holder() is not None)


def test_a_heartbeat_process_that_ends_is_replaced(shown: Shown) -> None:
    token = shown.holder()
    (before,) = shown.heartbeats()
    os.kill(before, signal.SIGKILL)
    eventually(lambda: bool(set(shown.heartbeats()) - {before}))
    time.sleep(2 * LEASE_S)
    assert shown.holder() == token
    assert len(shown.heartbeats()) == 1


def test_ctrl_c_at_a_terminal_ends_a_heartbeat_process_with_its_worker_alone(shown: Shown) -> None:
    """It reaches all processes there; this one told of it by a traceback."""
    before = shown.heartbeats()
    os.kill(before[0], signal.SIGINT)
    time.sleep(LEASE_S)
    assert shown.heartbeats() == before


def test_a_later_process_of_the_name_has_it_at_once_and_keeps_it(shown: Shown, settings: Settings) -> None:
    (beside,) = shown.heartbeats()
    with started(settings) as later:
        token = later.holder()
        assert shown.process.wait(SLACK_S + LEASE_S) == NAME_TAKEN
        eventually(lambda: is_gone(beside))
        time.sleep(2 * LEASE_S)
        assert later.holder() == token


def test_a_worker_that_stops_lets_go_at_once(shown: Shown) -> None:
    assert shown.process.stdin is not None
    shown.process.stdin.close()
    shown.process.stdin = None
    assert seconds_until(lambda: shown.holder() is None) < SLACK_S
    assert shown.process.wait(SLACK_S) == 0
    assert shown.holder() is None


def test_what_runs_in_circles_is_given_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that many threads have together, each of them little, does not count."""
    now, ran = [100.0], {str(thread): 0.0 for thread in range(30)}
    monkeypatch.setattr("service.worker.membership.heartbeat.time.monotonic", lambda: now[0])
    monkeypatch.setattr(heartbeat, "running", lambda pid: ("R", dict(ran)))
    life = Life(1, LEASE_S / BEATS_PER_LEASE)
    for _ in range(int(HUNG_S)):
        assert life.shown()
        now[0] += 1
        ran["7"] += 0.5
    assert not life.shown()
    life.sign()
    assert life.shown()
    now[0] += 1
    ran.update({thread: ran_s + 0.05 for thread, ran_s in ran.items()})
    assert not life.shown(), "threads of it woke up to wait again: it has not run since"


def test_a_stopped_process_shows_no_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever signs it gave just before."""
    states = iter("RTR")
    monkeypatch.setattr(heartbeat, "running", lambda pid: (next(states), {"1": 1.0}))
    life = Life(1, LEASE_S)
    assert [life.shown() for _ in range(3)] == [True, False, True]


def test_without_proc_only_signs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert heartbeat.running(2**22 + 1) == ("?", {})
    state, ran_s = heartbeat.running(os.getpid())
    assert (state, ran_s[str(os.getpid())] > 0) == ("R", True)
