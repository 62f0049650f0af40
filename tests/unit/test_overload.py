"""Overload in a time of its own: one worker, callers of every kind, and the line they stand in.

Nothing here measures the machine: what is tried is which callers are let in, and what that does to the others.
"""

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import pytest

from service.api.guards.admission import Admission, Ticket
from service.api.guards.refusals import PER_S
from service.errors import ServiceError
from service.settings import Settings

WAY_S = 0.002
"""From an answer to the next question of the same caller, and from the line to the worker."""

Told: TypeAlias = Callable[[float | None], None]
"""Gets None with the answer, or Retry-After with a refusal."""

Retry: TypeAlias = Callable[[float], float]
"""When a caller who was refused asks again, in seconds; what it is given is Retry-After."""


class World:
    """A worker that takes `command_s` for each command, `Admission` before it, and callers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, command_s: float, seed: int) -> None:
        self.now = 100.0
        self._monkeypatch = monkeypatch
        self.admission = Admission(Settings())
        self.random = random.Random(seed)
        self.command_s = command_s
        self.latencies: list[float] = []
        self.refused = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order: Iterator[int] = itertools.count()
        self._asked: dict[Ticket, tuple[float, Told]] = {}
        self._decided: list[Ticket] = []
        self._queue: deque[Ticket] = deque()
        self._working = False
        self._paced_until = 0.0
        self._done = itertools.count()
        self.slow: Iterator[int] = iter(())
        """Which commands take as long as twenty others."""
        self._next_slow = -1
        self._generation = 0
        self.become_now()

    def become_now(self) -> None:
        """The clock that the service looks at is this world's."""
        self._monkeypatch.setattr("service.api.guards.admission.time.monotonic", lambda: self.now)

        def decide(ticket: Ticket, refusal: ServiceError | None = None) -> None:
            ticket.refusal = refusal
            self._decided.append(ticket)

        self._monkeypatch.setattr(Ticket, "decide", decide)

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), act))

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self._events and self._events[0][0] < end:
            self.now, _, act = heapq.heappop(self._events)
            act()
            self._tell()
        self.now = end

    def ask(self, told: Told) -> None:
        try:
            ticket = self.admission.enter("g", None)
        except ServiceError as refusal:
            self._refuse(refusal, told)
        else:
            self._asked[ticket] = self.now, told

    def _refuse(self, refusal: ServiceError, told: Told) -> None:
        self.refused += 1
        self._paced_until = max(self._paced_until, self.now) + 1 / PER_S
        assert refusal.retry_after_s is not None
        self.at(min(1.0, self._paced_until - self.now), lambda: told(refusal.retry_after_s))

    def _tell(self) -> None:
        """Those whose turn it is go to the worker, those who were cut off are refused."""
        while self._decided:
            ticket = self._decided.pop(0)
            if ticket.refusal is None:
                self._queue.append(ticket)
                self.at(WAY_S, self._work)
            else:
                ticket.leave()
                self._refuse(ticket.refusal, self._asked.pop(ticket)[1])

    def _work(self) -> None:
        if self._working or not self._queue:
            return
        self._working = True
        ticket = self._queue.popleft()

        def done() -> None:
            self._working = False
            ticket.leave()
            asked_at, told = self._asked.pop(ticket)
            self.latencies.append(self.now - asked_at)
            told(None)
            self._work()

        number = next(self._done)
        if number > self._next_slow:
            self._next_slow = next(self.slow, 1 << 60)
        times = 20 if number == self._next_slow else 1
        self.at(times * self.command_s * self.random.uniform(0.7, 1.3), done)

    def forget(self) -> None:
        """All who are there now ask no more."""
        self._generation += 1

    def callers(self, count: int, retry: Retry) -> None:
        """Each asks again as soon as it is answered, and when ``retry`` says so after a refusal."""

        generation = self._generation

        def ask() -> None:
            if generation == self._generation:
                self.ask(told)

        def told(retry_after_s: float | None) -> None:
            self.at(WAY_S if retry_after_s is None else retry(retry_after_s), ask)

        for _ in range(count):
            self.at(self.random.uniform(0, 0.05), ask)

    def arrivals(self, per_s: float) -> None:
        """Callers at random moments, who do not come back."""

        def come() -> None:
            self.ask(lambda _: None)
            self.at(self.random.expovariate(per_s), come)

        self.at(0.0, come)


RETRIES: dict[str, Retry] = {
    "at once": lambda _: 0.001,
    "after a pause of their own": lambda _: 0.1,
    "as they are told": lambda retry_after_s: retry_after_s,
}


def goodput(world: World, seconds: float) -> float:
    """Answers in this time, of as many as the worker can give."""
    before = len(world.latencies)
    world.run(seconds)
    return (len(world.latencies) - before) * world.command_s / seconds


@pytest.mark.parametrize("retry", RETRIES)
@pytest.mark.parametrize(
    ("count", "command_s"), [(16, 0.3), (64, 0.004), (64, 0.04), (256, 0.004), (256, 0.04), (1000, 0.012)]
)
def test_goodput_stays_whoever_tries_again(
    monkeypatch: pytest.MonkeyPatch, count: int, command_s: float, retry: str
) -> None:
    """Found by attack: 64 callers who tried again took it from 240 to 33 answers a second."""
    world = World(monkeypatch, command_s, seed=count)
    world.callers(count, RETRIES[retry])
    world.run(5 * command_s)
    assert goodput(world, max(10.0, 100 * command_s)) > 0.8


@pytest.mark.parametrize(("count", "command_s"), [(16, 0.1), (64, 0.001), (64, 0.015), (100, 0.004), (100, 0.015)])
def test_as_many_callers_as_are_usual_are_served_and_not_refused(
    monkeypatch: pytest.MonkeyPatch, count: int, command_s: float
) -> None:
    """Nor does a slow command among theirs, such as the load before them or a snapshot, make it another matter."""
    world = World(monkeypatch, command_s, seed=count)
    world.slow = iter(range(0, 100_000, 500))
    world.callers(count, RETRIES["at once"])
    assert goodput(world, max(10.0, 500 * command_s)) > 0.8
    assert world.refused == 0


@pytest.mark.parametrize(("command_s", "most"), [(0.004, 8.0), (0.012, 6.0), (0.04, 2.0), (0.1, 2.0)])
def test_what_is_accepted_stays_fast(monkeypatch: pytest.MonkeyPatch, command_s: float, most: float) -> None:
    """At ten times what the worker can do, beside half of it; where commands are short, in a tenth of a second."""
    ratios = []
    for seed in range(3):
        calm, stormy = (World(monkeypatch, command_s, seed) for _ in range(2))
        for world, times in ((calm, 0.5), (stormy, 10)):
            world.become_now()
            world.arrivals(times / command_s)
            world.run(2000 * command_s)
        ratios.append(np.percentile(stormy.latencies, 99) / np.percentile(calm.latencies, 99))
    assert np.median(ratios) < most


def test_a_line_is_whole_again_once_the_crowd_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, 0.004, seed=1)
    world.callers(300, RETRIES["at once"])
    world.run(5.0)
    assert world.refused > 100
    world.forget()
    world.run(1.0)
    world.refused = 0
    world.callers(100, RETRIES["at once"])
    world.run(10.0)
    assert world.refused == 0
