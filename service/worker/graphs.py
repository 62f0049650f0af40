"""The graphs one worker serves, and what each command does to them.

A copy in memory is used only while the catalogue agrees with its id, version and fencing epoch; otherwise it is
dropped and restored. So dropping a copy is always safe, and it is what happens whenever an outcome is unknown.
A command may be run twice: a load, a PATCH and a delete leave their result as the command's outcome as they commit,
and one that has it is not run again; a PATCH repeated under its key is found in the log; all others change nothing
that counts.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, TypeVar

import numpy as np
import redis
import structlog
from numpy.typing import NDArray

from gpu_engine.engine import Control, Engine
from gpu_engine.errors import Cancelled, EngineError, OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.formats import unpack
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import CapacityTable, Change
from gpu_engine.select import load_network
from service.errors import ServiceError
from service.packed import unpacked
from service.protocol import CapacitiesArgs, Command, DeleteArgs, Kind, LoadArgs, MatchingArgs, MaxFlowArgs, PatchArgs
from service.settings import Settings
from service.store.blobs import Blobs, BrokenBlob
from service.store.catalogue import Registry, check_version
from service.store.connection import wait_written
from service.store.keys import Keys
from service.store.log import Applied, Entry, Fenced, Log
from service.store.outcomes import Committed
from service.store.ownership import Ownership
from service.store.snapshots import Capacities, SnapshotInfo, Snapshots
from service.worker import answers, json_writer
from service.worker import matching as matchings
from service.worker.graph import Answer, Graph, OpenEngine, Solved, least_footprint, time_limit
from service.worker.memory import Residents
from service.worker.metrics import Residency, WorkerMetrics
from service.worker.restore import Restorer
from service.worker.running.costs import PER_ARC_S
from service.worker.running.results import WRITING_BYTES, Result, Results
from service.worker.running.task import Forward, Task
from service.worker.terminals import read_terminals

MAX_TRIES: Final = 10
"""Attempts at a commit that others keep interfering with."""

REPLAYED_AT_ONCE: Final = 100
"""Updates whose replay takes no longer than to write a snapshot and read it back."""

Done = TypeVar("Done")

Defer = Callable[[str, Callable[[], None], float], None]
"""Queue work behind what a graph's lane already has; it is expected to take so many seconds."""

Parts = dict[str, object]
"""What an answer has beside its certificate, by field."""

log = structlog.get_logger(__name__)


