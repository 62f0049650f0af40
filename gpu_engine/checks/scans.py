"""The passes over a network that look for what breaks one of the conditions 1-5 of `gpu_engine.checks.certificate`.

The first offender of each condition goes to ``first`` int64[5], where -1 stands for none.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.networks.free import ORDINARY, SOURCE
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, ArcArray, BoolArray, UnitArray, VertexArray


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
        if edge_arc[row] < 0:  # a loop
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
) -> tuple[int, int]:
    """Conditions 1 and 4; net flow and capacity over the cut. ``capacity`` int64[arcs].

    The residuals of a link add up to its capacities if and only if the flows of its two arcs cancel out. So the
    reverse of an arc, which lies far away in memory, is looked at only from arcs to a greater vertex that have flow.
    Each of these pays for one arc to a lesser vertex that has flow: if there are more of those, one is not cancelled.
    ``balance`` int64[n] holds the supply of each vertex at first, and then what is left of it when the flow has gone
    out and come in.
    """
    across = 0
    cut_capacity = 0
    unseen = 0
    for v in range(len(row_offsets) - 1):
        out = 0
        for i in range(row_offsets[v], row_offsets[v + 1]):
            a = np.uint64(i)  # unsigned, as an index below 0 would count from the end
            if residual[a] < 0:
                first[0] = i if first[0] < 0 else first[0]
            flow = capacity[a] - residual[a]
            out += flow
            if flow == 0:
                pass
            elif v > head[a]:
                unseen += 1
            else:
                r = np.uint64(reverse_arc[a])
                if residual[r] - capacity[r] != flow:
                    first[0] = i if first[0] < 0 else first[0]
                unseen -= 1
            if source_side[v] and not source_side[np.uint64(head[a])]:
                across += flow
                cut_capacity += capacity[a]
                if residual[a] != 0:
                    first[3] = i if first[3] < 0 else first[3]
        balance[v] -= out
    if unseen != 0 and first[0] < 0:
        first[0] = _uncancelled(reverse_arc, capacity, residual)
    return across, cut_capacity


@njit(cache=True, nogil=True)
def _uncancelled(reverse_arc: ArcArray, capacity: UnitArray, residual: UnitArray) -> int:
    """An arc whose flow is not cancelled by that of its reverse."""
    for i in range(len(reverse_arc)):
        a, r = np.uint64(i), np.uint64(reverse_arc[i])
        if capacity[a] - residual[a] != residual[r] - capacity[r]:
            return i
    return 0


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
