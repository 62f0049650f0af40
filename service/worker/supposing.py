"""What a graph would be: changes tried on a fork of one of its flow states, which nobody else sees."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import numpy as np

from gpu_engine.engine import Fork
from gpu_engine.footprint import Footprint
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import Change
from gpu_engine.trials import Trials
from gpu_engine.vertices.table import VertexChange
from service.worker.graph import Graph, Solved


@dataclass(eq=False, slots=True)
class Supposition:
    """A graph as it was at one version, with one flow state at most. One thread at a time, any thread."""

    graph: Graph
    """Its own network, engine and table. It is no resident, and has the name that its memory is promised to."""
    _fork: Fork

    @classmethod
    def of(cls, graph: Graph, solved: Solved, name: str, *, on_host: bool = True) -> Self:
        """Of the graph as it is now, from a state that is solved. Takes `needs`, which is asked for before."""
        fork = graph.engine.fork(solved.state, on_host=on_host)
        network = fork.engine.network
        table = graph.table.fork(network)
        vertices = None if graph.vertices is None else graph.vertices.fork(network)
        of_fork = name, graph.graph_id, graph.epoch, graph.version, network, fork.engine, table
        return cls(Graph(*of_fork, vertices=vertices, since_complete=graph.since_complete), fork)

    def trials(self, count: int) -> Sequence[Trials]:
        """The state for small changes, with working memory for so many threads; none if it cannot be tried on."""
        return self._fork.trials(count)

    def taken(self, solved: Solved) -> Graph:
        """The graph with a copy of the state that it was made from, to be changed for good: nothing else is tried."""
        nothing = np.empty(0, np.int64)
        state = self._fork.overlay(nothing, nothing)
        self.graph.states[solved.terminals.key] = Solved(state, solved.terminals, solved.kind, report=solved.report)
        return self.graph

    @contextmanager
    def under(self, change: Change, terminals: Terminals, vertices: VertexChange | None = None) -> Iterator[Solved]:
        """The flow state of these terminals under a checked change, not solved yet; meanwhile the graph has it.

        Raises `CapacityOverflow`, `Unbounded` and `InvalidTerminals`.
        """
        rows, capacity = self.graph.columns(change, vertices)
        before = self.graph.vertices
        ours = self._fork.terminals.key == terminals.key
        try:
            state = self._fork.overlay(rows, capacity, None if ours else terminals)
            if before is not None and vertices is not None:
                self.graph.vertices = before.after(vertices)
            solved = self.graph.states[terminals.key] = Solved(state, terminals)
            yield solved
        finally:
            self.graph.vertices = before
            self.graph.states.clear()
            self._fork.drop()


def has_room_beside(graph: Graph, unused: Footprint) -> bool:
    """Whether a supposition may be where the graph's flow states are: nobody on a device gives way to it."""
    return Footprint(device=graph.engine.needs.fork.device).within(unused)


def needs(graph: Graph, *, on_host: bool = True) -> Footprint:
    """What a `Supposition` of the graph takes while its states are solved. The network counts, which it shares: the
    graph may give way, or be replaced, before the supposition is done with it."""
    names = graph.network.edge_ids.nbytes + graph.network.vertex_labels.nbytes
    of_engine = graph.engine.needs
    fork = of_engine.fork_on_host if on_host else of_engine.fork
    return fork + Footprint(graph.table.nbytes + names)


def needs_to_grow(graph: Graph, structure: Structure) -> Footprint:
    """What the engine and the table of a `Supposition` take beside that while the network grows, whose own bytes are
    asked for then: the capacities and the one state, on the host, once more."""
    if not structure.grows:
        return Footprint()
    network = graph.network
    n, arcs = network.n_vertices + structure.n_vertices, network.n_arcs + 2 * structure.n_edges
    return Footprint(16 * arcs + 20 * n + 9 * (network.n_edges + structure.n_edges))
