"""Terminals that a Gomory-Hu tree has as leaves: nothing cuts them off for less than all that leads to them.

They join a set one by one, the one that most leads to first. Let all that lead to v carry d units, no more than to any
that has joined, and let no cut of less than d divide these. If d units flow to v from the set, then no cut of less
divides v from any of it, and the cut around v alone is a minimum cut from each. So v hangs on the first one, and joins.
The flows are short, as the set is soon all over the network, where a flow to one vertex would go all the way round a
ring that holds no narrower cut. Searches that take long are given up, and what does not join is cut as others are.

Hao, Orlin, "A faster algorithm for finding the minimum cut in a directed graph", Journal of Algorithms 17 (1994), let
such a set grow for the least cut of all. Each flow is proven by `gpu_engine.checks.global_cuts`.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.checks.global_cuts import flows_straight
from gpu_engine.cpu.pseudoflow import ARCS_SCANNED, CANCEL
from gpu_engine.pairs.forest import Forest, split
from gpu_engine.pairs.joining import BEST, Joining, flow_to, proven_flow
from gpu_engine.pairs.values import Whole
from gpu_engine.types import UnitArray, VertexArray

NEAR: Final = 8
"""A search may scan so many times the size of the network (n + arcs) divided by the number of vertices in the set, and
`FEW_ARCS` more."""

FEW_ARCS: Final = 64
"""Every search may scan so many arcs beside its share of the network (`NEAR`)."""

IN_VAIN: Final = 8
"""No more searches are made once those without success have scanned this many times (n + arcs)."""


@njit(cache=True, nogil=True)
def hang(
    whole: Whole, joining: Joining, forest: Forest, order: VertexArray, leads: UnitArray, slots: NDArray[np.int64]
) -> None:
    """Split off the terminals that can be leaves at the first terminal of ``order``, the one to which arcs of the
    largest capacity lead. ``leads`` is int64[n], the capacity of the arcs that lead to each vertex. ``joining`` is
    empty. Ends early if cancelled."""
    size, root = len(whole.row_offsets) + len(whole.head), order[0]
    alone, in_vain, count = np.empty(1, np.int32), 0, 1
    joining.joined[root] = True
    for i in range(1, len(order)):
        v = order[i]
        if slots[CANCEL] != 0 or in_vain > IN_VAIN * size:
            break
        if forest.slot[v] != forest.slot[root]:
            continue
        arrives = flows_straight(whole.row_offsets, whole.head, whole.reverse_arc, whole.capacity, joining.joined, v)
        if arrives < leads[v]:
            begun, joining.counts[BEST] = slots[ARCS_SCANNED], leads[v]
            _, noted = flow_to(whole, joining, v, slots, FEW_ARCS + NEAR * size // count)
            arrives = proven_flow(whole, joining, v, noted)
            in_vain += slots[ARCS_SCANNED] - begun if arrives < leads[v] else 0
        if arrives >= leads[v]:
            alone[0] = v
            split(forest, v, root, leads[v], alone, False)
            joining.joined[v] = True
            count += 1
