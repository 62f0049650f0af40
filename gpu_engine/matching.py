"""Maximum bipartite matching as a maximum flow, with a vertex cover of the same size as its proof.

Each left vertex supplies one unit, each right vertex demands one, each edge carries one (WBPR, section 4; the caps of
terminals stand for the paper's arcs from a super-source and to a super-sink, which would be hubs). By integrality a
maximum flow is a maximum matching; by König's theorem a minimum cut gives a minimum vertex cover.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.edgelist import EdgeList
from gpu_engine.engine import Engine, FlowState
from gpu_engine.errors import InvalidNetwork
from gpu_engine.network import Network
from gpu_engine.terminals import Terminals
from gpu_engine.types import BoolArray, EdgeArray, VertexArray


@dataclass(frozen=True, slots=True)
class Matching:
    """``edges`` int64[k]: the rows that match, rising. ``cover_left`` bool[n_left] and ``cover_right`` bool[n_right]: k
    vertices that touch every edge, so no matching can be larger.
    """

    edges: EdgeArray
    cover_left: BoolArray
    cover_right: BoolArray

    @property
    def size(self) -> int:
        return len(self.edges)

    def failures(self, left: VertexArray, right: VertexArray) -> list[str]:
        """What is wrong with the proof, from the edges alone; [] if the matching is maximum. O(n + m)."""
        wrong = []
        for name, ends in (("left", left[self.edges]), ("right", right[self.edges])):
            if len(np.unique(ends)) != len(ends):
                wrong.append(f"a {name} vertex is matched twice")
        bare = np.flatnonzero(~(self.cover_left[left] | self.cover_right[right]))
        if len(bare):
            wrong.append(f"edge {bare[0]} is not covered")
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
) -> Matching:
    """A maximum matching of the edges ``left[i]`` - ``right[i]``, int32[m] each; parallel edges are legal.

    Raises `InvalidNetwork` for an end that does not exist. Cost: a cold solve and the edge flows.
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
    state = engine.open(_one_each(n_left, n_right))
    try:
        engine.solve(state)
        cover = _cover(engine, state, n_left, tails, heads)
        edges = np.flatnonzero(engine.flow(state)).astype(np.int64)
    finally:
        engine.close(state)
    return Matching(edges, cover[:n_left], cover[n_left:])


def _check_ends(side: str, ends: VertexArray, n: int) -> None:
    bad = np.flatnonzero((np.asarray(ends) < 0) | (np.asarray(ends) >= n))
    if len(bad):
        raise InvalidNetwork(f"{len(bad)} edges have no {side} vertex", bad.tolist())


def _one_each(n_left: int, n_right: int) -> Terminals:
    sources, sinks = np.arange(n_left, dtype=np.int32), np.arange(n_left, n_left + n_right, dtype=np.int32)
    return Terminals.of(sources, sinks, np.ones(n_left, np.int64), np.ones(n_right, np.int64))


def _cover(engine: Engine, state: FlowState, n_left: int, tails: VertexArray, heads: VertexArray) -> BoolArray:
    """bool[n]: what a minimum cut (S, T) pays for, left vertices in T and right vertices in S, and the left ends of
    edges it cuts: moving such an end to T costs one and saves at least as much, so the cut stays minimum.
    """
    side = engine.cut(state).source_side
    cover = side.copy()
    cover[:n_left] = ~side[:n_left]
    cover[tails[side[tails] & ~side[heads]]] = True
    return cover
