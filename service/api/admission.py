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

LANES_KEPT: Final = 10_000
LONGEST_RETRY_S: Final = 10.0


@dataclass(slots=True)
class Lane:
    """The commands of one graph, which run one after the other."""

    unfinished: int = 0
    last_end: float = 0.0
    command_s: float = 0.0
    """What one takes, smoothed."""

    def end(self, entered: float) -> None:
        now = time.monotonic()
        took_s = now - max(entered, self.last_end)  # since it was the next in line
        self.command_s += SMOOTHING * (took_s - self.command_s)
        self.last_end = now
        self.unfinished -= 1


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
        lane = self._lane(graph)
        limit = self._settings.graph_queue_limit
        if waits:
            limit = min(limit, self._short_queue(lane))
        if lane.unfinished >= limit:
            raise _too_much(f"{lane.unfinished} commands for graph {graph!r} are unfinished", lane.command_s)
        if key_id is not None and self._of_key[key_id] >= self._settings.key_queue_limit:
            raise _too_much(f"{self._of_key[key_id]} commands of this API key are unfinished", lane.command_s)
        lane.unfinished += 1
        if key_id is not None:
            self._of_key[key_id] += 1
        entered = time.monotonic()

        def leave() -> None:
            lane.end(entered)
            if key_id is not None:
                self._take_one(key_id)

        return leave

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

    def _short_queue(self, lane: Lane) -> int:
        """Commands that are over within `queue_target_s`, but a few also when one alone takes longer."""
        fast = math.floor(self._settings.queue_target_s / max(lane.command_s, 1e-6))
        return max(self._settings.graph_queue_short, fast)

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
