"""Snapshots: when they are due, and how they are written."""

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
from service.store.keys import Keys
from service.store.listed import SnapshotInfo
from service.store.snapshots import Capacities, Snapshots
from service.store.written import Written
from service.worker.counters import Counters
from service.worker.graph import Graph
from service.worker.memory import Residents
from service.worker.running.costs import PER_ARC_S

REPLAYED_AT_ONCE: Final = 100
"""Updates whose replay takes no longer than to write a snapshot and read it back."""

Defer = Callable[[str, Callable[[], None], float], None]
"""Queue work behind what a graph's lane already has; it is expected to take so many seconds."""

log = structlog.get_logger(__name__)


class Saver:
    """Writes snapshots of the graphs of one worker, each in the graph's own lane."""

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

    def save_soon(self, graph: Graph) -> None:
        """Queue a snapshot behind the present command, by the policy of the settings."""
        age_s = time.monotonic() - graph.saved_at
        due = graph.unsaved >= self._settings.snapshot_every_updates
        if graph.saving or not (due or (graph.unsaved and age_s > self._settings.snapshot_every_s)):
            return
        graph.saving = True
        expected_s = PER_ARC_S[Kind.SNAPSHOT] * graph.network.n_arcs
        self._defer(graph.name, lambda: self._save_if_here(graph), expected_s)

    def save_if_behind(self, graph: Graph) -> None:
        """Write a snapshot of a graph that leaves memory, if its log has become long: so it is read back sooner."""
        if graph.unsaved >= REPLAYED_AT_ONCE:
            self.save_or_log(graph)

    def _save_if_here(self, graph: Graph) -> None:
        if self._residents.get(graph.name) is graph:
            self.save_or_log(graph)

    def save_or_log(self, graph: Graph) -> None:
        """Save the graph. A failure is counted, and is no reason to fail anything else."""
        try:
            self.save(graph)
        except (redis.RedisError, Fenced, BrokenBlob, ServiceError) as error:
            log.warning("snapshot_failed", graph=graph.name, error=str(error))
            self._counters.count("snapshots_failed")
        except Exception:
            log.exception("snapshot_failed", graph=graph.name)
            self._counters.count("snapshots_failed")
        finally:
            graph.saving = False
            graph.saved_at = time.monotonic()  # one that failed is not tried again at once

    def save(self, graph: Graph) -> SnapshotInfo:
        """Write a snapshot of the present version, unless there is one."""
        run = self._written.run()
        listed = self._snapshots.listed(graph.graph_id)
        if listed and listed[0].version == graph.version:
            self._written.wait(run)  # it may have been listed just now, before Redis was away
            return listed[0]
        own = graph.network.capacity.copy()
        closed = graph.table.closed.nonzero()[0]
        own[closed] = graph.table.own(closed)
        capacities = Capacities(
            version=graph.version,
            own=own,
            closed=graph.table.closed.copy(),
            known=list(graph.known.values()),
            cost=None if graph.costs is None else graph.costs.cost,
            lower=None if graph.lowers is None else graph.lowers.lower,
            limited=None if graph.vertices is None else graph.vertices.vertices,
            vertex_capacity=None if graph.vertices is None else graph.vertices.capacity,
            structure=since_load(graph.network, None if graph.costs is None else graph.costs.cost),
        )
        info = self._snapshots.write(graph.name, graph.graph_id, graph.epoch, capacities)
        graph.unsaved, graph.saved_at = 0, time.monotonic()
        self._written.wait(run)
        self._counters.count("snapshots_written")
        return info
