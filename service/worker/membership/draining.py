"""A worker gives its graphs away: all when it is drained or leaves, and those that it has no room for.

Small ones a few at a time, on threads of their own, so that the heartbeat and the graphs' own work go on meanwhile.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from typing import Final

import redis
import structlog

from gpu_engine.control import Control
from gpu_engine.errors import EngineError
from service.errors import ServiceError
from service.queue.models import WorkerReport
from service.store.applied import Fenced
from service.store.keys import Keys
from service.store.ownership import Loads, Ownership
from service.worker.membership.moving import Mover, NotServed
from service.worker.membership.workers import Workers, budget_of

LEAVE_S: Final = 20.0
"""How long a worker that is told to stop goes on giving its graphs away; the others take what is left."""

ONE_S: Final = 5.0
"""How long it waits for another one to read one graph, and to serve it."""

AGAIN_S: Final = 0.1
"""When a worker that leaves tries again to give what has not gone."""

SIDE_BY_SIDE: Final = 4
SMALL_BYTES: Final = 1 << 20
"""Where all graphs are to go, `SIDE_BY_SIDE` of at most `SMALL_BYTES` move at a time: each mostly waits for Redis and
for the other worker. Larger ones, which that worker is busy to read, go one after the other."""

ROOM: Final = 0.8
"""The share of another worker's memory up to which it gets graphs that a full one has no room for."""

GAVE_UP: Final = (redis.RedisError, NotServed, Fenced, ServiceError, EngineError)
"""What a move may end with; the graph is tried again with the next heartbeat, if it is still to go."""

Send = Callable[[str, str], object]
"""Moves a graph to a worker."""

log = structlog.get_logger(__name__)


class Draining:
    """Gives graphs of one worker away, where others have room."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        mover: Mover,
        displaced: Callable[[], list[str]],
    ) -> None:
        """`displaced` are graphs that gave way to others since it was asked last, and are not in memory."""
        self._workers = Workers(client, keys)
        self._ownership = Ownership(client, keys)
        self._mover = mover
        self._displaced = displaced
        self._control = Control()
        self._thread: threading.Thread | None = None
        self._is_leaving = False

    def check(self) -> bool:
        """See to what is to go, on a thread of its own; whether the worker is drained. Called at each heartbeat."""
        if self._is_leaving:
            return True
        is_drained, displaced = self._is_drained(), self._displaced()
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
        if self._thread is None and (is_drained or displaced):
            work = self._drain if is_drained else partial(self._relieve, displaced)
            self._thread = threading.Thread(target=work, name="draining", daemon=True)
            self._thread.start()
        return is_drained

    def leave(self) -> None:
        """Give all graphs away, as the worker is told to stop: they come back when it is there again.

        Returns when that is done, after `LEAVE_S`, at `stop`, or once nobody else is there.
        """
        end = time.monotonic() + LEAVE_S
        try:
            if not self._others():
                return
            self._is_leaving = True
            self._workers.leave(self._mover.worker)
            send = partial(self._leave, self._ownership.away_from_home(self._mover.worker), end)
            while self._give_all(send, lambda: time.monotonic() > end):
                if time.monotonic() > end or self._control.cancelled or not self._others():
                    return
                time.sleep(AGAIN_S)
        except redis.RedisError as error:
            log.warning("not_left", worker=self._mover.worker, error=str(error))

    def arrive(self) -> None:
        """The worker is there again after it left."""
        self._workers.arrive(self._mover.worker)

    def stop(self) -> None:
        """Let go of what is being moved. From any thread."""
        self._control.cancel()
        if self._thread is not None:
            self._thread.join()

    def _is_drained(self) -> bool:
        return self._workers.is_draining(self._mover.worker)

    def _others(self) -> list[WorkerReport]:
        return self._workers.others(self._mover.worker)

    def _drain(self) -> None:
        """Give all graphs away, unless the drain is taken back."""
        try:
            self._give_all(self._move, lambda: not self._is_drained())
        except redis.RedisError as error:
            log.warning("not_drained", worker=self._mover.worker, error=str(error))

    def _relieve(self, displaced: list[str]) -> None:
        """Move graphs that have no room here to where they have, with some to spare: there they displace nothing."""
        try:
            loads = self._ownership.loads()
            for name in displaced:
                if loads.owner.get(name) == self._mover.worker:
                    self._give(name, loads, self._move, ROOM)
        except redis.RedisError as error:
            log.warning("not_relieved", worker=self._mover.worker, error=str(error))

    def _give_all(self, send: Send, is_over: Callable[[], bool]) -> int:
        """Send every graph to where there is the most room; how many are left."""
        loads = self._ownership.loads()
        names = loads.owned_by(self._mover.worker)

        def give(name: str) -> bool:
            return not is_over() and self._give(name, loads, send)

        small = [name for name in names if loads.of_graph[name] <= SMALL_BYTES]
        with ThreadPoolExecutor(SIDE_BY_SIDE, "giving") as threads:
            n_sent = sum(threads.map(give, small))
        return len(names) - n_sent - sum(map(give, names[len(small) :]))  # the smallest are the first

    def _give(self, name: str, loads: Loads, send: Send, most: float = inf) -> bool:
        """Send one graph to the emptiest of the others that can hold it at all, if no more than the share `most` of its
        memory is in use then; whether it went."""
        n_bytes = loads.of_graph.get(name, 0)
        shares = {
            other.name: (loads.of_worker.get(other.name, 0) + n_bytes) / budget_of(other)
            for other in self._others()
            if n_bytes <= budget_of(other)
        }
        to = min(shares, key=shares.__getitem__, default=None)
        if to is None or shares[to] > most or self._control.cancelled:
            return False
        loads.of_worker[to] = loads.of_worker.get(to, 0) + n_bytes
        try:
            send(name, to)
        except GAVE_UP as error:
            loads.of_worker[to] -= n_bytes
            log.warning("not_moved", graph=name, to=to, error=str(error))
            return False
        return True

    def _move(self, name: str, to: str) -> None:
        self._mover.move(name, to, self._control)

    def _leave(self, homes: dict[str, str], end: float, name: str, to: str) -> None:
        """Move a graph in the time that is left; its home stays where it was."""
        home = homes.get(name, self._mover.worker)
        self._mover.leave(name, to, self._control, min(ONE_S, end - time.monotonic()), home)
