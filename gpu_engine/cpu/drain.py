"""Drain: move all excess that can reach a deficit, from any pseudoflow. The one solver step of the CPU engine."""

import numpy as np
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import Pseudoflow, drain_kernel
from gpu_engine.cpu.scratch import Scratch
from gpu_engine.engine import Control
from gpu_engine.network import Network
from gpu_engine.types import BoolArray, UnitArray

OUTSIDE = 2


def drain(
    network: Network,
    residual: UnitArray,
    excess: UnitArray,
    role: NDArray[np.int8],
    control: Control,
    scratch: Scratch,
    *,
    mirrored: bool = False,
) -> BoolArray:
    """Push positive excess to deficits and unlimited vertices until none can reach one (phase 1 only).

    ``residual`` int64[arcs] and ``excess`` int64[n], in units, are changed in place. ``role`` int8[n]: 0 ordinary,
    1 absorbs (mirrored: supplies) without limit, `OUTSIDE`: ignored with all its arcs.
    Returns R, bool[n]: it holds every ordinary vertex that still has excess, neither a deficit nor an unlimited
    vertex, and no residual arc leaves it except to vertices outside.
    Mirrored, deficits are filled from excess instead: swap excess and deficit, arc and reverse arc, above.

    Once ``control`` is cancelled it returns within about a millisecond; residuals and excess are then a valid
    pseudoflow from which a later drain can go on, and R is empty. Exact as long as the sum of all excess and every
    pair sum stay below 2**62. Releases the GIL. Deterministic. O(n^2 m), in practice close to linear; every call
    costs O(n) at least. Working memory is O(n), in ``scratch``, and 8 bytes for each arc of an unlimited
    vertex.
    """
    n = network.n_vertices
    side: BoolArray = np.zeros(n, np.bool_)
    flow = Pseudoflow(
        network.row_offsets.view(np.uint32),
        network.head.view(np.uint32),
        network.reverse_arc.view(np.uint32),
        residual,
        excess,
        role,
    )
    drain_kernel(flow, scratch.forest(n), side, control.slots, 0 if mirrored else None)
    return side
