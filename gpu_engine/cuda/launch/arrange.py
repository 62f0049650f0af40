"""arrange.cu: breadth-first levels along links."""

from typing import Final

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array, Topology
from gpu_engine.cuda.launch.grid import launch_strided
from gpu_engine.types import VertexArray

MOST_LEVELS: Final = 4096
"""A vertex farther from all roots counts as equally far; each level is a launch."""

LEVELS_AT_ONCE: Final = 16
"""So many levels are launched before the host looks whether there are more."""


def levels_from(topology: Topology, head: Array, roots: VertexArray) -> Array:
    """int32[n]: links between a vertex and the nearest root; ``head`` int32[arcs] in the network's order. Waits."""
    n, far = topology.n, np.int32(MOST_LEVELS + 1)
    level, reached = cupy.full(n, far, np.int32), cupy.zeros(1, np.int32)
    level[cupy.asarray(roots)] = 0
    for first in range(0, MOST_LEVELS, LEVELS_AT_ONCE):
        for current in range(first, first + LEVELS_AT_ONCE):
            arguments = (np.int32(n), topology.row_offsets, head, level, far, np.int32(current), reached)
            launch_strided("arrange.cu", "next_level", n, False, *arguments)
        if int(reached.get()[0]) < first + LEVELS_AT_ONCE:
            break
    return level
