"""The worker's side of the queue: read commands, run each graph's in order, end each with exactly one reply.

A command stays pending in the stream until one MULTI ends it: job, reply, XACK and XDEL together. A process that
starts again under the same name first reads what was pending; so does a graph's lane when Redis has been away.
A command may be delivered twice, to two workers even. What it commits says so in its job, in the same MULTI.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import redis
import structlog
from pydantic import ValidationError

from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled, EngineError
from service.errors import ServiceError
from service.metrics import WorkerMetrics
from service.protocol import TERMINAL_STATUSES, Command, Problem, Reply, Status
from service.queue.costs import Costs
from service.queue.lanes import Lanes
from service.queue.results import Result
from service.settings import Settings
from service.store.connection import AWAY, wait_written
from service.store.keys import Keys
from service.store.log import Fenced
from service.tracing import NoTracing, Span, Tracing

GROUP: Final = "worker"
BATCH: Final = 64
BLOCK_MS: Final = 1000
TICK_S: Final = 0.25
RETRY_S: Final = 0.05
REFUSED_S: Final = 0.25
LOOK_BACK_S: Final = 2.0
"""How often to look for pending commands that nobody works on: another process of this name may have read them."""

MAX_ATTEMPTS: Final = 10
"""A command that was delivered so often took the worker down with it: it fails instead."""

RETRIED: Final = frozenset({"worker_unavailable", "engine_error", "out_of_memory"})
"""Not an answer to keep: who repeats a command that ended so, under the same key, has it tried again."""

REPLIES_KEPT: Final = 2000
EVENTS_KEPT: Final = 200
CANCELS_KEPT: Final = 1000

log = structlog.get_logger(__name__)


@dataclass(eq=False, slots=True)
class Task:
    """One delivery of a command."""

    entry_id: bytes
    command: Command
    redelivered: bool
    """It may have run before, wholly or in part."""
    control: Control = field(default_factory=Control)
    started_at: float | None = None
    """Unix seconds."""
    ended: bool = False
    status: Status | None = None
    """Once it has ended here; None if it was handed on."""
    code: str | None = None
    """Of the problem it ended with."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Held to start the task, to end it and to report on it."""


