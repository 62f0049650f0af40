"""The worker's side of the queue: read commands, run each graph's in order, end each with exactly one reply.

A command stays pending in the stream until one MULTI ends it: job, reply, XACK and XDEL together. A process that
starts again under the same name first reads what was pending; so does a graph's lane when Redis has been away.
A command may be delivered twice, to two workers even. Each delivery first looks at what was decided about the command:
whether it was cancelled or has committed (`service.store.jobs.outcomes`).
"""

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from itertools import count
from typing import Any, Final

import redis
import structlog

from service.protocol import Problem
from service.settings import Settings
from service.store.connection import AWAY
from service.store.durable import Written
from service.store.jobs.record import settles
from service.store.jobs.transitions import GROUP
from service.store.keys import Keys
from service.telemetry.tracing import NoTracing, Tracing
from service.worker.metrics import WorkerMetrics
from service.worker.running.absence import Absence
from service.worker.running.control import ControlStream
from service.worker.running.costs import Costs
from service.worker.running.endings import Endings
from service.worker.running.lanes import SHORT_S, Lanes
from service.worker.running.looks import Looks
from service.worker.running.observed import Observer
from service.worker.running.progress import TICK_S, Progress
from service.worker.running.task import LEFT_BEHIND, Task, parse_command, parse_remains
from service.worker.running.together import Together, Updating
from service.worker.running.tries import RETRY_S, Handler, Tries

BATCH: Final = 64
BLOCK_MS: Final = 1000
REFUSED_S: Final = 0.25
LOOK_BACK_S: Final = 2.0
"""How often to look for pending commands that nobody works on: another process of this name may have read them."""

log = structlog.get_logger(__name__)


