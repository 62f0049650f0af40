"""What a graph was at an earlier version, as far as its snapshots and its log reach."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from gpu_engine.footprint import Footprint
from gpu_engine.formats import unpack
from gpu_engine.networks.updates import Change
from gpu_engine.types import BoolArray, UnitArray
from service.errors import ServiceError
from service.store.blobs import Blobs, BrokenBlob
from service.store.log import BrokenLog, Log
from service.store.snapshots import SnapshotInfo, Snapshots
from service.worker.copies import Copies
from service.worker.graph import Graph
from service.worker.restore import FIRST_VERSION

EDGE_BYTES: Final = 60
"""Memory for each edge while its past is read: the edges as loaded, two capacities, and what differs."""

Capacities = tuple[UnitArray, BoolArray]
"""Own capacities int64[m], and which edges were closed, bool[m]."""


class Past:
    """Reads the past of the graphs that one worker serves."""

    def __init__(self, copies: Copies, blobs: Blobs, updates: Log, snapshots: Snapshots, max_rows: int) -> None:
        self._copies = copies
        self._blobs = blobs
        self._log = updates
        self._snapshots = snapshots
        self._max_rows = max_rows

    def change_to(self, graph: Graph, version: int) -> Change:
        """What makes the graph have the capacities, and the closed edges, that it had at that version. O(m).

        Raises version_unavailable, or too_large where more edges differ than one update may change.
        """
        n_edges = graph.network.n_edges
        own, closed = self.capacities_at(graph, version)
        differs = (own != graph.table.own(np.arange(n_edges))) | (closed != graph.table.closed)
        rows = np.flatnonzero(differs)
        if len(rows) > self._max_rows:
            raise ServiceError(
                "too_large", f"{len(rows)} edges differ; an update changes {self._max_rows} at most (max_patch_rows)"
            )
        return Change(rows, own[rows], closed[rows], unchanged=n_edges - len(rows))

    def capacities_at(self, graph: Graph, version: int) -> Capacities:
        """The capacities, and the closed edges, that the graph had at that version. O(m).

        Raises version_unavailable where what is kept does not reach the version, or there was none of that number, and
        `OutOfMemory` where there is no room to read it.
        """
        if not FIRST_VERSION <= version <= graph.version:
            raise ServiceError("version_unavailable", f"there was no version {version}: it is at {graph.version}")
        self._copies.residents.take(graph.name, Footprint(EDGE_BYTES * graph.network.n_edges))
        return self._at(graph, version)

    def _at(self, graph: Graph, version: int) -> Capacities:
        """Read from the newest snapshot that is not newer, or from the edges as loaded; what is broken is passed by."""
        listed = [found for found in self._snapshots.listed(graph.graph_id) if found.version <= version]
        for snapshot in [*listed, None]:
            try:
                return self._replayed(graph, snapshot, version)
            except (BrokenBlob, BrokenLog):
                continue
        reached = min((found.version for found in self._snapshots.listed(graph.graph_id)), default=None)
        since = "" if reached is None else f": what is kept begins at version {reached}"
        raise ServiceError("version_unavailable", f"version {version} is not kept any more{since}")

    def _replayed(self, graph: Graph, snapshot: SnapshotInfo | None, version: int) -> Capacities:
        """Raises `BrokenBlob` or `BrokenLog` if this way does not lead there."""
        own, closed = self._loaded(graph) if snapshot is None else self._read(snapshot)
        at = FIRST_VERSION if snapshot is None else snapshot.version
        for change in self._changes(graph, at, version):
            own[change.rows], closed[change.rows] = change.own, change.closed
        return own, closed

    def _changes(self, graph: Graph, at: int, version: int) -> Iterator[Change]:
        """The updates after version `at`, up to `version`; raises `BrokenLog` if they are not all there."""
        if at == version:
            return
        for entry in self._log.replay(graph.graph_id, at):
            yield entry.change
            at = entry.version
            if at == version:
                return
        raise BrokenLog(f"the log ends at version {at}")

    def _loaded(self, graph: Graph) -> Capacities:
        held = self._copies.find(graph.name).held
        if held is None or held.graph_id != graph.graph_id:
            raise BrokenBlob("the graph has been replaced")
        edges = unpack(self._blobs.get(held.base))
        closed = np.zeros(edges.n_edges, np.bool_) if edges.closed is None else edges.closed.copy()
        return edges.capacity.copy(), closed

    def _read(self, snapshot: SnapshotInfo) -> Capacities:
        capacities = self._snapshots.read(snapshot)
        return capacities.own.copy(), capacities.closed.copy()
