"""One thin function for each kernel: it owns grid, block and argument order. See the kernels for what they do.

Arrays are CuPy arrays on the current device. ``arcs`` int32[arcs, 4] or int64[arcs, 3] (wide: head and reverse
share the first word), one `Arc` record a row.
"""

from dataclasses import dataclass
from typing import Any, Final

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.module import THREADS, cluster_size, kernel

Array = Any
"""A cupy.ndarray; CuPy has no generic array type that a checker could use."""

BLOCK: Final = 256
MAX_BLOCKS: Final = 4096
ONE_BLOCK_ROWS: Final = 8192
"""Updates up to this size are applied by a single block, in one launch."""

OUTCOME = np.dtype([("gained", "i8"), ("lacking", "i4"), ("holding", "i4"), ("overflow", "i4"), ("pad", "i4")])
FINDINGS = np.dtype(
    [(name, "i4") for name in ("residual", "balance", "terminal", "crossing", "side", "pad")]
    + [("across", "i8"), ("cut_capacity", "i8")]
)
CONTROL = np.dtype(
    [("cancel", "i4"), ("status", "i4"), ("cut_off", "i4"), ("pad", "i4")]
    + [(n, "i8") for n in ("pushes", "relabels", "global_relabels", "arcs_scanned", "rounds", "levels")]
    + [("grid_steps", "i8"), ("cluster_steps", "i8")]
)
WORK_BYTES: Final = 256
PATIENCE: Final = np.float32(0.5)
SMALL: Final = np.int32(2048)
ROUND_LIMIT: Final = np.int32(1 << 30)


@dataclass(frozen=True, slots=True)
class Topology:
    """What all states of a network share on the device."""

    n: int
    row_offsets: Array
    head: Array
    reverse_arc: Array
    edge_arc: Array
    capacity: Array
    undirected: Array

    @property
    def nbytes(self) -> int:
        arrays = (self.row_offsets, self.head, self.reverse_arc, self.edge_arc, self.capacity, self.undirected)
        return sum(int(array.nbytes) for array in arrays)


@dataclass(frozen=True, slots=True)
class DrainScratch:
    """Working memory of a drain: about 105 bytes a vertex, shared by all states of a device."""

    label: Array
    stamp: Array
    rows: tuple[Array, Array]
    active: tuple[Array, Array]
    long_active: tuple[Array, Array]
    region: Array

    @classmethod
    def of(cls, n: int, n_arcs: int) -> "DrainScratch":
        def entries(count: int) -> tuple[Array, Array]:
            return cupy.empty((count, 4), np.int32), cupy.empty((count, 4), np.int32)

        flat = [cupy.empty(n, np.int32) for _ in range(2)]
        pieces = n + n_arcs // 128 + 16
        return cls(flat[0], flat[1], entries(pieces), entries(n), entries(n), cupy.empty(n, np.int8))


