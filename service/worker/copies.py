"""Copies in memory of the graphs that one worker serves.

A copy is used only while the catalogue agrees with its id, version and fencing epoch; otherwise it is dropped and
restored. A copy may therefore be dropped at any time, and is dropped whenever an outcome is unknown.
"""

from dataclasses import replace
from functools import partial

import redis

from gpu_engine.engine import Engine
from gpu_engine.footprint import Footprint
from gpu_engine.networks.costs import CostTable
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow, growing_bytes
from gpu_engine.networks.lowers import LowerTable
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.updates import Change
from gpu_engine.networks.validate import check_vertices
from gpu_engine.select import load_network
from gpu_engine.vertices.engine import SplitEngine
from gpu_engine.vertices.split import split, splitting_bytes
from gpu_engine.vertices.table import VertexChange, VertexTable, vertices_of
from service.errors import ServiceError
from service.settings import Settings
from service.store.blobs import Blobs
from service.store.catalogue import Registry
from service.store.held import Found, Held
from service.store.keys import Keys
from service.store.log import Log
from service.store.snapshots import Snapshots
from service.store.states import pack_states, unpack_states
from service.worker.arriving import Arrivals
from service.worker.counters import Counters
from service.worker.graph import Graph, OpenEngine, Solved, grown_lowers
from service.worker.memory import Residents
from service.worker.restore import Restorer
from service.worker.running.task import Forward
from service.worker.saving import REPLAYED_AT_ONCE


