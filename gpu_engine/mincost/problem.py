"""The cheapest flow of a network as a problem of arcs: what a solver is given, and what its answer means for the edges.

The vertices are those of the network, then one that all flow comes from and one that all of it goes to. An arc leads
from the former to each source, of its supply, and from each sink to the latter, of its demand. An undirected edge is
two arcs. As it never costs less than nothing, no cheapest flow gains by using both. Self-loops are left out: one that
costs less than nothing is filled, any other stays empty.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow, Unbounded
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, NO_ARC, EdgeArray, UnitArray, VertexArray

MOST: int = 1 << 62
"""All arcs together may carry at most so many units, because a solver adds them up in int64."""


@dataclass(frozen=True, slots=True)
class Problem:
    """``tail``, ``head`` int32[k], ``capacity`` (`INFINITE` where there is none) and ``cost`` int64[k] of the arcs."""

    n_vertices: int
    """The number of vertices: those of the network, and two."""
    tail: VertexArray
    head: VertexArray
    capacity: UnitArray
    cost: UnitArray
    edges: EdgeArray
    """int64[j], j <= k: the edge rows of the first arcs. The others are those of the terminals."""
    n_ahead: int
    """So many of these arcs lead along their edge; the rest lead from its head to its tail."""
    loops: EdgeArray
    """Rows of self-loops that cost less than nothing."""
    value: int
    """The value that the flow has to have, in units."""

    def flow_of_edges(self, network: Network, flow: UnitArray) -> UnitArray:
        """int64[m] along each edge, from int64[k] along each arc."""
        along = np.zeros(network.n_edges, np.int64)
        along[self.edges[: self.n_ahead]] = flow[: self.n_ahead]
        along[self.edges[self.n_ahead :]] -= flow[self.n_ahead : len(self.edges)]
        along[self.loops] = network.capacity[self.loops]
        return along

    def bounded(self) -> UnitArray:
        """int64[k]: the capacities, with a bound no cheapest flow exceeds where there is none.

        A flow is paths of the value together and cycles. Only cycles that cost less than nothing stay in a cheapest
        flow, and each of them uses up an arc with a limit. Raises `CapacityOverflow` if the bounds do not fit.
        """
        unlimited = self.capacity == INFINITE
        # Each edge counts at most twice, so the sum fits into int64.
        finite = int(np.where(unlimited, 0, self.capacity).sum())
        bound = self.value + (finite if (self.cost < 0).any() else 0)
        if bound * int(unlimited.sum()) + finite > MOST:
            raise CapacityOverflow(
                f"an edge or a terminal without a limit may have to carry {bound} units, and all together more than "
                f"{MOST}: give those without a limit one that they cannot reach"
            )
        return np.where(unlimited, bound, self.capacity)


def problem_of(network: Network, cost: UnitArray, terminals: Terminals, value: int) -> Problem:
    """The problem of a flow of ``value`` units on a network whose edges cost ``cost``, int64[m], for each unit. Raises
    `Unbounded` for a self-loop without a limit that costs less than nothing. O(m)."""
    rows = np.flatnonzero(network.capacity)
    is_loop = network.edge_arc[rows] == NO_ARC
    loops = rows[is_loop]
    loops = loops[cost[loops] < 0]
    endless = loops[network.capacity[loops] == INFINITE]
    if len(endless):
        raise unbounded_cost(network, network.edge_tail(endless[:1]))
    rows = rows[~is_loop]
    back = rows[network.is_undirected(rows)]
    edges = np.concatenate([rows, back])
    source, sink = network.n_vertices, network.n_vertices + 1
    sources, sinks = terminals.sources, terminals.sinks
    tails = network.edge_tail(rows), network.edge_head(back), np.full(len(sources), source, np.int32), sinks
    heads = network.edge_head(rows), network.edge_tail(back), sources, np.full(len(sinks), sink, np.int32)
    free = np.zeros(len(sources) + len(sinks), np.int64)
    return Problem(
        n_vertices=network.n_vertices + 2,
        tail=np.concatenate(tails),
        head=np.concatenate(heads),
        capacity=np.concatenate([network.capacity[edges], terminals.supply, terminals.demand]),
        cost=np.concatenate([cost[edges], free]),
        edges=edges,
        n_ahead=len(rows),
        loops=loops,
        value=value,
    )


def unbounded_cost(network: Network, vertices: NDArray[np.integer]) -> Unbounded:
    """The refusal of a cycle without a limit that costs less than nothing."""
    names = network.vertex_labels.of(vertices[:10].astype(np.int64))
    shown = " -> ".join(map(str, names))
    return Unbounded(f"a cycle of unlimited edges costs less than nothing: {shown}", vertices=names)