class Forward(Exception):
    """Another worker owns the graph by now."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker


Handler = Callable[[Task], Result]
"""Runs a command; returns its result, or raises EngineError, ServiceError or Forward."""


class Consumer:
    """Reads until `stop`. Threads: the caller's reads commands; one reads cancels, one reports progress."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        worker: str,
        settings: Settings,
        handler: Handler,
        metrics: WorkerMetrics | None = None,
        tracing: Tracing | None = None,
        costs: Costs | None = None,
    ) -> None:
        self._redis: Any = client
        self._keys = keys
        self._worker = worker
        self._settings = settings
        self._handler = handler
        self._metrics = metrics or WorkerMetrics()
        self._tracing = tracing or NoTracing()
        self._costs = costs or Costs()
        self.lanes = Lanes(settings.threads)
        self._tasks: dict[bytes, Task] = {}
        """What was read and has not ended, by stream entry."""
        self._look_back_at = 0.0
        self._tasks_lock = threading.Lock()
        self._room = threading.Semaphore(settings.queue_limit)
        self._stopping = threading.Event()
        self._early_cancels: deque[str] = deque(maxlen=CANCELS_KEPT)

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def run(self) -> None:
        """Until `stop`. Survives any absence of Redis."""
        threads = [
            threading.Thread(target=self._read_control, name="control", daemon=True),
            threading.Thread(target=self._report_progress, name="progress", daemon=True),
        ]
        for thread in threads:
            thread.start()
        last: bytes | None = b"0"  # first what this name left pending
        while not self.stopping:
            try:
                last = self._read(b"0" if self._has_strays() else last)
            except AWAY:
                last = b"0"  # what a lost answer delivered, and what a restored Redis has pending, come before the new
                self._stopping.wait(RETRY_S)
            except redis.ResponseError as error:
                if str(error).startswith("NOGROUP"):
                    self._make_group()
                else:  # a full disk: Redis refuses even to deliver
                    log.warning("cannot_read", worker=self._worker, error=str(error))
                    self._stopping.wait(REFUSED_S)
        self.lanes.close()
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
            self._accept(entry_id, fields, redelivered=last is not None)
        if last is None or not entries:
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

    def _accept(self, entry_id: bytes, fields: dict[bytes, bytes] | None, *, redelivered: bool) -> None:
        command = parse_command(fields)
        if command is None:
            log.error("unreadable_command", entry=entry_id)
            self._redis.xack(self._keys.commands(self._worker), GROUP, entry_id)
            self._redis.xdel(self._keys.commands(self._worker), entry_id)
            self._room.release()
            return
        task = Task(entry_id, command, redelivered)
        with self._tasks_lock:
            self._tasks[entry_id] = task
            if command.id in self._early_cancels:
                task.control.cancel()
        self.lanes.put(command.graph, lambda: self._run_observed(task), lambda: self._costs.expected_s(command))

    def _run(self, task: Task) -> None:
        """The task from first to last, through any absence of Redis; only `stop` leaves it pending."""
        with task.lock:
            task.started_at = time.time()
        try:
            while not (task.ended or self.stopping):
                try:
                    self._attempt(task)
                except (redis.RedisError, Fenced) as error:
                    log.warning("tried_again", command=task.command.id, error=str(error))
                    task.redelivered |= not isinstance(error, AWAY)  # an absence is not the command's fault
                    self._stopping.wait(RETRY_S)
        except Exception:
            log.exception("command_left_pending", command=task.command.id)
        finally:
            with self._tasks_lock:
                del self._tasks[task.entry_id]
            self._room.release()

    def _run_observed(self, task: Task) -> None:
        """`_run`; all that is logged meanwhile carries the command's ids."""
        command = task.command
        ids = {"job_id": command.id, "graph": command.graph, "request_id": command.request_id}
        with (
            structlog.contextvars.bound_contextvars(**{name: value for name, value in ids.items() if value}),
            self._tracing.span(command.kind.value, "consumer", command.traceparent) as span,
        ):
            self._run(task)
            self._tell(task, span, ids)

    def _tell(self, task: Task, span: Span, ids: dict[str, str | None]) -> None:
        """Log, count and trace how a task went."""
        command, started_at = task.command, task.started_at or task.command.created_at
        queue_s, run_s = started_at - command.created_at, time.time() - started_at
        if task.status is not None:
            self._metrics.ended(command.kind, task.status, queue_s, run_s)
        if task.status is Status.SUCCEEDED:
            self._costs.took(command, run_s)
        status = task.status.value if task.status else "left"
        span.note(status=status, code=task.code, queue_ms=1e3 * queue_s, redelivered=task.redelivered, **ids)
        if task.status is Status.FAILED:
            span.failed(task.code or "")
        if self._settings.access_log:
            times = {"ms": round(1e3 * run_s, 2), "queue_ms": round(1e3 * queue_s, 2)}
            code = {"code": task.code} if task.code else {}
            log.info("command", kind=command.kind.value, status=status, **code, **times)

    def _attempt(self, task: Task) -> None:
        try:
            status, committed = self._redis.hmget(self._keys.job(task.command.id), "status", "committed")
            if status is None or Status(status.decode()) in TERMINAL_STATUSES:
                self._drop(task)
                return
            result = self._run_once(task, committed)
        except Forward as forward:
            self._forward(task, forward.worker)
        except (EngineError, ServiceError) as error:
            if not self.stopping:
                self._end(task, None, Problem(code=error.code, detail=str(error), rows=list(error.rows)))
        except (redis.RedisError, Fenced):
            raise
        except Exception as error:
            log.exception("command_failed", command=task.command.id, kind=task.command.kind)
            self._end(task, None, Problem(code="engine_error", detail=f"{type(error).__name__}: {error}"))
        else:
            self._end(task, result, None)

    def _run_once(self, task: Task, committed: bytes | None) -> Result:
        """The result; one that is already committed, by whichever worker, is given again."""
        if committed is not None:
            wait_written(self._redis)
            return Result(committed)
        self._refuse_hopeless(task)
        return self._handler(task)

    def _drop(self, task: Task) -> None:
        """Another delivery of the command has ended it, and what it was about may have changed since."""
        with task.lock, self._redis.pipeline() as pipe:
            self._remove(pipe, task)
            pipe.expire(self._keys.job(task.command.id), self._settings.job_ttl_s)
            pipe.execute()
            task.ended = True

    def _refuse_hopeless(self, task: Task) -> None:
        """Cancelled before it ran, or delivered too often."""
        if task.redelivered:
            job = self._keys.job(task.command.id)
            if self._redis.hexists(job, "cancel"):
                task.control.cancel()
            if self._redis.hincrby(job, "attempts", 1) > MAX_ATTEMPTS:
                raise EngineError(f"the command was tried {MAX_ATTEMPTS} times and never came to an end")
            task.redelivered = False  # counted
        if task.control.cancelled:
            raise Cancelled("cancelled before it ran")

    def _forward(self, task: Task, worker: str) -> None:
        """Hand a command on, in one MULTI."""
        with task.lock, self._redis.pipeline() as pipe:
            pipe.xadd(self._keys.commands(worker), {"command": task.command.model_dump_json()})
            pipe.hset(self._keys.job(task.command.id), "worker", worker)
            pipe.zadd(self._keys.waiting(worker), {task.command.id: task.command.created_at})
            self._remove(pipe, task)
            pipe.execute()
            task.ended = True

    def _end(self, task: Task, result: Result | None, problem: Problem | None) -> None:
        """Job, reply, event and the command's removal in one MULTI."""
        command = task.command
        status = Status.SUCCEEDED if problem is None else Status.FAILED
        if problem is not None and problem.code == "cancelled":
            status = Status.CANCELLED
        header = Reply(id=command.id, status=status, problem=problem).model_dump_json()
        fields: dict[str, str | bytes | float] = {"reply": header}
        if result is not None:
            fields |= result.fields
        ttl_s = self._settings.job_ttl_s
        with task.lock, self._redis.pipeline() as pipe:
            job, events = self._keys.job(command.id), self._keys.events(command.id)
            replies = self._keys.replies(command.reply_to)
            times = {"started_at": task.started_at or command.created_at, "finished_at": time.time()}
            pipe.hset(job, mapping=fields | times | {"status": status.value})
            pipe.expire(job, ttl_s)
            pipe.xadd(replies, {"id": command.id} | fields, maxlen=REPLIES_KEPT, approximate=True)
            pipe.expire(replies, ttl_s)
            pipe.xadd(events, {"event": "done", "data": f'{{"status":"{status}"}}'}, nomkstream=True)
            pipe.expire(events, ttl_s)
            if problem is not None and problem.code in RETRIED and command.idempotency_key is not None:
                pipe.unlink(self._keys.idempotency(command.graph, command.idempotency_key))
            self._remove(pipe, task)
            pipe.execute()
            task.ended, task.status, task.code = True, status, problem.code if problem else None

    def _remove(self, pipe: Any, task: Task) -> None:
        stream = self._keys.commands(self._worker)
        pipe.zrem(self._keys.waiting(self._worker), task.command.id)
        pipe.xack(stream, GROUP, task.entry_id)
        pipe.xdel(stream, task.entry_id)

    def _read_control(self) -> None:
        """Cancel requests, as they come. Older ones left their mark in the jobs themselves."""
        stream, last = self._keys.control(self._worker), None
        while not self.stopping:
            try:
                if last is None:
                    newest = self._redis.xrevrange(stream, count=1)
                    last = newest[0][0] if newest else b"0"
                answer = self._redis.xread({stream: last}, block=BLOCK_MS)
                for entry_id, fields in answer[0][1] if answer else []:
                    last = entry_id
                    self._cancel(fields[b"cancel"].decode())
            except redis.RedisError:
                self._stopping.wait(RETRY_S)

    def _cancel(self, job_id: str) -> None:
        """Stop a running task; end one at once that only waits."""
        with self._tasks_lock:
            tasks = [task for task in self._tasks.values() if task.command.id == job_id]
            if not tasks:
                self._early_cancels.append(job_id)
        for task in tasks:
            task.control.cancel()
            with task.lock:
                if task.started_at is None and not task.ended:
                    self._end(task, None, Problem(code="cancelled", detail="cancelled before it ran"))

    def _report_progress(self) -> None:
        """Say that longer tasks are running, and how far they are."""
        while not self._stopping.wait(TICK_S):
            with self._tasks_lock:
                running = [task for task in self._tasks.values() if task.started_at is not None]
            try:
                for task in running:
                    self._report(task)
            except redis.RedisError:
                continue

    def _report(self, task: Task) -> None:
        """Not for a job that Redis has lost: one that seems to run, and never ends, would be waited for."""
        progress = json.dumps(task.control.progress())
        job, events = self._keys.job(task.command.id), self._keys.events(task.command.id)
        with task.lock, self._redis.pipeline() as pipe:
            if task.ended:
                return
            pipe.watch(job)
            if not pipe.exists(job):
                return
            pipe.multi()
            running = {"status": Status.RUNNING.value, "started_at": task.started_at, "progress": progress}
            pipe.hset(job, mapping=running)
            pipe.xadd(events, {"event": "progress", "data": progress}, maxlen=EVENTS_KEPT, approximate=True)
            pipe.expire(events, self._settings.job_ttl_s)
            pipe.execute()


def parse_command(fields: dict[bytes, bytes] | None) -> Command | None:
    """None for what is no command, such as an entry that was deleted while pending."""
    try:
        return Command.model_validate_json((fields or {})[b"command"])
    except (KeyError, ValidationError):
        return None
