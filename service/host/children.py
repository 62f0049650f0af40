"""Child processes that are kept alive: started, restarted with backoff, stopped in order."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from service.beginning import REFUSED
from service.host.refusal import CannotServe

FIRST_BACKOFF_S: Final = 0.1
MAX_BACKOFF_S: Final = 5.0
STABLE_S: Final = 30.0
"""A child that lived this long starts again at the first backoff."""

PR_SET_PDEATHSIG: Final = 1

log = structlog.get_logger("headrace.supervisor")

Popen = subprocess.Popen[bytes]


def spawn_options(*descriptors: int) -> dict[str, Any]:
    """How children are started: in a session of their own, so that Ctrl-C reaches the supervisor alone, with the given
    descriptors, and on Linux with a SIGTERM to come if the supervisor itself is killed."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    parent = os.getpid()

    def end_with_parent() -> None:
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:  # it died before we asked
                os._exit(1)

    return {"start_new_session": True, "pass_fds": descriptors, "preexec_fn": end_with_parent}


@dataclass
class Child:
    """One process under watch."""

    name: str
    start: Callable[[], Popen]
    stop_within_s: float
    log_hint: str = "the log above says why"
    stop_signal: int = signal.SIGTERM
    process: Popen | None = None
    ends: int = 0
    """How often it ended by itself."""
    _started_at: float | None = None
    _restart_at: float = 0.0
    _backoff_s: float = field(default=FIRST_BACKOFF_S)

    def keep_alive(self) -> None:
        """Start it if it is not running and its backoff has passed. Called over and over; never blocks.

        What `start` raises the first time is for the caller, and so is `CannotServe` if the process then refuses to
        begin: it would do so again. Later the service is up, and what is in the way may pass, as a machine without
        memory or processes, or a full disk: it is tried again, and the others go on.
        """
        now = time.monotonic()
        if self.process is not None:
            status = self.process.poll()
            if status is None:
                return
            if status == REFUSED and not self.ends:
                raise CannotServe(f"{self.name} cannot begin; {self.log_hint}")
            self._schedule(now, "ended", status=status)
        if now < self._restart_at:
            return
        try:
            self.process = self.start()
        except (OSError, RuntimeError) as error:  # the latter of `redis_server.start`
            if self._started_at is None:
                raise
            self._schedule(now, "not_started", error=str(error))
            return
        self._started_at = now
        log.info("started", child=self.name, pid=self.process.pid)

    def _schedule(self, now: float, event: str, **facts: object) -> None:
        if self.process is not None and self._started_at is not None and now - self._started_at > STABLE_S:
            self._backoff_s = FIRST_BACKOFF_S
        self.ends += 1
        log.warning(event, child=self.name, **facts, restart_in_s=self._backoff_s)
        self.process = None
        self._restart_at = now + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, MAX_BACKOFF_S)

    def tell_to_stop(self) -> None:
        """Its signal to stop, if it runs; `stop` waits for it."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(self.stop_signal)

    def stop(self) -> None:
        """Its signal to stop, then SIGKILL when `stop_within_s` has passed."""
        if self.process is None:
            return
        self.tell_to_stop()
        try:
            self.process.wait(self.stop_within_s)
        except subprocess.TimeoutExpired:
            log.warning("killed, it did not stop", child=self.name)
            self.process.kill()
            self.process.wait()
        self.process = None


def stop_together(children: Sequence[Child]) -> None:
    """Stop them side by side, each within its time."""
    for child in children:
        child.tell_to_stop()
    for child in children:
        child.stop()
