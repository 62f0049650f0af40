"""A worker gives its graphs away: all when it is drained or leaves, and those that it has no room for.

One after the other, on a thread of its own, so that the heartbeat and the graphs' own work go on meanwhile.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

import redis
import structlog

from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled, EngineError
from service.errors import ServiceError
from service.queue.models import WorkerReport
from service.store.applied import Fenced
from service.store.keys import Keys
from service.store.ownership import Loads, Ownership
from service.worker.membership.moving import PREPARE_S, Mover
from service.worker.membership.workers import Workers

LEAVE_S: Final = 20.0
"""How long a worker that is told to stop goes on giving its graphs away; the others take what is left."""

ROOM: Final = 0.8
"""The share of another worker's memory up to which it gets graphs that a full one has no room for."""

GAVE_UP: Final = (redis.RedisError, Fenced, ServiceError, EngineError)
"""What a move may end with; the graph is tried again with the next heartbeat, if it is still to go."""

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

    @property
    def is_drained(self) -> bool:
        """Whether the worker is to give its graphs away, and to get none."""
        return self._workers.is_draining(self._mover.worker)

    def check(self) -> bool:
        """See to what is to go, on a thread of its own; whether the worker is drained. Called at each heartbeat."""
        if self._is_leaving:
            return True
        is_drained, displaced = self.is_drained, self._displaced()
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
        if self._thread is None and (is_drained or displaced):
            work = self._give_all if is_drained else lambda: self._relieve(displaced)
            self._thread = threading.Thread(target=work, name="draining", daemon=True)
            self._thread.start()
        return is_drained

    def leave(self) -> None:
        """Give all graphs away, as the worker is told to stop: they come back when it is there again.

        Returns when that is done, after `LEAVE_S`, or at once where nobody else is there.
        """
        end, me = time.monotonic() + LEAVE_S, self._mover.worker
        try:
            if not self._workers.others(me):
                return
            self._is_leaving = True
            self._workers.leave(me)
            while (left_s := end - time.monotonic()) > 0 and self._give_all(left_s, is_away=True):
                time.sleep(0.1)
        except redis.RedisError as error:
            log.warning("not_left", worker=me, error=str(error))

    def arrive(self) -> None:
        """The worker is there again after it left."""
        self._workers.arrive(self._mover.worker)

    def stop(self) -> None:
        """Let go of what is being moved. From any thread."""
        self._control.cancel()
        if self._thread is not None:
            self._thread.join()

    def _give_all(self, patience_s: float | None = None, *, is_away: bool = False) -> int:
        """Move every graph to where there is the most room; how many are left that may go."""
        me, left = self._mover.worker, 0
        end = None if patience_s is None else time.monotonic() + patience_s
        try:
            loads = self._ownership.loads()
            homes = self._ownership.away_from_home(me)
            for name in loads.owned_by(me):
                if self._control.cancelled or (end is not None and time.monotonic() > end):
                    break
                home = homes.get(name, me) if is_away else None
                left += not self._give(name, loads, self._workers.others(me), home, end)
        except redis.RedisError as error:
            log.warning("not_drained", worker=me, error=str(error))
        return left

    def _relieve(self, displaced: list[str]) -> None:
        """Move graphs that have no room here to where they have, with some to spare: there they displace nothing."""
        me = self._mover.worker
        try:
            loads = self._ownership.loads()
            for name in displaced:
                n_bytes = loads.of_graph.get(name, 0)
                roomy = [
                    other
                    for other in self._workers.others(me)
                    if loads.of_worker.get(other.name, 0) + n_bytes <= ROOM * _budget(other)
                ]
                if self._control.cancelled or not roomy:
                    return
                if loads.owner.get(name) == me:
                    self._give(name, loads, roomy, None, None)
        except redis.RedisError as error:
            log.warning("not_relieved", worker=me, error=str(error))

    def _give(self, name: str, loads: Loads, others: list[WorkerReport], home: str | None, end: float | None) -> bool:
        """Move one graph to the emptiest of the others; whether it went."""
        if not others:
            return False
        n_bytes = loads.of_graph.get(name, 0)
        to = min(others, key=lambda other: (loads.of_worker.get(other.name, 0) + n_bytes) / max(_budget(other), 1)).name
        patience_s = PREPARE_S if end is None else max(0.0, end - time.monotonic())
        try:
            self._mover.move(name, to, self._control, home=home, patience_s=patience_s)
        except Cancelled:
            return False
        except GAVE_UP as error:
            log.warning("not_moved", graph=name, to=to, error=str(error))
            return False
        loads.of_worker[to] = loads.of_worker.get(to, 0) + n_bytes
        return True


def _budget(report: WorkerReport) -> int:
    return report.budget_bytes + report.device_budget_bytes
