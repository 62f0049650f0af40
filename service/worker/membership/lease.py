"""The lease: which process may use a worker's name, renewed by a heartbeat.

A process beside the worker renews it as well (`service.worker.membership.heartbeat`), and depends on no interpreter
that is busy.
"""

import os
import threading
import time
import uuid
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import redis
import structlog

from service.queue.models import FORGOTTEN_AFTER_S, WorkerReport
from service.store.keys import Keys
from service.worker.membership.heartbeat import BEATS_PER_LEASE, Task, renew
from service.worker.membership.pulse import Pulse

log = structlog.get_logger(__name__)


Report = Callable[[], WorkerReport]
Action = Callable[[], None]


class Lease:
    """The lease of a worker's name, from `acquire` on. A later process of the name takes it, and this one stops.

    ``location`` is the URL of Redis, for the process that renews the lease while this one is busy.
    """

    def __init__(self, client: redis.Redis, keys: Keys, worker: str, lease_s: float, location: str) -> None:
        self._redis: Any = client
        self._keys = keys
        self.worker = worker
        self.lease_s = lease_s
        self.token = f"{os.getpid()}:{uuid.uuid4().hex}".encode()
        self._task = Task(location, keys.lease(worker), self.token.decode(), lease_s, os.getpid())
        self._pulse = Pulse(self._task)
        self._report: Report | None = None
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self) -> None:
        self._redis.set(self._keys.lease(self.worker), self.token, px=round(self.lease_s * 1000))

    def start(self, report: Report, on_beat: Action, on_lost: Action) -> None:
        """Renew in a thread of its own; `on_beat` runs after each renewal, `on_lost` when another holds the name."""
        self._report = report
        self._thread = threading.Thread(target=self._beat, args=(report, on_beat, on_lost), name="lease", daemon=True)
        self._thread.start()

    def beat_now(self) -> None:
        """Say at once that something has changed, such as readiness."""
        self._wake.set()

    def show_life(self) -> None:
        """Say within an `on_beat` that takes long that the worker lives: its lease is renewed all the same."""
        self._pulse.show_life()

    def release(self) -> None:
        """Stop, and let go of the name so that others need not wait for the lease to expire. The last report says with
        what the worker ends: by the one before it, it may still have the graphs that it gave away."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._pulse.stop()
        try:
            if self._redis.get(self._keys.lease(self.worker)) == self.token:
                if self._report is not None:
                    with suppress(redis.RedisError):  # it is full, and lets go of the name all the same
                        self._tell(self._report)
                self._redis.delete(self._keys.lease(self.worker))
        except redis.RedisError:
            log.warning("lease_not_released", worker=self.worker)

    def _beat(self, report: Report, on_beat: Action, on_lost: Action) -> None:
        while not self._stop.is_set():
            try:
                self._pulse.show_life()
                if not renew(self._redis, self._task):
                    on_lost()
                    return
                self._tell(report)
                on_beat()
            except redis.RedisError as error:  # it is away, or its disk is full
                log.warning("heartbeat_failed", worker=self.worker, error=str(error))
            except Exception:  # the lease must go on, whatever else is wrong
                log.exception("heartbeat_failed", worker=self.worker)
            self._wake.wait(self.lease_s / BEATS_PER_LEASE)
            self._wake.clear()

    def _tell(self, report: Report) -> None:
        self._redis.hset(self._keys.workers, self.worker, report().model_dump_json())


@dataclass(frozen=True, slots=True)
class Silence:
    """What was known of one worker when its heartbeat was looked at last."""

    beat_at: float
    """Its last heartbeat, by its own clock."""
    looked_at: float
    """The time of that look, by this worker's monotonic clock."""
    silent_s: float


class Silences:
    """Which workers have been away for long enough to lose their graphs, as one other worker sees it.

    A heartbeat says when it was by the clock of its machine, which may be hours ahead of ours, and clocks are set. So
    what counts is for how long there was no other one while this process looked: it, or all of the machine, may have
    been paused, and then the other one has had no time to say anything either.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._last: dict[str, Silence] = {}

    def is_silent(self, report: WorkerReport) -> bool:
        """Whether a worker without a lease has been away for two leases.

        One has expired by then, and another one has passed in which its supervisor could restart it. Asked with each
        heartbeat.
        """
        now = time.monotonic()
        last = self._last.get(report.name)
        if last is None:  # this process has just begun, and knows no more than the clocks say
            silent_s = max(0.0, time.time() - report.beat_at)
        elif last.beat_at != report.beat_at:
            silent_s = 0.0
        else:
            silent_s = last.silent_s + min(now - last.looked_at, self._lease_s)
        self._last[report.name] = Silence(report.beat_at, now, silent_s)
        return silent_s > 2 * self._lease_s

    def forget(self, but: Container[str]) -> None:
        """Forget workers of other names."""
        self._last = {name: seen for name, seen in self._last.items() if name in but}

    def is_forgotten(self, report: WorkerReport) -> bool:
        """Whether one that is silent has been so for so long that nobody waits for it."""
        return time.time() - report.beat_at > FORGOTTEN_AFTER_S
