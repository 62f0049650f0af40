"""Independent proofs about flows with lower bounds; nothing here knows how one was made.

There is such a flow if and only if no edge must carry more than it can, and no set of vertices must be entered by more
than can enter it, or be left by more than can leave it (Hoffman, "Some recent applications of the theory of linear
inequalities to extremal combinatorial analysis", 1960; Ahuja, Magnanti, Orlin, "Network Flows", 1993, theorem 6.11).
What must enter are the lower bounds of edges that leave, and what sinks inside take at least; what can enter are the
capacities of edges that enter, and what sources inside supply at most. What must and can leave mirrors that.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from gpu_engine.checks.flows import FlowProof, prove_flow
from gpu_engine.networks.bounds import LowerBounds
from gpu_engine.networks.network import Network
from gpu_engine.networks.validate import exact_total
from gpu_engine.types import INFINITE, BoolArray, EdgeArray, UnitArray, VertexArray

Way: TypeAlias = Literal["enter", "leave", "carry"]
"""Where more has to flow than can: into the vertices, out of them, or along the edges."""


@dataclass(frozen=True, eq=False, slots=True)
class Barrier:
    """Why there is no flow within the bounds: ``must`` is more than ``can``, both exact, in units."""

    way: Way
    vertices: VertexArray
    """The vertices, rising; none where edges alone are at fault."""
    edges: EdgeArray
    """The edges whose capacities are part of ``can``, rising."""
    bound: EdgeArray
    """The edges whose lower bounds are part of ``must``, rising."""
    must: int
    can: int | None
    """How much can flow, in units; None where there is no limit."""

    @property
    def valid(self) -> bool:
        """Whether more has to flow than can."""
        return self.can is not None and self.must > self.can


def prove_circulation(network: Network, bounds: LowerBounds, flow: UnitArray) -> FlowProof:
    """Check all bounds of an edge flow int64[m] and its conservation, those of terminals included. O(n + m)."""
    proof = prove_flow(network, bounds.terminals, flow)
    failures = [*proof.failures]
    below = np.flatnonzero(flow < np.where(bounds.lower > 0, bounds.lower, flow))
    if len(below):
        failures.append(f"edge {below[0]} carries less than its lower bound")
    ends = bounds.terminals
    sides = (ends.sources, proof.supplied, bounds.supply), (ends.sinks, proof.delivered, bounds.demand)
    for vertices, carried, least in sides:
        short = np.flatnonzero(carried < least)
        if len(short):
            failures.append(f"less than what must flow does at vertex {vertices[short[0]]}")
    return FlowProof(tuple(failures), proof.supplied, proof.delivered)


def overfull(network: Network, bounds: LowerBounds) -> Barrier:
    """A barrier of the edges that have to carry more than they can, closed ones among them. O(m)."""
    rows = np.flatnonzero(bounds.lower > network.capacity)
    must, can = exact(bounds.lower[rows]), exact(network.capacity[rows])
    return Barrier("carry", np.empty(0, np.int32), rows, rows, must, can)


def barrier(network: Network, bounds: LowerBounds, inside: BoolArray, way: Literal["enter", "leave"]) -> Barrier:
    """The barrier of a set of vertices, bool[n]: how much has to enter (or leave) them, and how much can. O(n + m); 30
    bytes an edge."""
    every = np.arange(network.n_edges)
    begins, ends = inside[network.edge_tail(every)], inside[network.edge_head(every)]
    enters, leaves = ~begins & ends, begins & ~ends
    either = (enters | leaves) & network.is_undirected(every)
    used, bound = (enters, leaves) if way == "enter" else (leaves, enters)
    edges = np.flatnonzero((used | either) & (network.capacity > 0))
    held = np.flatnonzero(bound & (bounds.lower > 0))
    terminals = bounds.terminals
    sources, sinks = inside[terminals.sources], inside[terminals.sinks]
    if way == "enter":
        must, can = bounds.demand[sinks], terminals.supply[sources]
    else:
        must, can = bounds.supply[sources], terminals.demand[sinks]
    capacity = network.capacity[edges]
    is_limited = not ((capacity == INFINITE).any() or (can == INFINITE).any())
    return Barrier(
        way,
        np.flatnonzero(inside).astype(np.int32),
        edges,
        held,
        exact(bounds.lower[held]) + exact(must),
        exact(capacity) + exact(can) if is_limited else None,
    )


def exact(amounts: UnitArray) -> int:
    """The sum of finite amounts as an exact integer."""
    return exact_total(amounts, np.zeros(1, np.bool_))
