"""Updates of capacities and costs: applied to the copy in memory, committed to the log, then solved."""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import redis
import structlog

from gpu_engine.control import Control
from gpu_engine.errors import EngineError
from gpu_engine.footprint import Footprint
from gpu_engine.networks.costs import costs_of
from gpu_engine.networks.lowers import lowers_of
from gpu_engine.networks.restructure import Limits
from service.errors import OTHER_REQUEST, ServiceError
from service.protocol import Command, EdgesArgs, Envelope, PatchArgs, RestoreArgs
from service.store.applied import Applied, Fenced
from service.store.catalogue import check_version
from service.store.feed.writing import Feeds
from service.store.jobs.record import Result
from service.store.keys import Keys
from service.store.log import Entry, Packed, pack
from service.store.rounded import RoundedInfo
from service.worker import answers
from service.worker.changes import CHANGE_OF, Changes
from service.worker.committing import Committer, Updates
from service.worker.copies import Copies
from service.worker.counters import Counters
from service.worker.graph import Graph, Solved
from service.worker.metrics import WorkerMetrics
from service.worker.past import Past
from service.worker.result_writer import written
from service.worker.running.results import Results
from service.worker.running.task import Task
from service.worker.saving import Saver
from service.worker.solving import Solver
from service.worker.structure import deleted, ends, inserted, size, structure_change
from service.worker.watching import Watcher

UpdateArgs: TypeAlias = PatchArgs | RestoreArgs | EdgesArgs

LONGEST_S: Final = 0.02
"""After this time no further batch joins those that are committed together, because the first one waits for its
commit."""

MAX_TRIES: Final = 10
"""How often a commit is tried while others write to the graph."""


ChangesOf: TypeAlias = Callable[[Graph], Changes]

log = structlog.get_logger(__name__)


class Committed(NamedTuple):
    """An update that is in the log."""

    version: int
    applied: Applied
    timings_ms: dict[str, float]
    """Milliseconds by step; empty if the update was in the log before."""
    unbounded: list[Solved]
    """Flow states that it left without a bound or a meaning, and that were closed."""


class Step(NamedTuple):
    """One of several batches that are committed together: it is in the copy in memory, and solved."""

    packed: Packed
    result: Result


