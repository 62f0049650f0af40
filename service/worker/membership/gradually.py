"""Much work that comes at once is queued in its lanes a few pieces at a time."""

import threading
from collections import deque
from dataclasses import dataclass, field
from functools import partial

from service.worker.running.lanes import SHORT_S, Work
from service.worker.saving import Defer


@dataclass(frozen=True, slots=True)
class Piece:
    """Work of one lane, and the seconds that it is expected to take."""

    lane: str
    work: Work
    expected_s: float


@dataclass(eq=False, slots=True)
class Line:
    """Work of one kind, in its order."""

    waiting: deque[Piece] = field(default_factory=deque)
    begun: int = 0
    """Pieces that are in their lanes."""


class Gradually:
    """Queues work in lanes, a few pieces at a time. From any thread.

    Lanes take their turns in the order in which they were queued: were ten thousand graphs that are to be restored
    queued at once, each command that comes then would wait for all of them.
    """

    def __init__(self, defer: Defer, at_once: int) -> None:
        """`defer` queues work in a lane. `at_once` pieces of short work are in their lanes at a time, and as many of
        long work: more than there are slots for keep commands waiting and gain nothing."""
        self._defer = defer
        self._at_once = at_once
        self._lock = threading.Lock()
        self._short, self._long = Line(), Line()

    def put(self, lane: str, work: Work, expected_s: float) -> None:
        """Queue the work in its lane, now or once others of its kind have ended."""
        line = self._short if expected_s <= SHORT_S else self._long
        with self._lock:
            line.waiting.append(Piece(lane, work, expected_s))
        self._begin(line)

    def _begin(self, line: Line) -> None:
        """Queue the next piece in its lane, if there is one and not too many are there."""
        with self._lock:
            if not line.waiting or line.begun == self._at_once:
                return
            line.begun += 1
            piece = line.waiting.popleft()
        self._defer(piece.lane, partial(self._do, line, piece.work), piece.expected_s)

    def _do(self, line: Line, work: Work) -> None:
        try:
            work()
        finally:
            with self._lock:
                line.begun -= 1
            self._begin(line)
