"""The links that carry flow, as a network of their own: next to nothing of a large network, between two vertices."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numba import njit

from gpu_engine.cpu.decompose import distribute_edges
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray

FEW: Final = 8
"""Few links carry flow if at most one edge in this many lies on them."""


@dataclass(frozen=True, slots=True)
class Carried:
    """All that flows, by edge: what flows on the link of each."""

    rows: EdgeArray
    """int64[k], rising: all edges on links that carry flow."""
    units: UnitArray
    """int64[k]: what flows on the link, in the direction of the edge if above 0. Edges of one link say the same."""


def carried_by(network: Network, capacity: UnitArray, residual: UnitArray) -> Carried | None:
    """What flows by ``residual`` int64[arcs]; None if that is not few. O(m + arcs), from end to end, with a byte an
    arc."""
    most = network.n_edges // FEW
    carries, count = _carrying(capacity, residual, 2 * most)
    if count > 2 * most:  # two arcs a link, which has an edge at least
        return None
    rows = _rows_on(network.edge_arc, carries, most)
    if len(rows) > most:
        return None
    arcs = network.edge_arc[rows]
    return Carried(rows, capacity[arcs] - residual[arcs])


@njit(cache=True, nogil=True)
def _carrying(capacity: UnitArray, residual: UnitArray, most: int) -> tuple[BoolArray, int]:
    """bool[arcs]: which arcs carry flow, their own or that of their reverse; and how many, which is above ``most`` if
    the look has ended there."""
    carries, count = np.empty(len(capacity), np.bool_), 0
    for begin in range(0, len(capacity), 1 << 16):
        if count > most:
            break
        for a in range(begin, min(begin + (1 << 16), len(capacity))):
            carries[a] = capacity[a] != residual[a]
            count += carries[a]
    return carries, count


@njit(cache=True, nogil=True)
def _rows_on(edge_arc: ArcArray, carries: BoolArray, most: int) -> EdgeArray:
    """The edges on the arcs marked, and one more than ``most`` if they are more."""
    rows, count = np.empty(most + 1, np.int64), 0
    for row in range(len(edge_arc)):
        if edge_arc[row] >= 0 and carries[edge_arc[row]]:
            rows[count] = row
            count += 1
            if count > most:
                break
    return rows[:count].copy()


@dataclass(frozen=True, slots=True)
class Part:
    """The links of a `Carried`, and all terminals, with numbers of their own, which rise as those of the network do."""

    vertices: VertexArray
    """int32[n]: their numbers in the network."""
    terminals: Terminals
    row_offsets: ArcArray
    head: VertexArray
    reverse_arc: ArcArray
    capacity: UnitArray
    """int64[arcs]"""
    flow: UnitArray
    """int64[arcs], antisymmetric."""
    rows: EdgeArray
    """int64[k]: their edges in the network."""
    edge_arc: ArcArray
    """int32[k]: the arc along each of these edges."""

    @property
    def n_vertices(self) -> int:
        return len(self.vertices)

    def by_edge(self, network: Network, flow: UnitArray) -> UnitArray:
        """int64[m]: a ``flow`` int64[arcs] on these links, by edges of the network."""
        flows = np.zeros(network.n_edges, np.int64)
        undirected = np.array(_of_rows(network.undirected, self.rows))
        columns = self.edge_arc, self.reverse_arc, network.capacity[self.rows], undirected
        flows[self.rows] = distribute_edges(*columns, flow)
        return flows


def part_of(network: Network, terminals: Terminals, few: Carried) -> Part:
    """The links that carry ``few``. No edge may be infinite. O(n + k) for k edges, and 4 bytes an arc, most of which
    are not touched."""
    arcs, reverse = network.edge_arc[few.rows], network.reverse_arc
    first, link = _links_of(arcs, reverse, np.zeros(network.n_arcs, np.int32))
    links, units = arcs[first], few.units[first]
    tail, head = network.head[reverse[links]], network.head[links]
    number = np.zeros(network.n_vertices, np.int32)
    number[tail] = number[head] = number[terminals.sources] = number[terminals.sinks] = 1
    vertices = np.flatnonzero(number).astype(np.int32)
    number[vertices] = np.arange(len(vertices), dtype=np.int32)
    tails, heads = number[np.concatenate((tail, head))], number[np.concatenate((head, tail))]
    offsets, place = _in_rows(tails, heads, len(vertices))
    k = len(links)
    ahead, behind = place[:k], place[k:]
    by_place, reverse_arc = np.empty(2 * k, np.int32), np.empty(2 * k, np.int32)
    by_place[place] = heads
    reverse_arc[ahead], reverse_arc[behind] = behind, ahead
    capacity, flow = np.zeros(2 * k, np.int64), np.empty(2 * k, np.int64)
    flow[ahead], flow[behind] = units, -units
    edge_arc = np.where(arcs == links[link], ahead[link], behind[link])
    both = _of_rows(network.undirected, few.rows)
    np.add.at(capacity, edge_arc, network.capacity[few.rows])
    np.add.at(capacity, reverse_arc[edge_arc[both]], network.capacity[few.rows[both]])
    sources, sinks = number[terminals.sources], number[terminals.sinks]
    own = Terminals(sources, terminals.supply, sinks, terminals.demand)
    return Part(vertices, own, offsets, by_place, reverse_arc, capacity, flow, few.rows, edge_arc)


@njit(cache=True, nogil=True)
def _links_of(arcs: ArcArray, reverse_arc: ArcArray, number: ArcArray) -> tuple[EdgeArray, EdgeArray]:
    """Of edges with these arcs, int32[k]: the place of the first one on each link, and the number of each one's link,
    int64[k]. ``number`` int32[arcs] is zero, and becomes one more than that of the link of each arc."""
    first, link, count = np.empty(len(arcs), np.int64), np.empty(len(arcs), np.int64), 0
    for i in range(len(arcs)):
        a = arcs[i]
        if number[a] == 0:
            first[count] = i
            count += 1
            number[a] = number[reverse_arc[a]] = count
        link[i] = number[a] - 1
    return first[:count].copy(), link


@njit(cache=True, nogil=True)
def _in_rows(tails: VertexArray, heads: VertexArray, n: int) -> tuple[ArcArray, ArcArray]:
    """The offsets int32[n + 1] of the rows of ``n`` vertices, and the place of each arc, int32[arcs]: by tail, then by
    head. Two counting sorts."""
    order, place = np.empty(len(heads), np.int32), np.empty(len(heads), np.int32)
    offsets = np.zeros(n + 1, np.int32)
    for i in range(len(heads)):
        offsets[heads[i] + 1] += 1
    for v in range(n):
        offsets[v + 1] += offsets[v]
    for i in range(len(heads)):
        order[offsets[heads[i]]] = i
        offsets[heads[i]] += 1
    offsets[:] = 0
    for i in range(len(tails)):
        offsets[tails[i] + 1] += 1
    for v in range(n):
        offsets[v + 1] += offsets[v]
    free = offsets[:n].copy()
    for at in range(len(order)):
        arc = order[at]
        place[arc] = free[tails[arc]]
        free[tails[arc]] += 1
    return offsets, place


def _of_rows(undirected: BoolArray, rows: EdgeArray) -> BoolArray:
    """bool[k]: which of these edges are undirected; ``undirected`` is bool[m], or bool[1] when all edges agree."""
    return undirected[rows] if len(undirected) > 1 else np.broadcast_to(undirected, rows.shape)
