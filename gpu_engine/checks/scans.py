"""The passes over a network that look for what breaks one of the conditions 1-5 of `gpu_engine.checks.certificate`.

The first offender of each condition goes to ``first`` int64[5], where -1 stands for none.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.networks.free import ORDINARY, SOURCE
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, ArcArray, BoolArray, UnitArray, VertexArray

SAMPLED: Final = 2048


@njit(cache=True, nogil=True)
def fits_edges(
    edge_arc: ArcArray, reverse_arc: ArcArray, capacity: UnitArray, undirected: BoolArray, claimed: UnitArray
) -> bool:
    """Whether ``claimed`` int64[arcs] are the capacities of all arcs, in a network whose links have one edge each.

    ``capacity`` int64[m]; ``undirected`` is bool[m], or bool[1] when all edges agree. Each arc that an edge leads along
    must have its capacity, and no other arc may have any, which the number of arcs that have some shows.
    """
    same = len(undirected) == 1
    surplus = 0
    for row in range(len(edge_arc)):
        if edge_arc[row] < 0:  # a self-loop
            continue
        a = np.uint64(edge_arc[row])
        units = capacity[row] if capacity[row] != INFINITE else INFINITE_RESIDUAL
        if claimed[a] != units:
            return False
        surplus -= units != 0
        if undirected[0 if same else row]:
            if claimed[np.uint64(reverse_arc[a])] != units:
                return False
            surplus -= units != 0
    for units in claimed:
        surplus += units != 0
    return surplus == 0


@njit(cache=True, nogil=True)
def by_arc(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    residual: UnitArray,
    source_side: BoolArray,
    balance: UnitArray,
    first: UnitArray,
    sparse: int | None,
) -> tuple[int, int]:
    """Conditions 1 and 4; net flow and capacity over the cut. ``capacity`` int64[arcs].

    The residuals of a link add up to its capacities if and only if the flows of its two arcs cancel out. The second arc
    lies far away in memory. So with ``sparse``, which is None or an integer and faster where most arcs have no flow, it
    is looked at only from arcs to a greater vertex that have flow. Each of these pays for one arc to a lesser vertex
    that has flow: if there are more of those, one is not cancelled.
    ``balance`` int64[n] holds the supply of each vertex at first, and then what is left of it when the flow has gone
    out and come in.
    """
    across = 0
    cut_capacity = 0
    unpaid = 0
    broken = False
    for v in range(len(row_offsets) - 1):
        out = 0
        for i in range(row_offsets[v], row_offsets[v + 1]):
            a = np.uint64(i)  # unsigned, as an index below 0 would count from the end
            flow = capacity[a] - residual[a]
            if residual[a] < 0:
                broken = True
            out += flow
            if sparse is None:
                if v < head[a]:  # each link once
                    r = np.uint64(reverse_arc[a])
                    if residual[r] - capacity[r] != flow:
                        broken = True
            elif flow != 0:
                if v < head[a]:
                    r = np.uint64(reverse_arc[a])
                    if residual[r] - capacity[r] != flow:
                        broken = True
                    unpaid -= 1
                else:
                    unpaid += 1
            if source_side[v] and not source_side[np.uint64(head[a])]:
                across += flow
                cut_capacity += capacity[a]
                if residual[a] != 0:
                    first[3] = i if first[3] < 0 else first[3]
        balance[v] -= out
    if broken or unpaid != 0:
        first[0] = _first_broken(reverse_arc, capacity, residual)
    return across, cut_capacity


@njit(cache=True, nogil=True)
def _first_broken(reverse_arc: ArcArray, capacity: UnitArray, residual: UnitArray) -> int:
    """The first arc that breaks condition 1."""
    for i in range(len(reverse_arc)):
        a, r = np.uint64(i), np.uint64(reverse_arc[i])
        if residual[a] < 0 or capacity[a] - residual[a] != residual[r] - capacity[r]:
            return i
    return len(reverse_arc)


@njit(cache=True, nogil=True)
def by_vertex(
    role: NDArray[np.int8], balance: UnitArray, excess: UnitArray, source_side: BoolArray, first: UnitArray
) -> None:
    """Conditions 2, 3 and 5."""
    for v in range(len(balance)):
        if balance[v] != excess[v]:
            first[1] = v if first[1] < 0 else first[1]
        if role[v] != ORDINARY:
            if source_side[v] != (role[v] == SOURCE):
                first[2] = v if first[2] < 0 else first[2]
        elif (source_side[v] and excess[v] < 0) or (not source_side[v] and excess[v] > 0):
            first[4] = v if first[4] < 0 else first[4]


def is_sparse(capacity: UnitArray, residual: UnitArray) -> bool:
    """Whether most arcs seem to have no flow, by a sample of some thousand."""
    step = max(1, len(capacity) // SAMPLED)
    return bool(np.count_nonzero(capacity[::step] != residual[::step]) < len(capacity[::step]) // 2)
