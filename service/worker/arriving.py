"""Graphs that another worker is about to hand over: they are read, and their flow states solved, before they come.

A copy that is read ahead goes on from the log when the graph has come: its flow states are repaired, and not lost.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import redis
import structlog

from gpu_engine.errors import EngineError
from service.store.held import Held
from service.store.keys import Keys
from service.store.log import BrokenLog, Log
from service.store.written import Written
from service.worker.graph import Graph

KEPT_S: Final = 600.0
"""How long a copy is kept whose graph does not come."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Expected:
    """A graph that was read ahead."""

    run: str
    """Of the Redis server: one that was started since may have lost versions, and written others of their number."""
    until: float


class Arrivals:
    """The copies of one worker that are read ahead. Safe from any thread."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._log = Log(client, keys)
        self._written = Written(client, keys)
        self._expected: dict[str, Expected] = {}
        self._lock = threading.Lock()

    def read(self, name: str, restore: Callable[[], Graph]) -> Graph:
        """Read a graph that is another worker's, and expect it from now on."""
        run = self._written.run()
        graph = restore()
        with self._lock:
            self._expected[name] = Expected(run, time.monotonic() + KEPT_S)
        return graph

    def expects(self, name: str) -> bool:
        with self._lock:
            expected = self._expected.get(name)
            return expected is not None and time.monotonic() < expected.until

    def forget(self, name: str) -> None:
        with self._lock:
            self._expected.pop(name, None)

    def adopt(self, graph: Graph, held: Held) -> bool:
        """Bring a copy that was read ahead to what the catalogue says, once the graph is this worker's. False, and the
        copy is of no use, if it cannot be."""
        with self._lock:
            expected = self._expected.pop(graph.name, None)
        if expected is None or graph.graph_id != held.graph_id or graph.version > held.version:
            return False
        if self._written.run() != expected.run:
            return False
        try:
            for entry in self._log.replay(graph.graph_id, graph.version):
                if any(part is not None for part in (entry.structure, entry.vertices, entry.lower)):
                    return False
                graph.update(entry.change)
                if entry.costs is not None and graph.costs is not None:
                    graph.costs.apply(entry.costs)
                graph.version = entry.version
                graph.unsaved += 1
                graph.remember(entry.version, entry.applied)
        except (BrokenLog, EngineError) as error:
            log.warning("not_caught_up", graph=graph.name, error=str(error))
            return False
        graph.epoch = held.epoch
        return graph.version == held.version
