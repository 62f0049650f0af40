"""What a PATCH would do: checked as it would be, and tried on copies of the flow states. Nothing of it stays."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, EngineError, Unbounded
from gpu_engine.footprint import Footprint
from gpu_engine.networks.growing import grow, growing_bytes
from gpu_engine.networks.structure import Structure
from service.protocol import EdgesArgs, Envelope, PatchArgs
from service.store.catalogue import check_version
from service.store.jobs.record import Result
from service.store.rounded import RoundedInfo
from service.worker import answers
from service.worker.changes import Changes
from service.worker.copies import Copies
from service.worker.graph import Graph, Solved
from service.worker.result_writer import written
from service.worker.running.results import Results
from service.worker.running.task import Task
from service.worker.solving import Solver
from service.worker.structure import deleted, inserted
from service.worker.supposing import Supposition, has_room_beside, needs, needs_to_grow

Args = TypeVar("Args", PatchArgs, EdgesArgs)


class DryRun(Generic[Args]):
    """Answers the commands DRY_RUN, DRY_RUN_COSTS, DRY_RUN_VERTICES, DRY_RUN_LOWER and DRY_RUN_EDGES, as the PATCH
    would be but for its version. ``args`` is the kind of their arguments."""

    def __init__(
        self,
        copies: Copies,
        solver: Solver,
        results: Results,
        args: type[Args],
        change_of: Callable[[Graph, Args], Changes],
    ) -> None:
        self._copies = copies
        self._residents = copies.residents
        self._solver = solver
        self._results = results
        self._args: type[Args] = args
        self._change_of: Callable[[Graph, Args], Changes] = change_of

    def __call__(self, task: Task) -> Result:
        args, began = self._args.model_validate(task.command.args), time.perf_counter()
        graph = self._copies.ensure(task.command.graph, limited=True)
        check_version(graph.name, graph.version, args.if_match, graph.generation)
        changes = self._change_of(graph, args)
        change, structure, solving_since = changes.change, changes.structure, time.perf_counter()
        wanted = list(graph.states.values())[::-1] if args.solve == "all" else []
        shown = sorted(self._shown(graph, wanted, changes, task.control), key=answers.is_kept)
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
        if structure is not None:
            answer["inserted"] = inserted(graph, structure).model_dump(exclude_none=True)
            answer["deleted"] = deleted(structure).model_dump()
        answer |= {"flow_states": shown, "timings_ms": answers.rounded(timings_ms)}
        if shown:
            answer |= answers.ignored(graph) if structure is None else _ignored_after(graph, structure)
        envelope = Envelope(version=graph.version, generation=graph.generation)
        return written(self._results, answer, envelope, task.control, args.encoding)

    def _shown(
        self, graph: Graph, wanted: Sequence[Solved], changes: Changes, control: Control
    ) -> list[dict[str, object]]:
        """What would become of these flow states. Raises `Cancelled`, and what the PATCH is refused with."""
        change, structure, vertices = changes.change, changes.structure, changes.vertices
        try:
            after = self._with_another_engine(graph, changes)
            if after is not None:
                return [self._solved_anew(graph, after, solved, control) for solved in wanted]
            if structure is not None and structure.grows:
                self._residents.take(graph.name, Footprint(growing_bytes(graph.network, structure)))
                grow(graph.network, structure).network.check_update(change.rows, change.effective)
            else:
                graph.engine.check_update(*graph.columns(change, vertices))
        finally:
            self._residents.measure(graph)
        tried = self._tried if structure is None else partial(self._restructured, structure=structure)
        return [tried(graph, solved, changes, control) for solved in wanted]

    def _with_another_engine(self, graph: Graph, changes: Changes) -> Graph | None:
        """What the graph would be, if vertices get their first capacity, or have some and anything is inserted; None:
        the engine would stay."""
        change, structure, vertices = changes.change, changes.structure, changes.vertices
        if structure is not None and structure.grows and (graph.vertices is not None or vertices is not None):
            return self._copies.grown(graph, structure, change, vertices)
        if vertices is not None and graph.splits(vertices):
            return self._copies.beside(graph, vertices)
        return None

    def _solved_anew(self, graph: Graph, after: Graph, solved: Solved, control: Control) -> dict[str, object]:
        """What would become of one flow state in a graph whose engine is another one. Raises `Cancelled`."""
        if after.open_again([solved]):
            return answers.closed_state(after, solved)
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
            on_host = not has_room_beside(graph, self._residents.unused)
            self._residents.take(graph.name, needs(graph, on_host=on_host))
            supposed = Supposition.of(graph, solved, graph.name, on_host=on_host)
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

    def _restructured(
        self, graph: Graph, solved: Solved, changes: Changes, control: Control, structure: Structure
    ) -> dict[str, object]:
        """What would become of one flow state where edges and vertices come and go. Raises `Cancelled`."""
        room, old = partial(self._residents.take, graph.name), solved.report
        try:
            room(needs(graph) + needs_to_grow(graph, structure))
            after = Supposition.of(graph, solved, graph.name).taken(solved)
            if after.restructure(structure, changes.change, room, changes.vertices):
                return answers.closed_state(after, solved)
            (state,) = after.states.values()
            return answers.solved_state(after, state, old, self._solver.solve(after, state, control))
        except Cancelled:
            raise
        except (EngineError, MemoryError):
            return answers.solved_state(graph, solved, old, None)
        finally:
            self._residents.measure(graph)


def _ignored_after(graph: Graph, structure: Structure) -> dict[str, object]:
    """What is said of lower bounds once edges have come and gone: `answers.ignored` of the graph as it would be."""
    left = graph.lowers is not None and len(np.setdiff1d(graph.lowers.rows, structure.deleted)) > 0
    come = structure.lower is not None and bool(structure.lower.any())
    return answers.ignored_if(left or come)
