"""An acyclic flow by edge, taken apart into paths from sources to sinks."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.checks.flows import FlowProof
from gpu_engine.control import Control
from gpu_engine.cpu.pseudoflow import POLL_MASK
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Footprint, Room, unlimited
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import EdgeArray, UnitArray, VertexArray

MOST_EDGES: Final = 1 << 20
"""Edges of all paths in one answer, unless the network has more; so it is bounded as a flow by edge is."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths with the largest amounts, the largest first."""

    sources: VertexArray
    sinks: VertexArray
    amounts: UnitArray
    offsets: NDArray[np.int64]
    """int64[k+1]: path i has the edges ``edges[offsets[i]:offsets[i + 1]]``."""
    edges: EdgeArray
    """Rows, each path from its source to its sink."""
    count: int
    """How many paths the flow consists of in all, which are not more than the edges that carry it."""
    rest: int
    """What all other paths carry together, in units."""


def decompose(
    network: Network,
    terminals: Terminals,
    flow: UnitArray,
    proof: FlowProof,
    top: int,
    control: Control | None = None,
    room: Room = unlimited,
) -> Paths:
    """The ``top`` paths of an acyclic flow, int64[m] along each edge, that was proven; fewer, if these had more edges
    than the network and more than `MOST_EDGES`. Raises `Cancelled`.

    From each source in turn a path goes along the edge with the largest flow that is not used up, to the first sink
    that lacks anything, and takes as much as all of these have left (Ford and Fulkerson's decomposition). Each uses up
    an edge, or the last that a source or sink has; as what passes a vertex last uses up an edge on both sides, there
    are not more paths than edges with flow. The paths are found twice, so that edges are kept of those only that are
    wanted. O(k log k) for the k edges with flow, and the length of each path: at worst O(nk). ``room`` is asked for 40
    bytes an edge with flow and 32 a vertex, then for what is returned.
    """
    slots = (control or Control()).slots
    rows = np.flatnonzero(flow)
    room(Footprint(40 * len(rows) + 32 * network.n_vertices))
    rows = rows[np.argsort(-np.abs(flow[rows]), kind="stable")]
    ways = _ways(network.n_vertices, network.edge_arc, network.head, network.reverse_arc, flow, rows)
    lacks = np.zeros(network.n_vertices, np.int64)
    lacks[terminals.sources], lacks[terminals.sinks] = -proof.supplied, proof.delivered
    trips = _trips(*ways, flow, terminals.sources, lacks.copy(), slots)
    amounts, lengths = trips[2], trips[3]
    largest = np.argsort(-amounts, kind="stable")[:top]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[largest], dtype=np.int64)))
    listed = int(np.searchsorted(offsets, max(network.n_edges, MOST_EDGES), side="right")) - 1
    largest, offsets = largest[:listed], offsets[: listed + 1]
    room(Footprint(int(8 * offsets[-1]) + 24 * len(largest)))
    place = np.full(len(amounts), -1, np.int64)
    place[largest] = np.arange(len(largest))
    edges = np.empty(int(offsets[-1]), np.int64)
    _trace(*ways, flow, terminals.sources, lacks, place, offsets, edges, slots)
    if slots[Control.CANCEL]:
        raise Cancelled("cancelled while a flow was taken apart into paths")
    rest = int(amounts.sum()) - int(amounts[largest].sum())
    return Paths(trips[0][largest], trips[1][largest], amounts[largest], offsets, edges, len(amounts), rest)


