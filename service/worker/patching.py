"""Updates of capacities and costs: applied to the copy in memory, committed to the log, then solved."""

import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import redis
import structlog

from gpu_engine.engine import Control
from gpu_engine.errors import EngineError
from gpu_engine.networks.costs import CostChange, costs_of
from gpu_engine.networks.restructure import Limits
from gpu_engine.networks.rounded import Rounded
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.updates import Change
from gpu_engine.vertices.table import VertexChange, vertices_of
from service.errors import ServiceError
from service.packed import unpacked
from service.protocol import Command, EdgesArgs, Envelope, PatchArgs, RestoreArgs
from service.store.catalogue import check_version
from service.store.feed.writing import Feeds
from service.store.jobs.record import Result
from service.store.keys import Keys
from service.store.log import Applied, DeletedInfo, Entry, Fenced, Log
from service.store.rounded import RoundedInfo
from service.store.written import Written
from service.worker import answers
from service.worker.copies import Copies
from service.worker.counters import Counters
from service.worker.graph import Graph, Solved
from service.worker.metrics import WorkerMetrics
from service.worker.past import Past
from service.worker.running.results import Results
from service.worker.running.task import Task
from service.worker.saving import Saver
from service.worker.solving import Solver
from service.worker.structure import inserted, size, structure_change
from service.worker.watching import Watcher
from service.worker.written import written

UpdateArgs: TypeAlias = PatchArgs | RestoreArgs | EdgesArgs

MAX_TRIES: Final = 10
"""How often a commit is tried while others write to the graph."""


class Changes(NamedTuple):
    """What an update changes."""

    change: Change
    costs: CostChange | None = None
    structure: Structure | None = None
    vertices: VertexChange | None = None

    @property
    def n_rows(self) -> int:
        """Edges and vertices that change or are inserted."""
        rows = self.change.rows if self.costs is None else np.union1d(self.change.rows, self.costs.rows)
        inserted = 0 if self.structure is None else self.structure.n_vertices
        return len(rows) + inserted + (0 if self.vertices is None else len(self.vertices.vertices))

    @property
    def rounded(self) -> Rounded:
        """What was rounded; a batch is of edges, of costs or of vertices."""
        others = [other.rounded for other in (self.costs, self.vertices) if other is not None]
        return sum(others, self.change.rounded)


ChangesOf: TypeAlias = Callable[[Graph], Changes]

NO_ROWS: Final = np.empty(0, np.int64)

log = structlog.get_logger(__name__)