class Copies:
    """Finds, restores and notes copies. Safe from any thread, as long as each graph runs one command at a time."""

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        worker: str,
        settings: Settings,
        open_engine: OpenEngine,
        residents: Residents,
        counters: Counters,
    ) -> None:
        self.worker = worker
        self.residents = residents
        self.registry = Registry(client, keys)
        self.arrivals = Arrivals(client, keys)
        self._settings = settings
        self._open_engine = open_engine
        blobs, updates, snapshots = Blobs(client, keys), Log(client, keys), Snapshots(client, keys)
        self._restorer = Restorer(blobs, updates, snapshots, self.network, self.engine, counters.count, self._is_there)

    @property
    def notes(self) -> dict[str, str]:
        """Graph name -> what was wrong when it was restored last."""
        return dict(self._restorer.notes)

    def forget_notes(self, but: set[str]) -> None:
        """Drop the notes of graphs that are not served any more."""
        for name in [*self._restorer.notes]:
            if name not in but:
                self._restorer.notes.pop(name, None)

    def owned(self) -> list[str]:
        """Names of the graphs this worker is to serve."""
        return self.registry.owned_by(self.worker)

    def sizes(self, names: list[str] | None = None) -> dict[str, int]:
        """What these graphs take at rest, in bytes of host memory; without names all that this worker is to serve."""
        return self.registry.sizes(self.owned() if names is None else names)

    def arcs(self, name: str) -> int | None:
        """How many arcs a graph in memory has."""
        graph = self.residents.get(name)
        return None if graph is None else graph.network.n_arcs

    def graph_id(self, name: str) -> str | None:
        """The id of a graph in memory."""
        graph = self.residents.get(name)
        return None if graph is None else graph.graph_id

    def find(self, name: str, known: Found | None = None) -> Found:
        """What the name stands for; `Forward` if it is another worker's.

        One round trip if it is what is in memory, none if it is `known` since the command began.
        """
        found = known or self.registry.find(name, self.graph_id(name))
        if found.owner is not None and found.owner != self.worker:
            self.residents.drop(name)
            raise Forward(found.owner)
        return found

    def ensure(self, name: str, known: Found | None = None, *, limited: bool = False) -> Graph:
        """The graph as the catalogue has it, restored if need be. One round trip when it is at hand, none if that is
        `known`.

        Raises unknown_graph, `Forward` if another worker owns it, or `HasVertexCapacities` for a graph that has some,
        unless whoever asks says that it knows such ``limited`` vertices.
        """
        graph = self._ensure(name, known)
        if graph.vertices is not None and not limited:
            raise graph.vertices.refusal("this question does not know capacities of vertices")
        return graph

    def _ensure(self, name: str, known: Found | None) -> Graph:
        graph = self.residents.get(name)
        held = self.find(name, known).held
        if held is None:
            self.residents.drop(name)
            raise ServiceError("unknown_graph", f"there is no graph {name!r}")
        if graph is None or (held.graph_id, held.version, held.epoch) != (graph.graph_id, graph.version, graph.epoch):
            if graph is None or not self.arrivals.adopt(graph, held):
                self.residents.drop(name)
                return self._restore(name, held)
            self.note(graph)
        self.residents.touch(name)
        return graph

    def read_ahead(self, name: str) -> Graph | None:
        """Read a graph that another worker is about to hand over; None if there is no such graph, or it is here."""
        found = self.registry.find(name)
        held, graph = found.held, self.residents.get(name)
        if held is None or found.owner == self.worker:
            return None
        if graph is not None and graph.ahead is not None and _is_near(graph, held):
            return graph  # it was read when this was said before
        noted = unpack_states(self.registry.states(held.graph_id))
        ahead = self.arrivals.ahead()
        graph = self._restorer.restore(name, held, noted)
        graph.ahead = ahead
        self.residents.keep(graph)
        return graph

    def at_least(self, name: str, version: int | None, known: Found | None = None, *, limited: bool = False) -> Graph:
        """The graph as `ensure` gives it. Raises version_unavailable if it has not reached the version."""
        graph = self.ensure(name, known, limited=limited)
        if version is not None and version > graph.version:
            raise ServiceError(
                "version_unavailable", f"version {version} is asked for, and the graph is at version {graph.version}"
            )
        return graph

    def _is_there(self, name: str, graph_id: str) -> bool:
        return self.registry.ids([name]).get(name) == graph_id

    def _restore(self, name: str, held: Held) -> Graph:
        graph = self._restorer.restore(name, held, unpack_states(self.registry.states(held.graph_id)))
        self.residents.keep(graph)
        self.note(graph)
        return graph

    def network(self, edges: EdgeList) -> Network:
        """A network of these edges, as the engine of the settings wants it."""
        return load_network(edges, self._settings.engine)

    def engine(
        self,
        name: str,
        network: Network,
        costs: CostTable | None = None,
        vertices: VertexTable | None = None,
        lowers: LowerTable | None = None,
    ) -> Engine:
        """An engine for the network, which stays within the budget, with costs and lower bounds beside it. Raises
        `OutOfMemory`.

        Where ``vertices`` have capacities it is one for the split network, which is built here.
        """
        room = partial(self.residents.take, name)
        tables = sum(table.nbytes for table in (costs, lowers) if table is not None)
        beside = network.n_edges + tables  # and which of the edges are closed
        room(Footprint(network.nbytes + beside))
        if vertices is None:
            return self._open_engine(network, room=room)
        return self.split(name, network, vertices)

    def split(self, name: str, network: Network, vertices: VertexTable) -> SplitEngine:
        """An engine for a network that is there already, and whose ``vertices`` have capacities. Raises `OutOfMemory`,
        or `TooLarge` where there are more halves than an engine knows. O(n + m)."""
        room = partial(self.residents.take, name)
        edges = network.edge_list()
        limited = replace(edges, limited=vertices.vertices, vertex_capacity=vertices.capacity)
        check_vertices(limited, network.finite_total)
        room(Footprint(splitting_bytes(network, vertices.vertices)))
        halves, edges = split(edges, vertices.vertices, vertices.capacity)
        inside = self.network(edges)
        del edges
        return SplitEngine(network, halves, self._open_engine(inside, room=room))

    def go_on(self, graph: Graph, after: Graph) -> list[Solved]:
        """Go on with the engine and the tables of what `beside` or `grown` made.

        Flow states are opened again, and solved from zero; those that there is no room for are forgotten. Returns those
        that were closed for good. O(n + m) for each state.
        """
        states = graph.move(after)
        self.residents.measure(graph)
        return graph.open_again(states)

    def beside(self, graph: Graph, vertices: VertexChange) -> Graph:
        """What the graph is after a checked change that splits vertices which had no capacity before, without flow
        states. It is no resident, and shares all but its engine. Raises as `split`."""
        table = vertices_of(graph.vertices, graph.network).after(vertices)
        engine = self.split(graph.name, graph.network, table)
        of_both = graph.name, graph.graph_id, graph.epoch, graph.version, graph.network
        return Graph(*of_both, engine, graph.table, graph.costs, table, graph.lowers)

    def grown(self, graph: Graph, structure: Structure, change: Change, vertices: VertexChange | None) -> Graph:
        """What the graph is after a checked batch that inserts, where vertices have capacities or are inserted with
        one, without flow states. It is no resident. Raises as `split`, or `CapacityOverflow`. O(n + m)."""
        tables = sum(of.nbytes for of in (graph.table, graph.costs, graph.lowers) if of is not None)
        self.residents.take(graph.name, Footprint(growing_bytes(graph.network, structure) + tables))
        network = grow(graph.network, structure).network.fork()
        network.set_capacity(change.rows, change.effective)
        network.mark(structure.deleted, structure.revived)
        network.mark_vertices(structure.deleted_vertices, structure.revived_vertices)
        limits = vertices_of(graph.vertices, network).fork(network)
        if vertices is not None:
            limits.apply(vertices)
            limits.check_total(vertices.vertices)
        table, costs = graph.table.fork(graph.network), graph.costs
        table.grow(network)
        table.apply(change)
        if costs is not None and structure.cost is not None:
            costs = costs.grown(network, structure.cost)
        engine = self.split(graph.name, network, limits)
        lowers = grown_lowers(graph.lowers, graph.network, network, structure)
        of_both = graph.name, graph.graph_id, graph.epoch, graph.version, network
        return Graph(*of_both, engine, table, costs, limits, lowers)

    def note(self, graph: Graph) -> None:
        """Tell the catalogue what the graph takes, which engine has it, and which flow states it has."""
        footprint = graph.footprint
        figures = {"bytes": footprint.host, "device_bytes": footprint.device, "flow_states": len(graph.states)}
        kept = _kept(graph)
        self.registry.note(graph.graph_id, pack_states(graph.noteworthy), engine=graph.engine.name, **figures)
        graph.noted = kept

    def note_if_changed(self, graph: Graph) -> None:
        """`note`, if other flow states or partitions were asked for since, or another engine has them."""
        if _kept(graph) != graph.noted:
            self.note(graph)


def _kept(graph: Graph) -> tuple[str, tuple[bytes, ...], int]:
    """The engine, the flow states and the number of partitions of a graph, which questions change and which decide what
    memory it takes."""
    return graph.engine.name, tuple(graph.states), len(graph.partitions)


def _is_near(graph: Graph, held: Held) -> bool:
    """Whether a copy is brought up to date sooner than the graph is read."""
    return graph.graph_id == held.graph_id and 0 <= held.version - graph.version <= REPLAYED_AT_ONCE
