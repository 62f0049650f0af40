"""Flow states that were there before a restart, a takeover or the way back are solved again, before anybody asks.

One after the other in the graph's own lane, the one asked for last first. A command of the graph goes before them: it
waits for none, and cancels the one that is being solved. They displace neither other graphs nor states that are used.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

import redis
import structlog

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, EngineError, InvalidTerminals, OutOfMemory
from service.protocol import Kind
from service.store.states import Noted
from service.worker.copies import Copies
from service.worker.counters import Counters
from service.worker.graph import Graph
from service.worker.running.costs import PER_ARC_S
from service.worker.saving import Defer

TRIES: Final = 3
"""How often a flow state is tried. A graph that gets commands all the time goes without it after that."""

log = structlog.get_logger(__name__)


class Reopener:
    """Solves flow states of one worker again. `is_wanted` says whether commands of a graph wait in its lane."""

    def __init__(self, copies: Copies, counters: Counters, defer: Defer, is_wanted: Callable[[str], bool]) -> None:
        self._copies = copies
        self._counters = counters
        self._defer = defer
        self._is_wanted = is_wanted
        self._lock = threading.Lock()
        self._running: dict[str, Control] = {}
        self._waiting: OrderedDict[str, int] = OrderedDict()
        """Graphs with flow states to solve, and how often one of them may still be tried."""
        self._is_at_work = False
        self._stopped = False

    def begin(self, name: str) -> None:
        """Queue the work on a graph that has just been restored."""
        with self._lock:
            self._waiting[name] = TRIES
            is_at_work, self._is_at_work = self._is_at_work, True
        if not is_at_work:
            self._line_up()

    def solve_all(self, graph: Graph) -> int:
        """Solve the flow states of a graph that is read ahead, as many as there is room for; how many it then has."""
        control = Control()
        with self._told_to_give_way(graph.name, control):
            while graph.to_reopen and not control.cancelled:
                try:
                    self._solve_again(graph, graph.to_reopen[-1], control)
                except (Cancelled, OutOfMemory, MemoryError):
                    break  # what is left is solved once the graph is here
                except EngineError as error:
                    log.info("not_reopened", graph=graph.name, error=str(error))
                graph.to_reopen.pop()
        return len(graph.states)

    def give_way(self, name: str) -> None:
        """Cancel what is being solved of the graph, as a command of it has come. From any thread."""
        with self._lock:
            if name in self._running:
                self._running[name].cancel()

    def stop(self) -> None:
        """Cancel all solves, because the worker ends. Any thread may call it."""
        with self._lock:
            self._stopped = True
            self._waiting.clear()
            for control in self._running.values():
                control.cancel()

    def _line_up(self) -> None:
        """Queue the next flow state, of the graph that has waited longest: one at a time, so that commands of other
        graphs find free threads."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_at_work = False
                    return
                name, tries = self._waiting.popitem(last=False)
            graph = self._copies.residents.get(name)
            if graph is not None and graph.to_reopen and tries:
                expected_s = PER_ARC_S[Kind.MAX_FLOW] * graph.network.n_arcs
                self._defer(name, partial(self._next, name, tries), expected_s)
                return

    def _next(self, name: str, tries: int) -> None:
        """Solve one flow state of the graph, and queue the next, of any."""
        try:
            left = self._try(name, tries)
            with self._lock:
                if left and not self._stopped:
                    self._waiting.setdefault(name, left)
        finally:
            self._line_up()

    def _try(self, name: str, tries: int) -> int:
        """Try to solve one flow state. Returns how often the next may be tried; 0: the graph is to have no more."""
        control = Control()
        with self._told_to_give_way(name, control), self._copies.residents.at_work(name, control, displaces=False):
            graph = self._copies.residents.get(name)
            if graph is None or not graph.to_reopen:
                return 0
            if control.cancelled or self._is_wanted(name):
                return tries
            try:
                self._reopen(graph, graph.to_reopen[-1], control)
            except Cancelled:
                return tries - 1
            except (OutOfMemory, MemoryError) as error:  # no room without displacing others
                log.info("not_reopened", graph=name, error=str(error))
                graph.to_reopen.clear()
                return 0
            except EngineError as error:  # not solvable any more: an update has left it without a bound
                log.info("not_reopened", graph=name, error=str(error))
            graph.to_reopen.pop()
            return TRIES

    @contextmanager
    def _told_to_give_way(self, name: str, control: Control) -> Iterator[None]:
        with self._lock:
            self._running[name] = control
            if self._stopped:
                control.cancel()
        try:
            yield
        finally:
            with self._lock:
                del self._running[name]

    def _reopen(self, graph: Graph, noted: Noted, control: Control) -> None:
        """Open and solve one flow state, and note it."""
        if self._solve_again(graph, noted, control):
            with suppress(redis.RedisError):  # a heartbeat makes up for it
                self._copies.note(graph)

    def _solve_again(self, graph: Graph, noted: Noted, control: Control) -> bool:
        """Open and solve one flow state. It goes before the others in order of use: those were asked for since."""
        key = noted.terminals.key
        if key in graph.states or len(graph.states) >= graph.most_states:
            return False
        noted.terminals.check(graph.network.n_vertices)
        if graph.lacks(noted.terminals):
            raise InvalidTerminals("a terminal was deleted")
        solved = graph.open(noted.terminals, noted.kind)
        graph.states.move_to_end(key, last=False)
        try:
            graph.solve(solved, control, partial(self._counters.count, "certificate_failures"))
        except BaseException:
            graph.close(solved)
            raise
        self._counters.count("flow_states_reopened")
        return True
