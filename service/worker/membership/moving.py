"""A graph moves to another worker: that one reads it and solves its flow states first, and then the owner changes.

Meanwhile the graph is served as ever. Only the change itself, in the graph's own lane, holds commands back: what waits
goes along in one MULTI, and the other worker replays the few updates that have come since it read the graph.
"""

import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import redis
import structlog

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled
from service.errors import RETRY_AFTER_S, ServiceError
from service.store.handover import Handover, Queued, Wish
from service.store.keys import Keys
from service.worker.memory import Residents
from service.worker.metrics import WorkerMetrics
from service.worker.running.task import LEFT_BEHIND, Task, parse_command, parse_remains
from service.worker.saving import Defer, Saver

PREPARE_S: Final = 300.0
"""How long the other worker may take to read a graph and solve its flow states; a graph that takes longer stays."""

ARRIVE_S: Final = 60.0
"""How long it is waited for the other worker to serve a graph that is its own by then."""

TELL_S: Final = 5.0
"""How often the other worker is told again while it says nothing."""

LOOK_S: Final = 0.005
LONGEST_LOOK_S: Final = 0.1
PAGE: Final = 64
MOVED_AT_ONCE_BYTES: Final = 64 << 20
"""Commands of at most so many bytes together move with their graph. A graph with more commands stays."""

Tasks = Callable[[], Mapping[bytes, Task]]
"""Commands that were read from the stream and have not ended, by their entries."""

T = TypeVar("T")

log = structlog.get_logger(__name__)


class NotServed(Exception):
    """The graph is not this worker's any more, or not there."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of a graph that was moved."""

    pause_ms: float | None
    """How long no command about the graph was answered; None where the other worker has not said that it serves the
    graph."""
    waiting: int
    """How many commands moved with the graph."""
    flow_states: int
    """How many flow states of the graph were solved at the other worker when it came."""


