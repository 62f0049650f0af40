"""How one command is run until it has ended: tried again where Redis was away or others changed what it is about."""

import threading
from collections.abc import Callable
from typing import Final

import redis
import structlog
from pydantic import ValidationError

from gpu_engine.errors import Cancelled, EngineError
from service.errors import ServiceError
from service.protocol import Problem
from service.store.applied import Fenced
from service.store.connection import is_away, is_of_wrong_type, why_away
from service.store.durable import Written
from service.store.jobs.outcomes import Committed, Over, refuse_decided
from service.store.jobs.record import Result
from service.worker.running.endings import Endings
from service.worker.running.looks import Looks
from service.worker.running.task import UNREADABLE, Forward, Rest, Task

RETRY_S: Final = 0.05
MAX_ATTEMPTS: Final = 10
"""A command that this many processes left behind when they ended is taken to be the cause: it fails, and is not run
again."""

MAX_SETBACKS: Final = 20
"""How often one delivery is tried again because others changed the graph meanwhile, or Redis refused something."""

WRONG_TYPE_TRIES: Final = 3
"""`MAX_SETBACKS` if a key in Redis has another type than it should have, which does not change by itself."""

LONGEST_RETRY_S: Final = 1.0

WRONG_TYPE: Final = "a key in Redis that this needs holds something of another kind: somebody has written it by hand"
KEEPS_CHANGING: Final = "others keep changing what the command is about; send it again"

log = structlog.get_logger(__name__)

Handler = Callable[[Task], Result | Rest]
"""Runs a command; returns its result, or what is left to do beside the graph's lane. Raises EngineError, ServiceError
or Forward."""


class Tries:
    """Runs commands of one worker, each in the thread that asks."""

    def __init__(
        self,
        looks: Looks,
        endings: Endings,
        written: Written,
        handler: Handler,
        stopping: threading.Event,
        has_lost_device: Callable[[], bool],
    ) -> None:
        self._looks = looks
        self._endings = endings
        self._written = written
        self._handler = handler
        self._stopping = stopping
        self._has_lost_device = has_lost_device

    def run(self, task: Task) -> None:
        """Run the task until it has ended or is to leave its lane, through any absence of Redis, or until `stop`."""
        setbacks, why, told = 0, KEEPS_CHANGING, set[tuple[type[Exception], str]]()
        try:
            while not (task.ended or self._stopping.is_set() or (task.rest and not task.is_beside)):
                try:
                    if setbacks > MAX_SETBACKS:
                        self._endings.refuse(task, Problem(code="worker_unavailable", detail=why))
                    else:
                        self._attempt(task)
                except (redis.RedisError, Fenced) as error:
                    reason = type(error), why_away(error)
                    if reason not in told:  # once, however long an absence is, and whichever commands it refuses
                        told.add(reason)
                        log.warning("tried_again", command=task.command.id, error=str(error))
                    setbacks += not is_away(error)  # an absence is sat out, however long it is
                    why = why_away(error) if isinstance(error, redis.ResponseError) else KEEPS_CHANGING
                    if is_of_wrong_type(error):  # which may have refused a part of a commit, and not the commit
                        setbacks, why = setbacks + MAX_SETBACKS // WRONG_TYPE_TRIES, WRONG_TYPE
                    self._stopping.wait(min(RETRY_S * 2**setbacks, LONGEST_RETRY_S))
                finally:
                    task.let_go()
        except Exception:
            log.exception("command_left_pending", command=task.command.id)

    def _attempt(self, task: Task) -> None:
        try:
            result = self._run_undecided(task)
        except Over:
            self._endings.drop(task)
        except Forward as forward:
            self._endings.forward(task, forward.worker)
        except (EngineError, ServiceError) as error:
            if not self._stopping.is_set():
                self._endings.refuse(task, Problem(code=error.code, detail=str(error), **error.where.members()))
        except (redis.RedisError, Fenced):
            raise
        except ValidationError:  # its arguments have what only another release knows of
            log.exception("unreadable_command", command=task.command.id, kind=task.command.kind)
            self._endings.refuse(task, Problem(code="internal_error", detail=UNREADABLE))
        except Exception as error:
            if self._has_lost_device():
                return  # pending, for the next process of this name or for another worker
            log.exception("command_failed", command=task.command.id, kind=task.command.kind)
            self._endings.refuse(task, Problem(code="engine_error", detail=f"{type(error).__name__}: {error}"))
        else:
            if isinstance(result, Rest):
                self._leave_lane(task, result)
            else:
                self._endings.succeed(task, result)

    def _leave_lane(self, task: Task, rest: Rest) -> None:
        """Have the rest done beside the lane, once Redis cannot lose the version of the graph that it is about: its
        rows may be read, and its answer come, long after another version has taken that number."""
        try:
            self._endings.keep(task)
        except BaseException:
            rest.close()
            raise
        task.rest = rest

    def _run_undecided(self, task: Task) -> Result | Rest:
        """Run the command once. A result that is already committed, by whichever worker, is given again."""
        run = self._written.run()
        try:
            refuse_decided(*self._looks.look(task))
            if not task.readable:
                raise ServiceError("internal_error", UNREADABLE)
            self._looks.count_delivery(task, MAX_ATTEMPTS)
            if task.control.cancelled:
                raise Cancelled("cancelled before it ran")
            return self._handler(task) if task.rest is None else task.rest.work()
        except Committed as done:
            self._written.wait(run)
            return Result.of_commit(done.result)
