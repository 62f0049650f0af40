"""Restore: the base topology, the newest good snapshot, the rest of the log."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import structlog

from gpu_engine.engine import Engine
from gpu_engine.errors import InvalidNetwork
from gpu_engine.formats import unpack
from gpu_engine.networks.costs import CostChange, CostTable
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import with_zeros
from gpu_engine.networks.lowers import LowerTable, lowers_of
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure, with_inserted
from gpu_engine.networks.updates import CapacityTable, Change
from gpu_engine.types import UnitArray
from gpu_engine.vertices.table import VertexChange, VertexTable, changes_any, vertices_of
from service.errors import ServiceError
from service.store.blobs import Blobs, BrokenBlob
from service.store.held import Held
from service.store.listed import SnapshotInfo
from service.store.log import BrokenLog, Entry, Log
from service.store.snapshots import BrokenSnapshot, Capacities, Snapshots
from service.store.states import Noted
from service.worker.graph import Graph

FIRST_VERSION: Final = 1

log = structlog.get_logger(__name__)


class Restorer:
    """Reads graphs back. `build` makes a network of edges, `open_engine` an engine for the network of a graph's name,
    `count` counts broken snapshots for the metrics, and `is_there` tells whether a name stands for a graph id now."""

    def __init__(
        self,
        blobs: Blobs,
        updates: Log,
        snapshots: Snapshots,
        build: Callable[[EdgeList], Network],
        open_engine: Callable[[str, Network, CostTable | None, VertexTable | None, LowerTable | None], Engine],
        count: Callable[[str], None],
        is_there: Callable[[str, str], bool],
    ) -> None:
        self._blobs = blobs
        self._log = updates
        self._snapshots = snapshots
        self._build = build
        self._open_engine = open_engine
        self._count = count
        self._is_there = is_there
        self.notes: dict[str, str] = {}
        """Graph name -> what was wrong when it was restored last."""

    def restore(self, name: str, held: Held, noted: list[Noted]) -> Graph:
        """The graph at the version the catalogue says. It has no flow states yet, and is to get those that are noted.

        A broken snapshot falls back to the one before it, and in the end to the graph as loaded. Raises
        worker_unavailable if no way leads to that version: nothing is answered from less, and nothing is removed, as
        whatever is wrong may be over the next time. Raises unknown_graph if the graph is deleted or replaced meanwhile.
        """
        failures: list[str] = []
        broken: list[SnapshotInfo] = []
        listed = [s for s in self._snapshots.listed(held.graph_id) if s.version <= held.version]
        for snapshot in [*listed, None]:
            try:
                graph = self._restore_from(name, held, snapshot, noted)
            except (BrokenBlob, BrokenLog) as error:
                if not self._is_there(name, held.graph_id):
                    raise ServiceError("unknown_graph", f"there is no graph {name!r}") from error
                log.error("restore_failed", graph=name, snapshot=snapshot and snapshot.version, error=str(error))
                failures.append(str(error))
                if snapshot is not None and isinstance(error, BrokenSnapshot):
                    self._count("snapshots_broken")
                    broken.append(snapshot)
                continue
            for useless in broken:  # the state is known without it
                self._snapshots.drop(held.graph_id, useless)
            self._note(name, failures)
            self._count("graphs_restored")
            return graph
        self._note(name, failures)
        raise ServiceError("worker_unavailable", f"graph {name!r} cannot be restored: {'; '.join(failures)}")

    def _restore_from(self, name: str, held: Held, snapshot: SnapshotInfo | None, noted: list[Noted]) -> Graph:
        capacities = None if snapshot is None else self._snapshots.read(snapshot)
        version, known = (FIRST_VERSION, []) if capacities is None else (capacities.version, capacities.known)
        edges = loaded_edges(self._blobs, held.base)
        loaded, lower = (edges.n_vertices, edges.n_edges), edges.lower
        saved = [] if capacities is None or capacities.structure is None else [capacities.structure]
        # All that was inserted has its rows before an update is replayed.
        logged = [*self._log.structures(held.graph_id, version)]
        edges = with_inserted(edges, [*saved, *logged])
        # What edges ever cost may be too much for the vertices that came later; what they cost now was checked.
        network = self._build(replace(edges, cost=None))
        network.loaded = loaded
        table, costs = CapacityTable(network, edges), CostTable.of(network, edges)
        vertices, lowers = VertexTable.of(network, edges), _saved_lower(network, lower, capacities)
        del edges
        if capacities is not None:
            _adopt(network, table, costs, capacities)
            vertices = _saved_vertices(vertices, capacities, network)
        start, n_structures = version, 0
        graph_known = [(entry.version, entry.applied) for entry in known]
        for entry in self._log.replay(held.graph_id, version):
            n_structures += entry.structure is not None
            if n_structures > len(logged):
                break  # the log has gone on meanwhile: what this inserted, vertices it may be, has no row
            if len(entry.change.rows) and entry.change.rows[-1] >= network.n_edges:
                raise BrokenLog(f"version {entry.version} changes edges that there are not")
            if entry.structure is not None:
                _mark(network, entry.structure)
            _replay(network, table, entry.change)
            _replay_costs(costs, entry.costs)
            if changes_any(entry.vertices, vertices):
                vertices = _replay_vertices(vertices_of(vertices, network), entry.vertices)
            lowers = _replay_lower(network, lowers, entry)
            graph_known.append((entry.version, entry.applied))
            version = entry.version
        if version < held.version:
            raise BrokenLog(f"the log ends at version {version}; the graph is at {held.version}")
        engine = self._open_engine(name, network, costs, vertices, lowers)
        graph = Graph(
            name,
            held.graph_id,
            held.epoch,
            version,
            network,
            engine,
            table,
            costs,
            vertices,
            lowers,
            unsaved=version - start,
            to_reopen=noted,
        )
        for known_version, applied in graph_known:
            graph.remember(known_version, applied)
        return graph

    def _note(self, name: str, failures: list[str]) -> None:
        self.notes.pop(name, None)
        if failures:
            self.notes[name] = "; ".join(failures)


def loaded_edges(blobs: Blobs, base: str) -> EdgeList:
    """The edges as a graph was loaded with them. Raises `BrokenBlob`, also for those that a later release has written
    with more than this one knows of."""
    try:
        return unpack(blobs.get(base))
    except InvalidNetwork as error:
        raise BrokenBlob(f"the edges as loaded cannot be read: {error}") from error


def _adopt(network: Network, table: CapacityTable, costs: CostTable | None, capacities: Capacities) -> None:
    """Bring a network as loaded to a snapshot's capacities and costs."""
    n_edges = network.loaded[1] + (0 if capacities.structure is None else capacities.structure.n_edges)
    if len(capacities.own) != n_edges:
        raise BrokenSnapshot(f"the snapshot has {len(capacities.own)} edges, the graph {n_edges}")
    if capacities.structure is not None:
        _mark(network, capacities.structure)
    if (costs is None) != (capacities.cost is None):
        raise BrokenSnapshot("either the snapshot has costs or the graph, and not both")
    if costs is not None and capacities.cost is not None:
        costs.cost[:n_edges] = capacities.cost
    before = capacities.own != network.capacity[:n_edges]
    changed = (before | capacities.closed | table.closed[:n_edges]).nonzero()[0]
    _replay(network, table, Change(changed, capacities.own[changed], capacities.closed[changed]))


