"""How far longer tasks are, for whoever follows them; and the last chance to hear of a cancel."""

from typing import Any, Final

import redis

from service.settings import Settings
from service.store.jobs import transitions
from service.store.jobs.outcomes import CANCELLED, is_over
from service.store.keys import Keys
from service.store.watched import watched
from service.worker.running.task import Task

TICK_S: Final = 0.25
"""How often each task that runs is reported."""


class Progress:
    """Writes how far tasks are into their jobs. Raises RedisError."""

    def __init__(self, client: redis.Redis, keys: Keys, settings: Settings) -> None:
        self._redis: Any = client
        self._keys = keys
        self._settings = settings

    def report(self, task: Task) -> None:
        """Report one task, unless its job is over or lost: one that seems to run would be waited for, or done again.

        Lines of its answer that are there are written, for whoever reads them meanwhile.
        """
        counters, job_id = task.progress(), task.command.id
        draft = None if task.draft is None else task.draft.tell()
        with task.lock, self._redis.pipeline() as pipe:
            if task.ended or task.started_at is None:
                return
            names, reads = transitions.before_report(self._keys, job_id)
            outcome, status = watched(pipe, names, *reads)
            if outcome == CANCELLED or is_over(status):
                task.control.cancel()
            if is_over(status):
                return
            pipe.multi()
            ttl_s = self._settings.job_ttl_s
            transitions.report(pipe, self._keys, job_id, task.started_at, counters, ttl_s, draft)
            pipe.execute()
