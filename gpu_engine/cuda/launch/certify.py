"""certify.cu: the scans behind a certificate."""

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import Array, State, Topology
from gpu_engine.cuda.launch.grid import launch_strided
from gpu_engine.cuda.launch.state import arc_capacity
from gpu_engine.cuda.launch.sums import EdgeSums
from gpu_engine.cuda.layout import ARCS_OF_WARP, FINDINGS, OFFENDERS, WARP


def prove(topology: Topology, state: State, own: Array) -> tuple[NDArray[np.void], EdgeSums] | None:
    """A `FINDINGS` record without offenders for excesses ``own`` int64[n] at zero flow, and what it has added up of the
    edges; None if there may be offenders.

    Compares by sums with random weights, so a state that is not right passes in one of 2**23 cases at most, as
    `gpu_engine.checks.fingerprints` says. An infinite edge must be the only one of its link, and the state's residuals
    of 32 bits, in which it is an odd number. O(n + m), waits, takes no memory.
    """
    m, sums, findings = len(topology.capacity), EdgeSums.drawn(), _blank()
    edge_arc, *undirected = topology.edges(state)
    edges = np.int32(m), edge_arc, topology.capacity, *undirected, state.arcs
    launch_strided("certify.cu", "sum_edges", m, state.wide, *edges, state.source_side, sums.seeds, findings)
    _add_flow(topology, state, own, sums, findings)
    found = _record(findings)
    sums = sums.plus(int(found["edges"]))
    return (found, sums) if _agrees(found, sums) else None


def prove_again(topology: Topology, state: State, own: Array, sums: EdgeSums) -> NDArray[np.void] | None:
    """As `prove`, with ``sums`` that were kept up from the last complete proof on in place of the edges.

    The cut pays what flows over it: the residuals of links add up to their capacities, each vertex has what flows to
    it, and no arc of the cut has any left. O(n + arcs), each column read from end to end.
    """
    findings = _blank()
    _add_flow(topology, state, own, sums, findings)
    found = _record(findings)
    found["cut_capacity"] = found["across"]
    return found if _agrees(found, sums) else None


def _add_flow(topology: Topology, state: State, own: Array, sums: EdgeSums, findings: Array) -> None:
    """Add up residuals and excesses, and look for what is wrong with a single one of them."""
    n, n_arcs, wide = len(own), len(state.arcs), state.wide
    rows = np.int32(n), np.int32(n_arcs), topology.row_offsets, state.arcs, state.source_side
    launch_strided("certify.cu", "sum_arcs", -(-n_arcs // ARCS_OF_WARP) * WARP, wide, *rows, sums.seeds, findings)
    vertices = np.int32(n), own, state.excess, state.role, state.source_side
    launch_strided("certify.cu", "sum_vertices", n, wide, *vertices, sums.seeds, findings)


def _agrees(found: NDArray[np.void], sums: EdgeSums) -> bool:
    return int(found["total"]) == sums.total and all(found[name] < 0 for name in OFFENDERS)


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
