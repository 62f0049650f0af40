"""A network whose capacities are lines in a factor, between one source and one sink, and how its vertices are
contracted.

A vertex that supplies has a link from the source, with its cap, and one that demands a link to the sink.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.cpu.lines import crossing_arcs
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.free import SINK as FREE_SINK
from gpu_engine.networks.free import SOURCE as FREE_SOURCE
from gpu_engine.networks.free import free_roles
from gpu_engine.networks.links import build_csr, sum_arc_capacity
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.parametric.curve import Line
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray

SOURCE: Final = 0
SINK: Final = 1
TERMINALS: Final = 2


class Links(NamedTuple):
    """A bidirectional CSR without parallel arcs. Vertex 0 is the source, 1 the sink."""

    row_offsets: ArcArray
    head: VertexArray
    reverse_arc: ArcArray
    constant: UnitArray
    """int64[arcs]: what an arc carries at factor 0; `INFINITE_RESIDUAL` or more where it has no limit."""
    rate: UnitArray
    """int64[arcs]: by how much the capacity rises with the factor."""

    @property
    def n_vertices(self) -> int:
        return len(self.row_offsets) - 1

    def capacity(self, p: int, q: int) -> UnitArray:
        """int64[arcs]: the capacities at the factor ``p / q``, multiplied by q; `INFINITE` for arcs without a limit.
        The caller makes sure that the products do not overflow."""
        return np.where(self.constant >= INFINITE_RESIDUAL, INFINITE, self.constant * q + self.rate * p)

    def total(self, p: int, q: int) -> int:
        """The sum of all capacities that have a limit at the factor ``p / q``, multiplied by q, exactly."""
        limited = self.constant < INFINITE_RESIDUAL
        return int(self.constant[limited].sum()) * q + int(self.rate[limited].sum()) * p

    def line(self, side: BoolArray) -> Line:
        """The capacity, as a line, of the cut whose source side is ``side``, bool[n]."""
        return Line(*map(int, crossing_arcs(self.row_offsets, self.head, self.constant, self.rate, side)))

    def network(self, capacity: UnitArray) -> Network:
        """A network whose directed edges are these arcs, in their order, with capacities int64[arcs]."""
        each = np.arange(len(self.head), dtype=np.int32)
        edges = EdgeList(self.n_vertices, self.head[self.reverse_arc], self.head, capacity)
        return Network(edges, lambda *_: (self.row_offsets, self.head, self.reverse_arc, each))


class Whole(NamedTuple):
    """A network whose terminals are links from a source and to a sink."""

    links: Links
    """The links after contraction: vertices that a path without a limit joins to the source, or to the sink, are one
    with it."""
    apart: Links
    """The links before contraction: vertex v is ``v + TERMINALS``."""
    own: ArcArray
    """int32[arcs of ``apart``]: the arc of the network that each one is, -1 for caps of sources and sinks."""
    label: VertexArray
    into: ArcArray
    """Which vertices and arcs of ``links`` those of ``apart`` are, as `drawn_together` returns it."""

    def flow(self, flow: UnitArray, p: int, q: int) -> UnitArray:
        """int64[arcs]: a flow at the factor ``p / q`` on the arcs of the network, multiplied by q. Each capped
        source supplies its whole cap, and each capped sink takes its whole cap: what cannot flow on remains as excess,
        and what does not arrive as a deficit."""
        apart, found = self.apart, np.zeros(len(self.own), np.int64)
        found[self.own >= 0] = flow[self.own[self.own >= 0]]
        caps = np.flatnonzero((self.own < 0) & ((apart.constant > 0) | (apart.rate > 0)))
        found[caps] = apart.constant[caps] * q + apart.rate[caps] * p
        found[apart.reverse_arc[caps]] = -found[caps]
        return flow_within(found, self.into, len(self.links.head))


def whole_of(network: Network, terminals: Terminals, rows: EdgeArray, *, supply: bool, demand: bool) -> Whole:
    """The links of a network in which the edges ``rows``, which have a limit, are multiplied by the factor, or all caps
    of sources (``supply``), or all those of sinks (``demand``). O(n + m)."""
    columns = network.n_arcs, network.edge_arc, network.reverse_arc
    role = free_roles(network, terminals)
    arcs, two = np.flatnonzero(network.head[network.reverse_arc] < network.head).astype(np.int32), np.int32(TERMINALS)
    fed, drained = role[terminals.sources] != FREE_SOURCE, role[terminals.sinks] != FREE_SINK
    from_source, to_sink = terminals.sources[fed] + two, terminals.sinks[drained] + two
    tail = network.head[network.reverse_arc[arcs]] + two, np.full(len(from_source), SOURCE, np.int32), to_sink
    head = network.head[arcs] + two, from_source, np.full(len(to_sink), SINK, np.int32)
    row_offsets, heads, reverse_arc, place = build_csr(
        network.n_vertices + TERMINALS, np.concatenate(tail), np.concatenate(head)
    )
    own, sums = np.full(len(heads), -1, np.int32), np.zeros((2, len(heads)), np.int64)
    at, caps = place[: len(arcs)], place[len(arcs) :]
    own[at], own[reverse_arc[at]] = arcs, network.reverse_arc[arcs]
    for i in range(2):
        capacity = np.zeros_like(network.capacity) if i else network.capacity.copy()
        capacity[rows] = network.capacity[rows] if i else 0
        summed = sum_arc_capacity(*columns, capacity, network.undirected, INFINITE, INFINITE_RESIDUAL)
        sums[i, own >= 0] = summed[own[own >= 0]]
        sums[i, caps] = np.concatenate(
            (terminals.supply[fed] * (supply == i), terminals.demand[drained] * (demand == i))
        )
    label = np.empty(network.n_vertices + TERMINALS, np.int32)
    label[TERMINALS:] = np.where(role == FREE_SOURCE, SOURCE, np.where(role == FREE_SINK, SINK, -1))
    label[SOURCE], label[SINK] = SOURCE, SINK
    others = np.flatnonzero(label < 0)
    label[others] = np.arange(len(others)) + TERMINALS
    apart = Links(row_offsets, heads, reverse_arc, *sums)
    links, into = drawn_together(apart, label, len(others) + TERMINALS)
    return Whole(links, apart, own, label, into)


@njit(cache=True, nogil=True)
def drawn_together(links: Links, label: VertexArray, k: int) -> tuple[Links, ArcArray]:
    """The contracted network, whose vertices are the labels, int32[n], below k; and int32[arcs]: the arc of it of which
    each arc is part, -1 where both ends have one label. O(n + arcs)."""
    n, arcs = len(label), len(links.head)
    starts, members = np.zeros(k + 1, np.int32), np.empty(n, np.int32)
    for v in range(n):
        starts[label[v] + 1] += 1
    for c in range(k):
        starts[c + 1] += starts[c]
    place = starts[:k].copy()
    for v in range(n):
        members[place[label[v]]] = v
        place[label[v]] += 1
    into, rows = np.full(arcs, -1, np.int32), np.zeros(k + 1, np.int32)
    head, constant, rate = np.empty(arcs, np.int32), np.zeros(arcs, np.int64), np.zeros(arcs, np.int64)
    seen, count = np.full(k, -1, np.int32), 0
    for c in range(k):
        for i in range(starts[c], starts[c + 1]):
            v = members[i]
            for a in range(links.row_offsets[v], links.row_offsets[v + 1]):
                d = label[links.head[a]]
                if d == c:
                    continue
                if seen[d] < rows[c]:
                    seen[d] = count
                    head[count] = d
                    count += 1
                into[a] = seen[d]
                constant[into[a]] = min(constant[into[a]] + links.constant[a], INFINITE_RESIDUAL)
                rate[into[a]] += links.rate[a]
        rows[c + 1] = count
    reverse = np.empty(count, np.int32)
    for a in range(arcs):
        if into[a] >= 0:
            reverse[into[a]] = into[links.reverse_arc[a]]
    return Links(rows, head[:count].copy(), reverse, constant[:count].copy(), rate[:count].copy()), into


@njit(cache=True, nogil=True)
def flow_within(flow: UnitArray, into: ArcArray, arcs: int) -> UnitArray:
    """int64[arcs]: a flow on the contracted network, as the sum of the flows on the arcs that have become one."""
    found = np.zeros(arcs, np.int64)
    for a in range(len(flow)):
        if into[a] >= 0:
            found[into[a]] += flow[a]
    return found
