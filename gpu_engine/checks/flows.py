"""Independent proofs of flows by edge, as they are answered; nothing here knows how one was made."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit

from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray


class Paths(Protocol):
    """The paths of an answer: see `gpu_engine.paths.Paths`."""

    @property
    def sources(self) -> VertexArray: ...
    @property
    def sinks(self) -> VertexArray: ...
    @property
    def amounts(self) -> UnitArray: ...
    @property
    def offsets(self) -> UnitArray: ...
    @property
    def edges(self) -> EdgeArray: ...
    @property
    def count(self) -> int: ...
    @property
    def rest(self) -> int: ...


@dataclass(frozen=True, slots=True)
class FlowProof:
    """What is wrong with an edge flow, and what it carries from and to each terminal."""

    failures: tuple[str, ...]
    """At most one line a kind; () for a feasible flow."""
    supplied: UnitArray
    """int64[sources]: what leaves each source, less what comes in there."""
    delivered: UnitArray
    """int64[sinks]: what comes into each sink, less what leaves it."""

    @property
    def value(self) -> int:
        """What arrives at all sinks together, in units."""
        return int(self.delivered.sum())


def prove_flow(network: Network, terminals: Terminals, flow: UnitArray, *, acyclic: bool = False) -> FlowProof:
    """Check bounds and conservation of an edge flow, int64[m] along each edge; supply and demand caps included, and
    that it is ``acyclic``, if it is to be.

    O(n + m) time; 16 bytes a vertex while it runs, and for an acyclic flow 12 for each edge that carries it.
    """
    net = np.zeros(network.n_vertices, np.int64)
    links = network.edge_arc, network.reverse_arc, network.head
    outside = _net_inflow(*links, network.capacity, network.undirected, flow, net)
    failures = [f"flow outside its bounds on edge {outside}"] if outside >= 0 else []
    supplied, delivered = -net[terminals.sources], net[terminals.sinks]
    broken = [
        *terminals.sources[(supplied < 0) | (supplied > terminals.supply)].tolist(),
        *terminals.sinks[(delivered < 0) | (delivered > terminals.demand)].tolist(),
    ]
    if not broken:
        inner = net.copy()
        inner[terminals.sources] = inner[terminals.sinks] = 0
        broken = np.flatnonzero(inner)[:1].tolist()
    if broken:
        at = min(broken)
        failures.append(f"flow is not conserved at vertex {at}: net {net[at]}")
    if acyclic and _has_cycle(network.n_vertices, *links, flow, np.flatnonzero(flow)):
        failures.append("flow leads round in a cycle")
    return FlowProof(tuple(failures), supplied, delivered)


@njit(cache=True, nogil=True)
def _net_inflow(
    edge_arc: ArcArray,
    reverse_arc: ArcArray,
    head: VertexArray,
    capacity: UnitArray,
    undirected: BoolArray,
    flow: UnitArray,
    net: UnitArray,
) -> int:
    """Add to ``net`` int64[n] what flows into each vertex less what flows out; returns the first edge row whose flow is
    outside its bounds, or -1. ``undirected`` is bool[m], or bool[1] when all edges agree."""
    outside = -1
    for row in range(len(edge_arc)):
        units, arc = flow[row], edge_arc[row]
        if units == 0:  # within the bounds of any edge
            continue
        least = -capacity[row] if undirected[row if len(undirected) > 1 else 0] else 0
        if (units < least or units > capacity[row]) and outside < 0:
            outside = row
        if arc >= 0:
            net[head[arc]] += units
            net[head[reverse_arc[arc]]] -= units
    return outside


@njit(cache=True, nogil=True)
def _has_cycle(
    n: int, edge_arc: ArcArray, reverse_arc: ArcArray, head: VertexArray, flow: UnitArray, rows: EdgeArray
) -> bool:
    """Whether no order of the vertices lets all flow lead on (Kahn 1962). ``rows``: the edges with flow."""
    offsets, waits = np.zeros(n + 2, np.int32), np.zeros(n, np.int32)
    for row in rows:
        begin, end = _ends(edge_arc, reverse_arc, head, flow, row)
        offsets[begin + 2] += 1
        waits[end] += 1
    for v in range(n):
        offsets[v + 2] += offsets[v + 1]
    ends = np.empty(offsets[n + 1], np.int32)
    for row in rows:
        begin, end = _ends(edge_arc, reverse_arc, head, flow, row)
        ends[offsets[begin + 1]] = end
        offsets[begin + 1] += 1
    queue = np.empty(n, np.int32)
    tail, i = 0, 0
    for v in range(n):
        if waits[v] == 0:
            queue[tail] = v
            tail += 1
    while i < tail:
        v = queue[i]
        i += 1
        for at in range(offsets[v], offsets[v + 1]):
            waits[ends[at]] -= 1
            if waits[ends[at]] == 0:
                queue[tail] = ends[at]
                tail += 1
    return tail < n


@njit(cache=True, nogil=True)
def _ends(edge_arc: ArcArray, reverse_arc: ArcArray, head: VertexArray, flow: UnitArray, row: int) -> tuple[int, int]:
    """From where to where an edge carries its flow; a self-loop that carries any leads nowhere but to itself."""
    arc = edge_arc[row]
    if arc < 0:
        return 0, 0
    if flow[row] > 0:
        return int(head[reverse_arc[arc]]), int(head[arc])
    return int(head[arc]), int(head[reverse_arc[arc]])


def prove_rest(network: Network, terminals: Terminals, flow: UnitArray, proof: FlowProof, rest: UnitArray) -> FlowProof:
    """Check that the proven flow and ``rest``, int64[m], differ by cycles alone, and that ``rest`` has no cycle."""
    found = prove_flow(network, terminals, rest, acyclic=True)
    failures = [*found.failures]
    if ((np.abs(rest) > np.abs(flow)) | (np.sign(rest) * np.sign(flow) < 0)).any():
        failures.append("an edge carries more than in the flow with its cycles")
    both = (proof.supplied, found.supplied), (proof.delivered, found.delivered)
    if not all(np.array_equal(*carried) for carried in both):
        failures.append("what is missing from the flow is not cycles alone")
    return FlowProof(tuple(failures), found.supplied, found.delivered)


def prove_paths(network: Network, flow: UnitArray, value: int, paths: Paths) -> list[str]:
    """What is wrong with paths of an edge flow, int64[m]: each leads from its source to its sink along edges that carry
    flow that way, and together they carry no more than the flow, and all of it if they are all. [] for nothing.

    O(m + length of the paths); 8 bytes an edge.
    """
    left = flow.copy()
    columns = network.edge_arc, network.reverse_arc, network.head
    astray = _use_up(*columns, left, paths.sources, paths.sinks, paths.amounts, paths.offsets, paths.edges)
    failures = [f"path {astray} does not follow the flow from its source to its sink"] if astray >= 0 else []
    if int(paths.amounts.sum()) + paths.rest != value:
        failures.append("the paths do not add up to the value")
    if len(paths.amounts) > paths.count or (len(paths.amounts) == paths.count and left.any()):
        failures.append("the paths do not add up to the flow")
    return failures


@njit(cache=True, nogil=True)
def _use_up(
    edge_arc: ArcArray,
    reverse_arc: ArcArray,
    head: VertexArray,
    left: UnitArray,
    sources: VertexArray,
    sinks: VertexArray,
    amounts: UnitArray,
    offsets: UnitArray,
    edges: EdgeArray,
) -> int:
    """Take the paths off ``left``; returns the first that is broken or takes more than there is, or -1."""
    for path in range(len(amounts)):
        v, amount = sources[path], amounts[path]
        if amount <= 0:
            return path
        for i in range(offsets[path], offsets[path + 1]):
            row = edges[i]
            begin, end = _ends(edge_arc, reverse_arc, head, left, row)
            if begin != v or abs(left[row]) < amount:
                return path
            left[row] -= amount if left[row] > 0 else -amount
            v = end
        if v != sinks[path]:
            return path
    return -1
