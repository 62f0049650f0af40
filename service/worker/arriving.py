"""Graphs that another worker is about to hand over: they are read, and their flow states solved, before they come.

A copy that is read ahead goes on from the log when the graph has come: its flow states are repaired, and not lost.
"""

import time

import redis
import structlog

from gpu_engine.errors import EngineError
from service.store.durable import Restarted, Written
from service.store.held import Held
from service.store.keys import Keys
from service.store.log import BrokenLog, Entry, Log
from service.worker.ahead import Ahead
from service.worker.graph import Graph

log = structlog.get_logger(__name__)


class Arrivals:
    """Tells copies that are read ahead from others, and brings them up to date. Raises RedisError."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._log = Log(client, keys)
        self._written = Written(client, keys)

    def ahead(self) -> Ahead:
        """The mark of a copy that is about to be read ahead; it is asked for before the copy is read."""
        return Ahead(self._written.run())

    def adopt(self, graph: Graph, held: Held) -> bool:
        """Bring a copy that was read ahead to what the catalogue says, once the graph is this worker's. False, and the
        copy is of no use, if it is none, or cannot be."""
        ahead, graph.ahead = graph.ahead, None
        if ahead is None or graph.graph_id != held.graph_id or graph.version > held.version:
            return False
        try:
            self._written.wait(ahead.run)
            for entry in self._log.replay(graph.graph_id, graph.version):
                if not _is_simple(entry):
                    return False
                graph.update(entry.change)
                if entry.costs is not None and graph.costs is not None:
                    graph.costs.apply(entry.costs)
                graph.version = entry.version
                graph.unsaved += 1
                graph.remember(entry.version, entry.applied)
        except (Restarted, BrokenLog, EngineError) as error:
            log.warning("not_caught_up", graph=graph.name, error=str(error))
            return False
        graph.epoch, graph.unwritten_at = held.epoch, time.monotonic()
        return graph.version == held.version


def _is_simple(entry: Entry) -> bool:
    """Whether an update changes nothing but capacities and costs of edges. After any other the graph is read again."""
    return all(part is None for part in (entry.structure, entry.vertices, entry.lower))
