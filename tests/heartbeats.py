"""Heartbeat processes of workers that run in threads of a test, forked from one that has imported what they need.

Hundreds of tests start a worker, and most of what that takes of the machine are the imports of its heartbeat process.
What runs is `service.worker.membership.heartbeat.main`; `tests/crash/test_heartbeat.py` has it started as workers do.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final

import pytest

from service.worker.membership import heartbeat, pulse
from service.worker.membership.heartbeat import Task
from service.worker.membership.pulse import give

MODULE: Final = heartbeat.__name__


def _main(signs: Connection) -> None:
    os.dup2(signs.fileno(), sys.stdin.fileno())
    sys.exit(heartbeat.main())


class Forked:
    """A heartbeat process, as `service.worker.membership.pulse` uses one of `subprocess`."""

    def __init__(self) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload([MODULE])
        theirs, ours = os.pipe()
        self.stdin = os.fdopen(ours, "wb")
        with Connection(theirs, writable=False) as signs:
            self._process = context.Process(target=_main, args=[signs], daemon=True)
            self._process.start()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout_s: float | None = None) -> int:
        self._process.join(timeout_s)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(MODULE, timeout_s or 0.0)
        return self.returncode

    def kill(self) -> None:
        self._process.kill()


def _start(task: Task) -> Any:
    process = Forked()
    give(process.stdin, task)
    return process


@contextmanager
def forked() -> Iterator[None]:
    """Workers of this process start their heartbeats so meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pulse, "started", _start)
        yield
