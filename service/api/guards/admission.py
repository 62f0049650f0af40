"""What one API process lets in: so much unfinished work for each graph and each key, so many event streams.

A queue without a bound only turns overload into waiting. With these, work that is accepted waits behind little, and the
rest is told when to come back: 429 rate_limited with Retry-After. Callers wait here, in their graph's `Lane`, and not
in Redis: so a line that turns out too long can still be cut.
"""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from fastapi import Request

from service.api.guards.shares import QueuedBytes, share_of_key, too_much
from service.errors import ServiceError
from service.settings import Settings

TIMES_KEPT: Final = 16
"""How many of the latest commands of a graph are averaged for the time that one takes."""

TIMES_KNOWN: Final = 4
"""The mean counts as unknown before this many commands have ended."""

OUTLIERS: Final = 2
"""How many of the longest times are left out of the mean, since a load or a snapshot may be among them."""

TOGETHER_S: Final = 0.0005
"""Commands that end within this time of each other count as answered together."""

BUSY: Final = 4
"""How many commands of waiting callers are at the worker at a time, so that it always has work of the graph. A crowded
lane lets no more in."""

AHEAD_S: Final = 0.1
"""More than `BUSY` commands are sent if all of them end within this time, because the way there and back takes time
too."""

CALM_S: Final = 0.25
"""A crowded lane is watched for at least this long before it can count as calm."""

CALM_COMMANDS: Final = 10
"""It is also watched for at least as long as this many commands take."""

CALM_IDLE: Final = 0.15
"""A crowded lane is calm if it was idle for this share of the time in which it was watched."""

CROWDED_S: Final = 2.0
"""A lane that has been crowded for this long is opened for a try, because a few callers that never pause may look like
a crowd."""

CROWDED_COMMANDS: Final = 100
"""The try comes no sooner than this many commands take."""

TRIES: Final = 2
"""The line is cut when it is full: whoever is beyond what a crowded lane holds is refused. A lane that is opened for a
try has room for what takes `queue_target_s` divided by this number, or all of `queue_target_s` if the count of cuts
since it was calm is a multiple of this number."""

LANES_KEPT: Final = 10_000


@dataclass(eq=False, slots=True)
class Ticket:
    """One command that was let in, from `Admission.enter` to `leave`."""

    admission: "Admission"
    lane: "Lane"
    key_id: str | None
    waits: bool
    n_bytes: int = 0
    """Of a long command."""
    turn_at: float | None = None
    """When its command was sent to the worker; None while it waits in line."""
    refusal: ServiceError | None = None
    """Why its command will not be sent: the line was cut, or Redis is away. None if there is no such reason."""
    _turn: asyncio.Future[None] | None = None

    async def turn(self, patience_s: float) -> float:
        """Wait until the command may go to the worker, or for `patience_s`; returns how long it was. Raises
        rate_limited if the line is cut before its turn, and worker_unavailable if Redis goes away."""
        began = time.monotonic()
        if self.turn_at is None and self.refusal is None:
            self._turn = asyncio.get_running_loop().create_future()
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self._turn
        if self.refusal is not None:
            raise self.refusal
        if self.turn_at is None:
            self.lane.waiting.remove(self)
            self.lane.start(self)
        return 0.0 if self._turn is None else time.monotonic() - began

    def decide(self, refusal: ServiceError | None = None) -> None:
        """Give the ticket its turn, or refuse it."""
        self.refusal = refusal
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    def leave(self, *, was_sent: bool = True) -> None:
        """The command has ended, or was not sent after all. Called once."""
        self.admission.leave(self, was_sent=was_sent)


