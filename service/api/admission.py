"""What one API process lets in: so much unfinished work for each graph and each key, so many event streams.

A queue without a bound only turns overload into waiting. With these, work that is accepted waits behind little,
and the rest is told at once when to come back: 429 rate_limited with Retry-After.
"""

import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from fastapi import Request

from service.errors import ServiceError
from service.settings import Settings

SMOOTHING: Final = 0.2
"""Weight of the latest command in the time one takes."""

BUSY: Final = 2
"""One at work and one behind it: a worker that is never without work."""

CROWDED_SHARE: Final = 0.2
"""Of `queue_target_s`, for the queue of a crowded lane."""

CALM_S: Final = 0.25
CALM_COMMANDS: Final = 10
CALM_IDLE: Final = 0.15
"""A crowded lane is watched for so long, or so many commands; it is calm if it was idle for this share of the time."""

CROWDED_S: Final = 2.0
CROWDED_COMMANDS: Final = 100
"""After so long it is tried whether the crowd is still there: a few callers that never pause may look like one."""

LANES_KEPT: Final = 10_000
LONGEST_RETRY_S: Final = 10.0


@dataclass(slots=True)
class Lane:
    """The commands of one graph, which run one after the other.

    Callers may queue for a while, so that a burst is served and not refused. Once the queue has been full the lane is
    *crowded*: it lets in what keeps the worker busy and no more, so that what is accepted is answered about as soon as
    ever, until the lane stands idle at times. (The insight of CoDel, Nichols & Jacobson 2012: a queue that comes and
    goes is good, one that stays only adds delay.)
    """

    unfinished: int = 0
    last_end: float = 0.0
    command_s: float = 0.0
    """What one takes, smoothed; 0: none has ended yet."""
    crowded_since: float | None = None
    """None: the lane is not crowded."""
    watched_since: float = 0.0
    """Beginning of the time `idle_s` is counted over."""
    idle_s: float = 0.0

    def begin(self, now: float) -> None:
        """Look at the lane before one more is let in."""
        if self.crowded_since is None:
            return
        if self.unfinished == 0:
            self.idle_s += now - max(self.last_end, self.watched_since)
            self.last_end = now
        watched_s = now - self.watched_since
        if watched_s < max(CALM_S, CALM_COMMANDS * self.command_s):
            return
        long = now - self.crowded_since > max(CROWDED_S, CROWDED_COMMANDS * self.command_s)
        if long or self.idle_s > CALM_IDLE * watched_s:
            self.crowded_since = None
        self.watched_since, self.idle_s = now, 0.0

    def crowd(self, now: float) -> None:
        """The queue is full."""
        if self.crowded_since is None:
            self.crowded_since = self.watched_since = now
            self.idle_s = 0.0

    def end(self, entered: float) -> None:
        now = time.monotonic()
        took_s = now - max(entered, self.last_end)  # since it was the next in line
        self.command_s += (SMOOTHING if self.command_s else 1.0) * (took_s - self.command_s)
        self.last_end = now
        self.unfinished -= 1

    def room(self, settings: Settings) -> int:
        """How many may be unfinished: a few, but more if they are over soon."""
        few, soon_s = settings.graph_queue_short, settings.queue_target_s
        if self.crowded_since is not None:
            few, soon_s = min(few, BUSY), CROWDED_SHARE * soon_s
        return max(few, math.floor(soon_s / self.command_s) if self.command_s else 0)


class Admission:
    """Counts; in one event loop, so without locks."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lanes: dict[str, Lane] = {}
        self._of_key: Counter[str] = Counter()
        self._streams = 0

    def enter(self, graph: str, key_id: str | None, *, waits: bool = True) -> Callable[[], None]:
        """Count one command until what is returned is called, once. Raises rate_limited.

        Work whose caller `waits` is let in if it will not wait long; work that was asked for as a job may.
        """
        lane, entered = self._lane(graph), time.monotonic()
        lane.begin(entered)
        if waits and lane.unfinished >= min(self._settings.graph_queue_limit, lane.room(self._settings)):
            lane.crowd(entered)
            raise _too_much(f"{lane.unfinished} commands for graph {graph!r} are unfinished", lane.command_s)
        self.check(graph, key_id)
        lane.unfinished += 1
        if key_id is not None:
            self._of_key[key_id] += 1

        def leave() -> None:
            lane.end(entered)
            if key_id is not None:
                self._take_one(key_id)

        return leave

    def check(self, graph: str, key_id: str | None) -> None:
        """Raises rate_limited if there is no room, were it but for work nobody waits for."""
        lane = self._lane(graph)
        if lane.unfinished >= self._settings.graph_queue_limit:
            raise _too_much(f"{lane.unfinished} commands for graph {graph!r} are unfinished", lane.command_s)
        if key_id is not None and self._of_key[key_id] >= self._settings.key_queue_limit:
            raise _too_much(f"{self._of_key[key_id]} commands of this API key are unfinished", lane.command_s)

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Count one event stream. Raises rate_limited."""
        if self._streams >= self._settings.max_event_streams:
            raise _too_much(f"{self._streams} event streams are open")
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    def _lane(self, graph: str) -> Lane:
        lane = self._lanes.get(graph)
        if lane is None:
            if len(self._lanes) >= LANES_KEPT:
                self._lanes = {name: kept for name, kept in self._lanes.items() if kept.unfinished}
            lane = self._lanes[graph] = Lane()
        return lane

    def _take_one(self, key_id: str) -> None:
        self._of_key[key_id] -= 1
        if self._of_key[key_id] <= 0:
            del self._of_key[key_id]


async def stream_room(request: Request) -> AsyncIterator[None]:
    """Dependency of a route that answers with an event stream: room for it, until the stream has ended."""
    admission: Admission = request.state.backend.admission
    with admission.stream():
        yield


def _too_much(detail: str, retry_after_s: float = 1.0) -> ServiceError:
    return ServiceError("rate_limited", detail, retry_after_s=min(max(1.0, retry_after_s), LONGEST_RETRY_S))