class Graphs:
    """Commands of one graph come one after the other; those of different graphs side by side."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        worker: str,
        settings: Settings,
        open_engine: OpenEngine,
        metrics: WorkerMetrics | None = None,
    ) -> None:
        self._redis = client
        self._worker = worker
        self._settings = settings
        self._open_engine = open_engine
        self._metrics = metrics or WorkerMetrics()
        self._registry = Registry(client, keys)
        self._ownership = Ownership(client, keys)
        self._blobs = Blobs(client, keys)
        self._results = Results(client, keys, settings.job_ttl_s)
        self._log = Log(client, keys)
        self._snapshots = Snapshots(client, keys)
        self._restorer = Restorer(self._blobs, self._log, self._snapshots, self._network, self._engine, self.count)
        budget = Footprint(settings.memory_budget_bytes, settings.device_budget_bytes)
        self.residents = Residents(budget, self._spilled)
        self._lock = threading.Lock()
        self._counters: Counter[str] = Counter()
        self.defer: Defer = lambda _lane, work, _seconds: work()

    def handle(self, task: Task) -> Result:
        """Run one command; see `service.worker.running.consumer.Handler`."""
        self.count(f"commands_{task.command.kind.value}")
        with self.residents.at_work(task.command.graph, task.control):
            try:
                return self._run(task)
            except MemoryError as error:
                raise OutOfMemory(f"the machine has no more memory, whatever the budget says: {error}") from error

    def _run(self, task: Task) -> Result:
        command = task.command
        match command.kind:
            case Kind.LOAD:
                return self._load(command, LoadArgs.model_validate(command.args))
            case Kind.DELETE:
                return self._delete(command, DeleteArgs.model_validate(command.args))
            case Kind.PATCH:
                return self._patch(command, PatchArgs.model_validate(command.args), task.control)
            case Kind.MAX_FLOW:
                flow = MaxFlowArgs.model_validate(command.args)
                with time_limit(task.control, flow.time_limit_s):
                    return self._max_flow(task, flow)
            case Kind.MATCHING:
                matching = MatchingArgs.model_validate(command.args)
                with time_limit(task.control, matching.time_limit_s):
                    return self._matching(task, matching)
            case Kind.CAPACITIES:
                page = CapacitiesArgs.model_validate(command.args)
                return self._written(answers.capacities(self.ensure(command.graph), page))
            case Kind.SNAPSHOT:
                return self._written(answers.snapshot(self.save(self.ensure(command.graph))))

    def _written(self, answer: Mapping[str, object], control: Control | None = None) -> Result:
        """The answer as JSON, stored as it is written. Raises `Cancelled`, unless there is no ``control``."""
        return self._results.keep(_unless_cancelled(json_writer.pieces(answer), control or Control()))

    def count(self, name: str, by: int = 1) -> None:
        with self._lock:
            self._counters[name] += by

    @property
    def counters(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counters)

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
        """What was wrong with graphs that were restored."""
        return [f"{name}: {text}" for name, text in list(self._restorer.notes.items())]

    def owned(self) -> list[str]:
        """Names of the graphs this worker is to serve."""
        return self._registry.owned_by(self._worker)

    def sizes(self) -> dict[str, int]:
        """What these take at rest, in bytes of host memory."""
        return self._registry.sizes(self.owned())

    def arcs(self, name: str) -> int | None:
        """Of a graph in memory."""
        graph = self.residents.get(name)
        return None if graph is None else graph.network.n_arcs

    def ensure(self, name: str) -> Graph:
        """The graph as the catalogue has it, restored if need be. One round trip when it is at hand.

        Raises unknown_graph, or `Forward` if another worker owns it.
        """
        graph = self.residents.get(name)
        graph_id, owner, held = self._registry.hold(name, graph.graph_id if graph else None)
        if graph_id is None:
            self.residents.drop(name)
            raise ServiceError("unknown_graph", f"there is no graph {name!r}")
        if owner is not None and owner != self._worker:
            self.residents.drop(name)
            raise Forward(owner)
        if graph is None or held is None or (held.version, held.epoch) != (graph.version, graph.epoch):
            self.residents.drop(name)
            return self._restore(name)
        self.residents.touch(name)
        return graph

    def restore(self, name: str) -> None:
        """`ensure`, outside of any command."""
        with self.residents.at_work(name):
            self.ensure(name)

    def hand_back(self, name: str, home: str) -> None:
        """Let the worker that a graph was taken from have it again, unless somebody asks for it just now."""
        with self.residents.at_work(name):
            try:
                graph = self.residents.get(name)
                if graph is not None and graph.unsaved >= REPLAYED_AT_ONCE:
                    self._save_or_log(graph)  # it is read back the sooner
                if not self._ownership.hand_back(name, self._worker, home):
                    return
            except (redis.RedisError, Fenced) as error:
                log.warning("not_handed_back", graph=name, home=home, error=str(error))
                return
            self.residents.drop(name)
        self.count("graphs_handed_back")
        log.info("handed_back", graph=name, worker=self._worker, home=home)

    def _restore(self, name: str) -> Graph:
        graph_id, _, _ = self._registry.hold(name, None)
        _, _, held = self._registry.hold(name, graph_id)
        if held is None:
            raise ServiceError("unknown_graph", f"there is no graph {name!r}")
        graph = self._restorer.restore(name, held)
        self.residents.keep(graph)
        self._note(graph)
        return graph

    def _engine(self, name: str, network: Network) -> Engine:
        """One that stays within the budget. Raises `OutOfMemory`."""
        room = partial(self.residents.take, name)
        room(Footprint(network.nbytes + network.n_edges))  # and which of the edges are closed
        return self._open_engine(network, room=room)

    def _spilled(self, graph: Graph) -> None:
        """A graph has given way; it comes back when it is used, fast enough if it has a snapshot."""
        self.count("graphs_spilled")
        if graph.unsaved >= REPLAYED_AT_ONCE:
            self._save_or_log(graph)

    def _note(self, graph: Graph) -> None:
        footprint = graph.footprint
        figures = {"bytes": footprint.host, "device_bytes": footprint.device, "flow_states": len(graph.states)}
        self._registry.note(graph.graph_id, **figures)

    def _load(self, command: Command, args: LoadArgs) -> Result:
        graph_id, owner, _ = self._registry.hold(command.graph, None)
        if owner is not None and owner != self._worker:
            raise Forward(owner)
        if graph_id == command.id:
            raise Fenced("the load is committed")  # since the command was looked at: its job has the answer
        if args.if_match is not None:  # before the work; `create` looks again
            held = None if graph_id is None else self._registry.hold(command.graph, graph_id)[2]
            check_version(command.graph, None if held is None else held.version, args.if_match)
        graph = self._build(command, args)
        loaded = self._create(graph, command, args)
        self.residents.keep(graph)
        wait_written(self._redis)
        return Result(loaded.encode())

    def _create(self, graph: Graph, command: Command, args: LoadArgs) -> str:
        """Put what was built under its name. The answer to the load, also if it was committed by an earlier try."""
        info = answers.graph_info(graph, self._worker, command.created_at)
        try:
            return self._registry.create(info, graph.graph_id, args.blob, args.if_match).model_dump_json()
        except Committed as done:
            return done.result

    def _network(self, edges: EdgeList) -> Network:
        return load_network(edges, self._settings.engine)

    def _build(self, command: Command, args: LoadArgs) -> Graph:
        try:
            edges = unpack(self._blobs.get(args.blob))
        except BrokenBlob as error:
            raise ServiceError("worker_unavailable", "the edges are gone; send them again") from error
        self.residents.refuse_hopeless(least_footprint(self._settings.engine, edges.n_vertices, len(edges.tail)))
        network = self._network(edges)
        try:
            engine = self._engine(command.graph, network)
        except OutOfMemory:
            if not self.residents.drop(command.graph):  # the graph in whose place this one comes
                raise
            engine = self._engine(command.graph, network)
        return Graph(command.graph, command.id, 1, 1, network, engine, CapacityTable(network))

    def _delete(self, command: Command, args: DeleteArgs) -> Result:
        _, owner, _ = self._registry.hold(command.graph, None)
        if owner is not None and owner != self._worker:
            raise Forward(owner)
        if not self._registry.remove(command.graph, command.id, self._worker, args.if_match):
            raise ServiceError("unknown_graph", f"there is no graph {command.graph!r}")
        self.residents.drop(command.graph)
        wait_written(self._redis)
        return Result(b"{}")

    def _patch(self, command: Command, args: PatchArgs, control: Control) -> Result:
        began = time.perf_counter()
        for tries_left in reversed(range(MAX_TRIES)):
            graph = self.ensure(command.graph)
            try:
                version, applied, timings_ms = self._commit(graph, command, args)
                break
            except Fenced as error:
                log.warning("fenced", graph=command.graph, error=str(error))
                self.count("fenced")
                if not tries_left:
                    raise
            except (EngineError, ServiceError):
                raise  # refused before anything changed
            except Exception:
                self.residents.drop(command.graph)  # half of the change may be in it
                raise
        solving_since = time.perf_counter()
        # An answer given again, after later updates, says nothing of flows: they are at another version.
        wanted = args.solve == "all" and graph.version == version
        solved = self._solve_all(graph, control) if wanted else []
        ended = time.perf_counter()
        timings_ms |= {"solve": 1e3 * (ended - solving_since), "total": 1e3 * (ended - began)}
        wait_written(self._redis)
        counts = {"applied": applied.applied, "skipped": applied.skipped, "unchanged": applied.unchanged}
        answer = {"version": version} | counts | {"flow_states": solved, "timings_ms": answers.rounded(timings_ms)}
        return self._written(answer)

    def _commit(self, graph: Graph, command: Command, args: PatchArgs) -> tuple[int, Applied, dict[str, float]]:
        """Version and counts of the command, now in the log if it was not before. All or nothing."""
        key = command.idempotency_key or command.id
        known = graph.known.get(key)
        if known is not None:
            if known.applied.digest != command.body_digest:
                raise ServiceError("idempotency_conflict", "the Idempotency-Key was used with another body")
            return known.version, known.applied, {}
        check_version(command.graph, graph.version, args.if_match)
        began = time.perf_counter()
        batch = [unpacked(operation) for operation in args.batch]
        change = graph.table.resolve(batch, on_missing=args.on_missing, rounding=args.rounding)
        counts = {"applied": len(change.rows), "skipped": change.skipped, "unchanged": change.unchanged}
        applied = Applied(key=key, digest=command.body_digest, **counts)
        self._apply(graph, change)  # refuses before it changes anything
        applied_at = time.perf_counter()
        entry = Entry(graph.version + 1, applied, change)
        try:
            self._log.append(graph.graph_id, graph.epoch, entry, time.time(), command.id)
        except BaseException:
            self.residents.drop(graph.name)  # it has the change, and whether the log has it is not known
            raise
        logged_at = time.perf_counter()
        self._metrics.appended(logged_at - applied_at)
        graph.version = entry.version
        graph.remember(entry.version, applied)
        graph.unsaved += 1
        self._save_soon(graph)
        return entry.version, applied, {"apply": 1e3 * (applied_at - began), "log": 1e3 * (logged_at - applied_at)}

    def _apply(self, graph: Graph, change: Change) -> None:
        """To the engine, then to the table. Nobody sees it before it is logged; if that fails the copy is dropped."""
        if len(change.rows):
            graph.engine.update(change.rows, change.effective)
            graph.table.apply(change)

    def _solve_all(self, graph: Graph, control: Control) -> list[dict[str, object]]:
        """Every flow state of the graph, the most recently used first."""
        shown = []
        for key, solved in reversed(list(graph.states.items())):
            if key not in graph.states:
                continue  # it gave way to one before
            old = solved.report
            try:
                answer = self._solve(graph, solved, control)
            except (Cancelled, OutOfMemory, MemoryError):
                answer = None  # what is committed stays; the state is solved when it is asked for
            shown.append(answers.solved_state(graph, solved, old, answer))
        return shown

    def _max_flow(self, task: Task, args: MaxFlowArgs) -> Result:
        began = time.perf_counter()
        graph = self._at_least(task.command.graph, args.min_version)
        terminals = read_terminals(graph.network, args)

        def read(solved: Solved) -> Parts:
            return self._fields(graph, solved, args, task.control)

        answer, parts, timings_ms = self._question(task, graph, terminals, read, began)
        return self._written(answers.max_flow(graph, answer, timings_ms) | parts, task.control)

    def _matching(self, task: Task, args: MatchingArgs) -> Result:
        began = time.perf_counter()
        graph = self._at_least(task.command.graph, args.min_version)
        network = matchings.left_to_right(graph, args.left)
        if not network.n_edges:
            return self._written(matchings.without_edges(graph, args.fields), task.control)
        terminals = matchings.sides(graph, network)

        def ask() -> Parts:
            copied = network is not graph.network
            asked = matchings.copy_on(self._engine(graph.name, network), graph) if copied else graph

            def read(solved: Solved) -> Parts:
                if not args.fields - {"size"}:
                    return {}
                self.residents.take(graph.name, matchings.working_memory(network))
                found = matchings.read_proven(asked, solved, task.control, self._count_failure)
                return matchings.fields(network, found, args.fields)

            answer, parts, timings_ms = self._question(task, asked, terminals, read, began)
            return answers.matching(asked, answer, timings_ms) | parts

        parts = self._giving_way(graph, ask)  # to the copy as well
        self._hold(graph, matchings.answer_bytes(network))
        return self._written(parts, task.control)

    def _at_least(self, name: str, version: int | None) -> Graph:
        """The graph, as `ensure` has it. Raises version_unavailable if it has not reached the version."""
        graph = self.ensure(name)
        if version is not None and version > graph.version:
            raise ServiceError("version_unavailable", f"the graph is at version {graph.version}")
        return graph

    def _question(
        self,
        task: Task,
        graph: Graph,
        terminals: Terminals,
        read: Callable[[Solved], Parts],
        began: float,
    ) -> tuple[Answer, Parts, dict[str, float]]:
        """Solve for these terminals and read what was asked for. Milliseconds by phase."""
        command = task.command
        states_before = len(graph.states)
        solved = self._giving_way(graph, lambda: graph.open(terminals, command.kind))
        try:
            answer = self._solve(graph, solved, task.control)
        except OutOfMemory:
            graph.close(solved)  # of no use to anybody
            raise
        fields_since = time.perf_counter()
        parts = read(solved)
        ended = time.perf_counter()
        if len(graph.states) != states_before and self.residents.get(graph.name) is graph:
            self._note(graph)
        queued_s = (task.started_at or command.created_at) - command.created_at
        timings_ms = {"queue": max(0.0, 1e3 * queued_s), "solve": answer.solve_ms, "certificate": answer.certificate_ms}
        if parts:
            timings_ms["fields"] = 1e3 * (ended - fields_since)
        timings_ms["total"] = timings_ms["queue"] + 1e3 * (ended - began)
        return answer, parts, timings_ms

    def _fields(self, graph: Graph, solved: Solved, args: MaxFlowArgs, control: Control) -> Parts:
        """The cut and the flow by edge, where they are asked for. About as much work as a solve."""
        parts: Parts = {}
        columns: list[NDArray[np.generic]] = []
        if "cut" in args.fields:
            cut = self._giving_way(graph, lambda: graph.engine.cut(solved.state, control), but=solved)
            columns += [cut.source_side, cut.edges]
            parts["cut"] = answers.cut(graph.network, cut)
        if "flow" in args.fields:
            flow = self._giving_way(graph, lambda: graph.engine.flow(solved.state, control), but=solved)
            columns += [flow]
            parts["flow"] = answers.flow(graph.network, flow, zeros=args.zeros)
        self._hold(graph, sum(column.nbytes for column in columns))
        return parts

    def _hold(self, graph: Graph, n_bytes: int) -> None:
        """Count what an answer is written from, and what it takes to write it, until the command ends."""
        self.residents.take(graph.name, Footprint(n_bytes + min(n_bytes, WRITING_BYTES)))

    def _giving_way(self, graph: Graph, work: Callable[[], Done], but: Solved | None = None) -> Done:
        """Work of the graph's engine; once no other graph can give way, its own older flow states do."""
        while True:
            try:
                return work()
            except OutOfMemory:
                if not graph.close_oldest(but):
                    raise
                self.residents.measure(graph)
            finally:
                self.residents.settle(graph)

    def _solve(self, graph: Graph, solved: Solved, control: Control) -> Answer:
        before = control.progress()
        answer = self._giving_way(graph, lambda: graph.solve(solved, control, self._count_failure), but=solved)
        work = {name: count - before[name] for name, count in control.progress().items()}
        report = answer.report
        self._metrics.solved(report.mode, report.engine, answer.solve_ms, answer.certificate_ms, work)
        return answer

    def _count_failure(self) -> None:
        self.count("certificate_failures")
        log.error("certificate_failed", worker=self._worker)

    def look_after(self) -> None:
        """Queue snapshots of graphs whose last one is too long ago; forget graphs that others serve, or nobody.

        Called now and then.
        """
        resident = self.residents.all()
        owned = set(self.owned()) if resident or self._restorer.notes else set()
        for graph in resident:
            if graph.name in owned:
                self._save_soon(graph)
            else:
                self.residents.drop(graph.name)
        for name in [*self._restorer.notes]:
            if name not in owned:
                self._restorer.notes.pop(name, None)

    def _save_soon(self, graph: Graph) -> None:
        """Queue a snapshot behind the present command, by the policy of the settings."""
        age_s = time.monotonic() - graph.saved_at
        due = graph.unsaved >= self._settings.snapshot_every_updates
        if graph.saving or not (due or (graph.unsaved and age_s > self._settings.snapshot_every_s)):
            return
        graph.saving = True
        expected_s = PER_ARC_S[Kind.SNAPSHOT] * graph.network.n_arcs
        self.defer(graph.name, lambda: self._save_if_here(graph), expected_s)

    def _save_if_here(self, graph: Graph) -> None:
        if self.residents.get(graph.name) is graph:
            self._save_or_log(graph)

    def _save_or_log(self, graph: Graph) -> None:
        try:
            self.save(graph)
        except (redis.RedisError, Fenced, BrokenBlob, ServiceError) as error:
            log.warning("snapshot_failed", graph=graph.name, error=str(error))
            self.count("snapshots_failed")
        except Exception:
            log.exception("snapshot_failed", graph=graph.name)
            self.count("snapshots_failed")
        finally:
            graph.saving = False
            graph.saved_at = time.monotonic()  # one that failed is not tried again at once

    def save(self, graph: Graph) -> SnapshotInfo:
        """Write a snapshot of the present version, unless there is one."""
        listed = self._snapshots.listed(graph.graph_id)
        if listed and listed[0].version == graph.version:
            return listed[0]
        own = graph.network.capacity.copy()
        closed = graph.table.closed.nonzero()[0]
        own[closed] = graph.table.own(closed)
        capacities = Capacities(
            version=graph.version, own=own, closed=graph.table.closed.copy(), known=list(graph.known.values())
        )
        info = self._snapshots.write(graph.name, graph.graph_id, graph.epoch, capacities)
        graph.unsaved, graph.saved_at = 0, time.monotonic()
        wait_written(self._redis)
        self.count("snapshots_written")
        return info


def _unless_cancelled(pieces: Iterable[bytes], control: Control) -> Iterator[bytes]:
    for piece in pieces:
        if control.cancelled:
            raise Cancelled("cancelled while its answer was written")
        yield piece
