"""Move a graph to another worker, because somebody asks for it."""

from functools import partial

import redis

from gpu_engine.errors import OutOfMemory
from service.errors import ServiceError
from service.protocol import Envelope, MoveArgs
from service.store.jobs.record import Result
from service.store.keys import Keys
from service.worker.copies import Copies
from service.worker.membership.moving import Mover, NotServed, as_answer, unavailable
from service.worker.membership.workers import Workers, budget_of
from service.worker.result_writer import written
from service.worker.running.results import Results
from service.worker.running.task import Forward, Rest, Task


class Move:
    """The command waits for the other worker beside the graph's lane: the graph is served meanwhile."""

    def __init__(self, client: redis.Redis, keys: Keys, copies: Copies, mover: Mover, results: Results) -> None:
        self._workers = Workers(client, keys)
        self._copies = copies
        self._mover = mover
        self._results = results

    def __call__(self, task: Task) -> Result | Rest:
        """Raises unknown_graph, unknown_worker, worker_unavailable or out_of_memory before anything moves."""
        name, to = task.command.graph, MoveArgs.model_validate(task.command.args).to
        found = self._copies.find(name)
        if found.held is None:
            raise ServiceError("unknown_graph", f"there is no graph {name!r}")
        if to == self._copies.worker:
            return written(self._results, as_answer(name, to, to, None), Envelope())
        self._check(to, self._workers.size_of(found.held.graph_id))
        return Rest(partial(self._move, task, name, to), expected_s=0.0)

    def _check(self, to: str, n_bytes: int) -> None:
        report = self._workers.report(to)
        if report is None:
            raise ServiceError("unknown_worker", f"there is no worker {to!r}")
        if not (self._workers.is_alive(to) and report.ready):
            raise unavailable(f"worker {to} is away, or starting")
        if self._workers.is_draining(to):
            raise ServiceError("worker_drained", f"worker {to} is drained: it gets no graph until that is taken back")
        budget = budget_of(report)
        if n_bytes > budget:
            raise OutOfMemory(f"worker {to} may hold {budget} bytes in all, and the graph has {n_bytes}")

    def _move(self, task: Task, name: str, to: str) -> Result:
        task.at("moving")
        try:
            moved = self._mover.move(name, to, task.control)
        except NotServed:  # it was deleted, or another worker has it by now, which is to see to the rest
            owner = self._copies.registry.find(name).owner
            if owner is None or owner == self._copies.worker:
                raise ServiceError("unknown_graph", f"there is no graph {name!r}") from None
            raise Forward(owner) from None
        return written(self._results, as_answer(name, self._copies.worker, to, moved), Envelope())
