"""The process beside a worker that renews its lease, so that a worker whose interpreter is busy is not taken for dead.

``python -m service.worker.membership.heartbeat``, started by `service.worker.membership.pulse`. It reads its standard
input: one line of JSON (`Task`), then a byte for each sign of life. It renews the lease as long as the worker

- shows life, or else runs: a long call of C that holds the interpreter's lock lets no thread of it show any,
- has shown life within `HUNG_S`: what only runs in circles loses its lease in the end,

and ends when the worker does (the input ends), or when another process has taken the worker's name.
"""

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from service.collector import paused
from service.left_out import without_unused

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all at a terminal: this ends with its worker

with paused(), without_unused():
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    from service.store.kept_socket import kept

HUNG_S: Final = 60.0
"""A worker that has shown no life for so long is given up, whatever else it does."""

BEATS_PER_LEASE: Final = 4
NAME_TAKEN: Final = 3
"""Exit status when another process holds the lease."""

STOPPED: Final = frozenset("TtXZ")
"""States in which a process does not run (proc(5)): stopped, traced, dead."""


BUSY_SHARE: Final = 0.1
"""A thread that had less of a core does not run: those that wait for the interpreter's lock wake up now and then."""


@dataclass(frozen=True, slots=True)
class Task:
    """Which lease to renew, and for whom. ``location`` is the URL of Redis, which may hold its password."""

    location: str
    key: str
    token: str
    lease_s: float
    pid: int


class Life:
    """Whether a process lives, by its signs and by what the kernel says of it."""

    def __init__(self, pid: int, patience_s: float) -> None:
        self._pid = pid
        self._patience_s = patience_s
        self._sign_at = self._asked_at = time.monotonic()
        self._ran_s: dict[str, float] = {}

    def sign(self) -> None:
        self._sign_at = time.monotonic()

    def shown(self) -> bool:
        """Whether the process has shown life lately, or a thread of it has run since this was asked last.

        A process that has shown no life for `HUNG_S` counts as dead even if it runs.
        """
        now, (state, ran_s) = time.monotonic(), running(self._pid)
        least_s = BUSY_SHARE * (now - self._asked_at)
        busy = any(s - self._ran_s.get(thread, 0.0) > least_s for thread, s in ran_s.items())
        self._asked_at, self._ran_s = now, ran_s
        silent_s = now - self._sign_at
        return state not in STOPPED and (silent_s < self._patience_s or (busy and silent_s < HUNG_S))


def running(pid: int) -> tuple[str, dict[str, float]]:
    """State of a process, and the seconds each of its threads has had a core; ("?", {}) where there is no /proc."""
    ran_s = {}
    try:
        state = _stat(f"/proc/{pid}/stat")[0].decode()
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):  # it has just ended
                fields = _stat(f"/proc/{pid}/task/{thread}/stat")
                ran_s[thread] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return "?", {}
    return state, ran_s


def _stat(path: str) -> list[bytes]:
    """The fields of the file after the name, which may hold any character. The first one is the state, and the 12th and
    13th are processor time (proc(5))."""
    with open(path, "rb") as file:
        return file.read().rpartition(b") ")[2].split()


def renew(client: Any, task: Task) -> bool:
    """Renew the lease; False if another process holds it. Who takes it between the look and the renewal keeps it."""
    token = task.token.encode()
    # The next beat sees whose it is; the library says WatchError of a lost connection as well.
    with client.pipeline() as pipe, suppress(redis.WatchError):
        pipe.watch(task.key)
        if pipe.get(task.key) not in (None, token):
            return False
        pipe.multi()
        pipe.set(task.key, token, px=round(1000 * task.lease_s))
        pipe.execute()
    return True


def beat(task: Task, signs: int) -> int:
    """Renew the lease until the worker ends; returns the exit status. ``signs`` is the descriptor of the input."""
    interval_s = task.lease_s / BEATS_PER_LEASE
    never = Retry(NoBackoff(), 0)
    client = redis.Redis.from_url(task.location, protocol=2, retry=never, socket_timeout=task.lease_s)
    client = kept(client, f"{task.key}:none")
    life = Life(task.pid, 2 * interval_s)
    next_at = time.monotonic()
    while True:
        if select.select([signs], [], [], max(0.0, next_at - time.monotonic()))[0]:
            if not os.read(signs, 4096):
                return 0
            life.sign()
            continue
        next_at = time.monotonic() + interval_s
        with suppress(redis.RedisError):  # the worker tells of it
            if life.shown() and not renew(client, task):
                return NAME_TAKEN


def main() -> int:
    """Read the task, and renew its lease until the worker ends."""
    line = bytearray()
    while not line.endswith(b"\n"):  # byte by byte: what follows is not to be kept back in a buffer
        byte = os.read(sys.stdin.fileno(), 1)
        if not byte:
            return 0
        line += byte
    return beat(Task(**json.loads(line)), sys.stdin.fileno())


if __name__ == "__main__":
    sys.exit(main())
