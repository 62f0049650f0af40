"""The part of a set of vertices that lacks most: a short proof says as much as a long one."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import CANCEL
from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray


@njit(cache=True, nogil=True)
def worst_part(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    balance: UnitArray,
    inside: BoolArray,
    into: bool,
    slots: NDArray[np.int64],
) -> BoolArray:
    """bool[n]: of the connected components that links form among the vertices ``inside`` bool[n], the one that lacks
    most. A component lacks what its vertices have too little of by ``balance`` int64[n], less the ``capacity``
    int64[arcs] of the arcs ``into`` it; if not ``into``, what they have too much of, less the capacity of the arcs out
    of it.

    No link joins two of these parts, so what all together lack is what each does: some part lacks something if all do.
    O(n + m); 5 bytes a vertex. Stops after a cancel.
    """
    n = len(inside)
    part, queue = np.full(n, -1, np.int32), np.empty(n, np.int32)
    worst, most, count = -1, 0, 0
    for first in range(n):
        if not inside[first] or part[first] >= 0:
            continue
        if slots[CANCEL] != 0:
            break
        part[first] = count
        queue[0] = first
        i, waiting, lacks = 0, 1, 0
        while i < waiting:
            v = queue[i]
            i += 1
            lacks += -balance[v] if into else balance[v]
            for arc in range(row_offsets[v], row_offsets[v + 1]):
                w = head[arc]
                if not inside[w]:
                    lacks -= capacity[reverse_arc[arc] if into else arc]
                elif part[w] < 0:
                    part[w] = count
                    queue[waiting] = w
                    waiting += 1
        if worst < 0 or lacks > most:
            worst, most = count, lacks
        count += 1
    found: BoolArray = part == worst
    return found
