"""A flow put on roads so that it is the shortest: first between the same terminals, then shared by them in any way."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.roads import NOWHERE, Roads
from gpu_engine.cpu.shortest import Streets, settle, sides_of
from gpu_engine.networks.free import SOURCE
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray


def reroute(
    row_offsets: ArcArray,
    terminals: Terminals,
    roads: Roads,
    flow: UnitArray,
    value: int,
    most_steps: int,
    slots: NDArray[np.int64],
) -> UnitArray | None:
    """The shortest flow of ``value`` by road, negative from head to tail; None if it is not found.

    Each terminal gives or takes first what it does by ``flow`` int64[arcs]: so all that give send to all that take at
    once, after few searches. Then a source of all sources and a sink of all sinks are joined to them, and what is
    cheaper elsewhere is settled in the same way. If there are no steps left for that, the first flow stands.
    """
    if not len(roads.first):
        return None
    ends = np.concatenate((terminals.sources, terminals.sinks))
    there = roads.junction[ends] != NOWHERE
    at, amount = roads.junction[ends[there]], outflow(row_offsets, flow, ends[there])
    caps = np.minimum(np.concatenate((terminals.supply, terminals.demand)), value)[there]
    gives: BoolArray = (np.arange(len(ends)) < len(terminals.sources))[there]
    n, m = roads.n_junctions, len(roads.first)
    streets = _streets(roads, at, gives)
    potential, excess = np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64)
    excess[at] = amount
    done, steps = settle(streets, sides_of(n + 2, streets), potential, excess, most_steps, slots)
    if not done:
        return None
    first = streets.flow[:m].copy()
    streets.flow[m:], streets.ahead[m:] = np.abs(amount), caps
    _share(streets.flow[m:], caps, at, gives, potential, excess)
    done, _ = settle(streets, sides_of(n + 2, streets), potential, excess, most_steps - steps, slots)
    return streets.flow[:m] if done else first


def _streets(roads: Roads, at: VertexArray, gives: BoolArray) -> Streets:
    """The roads without flow, and behind them one from the source of all to each source and one from each sink to the
    sink of all. Nothing can go by these yet."""
    source, sink = np.int32(roads.n_junctions), np.int32(roads.n_junctions + 1)
    none = np.zeros(len(at), np.int64)
    return Streets(
        np.concatenate((roads.tail, np.where(gives, source, at))),
        np.concatenate((roads.head, np.where(gives, at, sink))),
        np.concatenate((roads.length, none)),
        np.concatenate((roads.ahead, none)),
        np.concatenate((roads.back, none)),
        np.zeros(len(roads.first) + len(at), np.int64),
    )


def _share(
    amount: UnitArray, caps: UnitArray, at: VertexArray, gives: BoolArray, potential: UnitArray, excess: UnitArray
) -> None:
    """Let terminals give or take as is cheapest by the potentials, and put what that moves into ``excess``.

    ``amount`` and ``caps`` are those of the terminals at junctions ``at``; the last two vertices are the source and the
    sink of all.
    """
    for hub, some, sign in ((len(potential) - 2, gives, 1), (len(potential) - 1, ~gives, -1)):
        place, given, most = sign * potential[at[some]], amount[some], caps[some]
        level = _level(place, given, most - given)
        wanted = np.where(place < level, 0, np.where(place > level, most, given))
        potential[hub] = sign * level
        excess[at[some]] += sign * (wanted - given)
        excess[hub] = -sign * (wanted - given).sum()
        amount[some] = wanted


def _level(place: UnitArray, given: UnitArray, room: UnitArray) -> int:
    """The place at which least is moved if all below give nothing and all above what they can.

    It is never more than all that is given, which is moved at most at the last place with room.
    """
    if not len(place):
        return 0
    order = np.argsort(place)
    below, above = np.cumsum(given[order].astype(np.float64)), np.cumsum(room[order][::-1].astype(np.float64))[::-1]
    moved = below - given[order] + above - room[order]
    return int(place[order[np.argmin(moved)]])


@njit(cache=True, nogil=True)
def outflow(row_offsets: ArcArray, flow: UnitArray, vertices: VertexArray) -> UnitArray:
    """What leaves each of these vertices, less what comes in; ``flow`` int64[arcs] is antisymmetric."""
    out = np.zeros(len(vertices), np.int64)
    for i in range(len(vertices)):
        for a in range(row_offsets[vertices[i]], row_offsets[vertices[i] + 1]):
            out[i] += flow[a]
    return out


@njit(cache=True, nogil=True)
def passes_on(
    row_offsets: ArcArray, capacity: UnitArray, residual: UnitArray, role: NDArray[np.int8], vertices: VertexArray
) -> bool:
    """Whether an arc into one of these vertices carries flow where its ``role`` is `SOURCE`, or out of one elsewhere.
    O(arcs of these)."""
    for v in vertices:
        for a in range(row_offsets[v], row_offsets[v + 1]):
            flow = capacity[a] - residual[a]
            if flow < 0 if role[v] == SOURCE else flow > 0:
                return True
    return False
