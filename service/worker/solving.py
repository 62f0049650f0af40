"""What questions and updates share: solve a flow state within the budget of memory, and time its parts."""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from gpu_engine.control import Control
from gpu_engine.errors import OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.networks.terminals import Terminals
from service.protocol import Kind
from service.worker.copies import Copies
from service.worker.counters import Counters
from service.worker.graph import Answer, Graph, Solved
from service.worker.metrics import WorkerMetrics
from service.worker.running.results import WRITING_BYTES
from service.worker.running.task import Task

Done = TypeVar("Done")

Parts = dict[str, object]
"""What an answer has beside its certificate, by field."""

log = structlog.get_logger(__name__)


class Solver:
    """Solves for the questions and updates of one worker."""

    def __init__(self, copies: Copies, counters: Counters, metrics: WorkerMetrics) -> None:
        self._copies = copies
        self._residents = copies.residents
        self._counters = counters
        self._metrics = metrics

    def ask(
        self,
        task: Task,
        graph: Graph,
        terminals: Terminals,
        read: Callable[[Solved], Parts],
        began: float,
        *,
        complete: bool,
        kind: Kind | None = None,
    ) -> tuple[Answer, Parts, dict[str, float]]:
        """Solve for these terminals, prove it (all of it if ``complete``), and read what was asked for. Milliseconds by
        phase. ``kind`` is what the state is for: by default what the command asks for."""
        command = task.command
        states_before = len(graph.states)
        solved = self.giving_way(graph, lambda: graph.open(terminals, kind or command.kind))
        try:
            answer = self.solve(graph, solved, task.control, complete=complete)
        except OutOfMemory:
            graph.close(solved)  # of no use to anybody
            raise
        fields_since = time.perf_counter()
        parts = read(solved)
        ended = time.perf_counter()
        if len(graph.states) != states_before and self._residents.get(graph.name) is graph:
            self._copies.note(graph)
        queued_s = (task.started_at or command.created_at) - command.created_at
        timings_ms = {"queue": max(0.0, 1e3 * queued_s), "solve": answer.solve_ms, "certificate": answer.certificate_ms}
        if parts:
            timings_ms["fields"] = 1e3 * (ended - fields_since)
        timings_ms["total"] = timings_ms["queue"] + 1e3 * (ended - began)
        return answer, parts, timings_ms

    def make_room(self, graph: Graph, needed: Footprint, but: Solved) -> None:
        """Promise the graph so much until it is measured. Older flow states of its own give way as in `giving_way`."""
        while True:
            try:
                return self._residents.take(graph.name, needed)
            except OutOfMemory:
                if not graph.close_oldest(but):
                    raise
                self._residents.measure(graph)

    def hold(self, graph: Graph, n_bytes: int) -> None:
        """Count what an answer is written from, and what it takes to write it, until the command ends."""
        self._residents.take(graph.name, Footprint(n_bytes + min(n_bytes, WRITING_BYTES)))

    def giving_way(self, graph: Graph, work: Callable[[], Done], but: Solved | None = None) -> Done:
        """Do work of the graph's engine. Once no other graph can give way to it, older flow states of its own do."""
        while True:
            try:
                return work()
            except OutOfMemory:
                if not graph.close_oldest(but):
                    raise
                self._residents.measure(graph)
            finally:
                self._residents.settle(graph)

    def solve(self, graph: Graph, solved: Solved, control: Control, *, complete: bool = False) -> Answer:
        """Solve and certify; older flow states of the graph give way if memory is short. Raises `Cancelled`."""
        before = control.progress()
        answer = self.giving_way(
            graph, lambda: graph.solve(solved, control, self.count_failure, complete=complete), but=solved
        )
        work = {name: count - before[name] for name, count in control.progress().items()}
        report = answer.report
        self._metrics.solved(report.mode, report.engine, answer.solve_ms, answer.certificate_ms, work)
        return answer

    def count_failure(self) -> None:
        """Count an answer that has failed its proof, and is not given."""
        self._counters.count("certificate_failures")
        log.error("certificate_failed", worker=self._copies.worker)
