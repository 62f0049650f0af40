"""A network whose vertices have capacities as one whose edges alone have.

A vertex with a capacity becomes two: its *in half* keeps the vertex's place, its *out half* stands behind all vertices,
and an inner edge of that capacity leads from the one to the other. Edges lead into in halves and out of out halves. An
undirected edge at such a vertex becomes two directed ones, its own row and a twin: what runs both ways cancels out.
All other vertices and edges are as they were (Ford and Fulkerson, "Flows in Networks", 1962, chapter I, section 11).
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import alike
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import BoolArray, EdgeArray, UnitArray, VertexArray

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Split:
    """What becomes of n vertices, k of them with a capacity, and m edges: n + k vertices, and m + k + j edges of which
    the last j are twins. Row m + i is the inner edge of vertex ``vertices[i]``."""

    n_vertices: int
    n_edges: int
    vertices: VertexArray
    """int32[k], rising."""
    out: VertexArray
    """int32[n]: the vertex that edges out of each vertex leave."""
    paired: EdgeArray
    """int64[j], rising: the edges that have a twin."""

    @classmethod
    def of(cls, edges: EdgeList, vertices: VertexArray) -> Self:
        """How the network with these ``vertices``, int32[k] rising, is split. O(n + m)."""
        out = np.arange(edges.n_vertices, dtype=np.int32)
        out[vertices] = edges.n_vertices + np.arange(len(vertices), dtype=np.int32)
        halved = np.zeros(edges.n_vertices, np.bool_)
        halved[vertices] = True
        twofold = np.asarray(edges.undirected) & (edges.tail != edges.head) & (halved[edges.tail] | halved[edges.head])
        return cls(edges.n_vertices, edges.n_edges, vertices, out, np.flatnonzero(twofold))

    @property
    def nbytes(self) -> int:
        return self.vertices.nbytes + self.out.nbytes + self.paired.nbytes

    def edge_list(self, edges: EdgeList, capacity: UnitArray) -> EdgeList:
        """The split network, with the capacities int64[k] of the inner edges. Nothing in it has a name. O(n + m)."""
        tail = np.where(edges.tail == edges.head, edges.tail, self.out[edges.tail])
        undirected = np.array(np.broadcast_to(edges.undirected, self.n_edges))
        undirected[self.paired] = False
        more = np.zeros(len(self.vertices) + len(self.paired), np.bool_)
        return EdgeList(
            n_vertices=self.n_vertices + len(self.vertices),
            tail=np.concatenate([tail, self.vertices, self.out[edges.head[self.paired]]]),
            head=np.concatenate([edges.head, self.out[self.vertices], edges.tail[self.paired]]),
            capacity=np.concatenate([edges.effective, capacity, edges.effective[self.paired]]),
            undirected=alike(np.concatenate([undirected, more])),
            decimals=edges.decimals,
        )

    def terminals(self, terminals: Terminals) -> Terminals:
        """Supply comes into an in half and demand leaves an out half: both pass the vertex."""
        return Terminals.of(terminals.sources, self.out[terminals.sinks], terminals.supply, terminals.demand)

    def rows(self, rows: EdgeArray) -> EdgeArray:
        """These rows, edges and inner edges, and behind them the twins that they have. O(k log k)."""
        return np.concatenate([rows, self._twins(rows)[0]])

    def change(self, rows: EdgeArray, capacity: UnitArray) -> tuple[EdgeArray, UnitArray]:
        """The rows of `rows`, and the new capacity of each."""
        twins, of = self._twins(rows)
        return np.concatenate([rows, twins]), np.concatenate([capacity, capacity[of]])

    def _twins(self, rows: EdgeArray) -> tuple[EdgeArray, Rows]:
        """The rows of the twins, and the places of the edges that have them."""
        if not len(self.paired):
            return self.paired, self.paired
        place = np.minimum(np.searchsorted(self.paired, rows), len(self.paired) - 1)
        of = np.flatnonzero(self.paired[place] == rows)
        return self.n_edges + len(self.vertices) + place[of], of

    def edges_of(self, rows: EdgeArray) -> EdgeArray:
        """Distinct rising rows of the edges among rows of the split network; a twin is its edge."""
        first = self.n_edges + len(self.vertices)
        twins = self.paired[rows[rows >= first] - first]
        return np.union1d(rows[rows < self.n_edges], twins)

    def vertices_of(self, rows: EdgeArray) -> VertexArray:
        """The vertices whose inner edges are among rows of the split network, in their order."""
        inner = rows[(rows >= self.n_edges) & (rows < self.n_edges + len(self.vertices))]
        found: VertexArray = self.vertices[inner - self.n_edges]
        return found

    def whole(self, halves: VertexArray | list[int]) -> VertexArray:
        """The vertices that these vertices of the split network are, or are halves of; none twice in a row."""
        found = np.asarray(halves, np.int64)
        is_out = found >= self.n_vertices
        found[is_out] = self.vertices[found[is_out] - self.n_vertices]
        distinct: VertexArray = found[np.diff(found, prepend=-1) != 0].astype(np.int32)
        return distinct

    def joined_flow(self, flow: UnitArray) -> UnitArray:
        """int64[m]: the flow of each edge; that of a twin runs against it. ``flow`` is one of the split network."""
        joined = flow[: self.n_edges].copy()
        joined[self.paired] -= flow[self.n_edges + len(self.vertices) :]
        return joined

    def in_halves(self, of_vertices: BoolArray) -> BoolArray:
        """bool[n]: what holds of the in half of each vertex."""
        return of_vertices[: self.n_vertices].copy()

    def out_halves(self, of_vertices: BoolArray) -> BoolArray:
        """bool[n]: what holds of the out half of each vertex."""
        found: BoolArray = of_vertices[self.out]
        return found


def splitting_bytes(network: Network, vertices: VertexArray) -> int:
    """The memory that a split network takes beside the one it is made of, and its columns while it is made."""
    n_edges, n_vertices = network.n_edges, network.n_vertices + len(vertices)
    return 4 * n_vertices + 40 * (2 * n_edges + len(vertices))


def split(edges: EdgeList, vertices: VertexArray, capacity: UnitArray) -> tuple[Split, EdgeList]:
    """How a network is split, and what it becomes. ``capacity`` int64[k] is that of the ``vertices``. O(n + m)."""
    halves = Split.of(edges, vertices)
    return halves, halves.edge_list(replace(edges, vertex_labels=None, edge_ids=None), capacity)
