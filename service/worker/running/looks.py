"""What is read of a command and its graph as a try of it begins: one round trip for all that the try will need."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import redis

from gpu_engine.errors import EngineError
from service.store.held import before_found, found
from service.store.jobs.transitions import before_try, count_attempt
from service.store.keys import Keys
from service.store.watched import Read, watched
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
        (decision,) = self.look_at_all([task])
        return decision

    def look_at_all(self, tasks: Sequence[Task]) -> list[tuple[bytes | None, bytes | None]]:
        """`look` for several commands of one graph, which then share a connection."""
        graph, pipe = tasks[0].command.graph, self._redis.pipeline()
        guess = self._graph_id(graph) if tasks[0].rest is None else None
        looks = [Look(pipe, found=None, is_followed=True) for _ in tasks]
        names: list[str] = []
        reads: list[Read] = []
        for task, look in zip(tasks, looks, strict=True):
            task.look = look
            its_names, its_reads = before_try(self._keys, task.command.id)
            names += its_names
            reads += its_reads
        answers = iter(watched(pipe, names, *reads, *(before_found(self._keys, graph, guess) if guess else ())))
        decisions: list[tuple[bytes | None, bytes | None]] = []
        for look in looks:
            outcome, status, followed = islice(answers, 3)
            look.is_followed = bool(followed)
            decisions.append((outcome, status))
        if guess:
            row = list(answers)
            for look in looks:
                look.found = found(guess, row)
        return decisions

    def count_delivery(self, task: Task, most: int) -> None:
        """Count the delivery of a command that was left behind. Raises `EngineError` if that was so more than `most`
        times."""
        if not task.redelivered:
            return
        if count_attempt(self._redis, self._keys, task.command.id) > most:
            raise EngineError(f"the command was tried {most} times and never came to an end")
        task.redelivered = False  # counted