def _mark(network: Network, structure: Structure) -> None:
    network.mark(structure.deleted, structure.revived)
    network.mark_vertices(structure.deleted_vertices, structure.revived_vertices)


def _replay(network: Network, table: CapacityTable, change: Change) -> None:
    if len(change.rows):
        network.set_capacity(change.rows, change.effective)
        table.apply(change)


def _replay_costs(costs: CostTable | None, change: CostChange | None) -> None:
    if change is None:
        return
    if costs is None:
        raise BrokenLog("an update changes costs of a graph that has none")
    costs.apply(change)


def _saved_lower(network: Network, loaded: UnitArray | None, capacities: Capacities | None) -> LowerTable | None:
    """The lower bounds of the edges as ``loaded``, or those of a snapshot; of edges that came later, 0."""
    saved = loaded if capacities is None else capacities.lower
    if loaded is not None and saved is None:
        raise BrokenSnapshot("the snapshot has no lower bounds, and the graph has some")
    return None if saved is None else LowerTable(network, with_zeros(saved, network.n_edges - len(saved)).copy())


def _replay_lower(network: Network, lowers: LowerTable | None, entry: Entry) -> LowerTable | None:
    structure, change = entry.structure, entry.lower
    inserted = None if structure is None else structure.lower
    if inserted is None and change is None:
        return lowers
    lowers = lowers_of(lowers, network)
    if inserted is not None:
        lowers.lower[entry.change.rows[len(entry.change.rows) - len(inserted) :]] = inserted
    if change is not None:
        lowers.apply(change)
    return lowers


def _saved_vertices(loaded: VertexTable | None, capacities: Capacities, network: Network) -> VertexTable | None:
    """A snapshot's capacities of vertices: those that were ``loaded`` are among them."""
    if capacities.limited is None or capacities.vertex_capacity is None:
        if loaded is not None:
            raise BrokenSnapshot("the snapshot has no capacities of vertices, and the graph has some")
        return None
    saved = VertexTable(network, capacities.limited.astype(np.int32), capacities.vertex_capacity.copy())
    if not saved.is_within(network) or (loaded is not None and not saved.has(loaded.vertices).all()):
        raise BrokenSnapshot("the snapshot does not have the vertices with capacities that the graph has")
    return saved


def _replay_vertices(vertices: VertexTable, change: VertexChange) -> VertexTable:
    if len(change.vertices) and change.vertices[-1] >= vertices.network.n_vertices:
        raise BrokenLog("an update changes capacities of vertices that the graph does not have")
    vertices.apply(change)
    return vertices
