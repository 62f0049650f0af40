"""certify.cu: the scan behind a certificate."""

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import Array, State, Topology
from gpu_engine.cuda.launch.grid import launch_strided
from gpu_engine.cuda.launch.state import arc_capacity
from gpu_engine.cuda.layout import FINDINGS, OFFENDERS


def certify(topology: Topology, state: State, own: Array) -> NDArray[np.void]:
    """A `FINDINGS` record for excesses ``own`` int64[n] at zero flow. O(n + m), waits."""
    n, n_arcs = len(own), len(state.arcs)
    blank = np.zeros(1, FINDINGS)
    for name in OFFENDERS:
        blank[name] = -1
    findings, outflow = cupy.asarray(blank.view(np.uint8)), cupy.zeros(n, np.int64)
    capacity = arc_capacity(topology, state)
    arcs = (np.int32(n_arcs), state.arcs, capacity, state.source_side, outflow, findings)
    launch_strided("certify.cu", "certify_arcs", n_arcs, state.wide, *arcs)
    vertices = (np.int32(n), own, outflow, state.excess, state.role, state.source_side, findings)
    launch_strided("certify.cu", "certify_vertices", n, state.wide, *vertices)
    found: NDArray[np.void] = np.frombuffer(findings.get().tobytes(), FINDINGS)[0]
    return found
