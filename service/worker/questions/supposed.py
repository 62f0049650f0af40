"""What questions of rows begin with: the graph solved as it is, and a supposition of it that outlives the lane."""

from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock

from gpu_engine.errors import OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.trials import Trials
from service.worker.copies import Copies
from service.worker.graph import Graph, Solved
from service.worker.memory import Residents
from service.worker.running.task import Task
from service.worker.solving import Solver
from service.worker.supposing import Supposition, has_room_beside, needs


@dataclass(frozen=True, slots=True)
class Supposed:
    """A supposition and the memory that is promised for it."""

    supposition: Supposition
    lock: Lock
    """Held by the one thread that asks the supposition, or its table."""
    trials: tuple[Trials, ...]
    """One for each thread that may try changes at a time."""
    residents: Residents
    promised: Footprint

    @property
    def graph(self) -> Graph:
        """As it was when it was asked about."""
        return self.supposition.graph

    def settle(self) -> None:
        """Between rows: what they asked for beside what is promised is given back."""
        self.residents.promise(self.graph.name, self.promised)


class Supposer:
    """Makes suppositions for questions that are answered beside the lane of their graph."""

    def __init__(self, copies: Copies, solver: Solver, threads: int) -> None:
        """Rows of one question are tried on so many threads."""
        self._residents = copies.residents
        self._solver = solver
        self._threads = threads

    def suppose(
        self, stack: ExitStack, task: Task, graph: Graph, solved: Solved, more: Footprint, *, trials: bool
    ) -> Supposed:
        """Of a state that is solved and proven, in the lane of its graph. ``more`` is what rows take beside it.

        With ``trials`` for as many threads as there are and memory is for; there may be none. It lasts as long as the
        ``stack``. Raises `OutOfMemory` or `Cancelled`.
        """
        name = f"{graph.name} {task.command.id}"
        promised, threads, on_host = self._make_room(graph, solved, more, self._threads if trials else 0)
        stack.enter_context(self._residents.at_work(name, task.control, displaces=False))
        self._residents.promise(name, promised)
        supposition = Supposition.of(graph, solved, name, on_host=on_host)
        tried = tuple(supposition.trials(threads)) if threads else ()
        self._residents.measure(graph)
        return Supposed(supposition, Lock(), tried, self._residents, promised)

    def _make_room(self, graph: Graph, solved: Solved, more: Footprint, threads: int) -> tuple[Footprint, int, bool]:
        """What is promised, for how many threads, and whether for a fork on the host: for all threads, or for none and
        on the host if memory is short."""
        beside = has_room_beside(graph, self._residents.unused)
        for n, on_host in ((threads, not beside), (0, True)):
            promised = needs(graph, on_host=on_host) + more
            for _ in range(n):
                promised += graph.engine.needs.trial
            try:
                self._solver.make_room(graph, promised, but=solved)
            except OutOfMemory:
                if on_host and not n:
                    raise
            else:
                return promised, n, on_host
        raise AssertionError("unreachable")