def _over(count: int) -> tuple[int]:
    return (max(1, min(MAX_BLOCKS, -(-count // BLOCK))),)


def _run(file: str, name: str, count: int, wide: bool, *arguments: Any) -> None:
    kernel(file, name, wide=wide)(_over(count), (BLOCK,), arguments)


def zero_flow(topology: Topology, capacity: Array, wide: bool) -> Array:
    """Arcs at zero flow for ``capacity`` int64[m]. O(n + m)."""
    n_arcs = len(topology.head)
    arcs = cupy.zeros((n_arcs, 3), np.int64) if wide else cupy.zeros((n_arcs, 4), np.int32)
    words = arcs.view(np.int32)
    words[:, 0], words[:, 1] = topology.head, topology.reverse_arc
    m = len(capacity)
    edges = (np.int32(m), topology.edge_arc, capacity, topology.undirected, np.int32(len(topology.undirected)))
    _run("state.cu", "fill", m, wide, *edges, arcs)
    _run("state.cu", "fill_infinite", m, wide, *edges, arcs)
    _run("state.cu", "pair_sums", n_arcs, wide, np.int32(n_arcs), arcs)
    return arcs


def saturate(arcs: Array, excess: Array, source_side: Array, wide: bool) -> None:
    _run("state.cu", "saturate", len(arcs), wide, np.int32(len(arcs)), arcs, excess, source_side)


def pack(rows: NDArray[np.int64], change: NDArray[np.int64], links: NDArray[np.int64]) -> Array:
    """An update in one transfer: int64[outcome + k + k + links], the outcome zero."""
    blank = np.zeros(OUTCOME.itemsize // 8, np.int64)
    return cupy.asarray(np.concatenate((blank, rows, change, links)))


def apply(topology: Topology, packed: Array, k: int, n_links: int, state: Any) -> NDArray[np.void]:
    """Change the capacities of ``k`` rows in one state and say what came of it; ``packed`` as by `pack`."""
    start = OUTCOME.itemsize // 8
    outcome, rows, change = packed[:start], packed[start : start + k], packed[start + k : start + 2 * k]
    links, wide = packed[start + 2 * k :], state.wide
    outcome.fill(0)
    undirected = (topology.undirected, np.int32(len(topology.undirected)))
    batch, on = (np.int32(k), rows, change), (np.int32(n_links), links)
    if k <= ONE_BLOCK_ROWS:
        flow = (state.arcs, state.excess, state.role, state.source_side, outcome)
        kernel("state.cu", "apply", wide=wide)((1,), (1024,), (*batch, *on, topology.edge_arc, *undirected, *flow))
    else:
        _run("state.cu", "apply_change", k, wide, *batch, topology.edge_arc, *undirected, state.arcs, outcome)
        _run("state.cu", "apply_mend", n_links, wide, *on, state.arcs, state.excess, state.source_side, outcome)
        looked = (state.arcs, state.excess, state.role, state.source_side, outcome)
        _run("state.cu", "apply_look", n_links, wide, *on, *looked)
    told: NDArray[np.void] = outcome.get().view(OUTCOME)[0]
    return told


def region(state: Any, deficits: bool, out: Array) -> None:
    n = len(state.role)
    _run("state.cu", "region", n, state.wide, np.int32(n), state.role, state.source_side, np.bool_(deficits), out)


def move_cut_off(state: Any, scratch: DrainScratch, deficits: bool, gained: Array) -> None:
    n = len(state.role)
    arguments = (np.int32(n), scratch.label, scratch.region, np.bool_(deficits), state.excess)
    _run("state.cu", "move_cut_off", n, state.wide, *arguments, state.source_side, gained)


def drain(
    row_offsets: Array, arcs: Array, excess: Array, scratch: DrainScratch, control: Array, wide: bool, mirrored: bool
) -> None:
    """Start the persistent kernel on ``scratch.region``; as many blocks as fit at once."""
    function = kernel("drain.cu", "drain_mirrored" if mirrored else "drain_forward", wide=wide, cooperative=True)
    arguments = (
        np.int32(len(excess)),
        row_offsets,
        arcs,
        excess,
        scratch.region,
        scratch.label,
        scratch.stamp,
        *scratch.rows,
        *scratch.active,
        *scratch.long_active,
        cupy.zeros(WORK_BYTES, np.uint8),
        control,
        PATIENCE,
        SMALL,
        ROUND_LIMIT,
    )
    cluster = cluster_size()
    blocks = cupy.cuda.Device().attributes["MultiProcessorCount"] // cluster * cluster
    while True:
        try:
            function((blocks,), (THREADS,), arguments)
            return
        except cupy.cuda.driver.CUDADriverError as error:
            # Clusters do not always pack onto all multiprocessors: the device says so by refusing.
            if "COOPERATIVE_LAUNCH_TOO_LARGE" not in str(error) or blocks <= cluster:
                raise
            blocks -= cluster


def certify(state: Any, fresh: Array, own: Array, role: Array, findings: Array) -> None:
    n, n_arcs = len(own), len(state.arcs)
    outflow = cupy.zeros(n, np.int64)
    side = (state.source_side,)
    _run(
        "certify.cu", "certify_arcs", n_arcs, state.wide, np.int32(n_arcs), state.arcs, fresh, *side, outflow, findings
    )
    vertices = (np.int32(n), own, outflow, state.excess, role, *side, findings)
    _run("certify.cu", "certify_vertices", n, state.wide, *vertices)
