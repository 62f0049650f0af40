"""A worker's side of its heartbeat process: start it, show it life, start it again if it ends."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import IO, Final

import structlog

from service.worker.membership.heartbeat import NAME_TAKEN, Task

STOP_S: Final = 5.0

log = structlog.get_logger(__name__)


class Pulse:
    """Keeps the heartbeat process of one worker running; `service.worker.membership.heartbeat` says what it does.

    Only the thread of the lease may call it.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._process: subprocess.Popen[bytes] | None = None

    def show_life(self) -> None:
        """Tell the process that the worker lives; start it if it is not there.

        A process that has ended because the name is taken is not replaced.
        """
        if self._process is not None and self._process.poll() not in (None, NAME_TAKEN):
            log.warning("heartbeat_ended", status=self._process.returncode)
            self.stop()
        try:
            if self._process is None:
                self._process = started(self._task)
            assert self._process.stdin is not None
            os.write(self._process.stdin.fileno(), b".")
        except (BrokenPipeError, BlockingIOError):
            pass  # it has ended just now, which the next call sees; or it has signs enough to read
        except OSError as error:  # no room for a process: the worker's own thread renews the lease all the same
            log.warning("no_heartbeat", error=str(error))

    def stop(self) -> None:
        """End the process; it does not let go of the lease."""
        if self._process is not None:
            self._let_go(self._process)
            self._process = None

    def _let_go(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def started(task: Task) -> "subprocess.Popen[bytes]":
    """A heartbeat process that has its task; a full pipe keeps nobody who shows it life waiting."""
    command = [sys.executable, "-m", "service.worker.membership.heartbeat"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    give(process.stdin, task)
    return process


def give(signs: IO[bytes] | None, task: Task) -> None:
    """Write the task to the input of a heartbeat process, which never blocks the writer from now on."""
    assert signs is not None
    signs.write(json.dumps(asdict(task)).encode() + b"\n")
    signs.flush()
    os.set_blocking(signs.fileno(), False)
