"""The passes over a network that look for what breaks one of the conditions 1-5 of `gpu_engine.checks.certificate`.

The first offender of each condition goes to ``first`` int64[5], where -1 stands for none.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.networks.free import ORDINARY, SOURCE
from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray


@njit(cache=True, nogil=True)
def by_row(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    residual: UnitArray,
    source_side: BoolArray,
    from_sources: bool,
    balance: UnitArray,
    first: UnitArray,
) -> tuple[int, int]:
    """Condition 4; net flow and capacity over the cut. ``capacity`` int64[arcs].

    Where arcs lead is looked up for the rows of one side alone, as it lies anywhere in memory and either side finds the
    cut: those of S if ``from_sources``, else those of T.
    ``balance`` int64[n] holds the supply of each vertex at first, and then what is left of it when the flow has gone
    out and come in.
    """
    across, cut_capacity = 0, 0
    for v in range(len(row_offsets) - 1):
        out = 0
        if source_side[v] != from_sources:
            for i in range(row_offsets[v], row_offsets[v + 1]):
                a = np.uint64(i)  # unsigned, as an index below 0 would count from the end
                out += capacity[a] - residual[a]
            balance[v] -= out
            continue
        for i in range(row_offsets[v], row_offsets[v + 1]):
            a = np.uint64(i)
            out += capacity[a] - residual[a]
            if source_side[np.uint64(head[a])] != from_sources:
                c = a if from_sources else np.uint64(reverse_arc[a])  # leads from S to T
                across += capacity[c] - residual[c]
                cut_capacity += capacity[c]
                if residual[c] != 0 and (first[3] < 0 or c < first[3]):
                    first[3] = c
        balance[v] -= out
    return across, cut_capacity


@njit(cache=True, nogil=True)
def first_broken(reverse_arc: ArcArray, capacity: UnitArray, residual: UnitArray) -> int:
    """The first arc that breaks condition 1, or -1."""
    for i in range(len(reverse_arc)):
        a, r = np.uint64(i), np.uint64(reverse_arc[i])
        if residual[a] < 0 or capacity[a] - residual[a] != residual[r] - capacity[r]:
            return i
    return -1


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
