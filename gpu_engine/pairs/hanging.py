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
"""A search may scan so many times as much as there is for each vertex of the set."""

FEW_ARCS: Final = 64
"""And so many arcs beside."""

IN_VAIN: Final = 8
"""After so many sizes (n + arcs) of searches in vain no other is tried."""


@njit(cache=True, nogil=True)
def hang(
    whole: Whole, joining: Joining, forest: Forest, order: VertexArray, leads: UnitArray, slots: NDArray[np.int64]
) -> None:
    """Cut off what can hang on the first terminal of ``order``, to which most leads. ``leads`` int64[n]: what leads to
    each vertex; ``joining``: nothing has joined yet. Ends early if cancelled."""
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
