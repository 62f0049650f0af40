"""The graphs one worker serves: which part of the worker does what a command asks for.

A command may be run twice: a load, a PATCH and a delete leave their result as the command's outcome as they commit,
and one that has it is not run again; all others change nothing that counts.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Final

import redis
import structlog

from gpu_engine.errors import OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.networks.restructure import Limits
from service.protocol import EdgesArgs, Envelope, Kind, PatchArgs
from service.settings import Settings
from service.store.applied import Fenced
from service.store.blobs import Blobs
from service.store.durable import Written
from service.store.feed.writing import Feeds
from service.store.jobs.record import Result
from service.store.keys import Keys
from service.store.log import Log
from service.store.ownership import Ownership
from service.store.snapshots import Snapshots
from service.worker import answers
from service.worker.changes import capacity_change, cost_change, lower_change, vertex_change
from service.worker.committing import UNWRITTEN_S
from service.worker.copies import Copies
from service.worker.counters import Counters
from service.worker.graph import Graph, OpenEngine
from service.worker.loading import Loader
from service.worker.losses import Losses
from service.worker.membership.moving import Mover, Tasks
from service.worker.memory import Residents
from service.worker.metrics import Residency, WorkerMetrics
from service.worker.past import Past
from service.worker.patching import Patcher
from service.worker.questions.capacities import CapacitiesPage
from service.worker.questions.capacity_expansion import CapacityExpansion
from service.worker.questions.circulation import Circulation
from service.worker.questions.closure_study import ClosureStudy
from service.worker.questions.cut_trees import CutTrees
from service.worker.questions.dry_run import DryRun
from service.worker.questions.export import Export
from service.worker.questions.matching import Matching
from service.worker.questions.max_flow import MaxFlow
from service.worker.questions.min_cost_flow import MinCostFlow
from service.worker.questions.move import Move
from service.worker.questions.pairs import Pairs
from service.worker.questions.parametric import Parametric
from service.worker.questions.partition import Partition
from service.worker.questions.supposed import Supposer
from service.worker.questions.vertices import VerticesPage
from service.worker.questions.what_if import WhatIf
from service.worker.reopening import Reopener
from service.worker.result_writer import written
from service.worker.running.batch import Batch
from service.worker.running.results import Results
from service.worker.running.rows import RowRunner
from service.worker.running.task import Rest, Task
from service.worker.saving import Defer, Saver
from service.worker.solving import Solver
from service.worker.structure import structure_change
from service.worker.watching import Watcher

NOTES_TOLD: Final = 100
"""The most graphs whose notes a heartbeat reports."""

MOST_DISPLACED: Final = 64
"""How many of the graphs that gave way to others between two heartbeats are remembered."""

Run = Callable[[Task], Result | Rest]

log = structlog.get_logger(__name__)


class Graphs:
    """Runs commands. Those of one graph come one after the other, those of different graphs side by side."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        worker: str,
        settings: Settings,
        open_engine: OpenEngine,
        metrics: WorkerMetrics,
        defer: Defer,
        is_wanted: Callable[[str], bool],
        tasks: Tasks,
        has_lost_device: Callable[[], bool],
    ) -> None:
        """`is_wanted` says whether commands of a graph wait in its lane, `tasks` which commands were read and have not
        ended, `has_lost_device` whether the worker has called `stop` because its device does nothing any more."""
        budget = Footprint(settings.host_budget, settings.device_budget_bytes)
        self.residents = Residents(budget, self._spilled)
        self._counters = Counters()
        self._displaced: deque[str] = deque(maxlen=MOST_DISPLACED)
        self._ownership = Ownership(client, keys)
        self._copies = Copies(client, keys, worker, settings, open_engine, self.residents, self._counters)
        self._losses = Losses(client, keys, self._copies.registry, self._counters)
        self._saver = Saver(client, keys, settings, self.residents, self._counters, defer)
        self.mover = Mover(client, keys, worker, self.residents, self._saver, metrics, defer, tasks)
        self._results = Results(client, keys, settings.job_ttl_s)
        self._reopener = Reopener(self._copies, self._counters, defer, is_wanted)
        solver = Solver(self._copies, self._counters, metrics)
        feeds = Feeds(client, keys, settings.event_history)
        self._watcher = Watcher(
            feeds,
            self._copies,
            solver,
            self._counters,
            defer,
            settings.max_watches,
            Written(client, keys),
            has_lost_device,
        )
        loader = Loader(client, keys, settings, self._copies, feeds, self._watcher)
        past = Past(
            self._copies, Blobs(client, keys), Log(client, keys), Snapshots(client, keys), settings.max_patch_rows
        )
        limits = Limits(settings.max_vertices, settings.max_edges)
        kept = self._copies, solver, self._saver, self._results, self._counters, metrics
        self._patcher = patcher = Patcher(client, keys, *kept, past, limits, feeds, self._watcher)
        self._runs: Mapping[Kind, Run] = {
            Kind.LOAD: loader.load,
            Kind.DELETE: loader.delete,
            Kind.PATCH: patcher.patch,
            Kind.PATCH_COSTS: patcher.patch,
            Kind.PATCH_LOWER: patcher.patch,
            Kind.PATCH_VERTICES: patcher.patch,
            Kind.PATCH_EDGES: patcher.patch_edges,
            Kind.RESTORE: patcher.restore,
            **_questions(self._copies, solver, self._results, past, limits, settings.row_threads),
            Kind.SNAPSHOT: self._snapshot,
            Kind.MOVE: Move(client, keys, self._copies, self.mover, self._results),
            Kind.WATCH: self._watcher.put,
            Kind.UNWATCH: self._watcher.drop,
        }

    def handle(self, task: Task) -> Result | Rest:
        """Run one command; see `service.worker.running.tries.Handler`."""
        self._counters.count(f"commands_{task.command.kind.value}")
        with self.residents.at_work(task.command.graph, task.control):
            try:
                return self._run(task)
            except MemoryError as error:
                log.warning("no_memory", graph=task.command.graph, error=str(error)[:200])
                raise OutOfMemory("the machine has no more memory, whatever the budget says") from error

    @contextmanager
    def updating(self, tasks: Sequence[Task]) -> Iterator[Batch | None]:
        """Around the commit of updates of one graph that wait behind one another, or of the first ones of them; see
        `service.worker.patching.Patcher.patching`."""
        with self.residents.at_work(tasks[0].command.graph, tasks[0].control), self._patcher.patching(tasks) as batch:
            yield batch
        done = tasks[: len(batch.results)] if batch is not None else []
        for task in done:
            self._counters.count(f"commands_{task.command.kind.value}")
        if len(done) > 1:
            self._counters.count("commits_shared")

    def may_be_lost(self, name: str) -> bool:
        """Whether Redis may lose the version that the graph is at, with its process."""
        graph = self.residents.get(name)
        return graph is None or time.monotonic() - graph.unwritten_at < UNWRITTEN_S

    def _run(self, task: Task) -> Result | Rest:
        return self._runs[task.command.kind](task)

    def _snapshot(self, task: Task) -> Result:
        graph = self._copies.ensure(task.command.graph, limited=True)
        saved = self._saver.save(graph)
        envelope = Envelope(version=saved.version, generation=graph.generation)
        return written(self._results, answers.snapshot(saved), envelope)

    @property
    def counters(self) -> dict[str, int]:
        return self._counters.all()

    @property
    def residency(self) -> Residency:
        """Flow states in memory, and how far snapshots are behind."""
        graphs, now = self.residents.all(), time.monotonic()
        return Residency(
            flow_states=sum(len(graph.states) for graph in graphs),
            lag_updates=max((graph.unsaved for graph in graphs), default=0),
            lag_s=max((now - graph.saved_at for graph in graphs if graph.unsaved), default=0.0),
        )

    @property
    def notes(self) -> list[str]:
        """What was wrong with graphs that were restored: of `NOTES_TOLD` of them, and how many more there are."""
        notes = self._copies.notes
        told = [f"{name}: {text}" for name, text in islice(notes.items(), NOTES_TOLD)]
        return told if len(notes) <= NOTES_TOLD else [*told, f"and {len(notes) - NOTES_TOLD} more graphs"]

    def sizes(self, names: list[str] | None = None) -> dict[str, int]:
        """What these graphs take at rest, in bytes of host memory; without names all that this worker is to serve."""
        return self._copies.sizes(names)

    def arcs(self, name: str) -> int | None:
        """How many arcs a graph in memory has."""
        return self._copies.arcs(name)

    def graph_id(self, name: str) -> str | None:
        """The id of a graph in memory."""
        return self._copies.graph_id(name)

    def restore(self, name: str, *, displaces: bool = True) -> None:
        """Bring a graph into memory, outside of any command; its flow states follow. Raises as `Copies.ensure`, and
        `OutOfMemory` where it would displace others and is not to."""
        with self.residents.at_work(name, displaces=displaces):
            self._watcher.try_to_catch_up(self._copies.ensure(name, limited=True))
        self._reopener.begin(name)

    def read_ahead(self, name: str) -> int:
        """Read a graph that another worker is about to hand over, and solve its flow states; how many it has then.
        It displaces nothing. Raises as `restore`."""
        with self.residents.at_work(name, displaces=False):
            graph = self._copies.read_ahead(name)
            return 0 if graph is None else self._reopener.solve_all(graph)

    def displaced(self) -> list[str]:
        """The graphs that gave way to others since this was asked last, and are not in memory."""
        names = {self._displaced.popleft() for _ in range(len(self._displaced))}
        return sorted(name for name in names if self.residents.get(name) is None)

    def states_of(self, name: str) -> int:
        """How many flow states a graph in memory has."""
        graph = self.residents.get(name)
        return 0 if graph is None else len(graph.states)

    def expect(self, name: str) -> None:
        """Make way for a command of the graph that has come. From any thread."""
        self._reopener.give_way(name)

    def stop(self) -> None:
        """Let go of what is solved in the background, as the worker ends. From any thread."""
        self._reopener.stop()
        self._watcher.stop()

    def hand_back(self, name: str, home: str) -> None:
        """Let the worker that a graph was taken from have it again, unless somebody asks for it just now."""
        with self.residents.at_work(name):
            try:
                graph = self.residents.get(name)
                if graph is not None:
                    self._saver.save_if_behind(graph)
                if not self._ownership.hand_back(name, self._copies.worker, home):
                    return
            except (redis.RedisError, Fenced) as error:
                log.warning("not_handed_back", graph=name, home=home, error=str(error))
                return
            self.residents.drop(name)
        self._counters.count("graphs_handed_back")
        log.info("handed_back", graph=name, worker=self._copies.worker, home=home)

    def look_after(self) -> None:
        """Queue snapshots of graphs whose last one is too long ago; forget graphs that others serve, or nobody.

        Called now and then.
        """
        resident = self.residents.all()
        strangers: list[Graph] = []
        owned = set(self._copies.owned()) if resident or self._copies.notes else set()
        for graph in resident:
            if graph.name in owned and graph.ahead is None:
                self._saver.save_soon(graph)
                self._copies.note_if_changed(graph)
                self._watcher.look_after(graph)
            elif graph.ahead is None or not graph.ahead.is_awaited:
                strangers.append(graph)
        for graph in self._losses.look(strangers):
            if self.residents.get(graph.name) is graph:  # no other one was loaded under its name meanwhile
                self.residents.drop(graph.name)
        self._copies.forget_notes(but=owned)

    def _spilled(self, graph: Graph) -> None:
        """Write a snapshot of a graph that has given way, so that it comes back fast enough when it is used."""
        if graph.ahead is not None:
            return
        self._counters.count("graphs_spilled")
        self._displaced.append(graph.name)
        self._saver.save_if_behind(graph)