@njit(cache=True, nogil=True)
def _ways(
    n: int,
    edge_arc: NDArray[np.int32],
    head: VertexArray,
    reverse_arc: NDArray[np.int32],
    flow: UnitArray,
    rows: EdgeArray,
) -> tuple[NDArray[np.int64], EdgeArray, VertexArray]:
    """Offsets int64[n+1] of each vertex into the edges whose flow leaves it, in the order of ``rows``, and where that
    flow comes to."""
    offsets = np.zeros(n + 2, np.int64)
    for row in rows:
        arc = edge_arc[row]
        offsets[(head[reverse_arc[arc]] if flow[row] > 0 else head[arc]) + 2] += 1
    for v in range(n):
        offsets[v + 2] += offsets[v + 1]
    edges, ends = np.empty(len(rows), np.int64), np.empty(len(rows), np.int32)
    for row in rows:
        arc = edge_arc[row]
        tail, end = (head[reverse_arc[arc]], head[arc]) if flow[row] > 0 else (head[arc], head[reverse_arc[arc]])
        at = offsets[tail + 1]
        edges[at], ends[at] = row, end
        offsets[tail + 1] += 1
    return offsets[: n + 1], edges, ends


@njit(cache=True, nogil=True)
def _trips(
    offsets: NDArray[np.int64],
    edges: EdgeArray,
    ends: VertexArray,
    flow: UnitArray,
    sources: VertexArray,
    lacks: UnitArray,
    slots: NDArray[np.int64],
) -> tuple[VertexArray, VertexArray, UnitArray, NDArray[np.int32]]:
    """Source, sink, amount and length of each path. ``lacks`` int64[n], negative at sources, is used up."""
    left = np.abs(flow[edges])
    present = offsets[:-1].copy()
    trail = np.empty(len(offsets), np.int64)
    most = len(edges)
    begins, finishes = np.empty(most, np.int32), np.empty(most, np.int32)
    amounts, lengths = np.empty(most, np.int64), np.empty(most, np.int32)
    count, steps = 0, 0
    for source in sources:
        while lacks[source] < 0 and count < most:
            v, amount, length = _go(offsets, ends, left, present, lacks, trail, source)
            steps += length
            if v < 0 or (steps > POLL_MASK and slots[0] != 0):
                return begins[:0], finishes[:0], amounts[:0], lengths[:0]
            steps &= POLL_MASK
            begins[count], finishes[count], amounts[count], lengths[count] = source, v, amount, length
            count += 1
    return begins[:count], finishes[:count], amounts[:count], lengths[:count]


@njit(cache=True, nogil=True)
def _trace(
    offsets: NDArray[np.int64],
    edges: EdgeArray,
    ends: VertexArray,
    flow: UnitArray,
    sources: VertexArray,
    lacks: UnitArray,
    place: NDArray[np.int64],
    begin: NDArray[np.int64],
    out: EdgeArray,
    slots: NDArray[np.int64],
) -> None:
    """The paths of `_trips` again: the edges of path i go to ``out`` from ``begin[place[i]]`` on, unless that is -1."""
    left = np.abs(flow[edges])
    present = offsets[:-1].copy()
    trail = np.empty(len(offsets), np.int64)
    count, steps = 0, 0
    for source in sources:
        while lacks[source] < 0 and count < len(place):
            _, _, length = _go(offsets, ends, left, present, lacks, trail, source)
            steps += length
            if steps > POLL_MASK and slots[0] != 0:
                return
            steps &= POLL_MASK
            if place[count] >= 0:
                for i in range(length):
                    out[begin[place[count]] + i] = edges[trail[i]]
            count += 1


@njit(cache=True, nogil=True)
def _go(
    offsets: NDArray[np.int64],
    ends: VertexArray,
    left: UnitArray,
    present: NDArray[np.int64],
    lacks: UnitArray,
    trail: NDArray[np.int64],
    source: int,
) -> tuple[int, int, int]:
    """One path, taken off ``left`` and ``lacks``: its sink, amount and length; no sink (-1) if it goes astray."""
    v, amount, length = source, -lacks[source], 0
    while lacks[v] <= 0:
        while present[v] < offsets[v + 1] and left[present[v]] == 0:
            present[v] += 1
        if present[v] == offsets[v + 1] or length == len(trail):
            return -1, 0, 0
        trail[length] = present[v]
        amount = min(amount, left[present[v]])
        v = ends[present[v]]
        length += 1
    amount = min(amount, lacks[v])
    lacks[source] += amount
    lacks[v] -= amount
    for i in range(length):
        left[trail[i]] -= amount
    return v, amount, length
