"""What a PATCH would do: checked as it would be, and tried on copies of the flow states. Nothing of it stays."""

import time
from collections.abc import Callable

from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled, EngineError, Unbounded
from gpu_engine.vertices.table import VertexChange
from service.protocol import Envelope, PatchArgs
from service.store.catalogue import check_version
from service.store.jobs.record import Result
from service.store.rounded import RoundedInfo
from service.worker import answers
from service.worker.changes import Changes
from service.worker.copies import Copies
from service.worker.graph import Graph, Solved
from service.worker.running.results import Results
from service.worker.running.task import Task
from service.worker.solving import Solver
from service.worker.supposing import Supposition, needs
from service.worker.written import written


class DryRun:
    """Answers the commands DRY_RUN, DRY_RUN_COSTS and DRY_RUN_VERTICES, as the PATCH would be but for its version."""

    def __init__(
        self, copies: Copies, solver: Solver, results: Results, change_of: Callable[[Graph, PatchArgs], Changes]
    ) -> None:
        self._copies = copies
        self._residents = copies.residents
        self._solver = solver
        self._results = results
        self._change_of = change_of

    def __call__(self, task: Task) -> Result:
        args, began = PatchArgs.model_validate(task.command.args), time.perf_counter()
        graph = self._copies.ensure(task.command.graph, limited=True)
        check_version(graph.name, graph.version, args.if_match, graph.generation)
        changes = self._change_of(graph, args)
        change, solving_since = changes.change, time.perf_counter()
        wanted = list(graph.states.values())[::-1] if args.solve == "all" else []
        if changes.vertices is not None and graph.splits(changes.vertices):
            shown = self._split(graph, wanted, changes.vertices, task.control)
        else:
            graph.engine.check_update(*graph.columns(change, changes.vertices))
            shown = [self._tried(graph, solved, changes, task.control) for solved in wanted]
        ended = time.perf_counter()
        timings_ms = {"solve": 1e3 * (ended - solving_since), "total": 1e3 * (ended - began)}
        counts = {"applied": changes.n_rows, "skipped": change.skipped, "unchanged": change.unchanged}
        rounded = RoundedInfo.of(changes.rounded)
        answer: dict[str, object] = {
            "version": graph.version,
            "generation": graph.generation,
            "dry_run": True,
            **counts,
        }
        answer |= {} if rounded is None else {"rounded": rounded.model_dump()}
        answer |= {"flow_states": shown, "timings_ms": answers.rounded(timings_ms)}
        envelope = Envelope(version=graph.version, generation=graph.generation)
        return written(self._results, answer, envelope, task.control, args.encoding)

    def _split(
        self, graph: Graph, wanted: list[Solved], vertices: VertexChange, control: Control
    ) -> list[dict[str, object]]:
        """What would become of flow states if vertices got their first capacity. Raises `Cancelled`, and what the PATCH
        is refused with."""
        try:
            after = self._copies.beside(graph, vertices)
            return [self._solved_anew(graph, after, solved, control) for solved in wanted]
        finally:
            self._residents.measure(graph)

    def _solved_anew(self, graph: Graph, after: Graph, solved: Solved, control: Control) -> dict[str, object]:
        """What would become of one flow state in a graph whose engine is another one. Raises `Cancelled`."""
        if after.open_again([solved]):
            return answers.closed_state(graph, solved)
        again = after.states.get(solved.terminals.key)
        if again is None:  # there is no room for it
            return answers.solved_state(graph, solved, solved.report, None)
        try:
            answer = self._solver.solve(after, again, control)
            return answers.solved_state(after, again, solved.report, answer)
        except Cancelled:
            raise
        except (EngineError, MemoryError):
            return answers.solved_state(graph, solved, solved.report, None)
        finally:
            after.close(again)

    def _tried(self, graph: Graph, solved: Solved, changes: Changes, control: Control) -> dict[str, object]:
        """What would become of one flow state. Raises `Cancelled`."""
        old = solved.report
        try:
            self._residents.take(graph.name, needs(graph))
            supposed = Supposition.of(graph, solved, graph.name)
            with supposed.under(changes.change, solved.terminals, changes.vertices) as state:
                state.kind = solved.kind
                answer = self._solver.solve(supposed.graph, state, control)
                return answers.solved_state(supposed.graph, state, old, answer)
        except Cancelled:
            raise
        except Unbounded:
            return answers.closed_state(graph, solved)
        except (EngineError, MemoryError):
            return answers.solved_state(graph, solved, old, None)
        finally:
            self._residents.measure(graph)