class Patcher:
    """Updates graphs of one worker. A PATCH that comes again under its key is found in the log, and changes nothing."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        copies: Copies,
        solver: Solver,
        saver: Saver,
        results: Results,
        counters: Counters,
        metrics: WorkerMetrics,
        past: Past,
        limits: Limits,
        feeds: Feeds,
        watcher: Watcher,
    ) -> None:
        self._commits = Committer(client, keys, saver, metrics, feeds)
        self._written = self._commits.written
        self._copies = copies
        self._residents = copies.residents
        self._solver = solver
        self._results = results
        self._counters = counters
        self._past = past
        self._limits = limits
        self._watcher = watcher

    def patch(self, task: Task) -> Result:
        """Commit the batch, then bring the flow states up to it. Costs leave these as they are, and solved."""
        args = PatchArgs.model_validate(task.command.args)
        change_of = CHANGE_OF[task.command.kind]
        return self._update(task, args, lambda graph: change_of(graph, args))

    @contextmanager
    def patching(self, tasks: Sequence[Task]) -> Iterator[Updates | None]:
        """Around the commit of batches of one graph, the first ones of those that it is given, each of which makes a
        version of its own; all that fails within it lets go of the copy in memory.

        Each is applied and solved before the next. They end before the first batch that is refused, was committed
        earlier, or would begin after `LONGEST_S`: that is for `patch`, which tells its caller. So are all where there
        are watches, which are told of a version before the next is committed, and all where the graph was not in memory
        as they were looked at: then there is None.
        """
        found = tasks[0].take_found()
        graph = None if found is None else self._copies.ensure(tasks[0].command.graph, found, limited=True)
        if graph is None or self._watcher.catch_up(graph).watches:
            yield None
            return
        try:
            began, steps = time.perf_counter(), list[Step]()
            for task in tasks:
                if steps and time.perf_counter() - began > LONGEST_S:
                    break
                step = self._step(graph, task)
                if step is None:
                    break
                steps.append(step)
            jobs = [task.command.id for task in tasks[: len(steps)]]
            packed, results = [step.packed for step in steps], [step.result for step in steps]
            yield Updates(self._commits, graph, packed, jobs, results) if steps else None
        except BaseException:
            self._residents.drop(graph.name)  # it has changes that the log has not, or may not have
            raise

    def _step(self, graph: Graph, task: Task) -> Step | None:
        """Bring the copy in memory to the next version, and solve. None, and nothing has changed, if it is refused."""
        command, began = task.command, time.perf_counter()
        args, change_of = PatchArgs.model_validate(command.args), CHANGE_OF[command.kind]
        try:
            if (command.idempotency_key or command.id) in graph.known:
                return None
            entry, unbounded = self._apply_next(graph, command, args, lambda graph: change_of(graph, args))
        except (EngineError, ServiceError):
            return None
        applied_at = time.perf_counter()
        packed = pack(entry)
        self._arrive(graph, entry)
        packed_at = time.perf_counter()
        shown = self._flows(graph, unbounded, task.control) if args.solve == "all" else []
        ended_at = time.perf_counter()
        timings_ms = {
            "apply": 1e3 * (applied_at - began),
            "log": 1e3 * (packed_at - applied_at),
            "solve": 1e3 * (ended_at - packed_at),
            "total": 1e3 * (ended_at - began),
        }
        return Step(packed, self._written_answer(graph, args, entry.version, entry.applied, shown, timings_ms))

    def restore(self, task: Task) -> Result:
        """Commit what leads back to an earlier version; all else is as for `patch`."""
        args = RestoreArgs.model_validate(task.command.args)
        return self._update(task, args, lambda graph: self._past.change_to(graph, args.version))

    def patch_edges(self, task: Task) -> Result:
        """Commit a batch that inserts and deletes; all else is as for `patch`."""
        args = EdgesArgs.model_validate(task.command.args)
        return self._update(task, args, lambda graph: structure_change(graph, args, self._limits))

    def _update(self, task: Task, args: UpdateArgs, change_of: ChangesOf) -> Result:
        began, command, run = time.perf_counter(), task.command, self._written.run()
        for tries_left in reversed(range(MAX_TRIES)):
            graph = self._copies.ensure(command.graph, task.take_found(), limited=True)
            try:
                self._watcher.catch_up(graph)
                version, applied, timings_ms, unbounded = self._commit(graph, command, args, change_of)
                break
            except Fenced as error:
                log.warning("fenced", graph=command.graph, error=str(error))
                self._counters.count("fenced")
                if not tries_left:
                    raise
            except (EngineError, ServiceError):
                raise  # refused before anything changed, or cancelled
            except Exception:
                self._residents.drop(command.graph)  # half of the change may be in it
                raise
        solving_since = time.perf_counter()
        # An answer given again, after later updates, says nothing of flows: they are at another version.
        wanted = args.solve == "all" and graph.version == version
        shown = self._flows(graph, unbounded, task.control) if wanted else []
        timings_ms["solve"] = 1e3 * (time.perf_counter() - solving_since)
        self._watcher.try_to_catch_up(graph)
        timings_ms["total"] = 1e3 * (time.perf_counter() - began)
        self._written.wait(run)
        return self._written_answer(graph, args, version, applied, shown, timings_ms)

    def _written_answer(
        self,
        graph: Graph,
        args: UpdateArgs,
        version: int,
        applied: Applied,
        shown: list[dict[str, object]],
        timings_ms: dict[str, float],
    ) -> Result:
        flows = {"flow_states": shown, "timings_ms": answers.rounded(timings_ms)}
        kept = answers.ignored(graph) if shown else {}
        answer = {"version": version, "generation": graph.generation} | applied.counts | flows | kept
        envelope = Envelope(version=version, generation=graph.generation)
        return written(self._results, answer, envelope, None, args.encoding)

    def _commit(self, graph: Graph, command: Command, args: UpdateArgs, change_of: ChangesOf) -> Committed:
        """See to it that the command is in the log. All or nothing."""
        known = graph.known.get(command.idempotency_key or command.id)
        if known is not None:
            if known.applied.digest != command.body_digest:
                raise ServiceError("idempotency_conflict", OTHER_REQUEST)
            return Committed(known.version, known.applied, {}, [])
        began = time.perf_counter()
        entry, unbounded = self._apply_next(graph, command, args, change_of)
        applied_at = time.perf_counter()
        try:
            log_ms = self._commits.append(graph, [(entry, command.id)])
        except BaseException:
            self._residents.drop(graph.name)  # it has the change, and whether the log has it is not known
            raise
        self._arrive(graph, entry)
        return Committed(entry.version, entry.applied, {"apply": 1e3 * (applied_at - began), "log": log_ms}, unbounded)

    def _apply_next(
        self, graph: Graph, command: Command, args: UpdateArgs, change_of: ChangesOf
    ) -> tuple[Entry, list[Solved]]:
        """Change the copy in memory, which keeps its version; the log entry of the change, and the flow states that it
        closed. Raises before anything changes."""
        check_version(command.graph, graph.version, args.if_match, graph.generation)
        change, costs, structure, vertices, lower = changes = change_of(graph)
        applied = Applied(
            key=command.idempotency_key or command.id,
            commit=uuid.uuid4().hex,
            digest=command.body_digest,
            applied=changes.n_rows,
            skipped=change.skipped,
            unchanged=change.unchanged,
            rounded=RoundedInfo.of(changes.rounded),
            inserted=None if structure is None else inserted(graph, structure),
            deleted=None if structure is None else deleted(structure),
        )
        if lower is not None and graph.lowers is None:
            self._residents.take(graph.name, Footprint(8 * graph.network.n_edges))
        rising = list(graph.states)  # the most recently used last
        unbounded = self._apply(graph, changes)  # refuses before it changes anything
        unbounded.sort(key=lambda solved: rising.index(solved.terminals.key), reverse=True)
        if costs is not None:
            costs_of(graph.costs).apply(costs)
        if lower is not None:
            graph.lowers = lowers_of(graph.lowers, graph.network)
            graph.lowers.apply(lower)
        if structure is None:
            return Entry(graph.version + 1, applied, change, costs, vertices, lower=lower), unbounded
        sized = size(graph), ends(graph, structure)
        return Entry(graph.version + 1, applied, change, costs, vertices, structure, *sized, lower), unbounded

    def _arrive(self, graph: Graph, entry: Entry) -> None:
        """The copy in memory is at the version of the entry now."""
        only_beside = any(part is not None for part in (entry.costs, entry.lower, entry.structure))
        if only_beside and not len(entry.change.rows) and entry.vertices is None:
            graph.carry_proofs(entry.version)
        graph.version = entry.version
        graph.remember(entry.version, entry.applied)

    def _apply(self, graph: Graph, changes: Changes) -> list[Solved]:
        """Bring the copy in memory to the next version; returns the flow states that it had to close."""
        change, structure, vertices = changes.change, changes.structure, changes.vertices
        if structure is not None and structure.grows and (graph.vertices is not None or vertices is not None):
            return self._copies.go_on(graph, self._copies.grown(graph, structure, change, vertices))
        if vertices is not None and graph.splits(vertices):
            return self._copies.go_on(graph, self._copies.beside(graph, vertices))
        if structure is None:
            return graph.update(change, vertices)
        try:
            return graph.restructure(structure, change, partial(self._residents.take, graph.name), vertices)
        except BaseException:
            self._residents.drop(graph.name)  # it may have grown already
            raise

    def _flows(self, graph: Graph, unbounded: list[Solved], control: Control) -> list[dict[str, object]]:
        """What became of the flow states: those that an update has closed, and the others, solved again; of both the
        most recently used first."""
        return [answers.closed_state(graph, solved) for solved in unbounded] + self._solve_all(graph, control)

    def _solve_all(self, graph: Graph, control: Control) -> list[dict[str, object]]:
        """Solve every flow state of the graph again, the most recently used first. Returns what is answered of each."""
        shown = []
        for key, solved in reversed(list(graph.states.items())):
            if key not in graph.states:
                continue  # it gave way to one before
            old = solved.report
            try:
                answer = self._solver.solve(graph, solved, control)
            except (EngineError, MemoryError):
                answer = None  # what is committed stays; the state is solved when it is asked for
            shown.append(answers.solved_state(graph, solved, old, answer))
        return shown
