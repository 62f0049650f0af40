"""How a delivery ends: with a result or a problem, dropped, or handed on. Each way is one MULTI."""

import json
import time
from typing import Any, Final, TypeAlias

import redis

from gpu_engine.errors import Cancelled
from service.protocol import Kind, Problem, Reply, Status
from service.settings import Settings
from service.store.catalogue import Registry
from service.store.keys import Keys
from service.store.outcomes import Committed, Over, refuse_decided
from service.store.watched import watched
from service.store.written import wait_written
from service.worker.running.results import Result
from service.worker.running.task import GROUP, Task

RETRIED: Final = frozenset({"worker_unavailable", "engine_error", "out_of_memory", "internal_error"})
"""Not an answer to keep: who repeats a command that ended so, under the same key, has it tried again."""

REPLIES_KEPT: Final = 2000

Fields: TypeAlias = dict[str, str | bytes | float]
"""What a reply, and the job's hash, are to have beside what every command has."""


class Endings:
    """Of one worker's deliveries. Raises RedisError; then it is not known whether the command has ended."""

    def __init__(self, client: redis.Redis, keys: Keys, worker: str, settings: Settings) -> None:
        self._redis: Any = client
        self._keys = keys
        self._worker = worker
        self._settings = settings
        self._registry = Registry(client, keys)

    def succeed(self, task: Task, result: Result) -> None:
        with task.lock, self._redis.pipeline() as pipe:
            self._end(pipe, task, result.fields, None)

    def refuse(self, task: Task, problem: Problem) -> None:
        """End a command without a result, unless it has one all the same: from an earlier try, or another worker.

        Raises WatchError, and nothing is written, if another worker ends it meanwhile.
        """
        command = task.command
        outcome_key, job = self._keys.outcome(command.id), self._keys.job(command.id)
        name = self._keys.idempotency(command.graph, command.idempotency_key or "")
        with task.lock, self._redis.pipeline() as pipe:
            keys = [outcome_key, job] if command.idempotency_key is None else [outcome_key, job, name]
            reads = (("GET", outcome_key), ("HGET", job, "status"), ("GET", name))
            outcome, status, known = watched(pipe, keys, *reads)
            result: Fields = {}
            left: Problem | None = problem
            try:
                refuse_decided(outcome, status)
            except Over:
                self.drop(task)
                return
            except Committed as done:
                wait_written(self._redis, self._keys)
                result, left = {"result": done.result}, None
            except Cancelled:
                pass  # it ends without a result, whatever the reason
            if left is not None and command.kind is Kind.LOAD:  # before its caller hears of it
                self._registry.disown(command.graph, self._worker)
            pipe.multi()
            self._end(pipe, task, result, left, keyed=known is not None and json.loads(known)["job"] == command.id)

    def drop(self, task: Task) -> None:
        """Another delivery of the command has ended it, and what it was about may have changed since."""
        with task.lock, self._redis.pipeline() as pipe:
            self._remove(pipe, task)
            pipe.unlink(self._keys.outcome(task.command.id))
            pipe.expire(self._keys.job(task.command.id), self._settings.job_ttl_s)
            pipe.execute()
            task.ended = True

    def forward(self, task: Task, worker: str) -> None:
        """Hand a command on, in one MULTI."""
        with task.lock, self._redis.pipeline() as pipe:
            pipe.xadd(self._keys.commands(worker), {"command": task.command.model_dump_json()})
            pipe.hset(self._keys.job(task.command.id), "worker", worker)
            pipe.zadd(self._keys.waiting(worker), {task.command.id: task.command.created_at})
            self._remove(pipe, task)
            pipe.execute()
            task.ended = True

    def _end(self, pipe: Any, task: Task, result: Fields, problem: Problem | None, keyed: bool = True) -> None:
        """Job, reply, event and the command's removal in one MULTI.

        `keyed` False: the Idempotency-Key does not stand for this command any more, and is left alone.
        """
        command = task.command
        status = Status.SUCCEEDED if problem is None else Status.FAILED
        if problem is not None and problem.code == "cancelled":
            status = Status.CANCELLED
        header = Reply(id=command.id, status=status, problem=problem).model_dump_json()
        fields: Fields = {"reply": header} | result
        ttl_s = self._settings.job_ttl_s
        job, events = self._keys.job(command.id), self._keys.events(command.id)
        replies = self._keys.replies(command.reply_to)
        times = {"started_at": task.started_at or command.created_at, "finished_at": time.time()}
        pipe.hset(job, mapping=fields | times | {"status": status.value})
        pipe.expire(job, ttl_s)
        pipe.unlink(self._keys.outcome(command.id))
        if command.reply_to:  # who wrote one that cannot be read may not have said it where we look
            pipe.xadd(replies, {"id": command.id} | fields, maxlen=REPLIES_KEPT, approximate=True)
            pipe.expire(replies, ttl_s)
        pipe.xadd(events, {"event": "done", "data": f'{{"status":"{status}"}}'}, nomkstream=True)
        pipe.expire(events, ttl_s)
        if keyed and command.idempotency_key is not None:
            name = self._keys.idempotency(command.graph, command.idempotency_key)
            if problem is not None and problem.code in RETRIED:
                pipe.unlink(name)
            else:
                pipe.expire(name, ttl_s)
        self._remove(pipe, task)
        pipe.execute()
        task.ended, task.status, task.code = True, status, problem.code if problem else None

    def _remove(self, pipe: Any, task: Task) -> None:
        stream = self._keys.commands(self._worker)
        pipe.zrem(self._keys.waiting(self._worker), task.command.id)
        pipe.xack(stream, GROUP, task.entry_id)
        pipe.xdel(stream, task.entry_id)
