"""Lanes run their work in order, and different lanes run side by side, on a bounded number of threads.

Short work does not wait for long work: long work has `threads` slots, and short work has as many as long work leaves of
them, and at least `SPARE`. Which is which is a guess (`service.worker.running.costs`), and a wrong one is found out:
what has been in a slot of short work for `SHORT_S` is long, and its slot is free for the next.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

SHORT_S: Final = 0.1
"""Work is short if it is expected to take at most this time. Work that takes longer in a slot of short work is an
overrun."""

SPARE: Final = 2
"""The least number of slots for short work."""

OVERRUNS: Final = 8
"""The number of overruns that do not count for the slots of short work, beyond the slots of long work. Further overruns
keep their slots."""

Work = Callable[[], None]
Expect = Callable[[], float]
"""Seconds that work will take. It is asked when the work is the next in its lane, and must be fast."""

IsDone = Callable[[], bool]
"""Whether nothing is left to do. It is asked when the work is the next in its lane, and must be fast."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Piece:
    """Work, a guess of how long it will take, and whether it was done together with what was before it."""

    work: Work
    expect: Expect
    is_done: IsDone


@dataclass(eq=False, slots=True)
class Crew:
    """Threads that do work of one kind, and the lanes whose first piece is of that kind and waits, in order."""

    name: str
    called: threading.Condition
    ready: deque[str] = field(default_factory=deque)
    threads: set[threading.Thread] = field(default_factory=set)
    idle: int = 0
    coming: int = 0
    """Threads that are about to look for work: new ones, and those that have just done a piece."""


class Lanes:
    """Runs one lane for each graph. A lane gives way to others after each piece of work. Work should not raise."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lock = threading.RLock()
        self._queues: dict[str, deque[Piece]] = {}
        """The work of each lane. The first piece may be running."""
        self._short = Crew("short", threading.Condition(self._lock))
        self._long = Crew("long", threading.Condition(self._lock))
        self._short_since: OrderedDict[str, float] = OrderedDict()
        """Lanes with a piece in a slot of short work, the oldest first."""
        self._n_long = 0
        """Pieces that run as long ones, overruns included."""
        self._late = threading.Condition(self._lock)
        self._watch: threading.Thread | None = None
        self._closed = False
        self._lacks_threads = False
        """Whether the last one that was wanted could not be started."""

    def put(self, lane: str, work: Work, expect: Expect = lambda: 0.0, is_done: IsDone = lambda: False) -> None:
        """Queue `work` behind what the lane already has. Whoever calls bounds how much there is.

        Work that was done together with what was before it takes no turn of its own: else a lane whose work is done
        in groups would wait for all others as many times as a group has pieces. It may be done by now, as others see it
        before it is here.
        """
        with self._lock:
            if lane not in self._queues and is_done():
                return
            queue = self._queues.setdefault(lane, deque())
            queue.append(Piece(work, expect, is_done))
            if len(queue) == 1:
                self._line_up(lane)

    def look_again(self) -> None:
        """Begin what could not begin for want of a thread. Called now and then."""
        with self._lock:
            for crew in (self._short, self._long):
                self._call(crew)

    def is_idle(self, lane: str) -> bool:
        with self._lock:
            return lane not in self._queues

    def is_crowded(self, lane: str) -> bool:
        """Whether work of the lane waits behind what runs."""
        with self._lock:
            return len(self._queues.get(lane, ())) > 1

    def close(self) -> None:
        """End all threads: wait for what is running, and drop what waits."""
        with self._lock:
            self._closed = True
            for condition in (self._short.called, self._long.called, self._late):
                condition.notify_all()
            threads = [*self._short.threads, *self._long.threads, *([self._watch] if self._watch else [])]
        for thread in threads:
            thread.join()

    def _line_up(self, lane: str) -> None:
        """Let the lane's first piece start when there is a slot for it."""
        try:
            is_short = self._queues[lane][0].expect() <= SHORT_S
        except Exception:  # it is run all the same, and fails by itself if it must
            log.exception("time_not_guessed", lane=lane)
            is_short = False
        crew = self._short if is_short else self._long
        crew.ready.append(lane)
        self._call(crew)

    def _call(self, crew: Crew) -> None:
        """Have a thread look for work if there is some that may start."""
        if self._closed:
            return
        if self._may_start(crew):
            if crew.idle:
                crew.called.notify()
            elif not crew.coming and (thread := self._started(f"{crew.name}-lane", self._serve, crew)):
                crew.coming += 1
                crew.threads.add(thread)
        elif crew is self._short and crew.ready:
            self._watch = self._watch or self._started("overruns", self._look_for_overruns)
            self._late.notify()

    def _started(self, name: str, life: Callable[..., None], *arguments: Crew) -> threading.Thread | None:
        """A new thread; None where the machine or the container has none to give. Then what is ready waits for one that
        is there, or for the next `look_again`."""
        thread = threading.Thread(target=life, args=arguments, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            if not self._lacks_threads:
                log.warning("no_thread", thread=name, error=str(error))
            self._lacks_threads = True
            return None
        self._lacks_threads = False
        return thread

    def _may_start(self, crew: Crew) -> bool:
        if not crew.ready:
            return False
        if crew is self._long:
            return self._n_long < self._threads
        return len(self._short_since) < max(self._threads - self._n_long, SPARE)

    def _serve(self, crew: Crew) -> None:
        """A thread's life in its crew. It leaves after an overrun: another has come in its place, and its working
        memory may be that of a large graph."""
        stays = True
        while stays and (lane := self._begin(crew)) is not None:
            try:
                self._queues[lane][0].work()
            except Exception:  # otherwise the work behind it would never run
                log.exception("work_failed", lane=lane)
            stays = self._end(lane, crew)
        with self._lock:
            crew.threads.discard(threading.current_thread())

    def _begin(self, crew: Crew) -> str | None:
        """Wait for a lane whose first piece is to run now; None once all is closed."""
        with self._lock:
            crew.coming -= 1
            while not self._closed and not self._may_start(crew):
                crew.idle += 1
                crew.called.wait()
                crew.idle -= 1
            if self._closed:
                return None
            lane = crew.ready.popleft()
            if crew is self._short:
                self._short_since[lane] = time.monotonic()
            else:
                self._n_long += 1
            self._call(crew)
            return lane

    def _end(self, lane: str, crew: Crew) -> bool:
        """Take the lane's first piece, which is done, off the lane. False if it was an overrun."""
        with self._lock:
            kept = crew is self._long or self._short_since.pop(lane, None) is not None
            crew.coming += kept
            if crew is self._long or not kept:
                self._n_long -= 1
            queue = self._queues[lane]
            queue.popleft()
            while queue and queue[0].is_done():
                queue.popleft()
            if queue:
                self._line_up(lane)
            else:
                del self._queues[lane]
            for waiting in (self._short, self._long):
                self._call(waiting)
            return kept

    def _look_for_overruns(self) -> None:
        """While short work waits for a slot, take for long whatever has been in a slot of short work for too long."""
        with self._lock:
            while not self._closed:
                if not self._short.ready or not self._short_since or self._n_long >= self._threads + OVERRUNS:
                    self._late.wait()
                    continue
                lane, since = next(iter(self._short_since.items()))
                left_s = since + SHORT_S - time.monotonic()
                if left_s > 0:
                    self._late.wait(left_s)
                    continue
                del self._short_since[lane]
                self._n_long += 1
                self._call(self._short)
