"""What is read of a command and its graph as a try of it begins: one round trip for all that the try will need."""

from collections.abc import Callable
from typing import Any

import redis

from service.store.held import before_found, found
from service.store.jobs.transitions import before_try
from service.store.keys import Keys
from service.store.watched import watched
from service.worker.running.task import Look, Task


class Looks:
    """Looks at the commands of one worker. Raises RedisError."""

    def __init__(self, client: redis.Redis, keys: Keys, graph_id: Callable[[str], str | None]) -> None:
        """`graph_id` says which graph of a name is in memory."""
        self._redis: Any = client
        self._keys = keys
        self._graph_id = graph_id

    def look(self, task: Task) -> tuple[bytes | None, bytes | None]:
        """The outcome and the status of the command, for `refuse_decided`; all else is left in the task.

        The job is watched from before it was read until the try is over, so that its end need not look again.
        """
        guess = self._graph_id(task.command.graph) if task.rest is None else None
        names, reads = before_try(self._keys, task.command.id)
        of_graph = before_found(self._keys, task.command.graph, guess) if guess else ()
        task.look = Look(self._redis.pipeline(), found=None, is_followed=True)
        outcome, status, followed, *row = watched(task.look.pipe, names, *reads, *of_graph)
        task.look.is_followed = bool(followed)
        task.look.found = found(guess, row) if guess else None
        return outcome, status