class Committed(NamedTuple):
    """An update that is in the log."""

    version: int
    applied: Applied
    timings_ms: dict[str, float]
    """By step; empty if it was in the log before."""
    unbounded: list[Solved]
    """Flow states that it left without a bound or a meaning, and that were closed."""


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
        self._written = Written(client, keys)
        self._copies = copies
        self._residents = copies.residents
        self._solver = solver
        self._saver = saver
        self._results = results
        self._counters = counters
        self._metrics = metrics
        self._past = past
        self._limits = limits
        self._feeds = feeds
        self._watcher = watcher
        self._log = Log(client, keys)

    def patch(self, task: Task) -> Result:
        """Commit the batch, then bring the flow states up to it."""
        args = PatchArgs.model_validate(task.command.args)
        return self._update(task, args, lambda graph: capacity_change(graph, args))

    def patch_costs(self, task: Task) -> Result:
        """Commit a batch of costs. The flow states stay as they are, and solved."""
        args = PatchArgs.model_validate(task.command.args)
        return self._update(task, args, lambda graph: cost_change(graph, args))

    def patch_vertices(self, task: Task) -> Result:
        """Commit a batch of capacities of vertices; all else is as for `patch`."""
        args = PatchArgs.model_validate(task.command.args)
        return self._update(task, args, lambda graph: vertex_change(graph, args))

    def restore(self, task: Task) -> Result:
        """Commit what leads back to an earlier version; all else is as for `patch`."""
        args = RestoreArgs.model_validate(task.command.args)
        return self._update(task, args, lambda graph: Changes(*self._past.change_to(graph, args.version)))

    def patch_edges(self, task: Task) -> Result:
        """Commit a batch that inserts and deletes; all else is as for `patch`."""
        args = EdgesArgs.model_validate(task.command.args)
        return self._update(task, args, lambda graph: Changes(*structure_change(graph, args, self._limits)))

    def _update(self, task: Task, args: UpdateArgs, change_of: ChangesOf) -> Result:
        began, command, run = time.perf_counter(), task.command, self._written.run()
        for tries_left in reversed(range(MAX_TRIES)):
            graph = self._copies.ensure(command.graph, task.take_found(), limited=True)
            try:
                self._watcher.catch_up(graph)
                version, applied, timings_ms, unbounded = self._commit(graph, command, args, change_of)
                generation = graph.generation
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
        shown = [answers.closed_state(graph, solved) for solved in unbounded] if wanted else []
        shown += self._solve_all(graph, task.control) if wanted else []
        timings_ms["solve"] = 1e3 * (time.perf_counter() - solving_since)
        self._watcher.try_to_catch_up(graph)
        timings_ms["total"] = 1e3 * (time.perf_counter() - began)
        self._written.wait(run)
        flows = {"flow_states": shown, "timings_ms": answers.rounded(timings_ms)}
        answer = {"version": version, "generation": generation} | applied.counts | flows
        return written(self._results, answer, Envelope(version=version, generation=generation), None, args.encoding)

    def _commit(self, graph: Graph, command: Command, args: UpdateArgs, change_of: ChangesOf) -> Committed:
        """See to it that the command is in the log. All or nothing."""
        key = command.idempotency_key or command.id
        known = graph.known.get(key)
        if known is not None:
            if known.applied.digest != command.body_digest:
                raise ServiceError("idempotency_conflict", "the Idempotency-Key was used with another body")
            return Committed(known.version, known.applied, {}, [])
        check_version(command.graph, graph.version, args.if_match, graph.generation)
        began = time.perf_counter()
        change, costs, structure, vertices = changes = change_of(graph)
        applied = Applied(
            key=key,
            commit=uuid.uuid4().hex,
            digest=command.body_digest,
            applied=changes.n_rows,
            skipped=change.skipped,
            unchanged=change.unchanged,
            rounded=RoundedInfo.of(changes.rounded),
            inserted=None if structure is None else inserted(graph, structure),
            deleted=None if structure is None else DeletedInfo(edges=len(structure.deleted)),
        )
        unbounded = self._apply(graph, changes)  # refuses before it changes anything
        if costs is not None:
            costs_of(graph.costs).apply(costs)
        applied_at = time.perf_counter()
        counts = None if structure is None else size(graph)
        entry = Entry(graph.version + 1, applied, change, costs, vertices, structure, counts)
        announce = partial(self._feeds.announce, name=graph.name, graph_id=graph.graph_id, version=entry.version)
        try:
            self._log.append(graph.graph_id, graph.epoch, entry, time.time(), command.id, announce)
        except BaseException:
            self._residents.drop(graph.name)  # it has the change, and whether the log has it is not known
            raise
        logged_at = time.perf_counter()
        self._metrics.appended(logged_at - applied_at)
        if (costs is not None or structure is not None) and not len(change.rows) and vertices is None:
            graph.carry_proofs(entry.version)
        graph.version = entry.version
        graph.remember(entry.version, applied)
        graph.unsaved += 1
        self._saver.save_soon(graph)
        timings_ms = {"apply": 1e3 * (applied_at - began), "log": 1e3 * (logged_at - applied_at)}
        return Committed(entry.version, applied, timings_ms, unbounded)

    def _apply(self, graph: Graph, changes: Changes) -> list[Solved]:
        """Bring the copy in memory to the next version; returns the flow states that it had to close."""
        change, structure, vertices = changes.change, changes.structure, changes.vertices
        if vertices is not None and graph.splits(vertices):
            return self._copies.split_anew(graph, vertices)
        if structure is None:
            return graph.update(change, vertices)
        try:
            return graph.restructure(structure, change, partial(self._residents.take, graph.name), vertices)
        except BaseException:
            self._residents.drop(graph.name)  # it may have grown already
            raise

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


def capacity_change(graph: Graph, args: PatchArgs) -> Changes:
    """What a batch of capacities changes. Raises as `CapacityTable.resolve`; nothing changes yet."""
    batch = [unpacked(operation) for operation in args.batch]
    return Changes(graph.table.resolve(batch, on_missing=args.on_missing, rounding=args.rounding))


def cost_change(graph: Graph, args: PatchArgs) -> Changes:
    """What a batch of costs changes. Raises as `CostTable.resolve`; nothing changes yet."""
    batch = [unpacked(operation) for operation in args.batch]
    costs = costs_of(graph.costs).resolve(graph.table, batch, on_missing=args.on_missing, rounding=args.rounding)
    return Changes(Change(NO_ROWS, NO_ROWS, NO_ROWS.astype(np.bool_), costs.skipped, costs.unchanged), costs)


def vertex_change(graph: Graph, args: PatchArgs) -> Changes:
    """What a batch of capacities of vertices changes. Raises as `VertexTable.resolve`; nothing changes yet."""
    batch = [unpacked(operation) for operation in args.batch]
    table = vertices_of(graph.vertices, graph.network)
    found = table.resolve(batch, on_missing=args.on_missing, rounding=args.rounding)
    nothing = Change(NO_ROWS, NO_ROWS, NO_ROWS.astype(np.bool_), found.skipped, found.unchanged)
    return Changes(nothing, vertices=found)
