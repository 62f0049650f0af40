"""How a delivery ends: with a result or a problem, dropped, or handed on. Each way is one MULTI."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final

import redis

from gpu_engine.errors import Cancelled
from service.protocol import Kind, Problem, Reply, Status
from service.settings import Settings
from service.store.catalogue import Registry
from service.store.durable import Written
from service.store.jobs import transitions
from service.store.jobs.idempotency import key_name, stands_for
from service.store.jobs.outcomes import Committed, Over, is_over, refuse_decided
from service.store.jobs.record import Result
from service.store.jobs.transitions import End, Entry
from service.store.keys import Keys
from service.store.watched import watched
from service.worker.running.batch import Batch
from service.worker.running.task import Look, Task

TRIES: Final = 5
"""How often an end with a result is tried when the job changes meanwhile."""


class Endings:
    """Ends the commands of one worker. Raises RedisError; then it is not known whether the command has ended."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        worker: str,
        settings: Settings,
        written: Written,
        may_be_lost: Callable[[str], bool] = lambda graph: False,
    ) -> None:
        """`may_be_lost` says whether Redis may lose the version that a graph is at: whoever is told of that version
        waits until it cannot."""
        self._redis: Any = client
        self._keys = keys
        self._worker = worker
        self._settings = settings
        self._may_be_lost = may_be_lost
        self._registry = Registry(client, keys)
        self._written = written

    def succeed(self, task: Task, result: Result) -> None:
        """End a command with its result, unless it is over: another worker, which took this one for dead, has answered.

        Raises WatchError, and nothing is written, if the job changes each time. Cost: one round trip, or three if the
        job has changed since the try began.
        """
        with task.lock:
            may_be_told = task.settles or not self._may_be_lost(task.command.graph)
            if task.look is not None and may_be_told and self._succeed_as_seen(task, task.look, result):
                return
            self._succeed(task, result)

    def _succeed_as_seen(self, task: Task, look: Look, result: Result) -> bool:
        """End a command whose job is what it was as the try began. False if it is not, or that is not known."""
        try:
            look.pipe.multi()
            self._end(look.pipe, task, result, None, followed=look.is_followed)
        except redis.WatchError:  # the library says so of a lost connection as well
            return False
        return True

    def succeed_together(self, done: Sequence[tuple[Task, Result]]) -> None:
        """End commands that were looked at together, in one MULTI; each by itself if the job of any has changed since.

        A job changes when its progress is written, say. Raises WatchError as `succeed` does: some may have ended then.
        """
        with ExitStack() as locks:
            for task, _ in done:
                locks.enter_context(task.lock)
            looks = _looks_at(done)
            if looks and not self._finish_as_seen(done, looks):
                for task, result in done:
                    self._succeed(task, result)

    def commit_together(self, done: Sequence[tuple[Task, Result]], batch: Batch) -> None:
        """Commit the updates of these commands and end them, in one MULTI, if all is as it was looked at; else the one
        after the other. Raises RedisError, and what `Batch.commit` raises. Cost: one round trip."""
        with ExitStack() as locks:
            for task, _ in done:
                locks.enter_context(task.lock)
            looks, began = _looks_at(done), time.perf_counter()
            if looks and self._finish_as_seen(done, looks, batch):
                batch.arrived(time.perf_counter() - began)
                return
        batch.commit()
        for task, result in done:
            with task.lock:
                self._succeed(task, result)

    def _finish_as_seen(
        self, done: Sequence[tuple[Task, Result]], looks: Sequence[Look], batch: Batch | None = None
    ) -> bool:
        """End commands, and commit what they have done, if nothing is watched that has changed. False if something has,
        or it is not known."""
        pipe = looks[0].pipe
        try:
            pipe.multi()
            if batch is not None:
                batch.queue(pipe)
            ends = [
                self._end_of(task, result, None, followed=look.is_followed, commits=batch is not None)
                for (task, result), look in zip(done, looks, strict=True)
            ]
            transitions.finish(pipe, self._keys, self._worker, ends, self._settings.job_ttl_s)
            pipe.execute()
        except redis.WatchError:  # the library says so of a lost connection as well
            return False
        for task, _ in done:
            task.ended, task.status = True, Status.SUCCEEDED
        return True

    def keep(self, task: Task) -> None:
        """Wait until Redis cannot lose the version that the command was done at, if it may, in this try of it.

        Raises `Restarted`: it may have been lost since the try began. Cost: one round trip, if any.
        """
        if task.look is not None and task.rest is None and self._may_be_lost(task.command.graph):
            self._written.wait(task.look.run)

    def _succeed(self, task: Task, result: Result) -> None:
        """Raises `Restarted` as well, as `keep` does."""
        self.keep(task)
        with self._redis.pipeline() as pipe:
            for tries_left in reversed(range(TRIES)):
                try:
                    (status,) = watched(pipe, *transitions.before_success(self._keys, task.command.id))
                    if is_over(status):
                        self.drop(task)
                        return
                    pipe.multi()
                    self._end(pipe, task, result, None)
                    return
                except redis.WatchError:  # it was handed on, say
                    if not tries_left:
                        raise

    def refuse(self, task: Task, problem: Problem) -> None:
        """End a command without a result, unless it has one all the same: from an earlier try, or another worker.

        Raises WatchError, and nothing is written, if another worker ends it meanwhile.
        """
        command, run = task.command, self._written.run()
        with task.lock, self._redis.pipeline() as pipe:
            names, reads = transitions.before_refusal(self._keys, command)
            outcome, status, known = watched(pipe, names, *reads)
            result: Result | None = None
            left: Problem | None = problem
            try:
                refuse_decided(outcome, status)
            except Over:
                self.drop(task)
                return
            except Committed as done:
                self._written.wait(run)
                result, left = Result.of_commit(done.result), None
            except Cancelled:
                pass  # it ends without a result, whatever the reason
            if left is not None and command.kind is Kind.LOAD:  # before its caller hears of it
                self._registry.disown(command.graph, self._worker)
            pipe.multi()
            key = key_name(self._keys, command.graph, command.idempotency_key)
            self._end(pipe, task, result, left, keyed=stands_for(known, key, command.id))

    def drop(self, task: Task) -> None:
        """Drop a delivery: another one has ended the command, and what it was about may have changed since."""
        with task.lock, self._redis.pipeline() as pipe:
            transitions.drop(pipe, self._keys, task.command, self._entry(task), self._settings.job_ttl_s)
            pipe.execute()
            task.ended = True

    def forward(self, task: Task, worker: str) -> None:
        """Hand a command on, in one MULTI."""
        with task.lock, self._redis.pipeline() as pipe:
            transitions.forward(pipe, self._keys, task.command, self._entry(task), worker)
            pipe.execute()
            task.ended = True

    def _end(
        self,
        pipe: Any,
        task: Task,
        result: Result | None,
        problem: Problem | None,
        *,
        keyed: bool = True,
        followed: bool = True,
    ) -> None:
        """Write job, reply and event, and remove the command, in one MULTI; see `transitions.finish`."""
        end = self._end_of(task, result, problem, keyed=keyed, followed=followed)
        transitions.finish(pipe, self._keys, self._worker, [end], self._settings.job_ttl_s)
        pipe.execute()
        task.ended, task.status, task.code = True, end.header.status, problem.code if problem else None

    def _end_of(
        self,
        task: Task,
        result: Result | None,
        problem: Problem | None,
        *,
        keyed: bool = True,
        followed: bool = True,
        commits: bool = False,
    ) -> End:
        command = task.command
        status = Status.SUCCEEDED if problem is None else Status.FAILED
        if problem is not None and problem.code == "cancelled":
            status = Status.CANCELLED
        header = Reply(id=command.id, status=status, problem=problem)
        times = task.started_at or command.created_at, time.time()
        unwritten = commits or self._may_be_lost(command.graph)
        return End(command, task.entry_id, header, result, *times, keyed, followed, unwritten)

    def _entry(self, task: Task) -> Entry:
        return Entry(self._worker, task.entry_id)


def _looks_at(done: Sequence[tuple[Task, Result]]) -> list[Look]:
    """What was seen of each of the commands; none if one of them has ended, or was not looked at."""
    looks = [task.look for task, _ in done if task.look is not None and not task.ended]
    return looks if len(looks) == len(done) else []