@dataclass(eq=False, slots=True)
class Lane:
    """The commands of one graph, which run one after the other.

    Callers may stand in line for a while, so that a burst is served and not refused. Once the line has been full the
    lane is *crowded*: it lets in what keeps the worker busy and no more, so that what is accepted is answered about as
    soon as ever, until the lane stands idle at times. (The insight of CoDel, Nichols & Jacobson 2012: a queue that
    comes and goes is good, one that stays only adds delay.)
    """

    waiting: deque[Ticket] = field(default_factory=deque)
    """Callers in line, the first to come first."""
    at_work: int = 0
    """Commands at the worker whose callers wait."""
    jobs: int = 0
    """Commands at the worker whose callers do not wait, as they were asked for as jobs."""
    last_end: float = 0.0
    command_s: float = 0.0
    """The time that a command has taken of late, in seconds; 0 while that is unknown."""
    times_s: deque[float] = field(default_factory=lambda: deque(maxlen=TIMES_KEPT))
    together: int = 0
    """How many commands have been answered together since the last time was noted."""
    crowded_since: float | None = None
    """None: the lane is not crowded."""
    cuts: int = 0
    """How often the line was full since the lane was calm."""
    watched_since: float = 0.0
    """When the watch began that `idle_s` is counted over."""
    idle_s: float = 0.0

    @property
    def unfinished(self) -> int:
        return len(self.waiting) + self.at_work + self.jobs

    def look(self, now: float) -> None:
        """Decide whether the lane is still crowded, before one more command is let in."""
        if self.crowded_since is None:
            return
        if self.unfinished == 0:
            self.idle_s += now - max(self.last_end, self.watched_since)
            self.last_end = now
        watched_s = now - self.watched_since
        if watched_s < max(CALM_S, CALM_COMMANDS * self.command_s):
            return
        if self.idle_s > CALM_IDLE * watched_s:
            self.crowded_since, self.cuts = None, 0
        elif now - self.crowded_since > max(CROWDED_S, CROWDED_COMMANDS * self.command_s):
            self.crowded_since = None
        self.watched_since, self.idle_s = now, 0.0

    def crowd(self, now: float, settings: Settings) -> None:
        """Cut the line, which is full, to what a crowded lane holds."""
        if self.crowded_since is not None:
            return
        self.crowded_since = self.watched_since = now
        self.idle_s = 0.0
        self.cuts += 1
        while self.waiting and self.unfinished > self.room(settings):
            self.waiting.pop().decide(too_much("the line for the graph was cut", self.command_s))

    def clear(self, refusal: Callable[[], ServiceError]) -> None:
        """Refuse all callers in line, each by one of its own."""
        while self.waiting:
            self.waiting.popleft().decide(refusal())

    def room(self, settings: Settings) -> int:
        """How many commands may be unfinished: a few, or more if they end soon."""
        limit, few, soon_s = settings.graph_queue_limit, settings.graph_queue_short, settings.queue_target_s
        if self.crowded_since is not None:
            few, soon_s = min(few, BUSY), min(soon_s, AHEAD_S)
        elif not self.command_s:
            return limit
        elif self.cuts % TRIES:
            soon_s /= TRIES
        return min(limit, max(few, math.floor(soon_s / self.command_s) if self.command_s else 0))

    def start(self, ticket: Ticket) -> None:
        """The ticket's command goes to the worker."""
        ticket.turn_at = time.monotonic()
        self.at_work += ticket.waits
        self.jobs += not ticket.waits
        ticket.decide()

    def end(self, ticket: Ticket, *, was_sent: bool) -> None:
        """Count out the ticket, and give the next one its turn. Only commands that were sent are timed."""
        if ticket.turn_at is None:
            with suppress(ValueError):  # it was cut off
                self.waiting.remove(ticket)
            return
        now = time.monotonic()
        took_s = now - max(ticket.turn_at, self.last_end)  # since it was the next in line
        if was_sent:
            self.record(took_s, together=now - self.last_end < TOGETHER_S)
        self.last_end = now
        self.at_work -= ticket.waits
        self.jobs -= not ticket.waits
        self.go_on()

    def record(self, took_s: float, *, together: bool) -> None:
        """Note that a command has ended ``took_s`` after the one before, or ``together`` with it."""
        if together and self.times_s:
            took_s += self.together * self.times_s.pop()
            self.together += 1
        else:
            self.together = 1
        self.times_s.append(took_s / self.together)
        if len(self.times_s) >= TIMES_KNOWN:
            usual = sorted(self.times_s)[:-OUTLIERS]
            self.command_s = sum(usual) / len(usual)

    def go_on(self) -> None:
        """Give waiting callers their turns while few of their commands are at the worker."""
        while self.waiting and self.is_open:
            self.start(self.waiting.popleft())

    @property
    def is_open(self) -> bool:
        """Whether a caller may have its turn at once, with nobody before it."""
        return self.at_work < max(BUSY, math.ceil(AHEAD_S / self.command_s) if self.command_s else 0)


