"""What a graph was at an earlier version, as far as its snapshots and its log reach."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from gpu_engine.footprint import Footprint
from gpu_engine.networks.costs import CostChange
from gpu_engine.networks.growing import with_zeros
from gpu_engine.networks.lowers import LowerChange
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.updates import Change
from gpu_engine.types import BoolArray, UnitArray, VertexArray
from gpu_engine.vertices.table import VertexChange, VertexTable, changes_any, vertices_of
from service.errors import ServiceError
from service.store.blobs import Blobs, BrokenBlob
from service.store.listed import SnapshotInfo
from service.store.log import BrokenLog, Entry, Log
from service.store.snapshots import Capacities, Snapshots
from service.worker.changes import Changes
from service.worker.copies import Copies
from service.worker.graph import Graph
from service.worker.restore import FIRST_VERSION, loaded_edges

EDGE_BYTES: Final = 60
"""Bytes of memory for each edge while an earlier version is read: the edges as loaded, two capacities, and what
differs."""
COST_BYTES: Final = 40
"""More bytes for each edge with costs, and with lower bounds."""


@dataclass(frozen=True, slots=True)
class Values:
    """Own capacities int64[m], which edges were closed, bool[m], and costs int64[m] if there were any.

    All have the rows that the graph has now: an edge that was inserted later was not there, as one that was deleted."""

    own: UnitArray
    closed: BoolArray
    cost: UnitArray | None
    lower: UnitArray | None
    """int64[m]: the lower bounds; None where no edge had had one."""
    there: BoolArray
    """bool[m]: which of the edges existed at that version."""
    vertex: VertexTable | None
    """The vertices that had a capacity; None where none had."""
    n_vertices: int
    """How many vertices had been given a number by then. They are the first ones of those of now."""
    n_edges: int
    """How many edges had been given a row by then. They are the first ones of those of now."""
    gone: BoolArray
    """bool[n]: vertices that had been deleted then; n are those of now."""

    @property
    def vertices_there(self) -> BoolArray:
        """bool[n]: which of the vertices existed at that version."""
        there = ~self.gone
        there[self.n_vertices :] = False
        return there

    @classmethod
    def of(cls, network: Network, read: Capacities) -> Self:
        """The values in a snapshot of a graph that has this network now."""
        more, structure = network.n_edges - len(read.own), read.structure or Structure()
        there = with_zeros(np.ones(len(read.own), np.bool_), more)
        there[structure.deleted] = False
        cost = None if read.cost is None else with_zeros(read.cost.copy(), more)
        own, closed = with_zeros(read.own.copy(), more), with_zeros(read.closed.copy(), more)
        lower = None if read.lower is None else with_zeros(read.lower.copy(), more)
        vertex = None
        if read.limited is not None and read.vertex_capacity is not None:
            vertex = VertexTable(network, read.limited.astype(np.int32), read.vertex_capacity.copy())
        gone = np.zeros(network.n_vertices, np.bool_)
        gone[structure.deleted_vertices] = True
        n_vertices = network.loaded[0] + structure.n_vertices
        return cls(own, closed, cost, lower, there, vertex, n_vertices, len(read.own), gone)

    def follow(self, entry: Entry, network: Network) -> Self:
        """Do what an update did, and be what there was then."""
        change, costs, structure, vertex = entry.change, entry.costs, entry.structure, self.vertex
        self.own[change.rows], self.closed[change.rows] = change.own, change.closed
        if costs is not None and self.cost is not None:
            self.cost[costs.rows] = costs.cost
        lower, inserted = self.lower, None if structure is None else structure.lower
        if lower is None and (entry.lower is not None or inserted is not None):
            lower = np.zeros(len(self.own), np.int64)
        if lower is not None and entry.lower is not None:
            lower[entry.lower.rows] = entry.lower.lower
        if changes_any(entry.vertices, vertex):
            vertex = vertices_of(vertex, network)
            vertex.apply(entry.vertices)
        if structure is None:
            return replace(self, vertex=vertex, lower=lower)
        rows = change.rows[len(change.rows) - structure.n_edges :]
        self.there[rows] = self.there[structure.revived] = True
        self.there[structure.deleted] = False
        self.gone[structure.revived_vertices] = False
        self.gone[structure.deleted_vertices] = True
        if structure.cost is not None and self.cost is not None:
            self.cost[rows] = structure.cost
        if lower is not None and inserted is not None:
            lower[rows] = inserted
        n_vertices, n_edges = self.n_vertices + structure.n_vertices, self.n_edges + structure.n_edges
        return replace(self, vertex=vertex, lower=lower, n_vertices=n_vertices, n_edges=n_edges)


class Past:
    """Reads the past of the graphs that one worker serves."""

    def __init__(self, copies: Copies, blobs: Blobs, updates: Log, snapshots: Snapshots, max_rows: int) -> None:
        self._copies = copies
        self._blobs = blobs
        self._log = updates
        self._snapshots = snapshots
        self._max_rows = max_rows

    def change_to(self, graph: Graph, version: int) -> Changes:
        """What makes the graph have the edges, the capacities, the closed edges and the costs that it had at that
        version. Vertices that were inserted since stay as they are, without edges. O(n + m).

        Raises version_unavailable, too_large where more edges differ than one update may change, or `CostOverflow`.
        """
        n_edges = graph.network.n_edges
        then = self.values_at(graph, version)
        differs = (then.own != graph.table.own(np.arange(n_edges))) | (then.closed != graph.table.closed)
        there = np.ones(n_edges, np.bool_)
        there[np.flatnonzero(graph.network.deleted)] = False
        deleted, revived = np.flatnonzero(there & ~then.there), np.flatnonzero(then.there & ~there)
        differs[deleted] = differs[revived] = True
        then.own[~then.there], then.closed[~then.there] = 0, False
        rows, costs = np.flatnonzero(differs), None
        if graph.costs is not None and then.cost is not None:
            costly = np.flatnonzero((then.cost != graph.costs.cost) & then.there)
            if len(costly):
                costs = CostChange(costly, then.cost[costly])
                graph.costs.check(costs)
            differs[costly] = True
        lower = _lower_change(graph, then)
        if lower is not None:
            differs[lower.rows] = True
        go, come = vertices_to(graph.network, then)
        vertices = _vertex_change(graph.vertices, then)
        n_differ = int(differs.sum())
        n_rows = n_differ + len(go) + len(come) + (0 if vertices is None else len(vertices.vertices))
        if n_rows > self._max_rows:
            raise ServiceError(
                "too_large", f"{n_rows} rows differ; an update changes {self._max_rows} at most (max_patch_rows)"
            )
        unchanged = int((there | then.there).sum()) - n_differ
        changes = any(len(rows) for rows in (deleted, revived, go, come))
        found = Structure(deleted=deleted, revived=revived, deleted_vertices=go, revived_vertices=come)
        change = Change(rows, then.own[rows], then.closed[rows], unchanged=unchanged)
        return Changes(change, costs, found if changes else None, vertices, lower)

    def values_at(self, graph: Graph, version: int) -> Values:
        """The capacities, the closed edges and the costs that the graph had at that version. O(m).

        Raises version_unavailable where what is kept does not reach the version, or there was none of that number, and
        `OutOfMemory` where there is no room to read it.
        """
        if not FIRST_VERSION <= version <= graph.version:
            raise ServiceError(
                "version_unavailable",
                f"the graph has no version {version}: its versions are {FIRST_VERSION} to {graph.version}",
            )
        needed = EDGE_BYTES + COST_BYTES * ((graph.costs is not None) + (graph.lowers is not None))
        self._copies.residents.take(graph.name, Footprint(needed * graph.network.n_edges))
        return self._at(graph, version)

    def _at(self, graph: Graph, version: int) -> Values:
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

    def _replayed(self, graph: Graph, snapshot: SnapshotInfo | None, version: int) -> Values:
        """Raises `BrokenBlob` or `BrokenLog` if this way does not lead there."""
        read = self._loaded(graph) if snapshot is None else self._snapshots.read(snapshot)
        values = Values.of(graph.network, read)
        at = FIRST_VERSION if snapshot is None else snapshot.version
        for entry in self._entries(graph, at, version):
            values = values.follow(entry, graph.network)
        return values

    def _entries(self, graph: Graph, at: int, version: int) -> Iterator[Entry]:
        """The updates after version `at`, up to `version`; raises `BrokenLog` if they are not all there."""
        if at == version:
            return
        for entry in self._log.replay(graph.graph_id, at):
            yield entry
            at = entry.version
            if at == version:
                return
        raise BrokenLog(f"the log ends at version {at}")

    def _loaded(self, graph: Graph) -> Capacities:
        held = self._copies.find(graph.name).held
        if held is None or held.graph_id != graph.graph_id:
            raise BrokenBlob("the graph has been replaced")
        edges = loaded_edges(self._blobs, held.base)
        closed = np.zeros(edges.n_edges, np.bool_) if edges.closed is None else edges.closed.copy()
        own = np.array(edges.capacity, np.int64)
        return Capacities(
            version=FIRST_VERSION,
            own=own,
            closed=closed,
            known=[],
            cost=edges.cost,
            lower=edges.lower,
            limited=edges.limited,
            vertex_capacity=edges.vertex_capacity,
        )


def vertices_to(network: Network, then: Values) -> tuple[VertexArray, VertexArray]:
    """Those that are deleted, and those that are there again, to have the vertices of then. What came since stays."""
    there, known = network.there, np.arange(network.n_vertices) < then.n_vertices
    go, come = there & then.gone, ~there & ~then.gone & known
    return np.flatnonzero(go).astype(np.int32), np.flatnonzero(come).astype(np.int32)


def _vertex_change(table: VertexTable | None, then: Values) -> VertexChange | None:
    """What makes the vertices have the capacities that they had then; None: they have them. Vertices that had none
    then are unlimited, but for those that came since and are deleted."""
    if table is None:
        return None
    wanted = vertices_of(then.vertex, table.network).of_vertices(table.vertices)
    stays = table.network.are_gone(table.vertices) & ~then.vertices_there[table.vertices]
    rows = np.flatnonzero((table.capacity != wanted) & ~stays)
    return VertexChange(table.vertices[rows], wanted[rows]) if len(rows) else None


def _lower_change(graph: Graph, then: Values) -> LowerChange | None:
    """What makes the edges that there were have the lower bounds that they had then; None: they have them."""
    if graph.lowers is None:
        return None
    wanted = np.zeros(graph.network.n_edges, np.int64) if then.lower is None else then.lower
    rows = np.flatnonzero((wanted != graph.lowers.lower) & then.there)
    return LowerChange(rows, wanted[rows]) if len(rows) else None
