"""What is read of a command and its graph as a try of it begins: one round trip for all that the try will need."""

from collections.abc import Callable, Sequence
from typing import Any

import redis

from gpu_engine.errors import EngineError
from service.store.durable import Written
from service.store.held import before_found, found
from service.store.jobs.outcomes import outcome_key
from service.store.jobs.transitions import before_try, count_attempt
from service.store.keys import Keys
from service.store.watched import watched
from service.worker.running.task import Look, Task


class Looks:
    """Looks at the commands of one worker. Raises RedisError."""

    def __init__(
        self, client: redis.Redis, keys: Keys, written: Written, graph_id: Callable[[str], str | None]
    ) -> None:
        """`graph_id` says which graph of a name is in memory."""
        self._redis: Any = client
        self._keys = keys
        self._graph_id = graph_id
        self._written = written

    def look(self, task: Task) -> tuple[bytes | None, bytes | None]:
        """The outcome and the status of the command, for `refuse_decided`; all else is left in the task.

        The job is watched from before it was read until the try is over, so that its end need not look again.
        """
        (decision,) = self.look_at_all([task])
        return decision

    def look_at_all(self, tasks: Sequence[Task], *, commits: bool = False) -> list[tuple[bytes | None, bytes | None]]:
        """`look` for several commands of one graph, which then share a connection.

        With `commits`, what a commit depends on is watched as well: the graph, if it is in memory, and the outcomes.
        """
        graph, pipe = tasks[0].command.graph, self._redis.pipeline()
        guess = self._graph_id(graph) if tasks[0].rest is None else None
        run = self._written.run()
        looks = [Look(pipe, found=None, is_followed=True, run=run) for _ in tasks]
        for task, look in zip(tasks, looks, strict=True):
            task.look = look
        names, reads = before_try(self._keys, [task.command.id for task in tasks])
        about_graph = before_found(self._keys, graph, guess) if guess else ()
        if commits:
            names += [outcome_key(self._keys, task.command.id) for task in tasks]
            names += [self._keys.graph(guess)] if guess else []
        outcomes, n_followed, *answers = watched(pipe, names, *reads, *about_graph, of_any_kind=True)
        there = found(self._keys, guess, answers[len(tasks) :]) if guess else None
        for look in looks:
            look.is_followed, look.found = n_followed > 0, there
        return list(zip(outcomes, answers[: len(tasks)], strict=True))

    def count_delivery(self, task: Task, most: int) -> None:
        """Count the delivery of a command that another process left behind. Raises `EngineError` after more than `most`
        deliveries."""
        if not task.redelivered:
            return
        if count_attempt(self._redis, self._keys, task.command.id) > most:
            raise EngineError(f"the command was tried {most} times and never came to an end")
        task.redelivered = False  # counted