def _questions(
    copies: Copies, solver: Solver, results: Results, past: Past, limits: Limits, row_threads: int
) -> Mapping[Kind, Run]:
    """What answers each question about a graph. Rows of one question are tried on up to ``row_threads`` threads, as far
    as there are cores."""
    asked = copies, solver, results
    max_flow, cut_trees, runner = MaxFlow(*asked), CutTrees(*asked), RowRunner(results)
    threads = min(row_threads, len(os.sched_getaffinity(0)))
    supposer = Supposer(copies, solver, threads)
    return {
        Kind.DRY_RUN: DryRun(*asked, PatchArgs, capacity_change),
        Kind.DRY_RUN_COSTS: DryRun(*asked, PatchArgs, cost_change),
        Kind.DRY_RUN_LOWER: DryRun(*asked, PatchArgs, lower_change),
        Kind.DRY_RUN_VERTICES: DryRun(*asked, PatchArgs, vertex_change),
        Kind.DRY_RUN_EDGES: DryRun(*asked, EdgesArgs, partial(structure_change, limits=limits)),
        Kind.MAX_FLOW: max_flow,
        Kind.MIN_CUT: max_flow,
        Kind.WHAT_IF: WhatIf(copies, solver, supposer, runner, max_flow),
        Kind.CLOSURE_STUDY: ClosureStudy(copies, solver, supposer, runner),
        Kind.PAIRS: Pairs(copies, solver, runner, max_flow, threads),
        Kind.GOMORY_HU_TREE: cut_trees.tree,
        Kind.GLOBAL_MIN_CUT: cut_trees.global_cut,
        Kind.PARAMETRIC: Parametric(*asked),
        Kind.CAPACITY_EXPANSION: CapacityExpansion(*asked),
        Kind.CIRCULATION: Circulation(*asked),
        Kind.PARTITION: Partition(*asked),
        Kind.MATCHING: Matching(*asked),
        Kind.MIN_COST_FLOW: MinCostFlow(*asked),
        Kind.CAPACITIES: CapacitiesPage(copies, results),
        Kind.VERTICES: VerticesPage(copies, results),
        Kind.EXPORT: Export(copies, results, past),
    }
