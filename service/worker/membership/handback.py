"""Graphs that were taken over go back to their own worker once it has been ready again for a while.

Otherwise one failure of a worker that is restarted a minute later would leave all graphs with another worker. A worker
that fails repeatedly gets its graphs back later each time.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import redis

from service.queue.models import WorkerReport
from service.store.keys import Keys
from service.store.ownership import Ownership
from service.store.unreadable import readable
from service.worker.membership.workers import Workers

STEADY_LEASES: Final = 6
"""A worker gets its graphs back after it has been ready for this many leases, and for twice as many after each further
loss, up to `LONGEST_STEADY_S`."""

LONGEST_STEADY_S: Final = 3600.0
FORGOTTEN_S: Final = 3600.0
"""A loss is forgotten if the worker has lost nothing more for this long."""

PLENTY: Final = 0.25
"""The share of its memory up to which a worker gets graphs back even if it then holds more than the giver."""

GIVEN_AT_ONCE: Final = 4
"""How many graphs go back with each heartbeat. The other worker reads each of them from Redis, and has other work as
well."""

SMALL_GIVEN_AT_ONCE: Final = 64
SMALL_BYTES: Final = 1 << 20
"""Up to `SMALL_GIVEN_AT_ONCE` graphs go back with a heartbeat if they hold at most `SMALL_BYTES` together. With four at
a time the way back of ten thousand small graphs took hours."""

IDLE_LEASES: Final = 2
"""How many leases pass before the next look when nothing could be given back."""

IsIdle = Callable[[str], bool]
Give = Callable[[str, str], None]
"""Hand a graph over to a worker, in the graph's own lane."""


class Absences:
    """How often each worker has lost its graphs lately."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._key = keys.absences

    def read(self, worker: str, now: float) -> tuple[int, float]:
        """How often the worker has lost graphs lately, and when it did last, in unix seconds.

        A loss from a time that is not there yet was noted while a clock was ahead. It counts from now on, and is
        written so: else a clock that was a day ahead would put the way back off by that day.
        """
        row = self._redis.hget(self._key, worker)
        rows = {} if row is None else {worker.encode(): row}
        count, at = next(readable(rows.items(), self._key, _read), (0, 0.0))
        if at > now:
            self._write(worker, count, now)
        return count, min(at, now)

    def note(self, worker: str, now: float, lease_s: float) -> None:
        """Count that graphs were taken from the worker. Several workers that take some each count as one loss."""
        count, at = self.read(worker, now)
        if now - at < 2 * lease_s:
            return
        self._write(worker, count + 1 if now - at < FORGOTTEN_S else 1, now)

    def _write(self, worker: str, count: int, at: float) -> None:
        self._redis.hset(self._key, worker, f"{count} {at!r}")


def _read(worker: str, row: bytes) -> tuple[int, float]:
    """How often, and when last. Raises ValueError."""
    count, _, at = row.partition(b" ")
    return int(count), float(at)


def is_steady(report: WorkerReport, absence: tuple[int, float], now: float, lease_s: float) -> bool:
    """Whether a worker that lost its graphs has been well for long enough: ready by its own clock, as of its last
    heartbeat, and without a loss by ours, whose time is `now`."""
    count, lost_at = absence
    needed_s = min(STEADY_LEASES * lease_s * 2 ** max(0, min(count, 30) - 1), LONGEST_STEADY_S)
    return report.ready and min(report.beat_at - report.ready_since, now - lost_at) >= needed_s


class HandBack:
    """Gives graphs back to the workers that they were taken from. Every worker runs it with each heartbeat."""

    def __init__(
        self, client: redis.Redis, keys: Keys, worker: str, lease_s: float, is_idle: IsIdle, give: Give
    ) -> None:
        self._workers = Workers(client, keys)
        self._worker = worker
        self._lease_s = lease_s
        self._is_idle = is_idle
        self._give = give
        self._next_at = float("-inf")
        self._ownership = Ownership(client, keys)
        self._absences = Absences(client, keys)

    def check(self) -> None:
        """Give back the largest first, as long as home has plenty of room, or then holds no more than was here."""
        if time.monotonic() < self._next_at:
            return
        away = self._ownership.away_from_home(self._worker)
        homes = {home: budget for home in set(away.values()) if (budget := self._room_at(home)) is not None}
        if not homes:
            return
        loads = self._ownership.loads()
        here, given, given_bytes = loads.of_worker.get(self._worker, 0), 0, 0
        there = {home: loads.of_worker.get(home, 0) for home in homes}
        for name in sorted(away, key=lambda name: -loads.of_graph.get(name, 0)):
            home, size = away[name], loads.of_graph.get(name, 0)
            fits = home in homes and there[home] + size <= min(max(here, PLENTY * homes[home]), homes[home])
            are_small = given < SMALL_GIVEN_AT_ONCE and given_bytes + size <= SMALL_BYTES
            if (given < GIVEN_AT_ONCE or are_small) and fits and self._is_idle(name):
                self._give(name, home)
                here, there[home] = here - size, there[home] + size
                given, given_bytes = given + 1, given_bytes + size
        if given == 0:  # as balanced as it can be, or busy: no need to add up all graphs with each heartbeat
            self._next_at = time.monotonic() + IDLE_LEASES * self._lease_s

    def _room_at(self, home: str) -> int | None:
        """Bytes a worker may hold; None while it is not to get any."""
        report = self._workers.report(home)
        if report is None or not self._workers.is_alive(home):
            return None
        now = time.time()
        if self._workers.is_draining(home):
            return None
        if not is_steady(report, self._absences.read(home, now), now, self._lease_s):
            return None
        return report.budget_bytes + report.device_budget_bytes
