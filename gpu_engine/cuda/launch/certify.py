"""certify.cu: the scans behind a certificate."""

import secrets
from typing import Final

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import Array, State, Topology, as_struct
from gpu_engine.cuda.launch.grid import launch_strided
from gpu_engine.cuda.launch.state import arc_capacity
from gpu_engine.cuda.layout import ARCS_OF_WARP, FINDINGS, OFFENDERS, WARP

_SEEDS: Final = np.dtype([("vertex", "u8"), ("link", "u8")])


def prove(topology: Topology, state: State, own: Array) -> NDArray[np.void] | None:
    """A `FINDINGS` record without offenders for excesses ``own`` int64[n] at zero flow, or None if there may be some.

    Compares by sums with random weights, so a state that is not right passes in one of 2**23 cases at most, as
    `gpu_engine.checks.fingerprints` says. An infinite edge must be the only one of its link, and the state's residuals
    of 32 bits, in which it is an odd number. O(n + m), waits, takes no memory.
    """
    n, n_arcs, m = len(own), len(state.arcs), len(topology.capacity)
    findings, wide = _blank(), state.wide
    seeds = as_struct(np.frombuffer(secrets.token_bytes(_SEEDS.itemsize), _SEEDS)[0])
    edge_arc, *undirected = topology.edges(state)
    edges = np.int32(m), edge_arc, topology.capacity, *undirected, state.arcs
    launch_strided("certify.cu", "sum_edges", m, wide, *edges, state.source_side, seeds, findings)
    rows = np.int32(n), np.int32(n_arcs), topology.row_offsets, state.arcs, state.source_side
    launch_strided("certify.cu", "sum_arcs", -(-n_arcs // ARCS_OF_WARP) * WARP, wide, *rows, seeds, findings)
    vertices = np.int32(n), own, state.excess, state.role, state.source_side
    launch_strided("certify.cu", "sum_vertices", n, wide, *vertices, seeds, findings)
    found = _record(findings)
    if found["total"] or any(found[name] >= 0 for name in OFFENDERS):
        return None
    found["across"] = found["cut_capacity"]  # no arc of the cut has any left
    return found


def certify(topology: Topology, state: State, own: Array) -> NDArray[np.void]:
    """A `FINDINGS` record for excesses ``own`` int64[n] at zero flow. O(n + m), waits, takes 8 bytes a vertex and a
    capacity an arc."""
    n, n_arcs = len(own), len(state.arcs)
    findings, outflow = _blank(), cupy.zeros(n, np.int64)
    capacity = arc_capacity(topology, state)
    arcs = (np.int32(n_arcs), state.arcs, capacity, state.source_side, outflow, findings)
    launch_strided("certify.cu", "certify_arcs", n_arcs, state.wide, *arcs)
    vertices = (np.int32(n), own, outflow, state.excess, state.role, state.source_side, findings)
    launch_strided("certify.cu", "certify_vertices", n, state.wide, *vertices)
    return _record(findings)


def _blank() -> Array:
    """A `FINDINGS` record on the device that nothing was found for."""
    blank = np.zeros(1, FINDINGS)
    for name in OFFENDERS:
        blank[name] = -1
    return cupy.asarray(blank.view(np.uint8))


def _record(findings: Array) -> NDArray[np.void]:
    found: NDArray[np.void] = np.frombuffer(bytearray(findings.get().tobytes()), FINDINGS)[0]
    return found
