"""Short commands of one graph that wait in its lane one behind the other are answered together: questions, or updates.

What they depend on is read in one round trip and their answers are written in another, whatever their number: with
many callers that is most of what a short question costs. Updates, and a single one too, are committed with their
answers. Whatever is not simply answered is tried again by itself.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import islice, takewhile
from typing import Final, TypeAlias

import redis
import structlog

from gpu_engine.errors import Cancelled
from service.protocol import Command, Kind
from service.store.jobs.outcomes import Committed, Over, refuse_decided
from service.store.jobs.record import Result
from service.worker.running.batch import Batch
from service.worker.running.endings import Endings
from service.worker.running.looks import Looks
from service.worker.running.observed import Observer
from service.worker.running.task import Rest, Task

QUESTIONS: Final = frozenset({Kind.MAX_FLOW, Kind.MIN_CUT})
UPDATES: Final = frozenset({Kind.PATCH, Kind.PATCH_COSTS, Kind.PATCH_LOWER, Kind.PATCH_VERTICES})
MOST: Final = 16
"""The most commands that are answered together."""

SHORT_S: Final = 0.02
"""A command that is expected to take longer is answered by itself."""

LONGEST_S: Final = 0.02
"""After this time no further question is begun, because the first one has waited for its answer since."""

Updating: TypeAlias = Callable[[Sequence[Task]], AbstractContextManager[Batch | None]]
"""Runs updates of one graph, or the first ones of those it gets, which are committed within the context; None if the
first one has to be run by itself."""

log = structlog.get_logger(__name__)


class Together:
    """Answers short commands of one worker. Each graph is at work in one thread at a time."""

    def __init__(
        self,
        looks: Looks,
        endings: Endings,
        observer: Observer,
        handler: Callable[[Task], Result | Rest],
        updating: Updating,
        expected_s: Callable[[Command], float],
    ) -> None:
        """`handler` answers a question."""
        self._looks = looks
        self._endings = endings
        self._observer = observer
        self._handler = handler
        self._updating = updating
        self._expected_s = expected_s
        self._lines: dict[str, deque[Task]] = {}
        """The tasks of each graph that have not begun, in order."""
        self._lock = threading.Lock()

    def add(self, task: Task) -> None:
        """Take note of a task that is put into its graph's lane just now."""
        with self._lock:
            self._lines.setdefault(task.command.graph, deque()).append(task)

    def has_answered(self, task: Task) -> bool:
        """Whether the task, which is the next in its lane, was answered together with one before it."""
        with self._lock:
            line = self._lines.get(task.command.graph)
            return not line or line[0] is not task

    def next(self, task: Task) -> list[Task]:
        """Answer the task, which is the next in its lane, together with some behind it; returns those that have ended.

        Empty: it has to be run by itself.
        """
        ended: list[Task] = []
        with self._lock:
            line = self._lines[task.command.graph]
        try:
            with self._lock:
                some = self._chosen(line)
            if len(some) > 1 or (some and some[0].command.kind in UPDATES):
                self._answer(some)
                ended = list(takewhile(lambda task: task.ended, some))
        except Exception:  # otherwise the commands behind it would never be answered
            log.exception("not_answered_together", graph=task.command.graph)
        with self._lock:
            for _ in ended or [task]:
                line.popleft()
            if not line:
                del self._lines[task.command.graph]
        return ended

    def _chosen(self, line: deque[Task]) -> list[Task]:
        """The questions, or the updates, at the front of a lane that may be answered together."""
        kinds = UPDATES if line[0].command.kind in UPDATES else QUESTIONS
        return list(islice(takewhile(lambda task: self._may_be(task, kinds), line), MOST))

    def _may_be(self, task: Task, kinds: frozenset[Kind]) -> bool:
        is_new = task.readable and not (task.redelivered or task.ended or task.control.cancelled)
        return is_new and task.settles and task.command.kind in kinds and self._expected_s(task.command) <= SHORT_S

    def _answer(self, tasks: list[Task]) -> None:
        """Answer as many of the tasks as there is time for, the first ones."""
        commits = tasks[0].command.kind in UPDATES
        with ExitStack() as told:
            try:
                decisions = self._looks.look_at_all(tasks, commits=commits)
                begun = takewhile(lambda each: self._begin(*each, told), zip(tasks, decisions, strict=True))
                if commits:
                    self._update([task for task, _ in begun])
                else:
                    self._endings.succeed_together(self._ask(task for task, _ in begun))
            except redis.RedisError:
                pass  # each by itself, through any absence of Redis
            finally:
                for task in tasks:
                    task.let_go()

    def _begin(self, task: Task, decision: tuple[bytes | None, bytes | None], told: ExitStack) -> bool:
        """Whether the task is to be done, which it is from now on."""
        try:
            refuse_decided(*decision)
        except (Over, Cancelled, Committed):
            return False  # as it will be told when it is tried by itself
        with task.lock:
            if task.ended or task.control.cancelled:
                return False
            told.enter_context(self._observer.observed(task, only_ended=True))
            task.started_at = time.time()
        return True

    def _ask(self, tasks: Iterator[Task]) -> list[tuple[Task, Result]]:
        """Answer questions, each as it is begun, until one has to be tried by itself, or for `LONGEST_S`."""
        began, done = time.monotonic(), list[tuple[Task, Result]]()
        for task in tasks:
            try:
                result = self._handler(task)
            except Exception:  # whatever it is, it will be told when it is tried again
                break
            if isinstance(result, Rest):
                result.close()
                break
            done.append((task, result))
            if time.monotonic() - began > LONGEST_S:
                break
        _share(done)
        return done

    def _update(self, tasks: list[Task]) -> None:
        """Run updates, commit them and end them."""
        if not tasks:
            return
        try:
            with self._updating(tasks) as batch:
                if batch is not None:
                    done = list(zip(tasks, batch.results, strict=False))
                    _share(done)
                    self._endings.commit_together(done, batch)
        except Exception as error:  # what has been committed all the same is found when they are tried again
            log.warning("not_together", graph=tasks[0].command.graph, commands=len(tasks), error=str(error))


def _share(done: Sequence[tuple[Task, Result]]) -> None:
    """The commands were answered together, and share the time that it took."""
    for task, _ in done:
        task.among = len(done)
