"""Watches: flows that are solved again at each version of their graph, and whose changes are told in its feed.

A version is told before the next one is committed, and otherwise as soon as its graph is in memory: after an update,
a load, a restart, a takeover. So a reader sees the versions one by one, whoever serves the graph. What a watch sees
never stands in the way of an update: a flow without a bound, or one that there is no memory for, is told as that.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis
import structlog

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, EngineError
from gpu_engine.networks.terminals import Terminals
from service.errors import ServiceError
from service.protocol import MEDIA_TYPES, Envelope, MaxFlowArgs, UnwatchArgs, WatchArgs
from service.store.applied import Fenced
from service.store.durable import Written
from service.store.feed.record import CutSeen, Event, Seen, version_tag
from service.store.feed.writing import Feed, Feeds
from service.store.jobs.record import Result
from service.worker import answers, json_writer
from service.worker.copies import Copies
from service.worker.counters import Counters
from service.worker.graph import Graph, Solved
from service.worker.questions.terminals import read_terminals
from service.worker.running.task import Task
from service.worker.saving import Defer
from service.worker.solving import Solver
from service.worker.watch_events import described, events_of

log = structlog.get_logger(__name__)


class Watcher:
    """Solves for the watches of one worker's graphs, each graph in its own lane."""

    def __init__(
        self,
        feeds: Feeds,
        copies: Copies,
        solver: Solver,
        counters: Counters,
        defer: Defer,
        max_watches: int,
        written: Written,
        has_lost_device: Callable[[], bool],
    ) -> None:
        """`has_lost_device` is asked when a watch could not be looked at for a reason that nobody foresaw."""
        self._feeds = feeds
        self._copies = copies
        self._solver = solver
        self._counters = counters
        self._defer = defer
        self._max_watches = max_watches
        self._written = written
        self._has_lost_device = has_lost_device
        self._lock = threading.Lock()
        self._running: set[Control] = set()
        self._stopped = False

    def put(self, task: Task) -> Result:
        """Begin to watch, or watch something else under the same name."""
        asked, run = WatchArgs.model_validate(task.command.args), self._written.run()
        args = asked.model_copy(update={"encoding": "json"})
        graph = self._copies.ensure(task.command.graph, limited=True)
        feed = self.catch_up(graph)
        if args.watch not in feed.watches and len(feed.watches) >= self._max_watches:
            raise ServiceError(
                "too_large", f"graph {graph.name!r} has {len(feed.watches)} watches, the most it may have (max_watches)"
            )
        terminals = self._terminals(graph, args)
        graph.pinned |= {terminals.key}
        try:
            seen = self._solved(graph, args, terminals, task.control)
            answer = json_writer.dumps(described(graph, args, seen), strings=asked.strings)
            whose = graph.name, graph.graph_id, graph.epoch, graph.version
            with self._certain(graph):
                self._feeds.put(*whose, feed.at, args, seen, task.command.id, answer)
            envelope = Envelope(
                version=graph.version,
                generation=graph.generation,
                replaced=args.watch in feed.watches,
                media_type=MEDIA_TYPES[asked.encoding],
            )
            feed.watches[args.watch], feed.seen[args.watch] = args, seen
            feed.at = version_tag(graph.graph_id, graph.version)
        finally:
            self._pin(graph, feed)
        self._written.wait(run)
        return Result(answer.encode(), envelope=envelope)

    def drop(self, task: Task) -> Result:
        """End a watch."""
        args, run = UnwatchArgs.model_validate(task.command.args), self._written.run()
        graph = self._copies.ensure(task.command.graph, limited=True)
        feed = self.catch_up(graph)
        if args.watch not in feed.watches:
            raise ServiceError("unknown_watch", f"graph {graph.name!r} has no watch {args.watch!r}")
        whose = graph.name, graph.graph_id, graph.epoch, graph.version
        with self._certain(graph):
            self._feeds.drop(*whose, feed.at, args.watch, task.command.id)
        feed.watches.pop(args.watch)
        feed.seen.pop(args.watch, None)
        self._pin(graph, feed)
        self._written.wait(run)
        return Result(b"{}")

    def catch_up(self, graph: Graph) -> Feed:
        """Tell what the watches see at the graph's version, unless it was told. Raises RedisError, or `Fenced`."""
        feed = graph.feed
        if feed is None or self._feeds.may_have_changed(feed):
            feed = graph.feed = self._feeds.read(graph.name)
            self._pin(graph, feed)
        tag = version_tag(graph.graph_id, graph.version)
        if not feed.watches or feed.at == tag:
            return feed
        with self._stoppable() as control:
            seen = {watch: self._look(graph, args, control) for watch, args in feed.watches.items()}
        same_load = feed.at is not None and feed.at.partition("-")[0] == graph.generation
        events: list[Event] = []
        for watch, args in sorted(feed.watches.items()):  # the same order at whichever worker
            events += events_of(graph, args, feed.seen.get(watch), seen[watch], same_load=same_load)
        news = {watch: what for watch, what in seen.items() if not same_load or what != feed.seen.get(watch)}
        with self._certain(graph):
            self._feeds.tell(graph.name, graph.graph_id, graph.epoch, graph.version, feed, news, events)
        self._counters.count("watches_told", len(seen))
        return feed

    def try_to_catch_up(self, graph: Graph) -> None:
        """As `catch_up`. What cannot be told now is told before the next version, or by `look_after`."""
        try:
            self.catch_up(graph)
        except (redis.RedisError, Fenced, Cancelled) as error:
            log.warning("not_told", graph=graph.name, error=str(error))

    def look_after(self, graph: Graph) -> None:
        """Queue what could not be told of a graph, in its own lane."""
        feed, tag = graph.feed, version_tag(graph.graph_id, graph.version)
        if feed is None or (feed.watches and (feed.at != tag or self._feeds.may_have_changed(feed))):
            self._defer(graph.name, lambda: self._catch_up_if_here(graph.name), 0.0)

    def stop(self) -> None:
        """Cancel what is being solved, as the worker ends. From any thread."""
        with self._lock:
            self._stopped = True
            for control in self._running:
                control.cancel()

    def _catch_up_if_here(self, name: str) -> None:
        with self._copies.residents.at_work(name):
            graph = self._copies.residents.get(name)
            if graph is not None:
                self.try_to_catch_up(graph)

    @contextmanager
    def _stoppable(self) -> Iterator[Control]:
        """A control of its own: who cancels an update does not cancel what is told of it."""
        control = Control()
        with self._lock:
            self._running.add(control)
            if self._stopped:
                control.cancel()
        try:
            yield control
        finally:
            with self._lock:
                self._running.discard(control)

    @contextmanager
    def _certain(self, graph: Graph) -> Iterator[None]:
        """What is known of a feed is read again after a write that failed: it may be there, its answer lost, or Redis
        has come back older than what is known."""
        try:
            yield
        except BaseException:
            graph.feed = None
            raise

    def _look(self, graph: Graph, args: WatchArgs, control: Control) -> Seen:
        """What a watch sees now. Raises `Cancelled`, and nothing else."""
        try:
            return self._solved(graph, args, self._terminals(graph, args), control)
        except Cancelled:
            raise
        except (EngineError, ServiceError) as error:
            return Seen(None, error.code)
        except MemoryError:
            return Seen(None, "out_of_memory")
        except Exception as error:
            if self._has_lost_device():  # the next process tells what there is to see
                raise Cancelled("the device of this worker is lost") from error
            log.exception("not_watched", graph=graph.name, watch=args.watch)
            return Seen(None, "internal_error")

    def _solved(self, graph: Graph, args: WatchArgs, terminals: Terminals, control: Control) -> Seen:
        """Raises as a question for the same flow. The state stays open, and is nobody's latest question."""
        if "cut" in args.on and graph.vertices is not None:
            raise graph.vertices.refusal("a watch of the cut does not know them, one of the value does")
        solved = graph.states.get(terminals.key) or self._solver.giving_way(graph, lambda: graph.open(terminals))
        answer = self._solver.solve(graph, solved, control)
        cut = self._cut(graph, solved, control) if "cut" in args.on else None
        value = json_writer.dumps(answers.amount(graph.network, answer.report.value))
        return Seen(value, cut=cut, ignores_lower=bool(answers.ignored(graph)))

    def _cut(self, graph: Graph, solved: Solved, control: Control) -> CutSeen:
        found = self._solver.giving_way(graph, lambda: graph.engine.cut(solved.state, control), but=solved)
        return CutSeen.of(found.edges)

    def _terminals(self, graph: Graph, args: WatchArgs) -> Terminals:
        named = args.model_dump(include={"sources", "sinks", "supply", "demand", "rounding"})
        return read_terminals(graph.network, MaxFlowArgs(**named))

    def _pin(self, graph: Graph, feed: Feed) -> None:
        """Keep the states of the watches beside those of questions."""
        keys = set()
        for args in feed.watches.values():
            try:
                keys.add(self._terminals(graph, args).key)
            except (EngineError, ServiceError):
                continue  # the graph that was loaded last has no such vertices
        graph.pinned = frozenset(keys)
