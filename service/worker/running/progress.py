"""How far longer tasks are, for whoever follows them; and the last chance to hear of a cancel."""

import json
from typing import Any, Final

import redis

from service.protocol import Status
from service.settings import Settings
from service.store.keys import Keys
from service.store.outcomes import CANCELLED, is_over
from service.store.watched import watched
from service.worker.running.task import Task

TICK_S: Final = 0.25
"""How often each task that runs is reported."""

EVENTS_KEPT: Final = 200


class Progress:
    """Writes reports. Raises RedisError."""

    def __init__(self, client: redis.Redis, keys: Keys, settings: Settings) -> None:
        self._redis: Any = client
        self._keys = keys
        self._settings = settings

    def report(self, task: Task) -> None:
        """Not for a job that is over or lost: one that seems to run would be waited for, or even be done again."""
        progress = json.dumps(task.control.progress())
        job, events = self._keys.job(task.command.id), self._keys.events(task.command.id)
        with task.lock, self._redis.pipeline() as pipe:
            if task.ended:
                return
            outcome_key = self._keys.outcome(task.command.id)
            outcome, status = watched(pipe, [job], ("GET", outcome_key), ("HGET", job, "status"))
            if outcome == CANCELLED or is_over(status):
                task.control.cancel()
            if is_over(status):
                return
            pipe.multi()
            running = {"status": Status.RUNNING.value, "started_at": task.started_at, "progress": progress}
            pipe.hset(job, mapping=running)
            pipe.xadd(events, {"event": "progress", "data": progress}, maxlen=EVENTS_KEPT, approximate=True)
            pipe.expire(events, self._settings.job_ttl_s)
            pipe.execute()