class Mover:
    """Moves graphs of one worker to others. From any thread but those of the lanes."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        worker: str,
        residents: Residents,
        saver: Saver,
        metrics: WorkerMetrics,
        defer: Defer,
        tasks: Tasks,
    ) -> None:
        self.worker = worker
        self._keys = keys
        self._residents = residents
        self._saver = saver
        self._metrics = metrics
        self._defer = defer
        self._tasks = tasks
        self._handover = Handover(client, keys, worker)

    def move(self, name: str, to: str, control: Control) -> Moved:
        """Move one graph once the other worker has read it. Raises ServiceError, `NotServed`, `Fenced`, `Cancelled` or
        RedisError; then it has not moved, or it is not known."""
        if not self._prepare(name, to, control, PREPARE_S):
            raise unavailable(f"worker {to} has not read the graph within {PREPARE_S:g} s: it stays where it is")
        return self._go(name, to, control)

    def leave(self, name: str, to: str, control: Control, patience_s: float, home: str) -> Moved:
        """Move one graph, read within so many seconds or not; it goes back `home` some day. Raises as `move`."""
        self._prepare(name, to, control, patience_s)
        return self._go(name, to, control, home, patience_s)

    def _go(self, name: str, to: str, control: Control, home: str | None = None, arrive_s: float = ARRIVE_S) -> Moved:
        reply = self._keys.reply(uuid.uuid4().hex)
        began, waiting = self._in_lane(name, partial(self._switch, name, to, reply, home), control)
        said: str | None = None
        with suppress(redis.RedisError, ServiceError):  # it has moved, whatever comes now
            said = self._hear("restore", name, to, reply, control, arrive_s)
        pause_s = time.monotonic() - began
        pause_ms = None if said is None else round(1e3 * pause_s, 1)
        moved = Moved(pause_ms, waiting, int(said or 0))
        self._metrics.moved(pause_s)
        log.info("moved", graph=name, worker=self.worker, to=to, pause_ms=pause_ms, waiting=waiting)
        return moved

    def _save(self, name: str) -> None:
        """Save the graph if its snapshot is behind, so that the other worker replays no long log."""
        graph = self._residents.get(name)
        if graph is not None:
            self._saver.save_if_behind(graph)

    def _prepare(self, name: str, to: str, control: Control, patience_s: float) -> bool:
        """Have the other worker read the graph; whether it has said that it is done."""
        self._in_lane(name, partial(self._save, name), control)
        reply = self._keys.reply(uuid.uuid4().hex)
        self._handover.tell(to, "prepare", name, reply)
        said = self._hear("prepare", name, to, reply, control, patience_s)
        if control.cancelled:
            raise Cancelled("cancelled before the graph has moved")
        return said is not None

    def _hear(self, what: Wish, name: str, to: str, reply: str, control: Control, patience_s: float) -> str | None:
        """What the other worker says once it has done what it was told, and is told again now and then: Redis may have
        lost that, or its answer. None if it says nothing for so long, or nobody wants to know. Raises
        worker_unavailable if it is away."""
        told_at, pause_s = (began := time.monotonic()), LOOK_S
        while time.monotonic() - began < patience_s and not control.cancelled:
            said, alive = self._handover.heard(to, reply)
            if said is not None:
                return said
            if not alive:
                raise unavailable(f"worker {to} is away")
            if time.monotonic() - told_at > TELL_S:
                self._handover.tell(to, what, name, reply)
                told_at = time.monotonic()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_LOOK_S)
        return None

    def _in_lane(self, name: str, work: Callable[[], T], control: Control) -> T:
        """Do work in the graph's lane, and wait for it. Raises what it raises, or `Cancelled` before it has begun."""
        future: Future[T] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)

        self._defer(name, run, 0.0)
        while not wait([future], LONGEST_LOOK_S).done:
            if control.cancelled and future.cancel():
                raise Cancelled("cancelled before the graph has moved")
        return future.result()

    def _switch(self, name: str, to: str, reply: str, home: str | None) -> tuple[float, int]:
        """Change the owner. When commands were held back from, and how many went along."""
        began = time.monotonic()
        token = self._handover.hold(name)
        if token is None:
            raise NotServed(f"this worker does not serve {name!r} any more")
        try:
            tasks = self._tasks()
            waiting = self._waiting(name, tasks)
            gone = [task for one in waiting if (task := tasks.get(one.entry_id)) is not None]
            with ExitStack() as locks:
                for task in gone:  # a cancel would end one meanwhile
                    locks.enter_context(task.lock)
                going = {task.entry_id for task in gone if not task.ended}
                waiting = [one for one in waiting if one.entry_id in going or one.entry_id not in tasks]
                if not self._handover.switch(name, to, token, waiting, reply, home):
                    raise unavailable(f"worker {to} is away, or the graph was held for too long")
                for task in gone:
                    task.ended = True
        except BaseException:
            self._handover.release(name, token)
            raise
        self._residents.drop(name)
        return began, len(waiting)

    def _waiting(self, name: str, tasks: Mapping[bytes, Task]) -> list[Queued]:
        """The commands about a graph that is held, in order, but for those that have left its lane: they need it no
        more, and end here."""
        found: list[Queued] = []
        start, size = "-", 0
        while entries := self._handover.stream(start, PAGE):
            for entry_id, fields in entries:
                queued = _queued(name, entry_id, fields, tasks.get(entry_id))
                if queued is not None:
                    found.append(queued)
                    size += sum(map(len, fields.values()))
            if size > MOVED_AT_ONCE_BYTES:
                raise ServiceError(
                    "rate_limited",
                    f"the graph cannot move now: more than {MOVED_AT_ONCE_BYTES} bytes of commands wait for it",
                    retry_after_s=RETRY_AFTER_S,
                )
            start = f"({entries[-1][0].decode()}"
        return found


def _queued(name: str, entry_id: bytes, fields: dict[bytes, bytes], task: Task | None) -> Queued | None:
    """An entry of the stream, if it is a command about the graph that is to go along."""
    command = task.command if task is not None else parse_command(fields) or parse_remains(fields)
    if command is None or command.graph != name or (task is not None and (task.ended or task.rest is not None)):
        return None
    mark: dict[bytes, bytes] = {LEFT_BEHIND: b"1"} if task is not None and task.redelivered else {}
    return Queued(entry_id, fields | mark, command)


def unavailable(detail: str) -> ServiceError:
    """Without a time to try again: who moves a graph is to hear of it, and not to wait for minutes."""
    return ServiceError("worker_unavailable", detail)


def as_answer(name: str, worker: str, to: str, moved: Moved | None) -> dict[str, Any]:
    """What is answered of a move; None: the graph was there already."""
    said = moved or Moved(0.0, 0, 0)
    figures = {"pause_ms": said.pause_ms, "waiting": said.waiting, "flow_states": said.flow_states}
    return {"name": name, "from": worker, "to": to, "moved": moved is not None} | figures
