"""Snapshots: when they are due, and how they are written."""

import threading
import time
from collections.abc import Callable
from typing import Final

import redis
import structlog

from gpu_engine.networks.structure import since_load
from service.errors import ServiceError
from service.protocol import Kind
from service.settings import Settings
from service.store.applied import Fenced
from service.store.blobs import BrokenBlob
from service.store.durable import Written
from service.store.keys import Keys
from service.store.listed import SnapshotInfo
from service.store.snapshots import Capacities, Snapshots, Superseded
from service.worker.counters import Counters
from service.worker.graph import Graph
from service.worker.memory import Residents
from service.worker.running.costs import PER_ARC_S

REPLAYED_AT_ONCE: Final = 100
"""How many updates are replayed in the time in which a snapshot is written and read back."""

Defer = Callable[[str, Callable[[], None], float], None]
"""Queues work behind the present work of a graph's lane, with the seconds that it is expected to take."""

log = structlog.get_logger(__name__)


MOST_TAKEN_BYTES: Final = 256 << 20
"""The limit of all snapshots that are being written, of which one may always be. Further ones are taken later."""

BESIDE: Final = "/snapshot"
"""The ending of the name of a second lane of a graph, in which its snapshots are written. No graph has a slash in its
name."""


class Saver:
    """Writes snapshots of the graphs of one worker.

    Those that are due now and then are taken in the graph's own lane, between two commands, which is a copy of columns,
    and packed and written beside it, which takes far longer: updates of the graph go on.
    """

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        settings: Settings,
        residents: Residents,
        counters: Counters,
        defer: Defer,
    ) -> None:
        self._written = Written(client, keys)
        self._settings = settings
        self._residents = residents
        self._counters = counters
        self._defer = defer
        self._snapshots = Snapshots(client, keys)
        self._lock = threading.Lock()
        self._taken_bytes = 0

    def save_soon(self, graph: Graph) -> None:
        """Queue a snapshot behind the present command, by the policy of the settings."""
        age_s = time.monotonic() - graph.saved_at
        due = graph.unsaved >= self._settings.snapshot_every_updates
        if graph.saving or not (due or (graph.unsaved and age_s > self._settings.snapshot_every_s)):
            return
        graph.saving = True
        self._defer(graph.name, lambda: self._take(graph), 0.0)

    def save_if_behind(self, graph: Graph) -> None:
        """Write a snapshot of a graph that leaves memory, if its log has become long: so it is read back sooner."""
        if graph.unsaved >= REPLAYED_AT_ONCE:
            self.save_or_log(graph)

    def _take(self, graph: Graph) -> None:
        """In the graph's lane."""
        size = _bytes_of(graph)
        if self._residents.get(graph.name) is not graph or not self._begin(size):
            graph.saving = False
            return
        try:
            taken, epoch = _capacities_of(graph), graph.epoch
        except BaseException:  # there may be no memory for it just now
            self._end(size)
            graph.saving = False
            raise

        def write() -> None:
            try:
                written = self._written_beside(graph, taken, epoch)
            finally:
                self._end(size)
            self._defer(graph.name, lambda: self._settle(graph, taken.version if written else None), 0.0)

        self._defer(graph.name + BESIDE, write, PER_ARC_S[Kind.SNAPSHOT] * graph.network.n_arcs)

    def _begin(self, size: int) -> bool:
        with self._lock:
            may = not self._taken_bytes or self._taken_bytes + size <= MOST_TAKEN_BYTES
            self._taken_bytes += size if may else 0
            return may

    def _end(self, size: int) -> None:
        with self._lock:
            self._taken_bytes -= size

    def _written_beside(self, graph: Graph, taken: Capacities, epoch: int) -> bool:
        """Write what was taken, beside commands of the graph; returns whether a snapshot has it."""
        try:
            self._write(graph.name, graph.graph_id, epoch, taken)
        except Superseded:
            return True  # somebody asked for one meanwhile
        except Exception as error:
            if self._residents.get(graph.name) is graph:  # else it was moved, deleted or replaced meanwhile
                self._failed(graph, error)
            return False
        return True

    def _settle(self, graph: Graph, version: int | None) -> None:
        """In the graph's lane: what led to this version is in a snapshot now; None: it is in none."""
        if version is not None:
            graph.unsaved = min(graph.unsaved, graph.version - version)
        graph.saving = False
        graph.saved_at = time.monotonic()  # one that failed is not tried again at once

    def save_or_log(self, graph: Graph) -> None:
        """Save the graph. A failure is counted, and is no reason to fail anything else."""
        try:
            self.save(graph)
        except Exception as error:
            self._failed(graph, error)
        finally:
            graph.saved_at = time.monotonic()

    def save(self, graph: Graph) -> SnapshotInfo:
        """Write a snapshot of the present version, unless there is one. In the graph's lane."""
        run = self._written.run()
        listed = self._snapshots.listed(graph.graph_id)
        if listed and listed[0].version == graph.version:
            self._written.wait(run)  # it may have been listed just now, before Redis was away
            return listed[0]
        info = self._write(graph.name, graph.graph_id, graph.epoch, _capacities_of(graph))
        graph.unsaved, graph.saved_at = 0, time.monotonic()
        return info

    def _write(self, name: str, graph_id: str, epoch: int, capacities: Capacities) -> SnapshotInfo:
        run = self._written.run()
        info = self._snapshots.write(name, graph_id, epoch, capacities)
        self._written.wait(run)
        self._counters.count("snapshots_written")
        return info

    def _failed(self, graph: Graph, error: Exception) -> None:
        expected = isinstance(error, redis.RedisError | Fenced | BrokenBlob | ServiceError)
        log.warning("snapshot_failed", graph=graph.name, error=str(error), exc_info=None if expected else error)
        self._counters.count("snapshots_failed")


def _bytes_of(graph: Graph) -> int:
    """What `_capacities_of` takes, columns by vertex and what was inserted not counted."""
    columns = (graph.costs, graph.lowers)
    return graph.network.n_edges * (9 + 8 * sum(column is not None for column in columns))


def _capacities_of(graph: Graph) -> Capacities:
    """What a snapshot has of a graph: copies, since updates change the columns in place. O(m)."""
    own = graph.network.capacity.copy()
    closed = graph.table.closed.nonzero()[0]
    own[closed] = graph.table.own(closed)
    cost = None if graph.costs is None else graph.costs.cost.copy()
    return Capacities(
        version=graph.version,
        own=own,
        closed=graph.table.closed.copy(),
        known=list(graph.known.values()),
        cost=cost,
        lower=None if graph.lowers is None else graph.lowers.lower.copy(),
        limited=None if graph.vertices is None else graph.vertices.vertices.copy(),
        vertex_capacity=None if graph.vertices is None else graph.vertices.capacity.copy(),
        structure=since_load(graph.network, cost),
    )