class Admission:
    """Counts what is unfinished, by graph and by key. One event loop uses it, so there are no locks."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lanes: dict[str, Lane] = {}
        self._of_key: Counter[str] = Counter()
        self._queued = QueuedBytes()
        self._streams = 0
        self._streams_of_key: Counter[str] = Counter()
        self._absence: Callable[[], ServiceError] | None = None

    def note_absence(self, absence: Callable[[], ServiceError] | None) -> None:
        """Note that Redis is away, or with None that it is back; `absence` makes a refusal for each caller. All callers
        in line are refused at once, since no line goes on, and so is each who would have to wait in one."""
        self._absence = absence
        if absence is not None:
            for lane in self._lanes.values():
                lane.clear(absence)

    def enter(self, graph: str, key_id: str | None, *, waits: bool = True, n_bytes: int = 0) -> Ticket:
        """Count one command, and its bytes if it is long, until its ticket is given back. Raises as `refusal` says, and
        rate_limited where `QueuedBytes` has no room.

        Work whose caller `waits` is let in if it will not wait long; work that was asked for as a job may.
        """
        refusal = self.refusal(graph, key_id, waits=waits) or self._queued.refusal(key_id, n_bytes)
        if refusal is not None:
            raise refusal
        lane = self._lane(graph)
        ticket = Ticket(self, lane, key_id, waits, n_bytes)
        self._queued.count(key_id, n_bytes)
        if key_id is not None:
            self._of_key[key_id] += 1
        if waits:
            lane.waiting.append(ticket)
            lane.go_on()
        else:
            lane.start(ticket)
        return ticket

    def leave(self, ticket: Ticket, *, was_sent: bool = True) -> None:
        """Count out a command that has ended, or is not sent after all."""
        ticket.lane.end(ticket, was_sent=was_sent)
        key_id = ticket.key_id
        self._queued.count(key_id, -ticket.n_bytes)
        if key_id is not None:
            self._of_key[key_id] -= 1
            if self._of_key[key_id] <= 0:
                del self._of_key[key_id]

    def check(self, graph: str, key_id: str | None) -> None:
        """Raises as `refusal` says if there is no room, were it but for work nobody waits for."""
        refusal = self.refusal(graph, key_id, waits=False)
        if refusal is not None:
            raise refusal

    def refusal(self, graph: str, key_id: str | None, *, waits: bool = True) -> ServiceError | None:
        """Why `enter` would refuse now, rate_limited or worker_unavailable; None if it would not."""
        lane, now = self._lane(graph), time.monotonic()
        if self._absence is not None and ((waits and not lane.is_open) or self.may_refuse(graph, key_id, waits=waits)):
            return self._absence()
        lane.look(now)
        if lane.unfinished >= self._room(lane, waits):
            if waits:
                lane.crowd(now, self._settings)
            return too_much(f"{lane.unfinished} commands for graph {graph!r} are unfinished", lane.command_s)
        if key_id is not None and self._of_key[key_id] >= self._settings.key_queue_limit:
            return too_much(f"{self._of_key[key_id]} commands of this API key are unfinished", lane.command_s)
        return None

    def may_refuse(self, graph: str, key_id: str | None, *, waits: bool = True) -> bool:
        """Whether `refusal` has to be asked. It changes nothing, so anybody may make us look, before showing a key."""
        lane = self._lanes.get(graph)
        if lane is not None and lane.unfinished >= self._room(lane, waits):
            return True
        return key_id is not None and self._of_key[key_id] >= self._settings.key_queue_limit

    def _room(self, lane: Lane, waits: bool) -> int:
        return lane.room(self._settings) if waits else self._settings.graph_queue_limit

    @contextmanager
    def stream(self, key_id: str | None) -> Iterator[None]:
        """Count one event stream. Raises rate_limited."""
        limit = self._settings.max_event_streams
        if self._streams >= limit:
            raise too_much(f"{self._streams} event streams are open, as many as HEADRACE_MAX_EVENT_STREAMS allows")
        if key_id is not None and self._streams_of_key[key_id] >= share_of_key(limit):
            raise too_much(f"{self._streams_of_key[key_id]} event streams of this API key are open")
        self._streams += 1
        self._streams_of_key[key_id or ""] += 1
        try:
            yield
        finally:
            self._streams -= 1
            self._streams_of_key[key_id or ""] -= 1
            if not self._streams_of_key[key_id or ""]:
                del self._streams_of_key[key_id or ""]

    def _lane(self, graph: str) -> Lane:
        lane = self._lanes.get(graph)
        if lane is None:
            if len(self._lanes) >= LANES_KEPT:
                self._lanes = {name: kept for name, kept in self._lanes.items() if kept.unfinished}
            lane = self._lanes[graph] = Lane()
        return lane


async def stream_room(request: Request) -> AsyncIterator[None]:
    """Dependency of a route that answers with an event stream: room for it, until the stream has ended."""
    admission: Admission = request.state.backend.admission
    with admission.stream(request.state.caller.key_id):
        yield
