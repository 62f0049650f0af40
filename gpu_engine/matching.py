"""Maximum bipartite matching as a maximum flow, with a vertex cover of the same size as its proof.

Each left vertex supplies one unit, each right vertex demands one, each open edge carries at least one (WBPR, section 4;
the caps of terminals stand for the paper's arcs from a super-source and to a super-sink, which would be hubs). By
integrality a maximum flow is a maximum matching; by König's theorem a minimum cut gives a minimum vertex cover.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Engine, FlowState
from gpu_engine.errors import InvalidNetwork
from gpu_engine.networks.bipartite import edge_ends, one_each, unit
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.text.counted import counted
from gpu_engine.types import BoolArray, EdgeArray, VertexArray


@dataclass(frozen=True, slots=True)
class Matching:
    """``edges`` int64[k]: the rows that match, rising. ``cover_left`` bool[n_left] and ``cover_right`` bool[n_right]: k
    vertices that touch every open edge, so no matching can be larger.
    """

    edges: EdgeArray
    cover_left: BoolArray
    cover_right: BoolArray

    @property
    def size(self) -> int:
        """The number of matched edges."""
        return len(self.edges)

    def failures(self, left: VertexArray, right: VertexArray, closed: BoolArray | None = None) -> list[str]:
        """The faults of the proof, from the edges alone; [] if the matching is maximum. ``closed`` bool[m]: edges that
        cannot match; none by default. O(n + m).
        """
        wrong = []
        for name, matched in (("left", left[self.edges]), ("right", right[self.edges])):
            if not np.diff(np.sort(matched)).all():
                wrong.append(f"a {name} vertex is matched twice")
        bare = ~(self.cover_left[left] | self.cover_right[right])
        if closed is not None:
            wrong += [f"edge {row} is matched and closed" for row in self.edges[closed[self.edges]][:1]]
            bare &= ~closed
        if bare.any():
            wrong.append(f"edge {bare.argmax()} is not covered")
        covering = int(self.cover_left.sum()) + int(self.cover_right.sum())
        if covering != self.size:
            wrong.append(f"{covering} vertices cover, {self.size} edges match")
        return wrong


def maximum_matching(
    n_left: int,
    n_right: int,
    left: VertexArray,
    right: VertexArray,
    open_engine: Callable[[Network], Engine] = CpuEngine,
    control: Control | None = None,
) -> Matching:
    """A maximum matching of the edges ``left[i]`` - ``right[i]``, int32[m] each; parallel edges are legal.

    Raises `InvalidNetwork` for an end that does not exist, or `Cancelled`. Cost: a cold solve and `read_matching`.
    """
    _check_ends("left", left, n_left)
    _check_ends("right", right, n_right)
    if len(left) != len(right):
        raise InvalidNetwork(f"{len(left)} left ends for {len(right)} right ends")
    if len(left) == 0:
        return Matching(np.empty(0, np.int64), np.zeros(n_left, np.bool_), np.zeros(n_right, np.bool_))
    heads = (np.asarray(right, np.int64) + n_left).astype(np.int32)
    tails = np.asarray(left, np.int32)
    engine = open_engine(Network(EdgeList(n_left + n_right, tails, heads, np.ones(len(tails), np.int64))))
    state = engine.open(one_each(engine.network))
    try:
        engine.solve(state, control)
        found = read_matching(engine, state, control)
    finally:
        engine.close(state)
    return Matching(found.edges, found.cover_left[:n_left], found.cover_right[n_left:])


def read_matching(engine: Engine, state: FlowState, control: Control | None = None) -> Matching:
    """The matching of a solved state of `one_each`; its covers are bool[n], of all vertices of the network.

    Cost: the cut and the edge flows, about a solve. Raises `Cancelled`.
    """
    network = engine.network
    tails, heads = edge_ends(network)
    cover_left, cover_right = _cover(engine, state, tails, heads, control)
    flow = engine.flow(state, control, acyclic=False)  # from left to right there is no cycle
    edges = np.flatnonzero(flow)
    if (flow[edges] != unit(network)).any():
        # A capacity of 1.5 can split a unit. No edge carries more than the one of its ends, so the same flow fits
        # capacities of one; by integrality so does a whole one of its value, on these edges.
        n = network.n_vertices
        edges = edges[maximum_matching(n, n, tails[edges], heads[edges], control=control).edges]
    return Matching(edges, cover_left, cover_right)


def _check_ends(side: str, ends: VertexArray, n: int) -> None:
    bad = np.flatnonzero((np.asarray(ends) < 0) | (np.asarray(ends) >= n))
    if len(bad):
        raise InvalidNetwork(f"{counted(len(bad), 'edge has', 'edges have')} no {side} vertex", bad.tolist())


def _cover(
    engine: Engine, state: FlowState, tails: VertexArray, heads: VertexArray, control: Control | None
) -> tuple[BoolArray, BoolArray]:
    """bool[n] each: what a minimum cut (S, T) pays for, left vertices in T and right vertices in S, and the left ends
    of open edges it cuts: moving such an end to T costs one and saves at least as much, so the cut stays minimum.
    """
    cut, there = engine.cut(state, control), engine.network.live(np.arange(len(tails)))
    left, right = np.zeros_like(cut.source_side), np.zeros_like(cut.source_side)
    tail, head = tails[there], heads[there]
    left[tail], right[head] = ~cut.source_side[tail], cut.source_side[head]
    left[tails[cut.edges]] = True
    return left, right