class Consumer:
    """Reads and runs commands until `stop`. The thread that calls `run` reads; cancels and progress have others."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        worker: str,
        settings: Settings,
        handler: Handler,
        updating: Updating = lambda tasks: nullcontext(None),
        metrics: WorkerMetrics | None = None,
        tracing: Tracing | None = None,
        costs: Costs | None = None,
        lanes: Lanes | None = None,
        on_restore: Callable[[str, str], None] = lambda graph, reply: None,
        on_arrival: Callable[[str], None] = lambda graph: None,
        graph_id: Callable[[str], str | None] = lambda graph: None,
        may_be_lost: Callable[[str], bool] = lambda graph: False,
        on_prepare: Callable[[str, str], None] = lambda graph, reply: None,
        has_lost_device: Callable[[], bool] = lambda: False,
    ) -> None:
        """`updating` runs updates of one graph, or the first ones of those it gets. `on_restore` is told of each graph
        that another worker has handed over, `on_prepare` of each that one is about to hand over, `on_arrival` of each
        graph that a command has come for; `graph_id` says which graph of a name is in memory, and `may_be_lost` whether
        Redis may lose the version that it is at. `has_lost_device` is asked when a command has failed for a reason that
        nobody foresaw: if so, it has called `stop`."""
        self._redis: Any = client
        self._keys = keys
        self._worker = worker
        written = Written(client, keys)
        self._endings = Endings(client, keys, worker, settings, written, may_be_lost)
        self._progress = Progress(client, keys, settings)
        self._costs = costs or Costs()
        self._observer = Observer(metrics or WorkerMetrics(), tracing or NoTracing(), self._costs, settings.access_log)
        self._lanes = lanes or Lanes(settings.threads)
        self._beside = Lanes(settings.question_threads)
        self._n_beside, self._turns = settings.question_threads, count()
        self._tasks: dict[bytes, Task] = {}
        """Tasks that were read and have not ended, by stream entry."""
        self._look_back_at = 0.0
        self._tasks_lock = threading.Lock()
        self._room = threading.Semaphore(settings.queue_limit)
        self._stopping = threading.Event()
        self._control = ControlStream(client, keys, worker, self._cancel, on_restore, on_prepare)
        self._on_arrival = on_arrival
        looks = Looks(client, keys, written, graph_id)
        self._tries = Tries(looks, self._endings, written, handler, self._stopping, has_lost_device)
        answering = handler, updating, self._costs.expected_s
        self._together = Together(looks, self._endings, self._observer, *answering)
        self._inherits = True
        """Whether there may be commands, not read yet, that earlier processes of this name left behind."""

    def tasks(self) -> dict[bytes, Task]:
        """The tasks that were read and have not ended, by stream entry."""
        with self._tasks_lock:
            return dict(self._tasks)

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def listen(self) -> None:
        """What is said to the worker from now on is heard once it runs. Raises RedisError."""
        self._control.begin()

    def run(self) -> None:
        """Read and run commands until `stop`, through any absence of Redis."""
        sides = ("control", partial(self._control.read, self._stopping)), ("progress", self._report_progress)
        threads = [threading.Thread(target=target, name=name, daemon=True) for name, target in sides]
        for thread in threads:
            thread.start()
        last: bytes | None = b"0"  # first what this name left pending
        absence = Absence(self._worker)
        while not self.stopping:
            for lanes in (self._lanes, self._beside):
                lanes.look_again()
            try:
                last = self._read(b"0" if self._has_strays() else last)
                absence.is_over()
            except AWAY as error:
                absence.goes_on(error)
                last = b"0"  # what a lost answer delivered, and what a restored Redis has pending, come before the new
                self._stopping.wait(RETRY_S)
            except redis.ResponseError as error:
                if str(error).startswith("NOGROUP"):
                    self._make_group()
                else:  # Redis does not let its user read, say
                    absence.goes_on(error)
                    self._stopping.wait(REFUSED_S)
        self._lanes.close()
        self._beside.close()
        for thread in threads:
            thread.join()

    def stop(self) -> None:
        """Let go of what runs: it stays pending and is run again by whoever has this name next."""
        self._stopping.set()
        with self._tasks_lock:
            for task in self._tasks.values():
                task.control.cancel()

    def _make_group(self) -> None:
        try:
            self._redis.xgroup_create(self._keys.commands(self._worker), GROUP, id="0", mkstream=True)
        except redis.RedisError as error:  # the next read asks for it again
            if not str(error).startswith("BUSYGROUP"):
                log.warning("no_group", worker=self._worker, error=str(error))
                self._stopping.wait(RETRY_S)

    def _read(self, last: bytes | None) -> bytes | None:
        """Read one batch: pending entries after `last`, or new ones (None). Returns where to go on."""
        stream = self._keys.commands(self._worker)
        start: bytes | str = ">" if last is None else last
        answer = self._redis.xreadgroup(GROUP, self._worker, {stream: start}, count=BATCH, block=BLOCK_MS)
        entries = answer[0][1] if answer else []
        for entry_id, fields in entries:
            if entry_id in self._tasks:
                continue
            while not self._room.acquire(timeout=1):
                if self.stopping:
                    return None
            self._accept(entry_id, fields)
        if last is None:
            return None
        if not entries:
            self._inherits = False
            return None
        return bytes(entries[-1][0])

    def _has_strays(self) -> bool:
        """Whether more is pending under this name than this process works on. One round trip, now and then."""
        if time.monotonic() < self._look_back_at:
            return False
        self._look_back_at = time.monotonic() + LOOK_BACK_S
        pending = self._redis.xpending(self._keys.commands(self._worker), GROUP)["pending"]
        with self._tasks_lock:
            return bool(pending > len(self._tasks))

    def _accept(self, entry_id: bytes, fields: dict[bytes, bytes] | None) -> None:
        read = parse_command(fields)
        command = read or parse_remains(fields)
        if read is None:
            log.error("unreadable_command", entry=entry_id, job_id=command and command.id)
        if command is None:  # nobody can be told
            self._room.release()
            self._redis.xack(self._keys.commands(self._worker), GROUP, entry_id)
            self._redis.xdel(self._keys.commands(self._worker), entry_id)
            return
        redelivered = self._inherits or LEFT_BEHIND in (fields or {})
        task = Task(entry_id, command, redelivered, readable=read is not None, settles=settles(fields or {}))
        with self._tasks_lock:
            self._tasks[entry_id] = task
        self._together.add(task)
        self._lanes.put(
            command.graph,
            lambda: self._run_next(task),
            lambda: self._costs.expected_s(command),
            lambda: self._together.has_answered(task),
        )
        self._on_arrival(command.graph)

    def _run_next(self, task: Task) -> None:
        ended = self._together.next(task)
        if not ended:
            self._run_in_lane(task)
        for other in ended:
            self._forget(other)

    def _run_in_lane(self, task: Task) -> None:
        with self._observer.observed(task):
            with task.lock:
                task.started_at = time.time()
            self._tries.run(task)
        if task.rest is None:
            self._forget(task)
            return
        expected_s = task.rest.expected_s
        self._beside.put(self._lane_beside(task, expected_s), lambda: self._run_beside(task), lambda: expected_s)

    def _lane_beside(self, task: Task, expected_s: float) -> str:
        """One of the graph, which takes turns with those of others, for what is long: there are as many of each graph
        as questions are answered side by side. What is short waits for nothing of its graph either."""
        if expected_s <= SHORT_S:
            return task.command.id
        return f"{task.command.graph} {next(self._turns) % self._n_beside}"

    def _run_beside(self, task: Task) -> None:
        """Do the rest of a task, and give back what it holds, once."""
        with task.lock:
            if task.is_beside:  # it was cancelled while it waited
                return
            task.is_beside = True
        try:
            with self._observer.observed(task):
                self._tries.run(task)
        finally:
            self._close_rest(task)

    def _close_rest(self, task: Task) -> None:
        """Give back what the rest of a task holds, and forget the task whatever that comes to."""
        assert task.rest is not None
        try:
            task.rest.close()
        finally:
            self._forget(task)

    def _forget(self, task: Task) -> None:
        with self._tasks_lock:
            del self._tasks[task.entry_id]
        self._room.release()

    def _cancel(self, job_id: str) -> None:
        """Stop a running task; end one at once that only waits, and have it hold nothing any more."""
        with self._tasks_lock:
            tasks = [task for task in self._tasks.values() if task.command.id == job_id]
        for task in tasks:
            task.control.cancel()
            with task.lock:
                if task.waits and not task.ended:
                    self._endings.refuse(task, Problem(code="cancelled", detail="cancelled before it ran"))
            if task.ended and task.rest is not None:
                self._run_beside(task)

    def _report_progress(self) -> None:
        """Say that longer tasks are running, and how far they are; stop those whose cancel went to another worker."""
        while not self._stopping.wait(TICK_S):
            with self._tasks_lock:
                running = [task for task in self._tasks.values() if task.started_at is not None]
            for task in running:
                with suppress(redis.RedisError):
                    self._progress.report(task)
