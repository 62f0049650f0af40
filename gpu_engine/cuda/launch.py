"""One thin function for each kernel: it owns grid, block and argument order. See the kernels for what they do.

Arrays are CuPy arrays on the current device. ``arcs`` int32[arcs, 4] or int64[arcs, 3] (wide: head and reverse
share the first word), one `Arc` record a row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.module import THREADS, cluster_size, kernel
from gpu_engine.engine import WORK_DONE
from gpu_engine.footprint import LONG_ROW
from gpu_engine.types import EdgeArray, UnitArray

Array = Any
"""A cupy.ndarray; CuPy has no generic array type that a checker could use."""

BLOCK: Final = 256
MAX_BLOCKS: Final = 4096
ONE_BLOCK_ROWS: Final = 4096
"""Updates up to this size are applied by a single block, in one launch, and read from host memory."""

HEAD_BYTES: Final = 256
"""Of a batch, before its columns."""

OUTCOME = np.dtype([("gained", "i8"), ("lacking", "i4"), ("holding", "i4"), ("overflow", "i4"), ("pad", "i4")])
FINDINGS = np.dtype(
    [(name, "i4") for name in ("residual", "balance", "terminal", "crossing", "side", "pad")]
    + [("across", "i8"), ("cut_capacity", "i8")]
)
CONTROL = np.dtype(
    [("cancel", "i4"), ("status", "i4"), ("cut_off", "i4"), ("pad", "i4"), ("gained", "i8")]
    + [(n, "i8") for n in ("pushes", "relabels", "global_relabels", "arcs_scanned", "rounds", "levels")]
    + [("grid_steps", "i8"), ("cluster_steps", "i8")]
)
WORK_BYTES: Final = 256
ARCS_OF_A_CLUSTER: Final = 1 << 17
"""A drain takes a cluster more for so many arcs: small ones run side by side, and have cheaper barriers."""

PATIENCE: Final = np.float32(0.75)
SMALL: Final = np.int32(256)
ROUND_LIMIT: Final = np.int32(1 << 30)


class State(Protocol):
    """What the kernels need of a flow state; see `gpu_engine.cuda.engine.CudaFlowState`."""

    role: Array
    excess: Array
    source_side: Array
    arcs: Array
    edge_arc: Array
    wide: bool


@dataclass(frozen=True, slots=True)
class Topology:
    """What all states of a network share on the device. Each has its own order of the arcs in a row."""

    n: int
    n_arcs: int
    row_offsets: Array
    capacity: Array
    undirected: Array

    @property
    def nbytes(self) -> int:
        arrays = (self.row_offsets, self.capacity, self.undirected)
        return sum(int(array.nbytes) for array in arrays)

    def edges(self, state: State) -> tuple[Any, ...]:
        """The arguments by which kernels find an edge's arc."""
        return state.edge_arc, self.undirected, np.int32(len(self.undirected))


class Carver:
    """Consecutive arrays in one buffer, each aligned to 256 bytes."""

    def __init__(self, buffer: Array) -> None:
        self._buffer, self._at = buffer, 0

    def take(self, count: int, dtype: type[np.generic], width: int = 1) -> Array:
        size = count * width * np.dtype(dtype).itemsize
        piece = self._buffer[self._at : self._at + size].view(dtype)
        self._at += -(-size // 256) * 256
        return piece if width == 1 else piece.reshape(count, width)


class Drains:
    """The drains of one solve: their working memory, about 80 bytes a vertex, and what they report."""

    MOST = 2

    def __init__(self, n: int, n_arcs: int) -> None:
        pieces = n_arcs // LONG_ROW + 1
        counts = (n + pieces, n + pieces, n, n, min(n, pieces), min(n, pieces))
        size = self.MOST * 512 + (n + sum(counts)) * 16 + 16 * 256
        carve = Carver(cupy.empty(size, np.uint8))
        self.controls = carve.take(self.MOST * 256, np.uint8).reshape(self.MOST, 256)
        self._work = carve.take(self.MOST * WORK_BYTES, np.uint8).reshape(self.MOST, WORK_BYTES)
        self._vertices = carve.take(n, np.int64, 2)
        self._entries = [carve.take(count, np.int32, 4) for count in counts]
        carve._buffer[: self.MOST * 512].fill(0)
        self._started = 0

    def start(self, row_offsets: Array, state: State, *, deficits: bool) -> None:
        """Queue the persistent kernel on one side of the state's cut; as many blocks as fit at once."""
        drain = _drain("drain_mirrored" if deficits else "drain_forward", state.wide)
        i = self._started
        self._started += 1
        flow = (np.int32(len(state.excess)), row_offsets, state.arcs, state.excess, state.role, state.source_side)
        scratch = (self._vertices, *self._entries, self._work[i], self.controls[i])
        drain(1 + len(state.arcs) // ARCS_OF_A_CLUSTER, *flow, *scratch, PATIENCE, SMALL, ROUND_LIMIT)

    def cancel(self) -> None:
        """By a copy on a stream of its own: a kernel might find no room beside the drain."""
        with cupy.cuda.Stream(non_blocking=True) as stream:
            for control in self.controls[: self._started]:
                control[:4].set(np.ones(1, np.int32).view(np.uint8), stream=stream)
            stream.synchronize()

    def progress(self) -> NDArray[np.int64]:
        """int64[4]: pushes, relabels, global relabels and scanned arcs of all, as of their last searches."""
        with cupy.cuda.Stream(non_blocking=True) as stream:
            raw = self.controls[: self._started].get(stream=stream)
            stream.synchronize()
        told = raw[:, : CONTROL.itemsize].copy().view(CONTROL)
        return np.array([told[name].sum() for name in WORK_DONE], np.int64)

    def outcomes(self) -> Iterator[NDArray[np.void]]:
        """A `CONTROL` record of each drain, in order; waits for them."""
        for raw in self.controls[: self._started].get():
            yield np.frombuffer(raw.tobytes()[: CONTROL.itemsize], CONTROL)[0]


@dataclass(slots=True)
class Cooperative:
    """A kernel whose blocks must all run at once, in clusters of ``step``, and how many of them the device has room for
    beside some small work of others: an eighth of it is theirs (measured: 1-2 % slower, and no waiting)."""

    function: Any
    blocks: int
    step: int

    def __call__(self, clusters: int, *arguments: Any) -> None:
        """Launch at most so many clusters."""
        while True:
            try:
                self.function((min(clusters * self.step, self.blocks),), (THREADS,), arguments)
                return
            except cupy.cuda.driver.CUDADriverError as error:
                # Clusters do not always pack onto all multiprocessors: the device says so by refusing.
                if "COOPERATIVE_LAUNCH_TOO_LARGE" not in str(error) or self.blocks <= self.step:
                    raise
                self.blocks -= self.step


@cache
def _drain(name: str, wide: bool) -> Cooperative:
    cluster = cluster_size()
    multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    blocks = max(1, multiprocessors * 7 // 8 // cluster) * cluster
    return Cooperative(kernel("drain.cu", name, wide=wide, cooperative=True), blocks, cluster)


def _over(count: int) -> tuple[int]:
    return (max(1, min(MAX_BLOCKS, -(-count // BLOCK))),)


def _run(file: str, name: str, count: int, wide: bool, *arguments: Any) -> None:
    kernel(file, name, wide=wide)(_over(count), (BLOCK,), arguments)


# ---- arcs at zero flow ----------------------------------------------------------------------------------------


def new_arcs(head: Array, reverse_arc: Array, wide: bool) -> Array:
    """Arc records without capacities."""
    arcs = cupy.empty((len(head), 3), np.int64) if wide else cupy.empty((len(head), 4), np.int32)
    words = arcs.view(np.int32)
    words[:, 0], words[:, 1] = head, reverse_arc
    return arcs


def columns(arcs: Array) -> tuple[Array, Array]:
    """int32[arcs] each: heads and reverse arcs, views of the records."""
    words = arcs.view(np.int32)
    return words[:, 0], words[:, 1]


def residual(arcs: Array, wide: bool) -> Array:
    """The residuals, a view of the records."""
    return arcs[:, 1] if wide else arcs[:, 2]


def largest_sum(topology: Topology, edge_arc: Array) -> int:
    """The most that the edges of one direction of a link carry together, all finite. Scratch: 8 bytes an arc."""
    sums = cupy.zeros(topology.n_arcs, np.int64)
    kept = edge_arc >= 0
    cupy.add.at(sums, edge_arc[kept], topology.capacity[kept])
    return int(sums.max()) if len(sums) else 0


def zero_flow(topology: Topology, state: State) -> None:
    """Set residuals and pair sums to the capacities. O(n + m)."""
    n_arcs, wide = len(state.arcs), state.wide
    _run("state.cu", "clear", n_arcs, wide, np.int32(n_arcs), state.arcs)
    _fill(topology, state, residual(state.arcs, wide), 3 if wide else 4)
    _run("state.cu", "pair_sums", n_arcs, wide, np.int32(n_arcs), state.arcs)


def arc_capacity(topology: Topology, state: State) -> Array:
    """The arcs' capacities in the units of the records, an infinite one as the state holds it. O(n + m)."""
    capacity = cupy.zeros(len(state.arcs), np.int64 if state.wide else np.int32)
    _fill(topology, state, capacity, 1)
    return capacity


def _fill(topology: Topology, state: State, out: Array, stride: int) -> None:
    m = len(topology.capacity)
    edge_arc, *undirected = topology.edges(state)
    for infinite in (False, True):
        edges = (np.int32(m), edge_arc, topology.capacity, *undirected, np.bool_(infinite))
        _run("state.cu", "fill", m, state.wide, *edges, state.arcs, out, np.int32(stride))


def saturate(state: State) -> None:
    """Fill every arc from S to T."""
    n_arcs = len(state.arcs)
    arguments = (np.int32(n_arcs), state.arcs, state.excess, state.source_side)
    _run("state.cu", "saturate", n_arcs, state.wide, *arguments)


# ---- updates --------------------------------------------------------------------------------------------------


class Batch:
    """Host memory that the device reads and writes itself, for one update at a time. Grows, is never shrunk."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._pinned: Any = None

    def load(self, rows: EdgeArray, capacity: UnitArray) -> "LoadedBatch":
        """Lay an update out; small ones are used in place by the kernel, large ones copied in one transfer."""
        k = len(rows)
        size = HEAD_BYTES + 20 * k
        if size > self.nbytes:
            grown = max(2 * size, 1 << 16)
            self._pinned = cupy.cuda.alloc_pinned_memory(grown)
            self.nbytes = grown
        host = np.frombuffer(self._pinned, np.uint8, size)
        host[HEAD_BYTES : HEAD_BYTES + 8 * k].view(np.int64)[:] = capacity
        host[HEAD_BYTES + 16 * k :].view(np.int32)[:] = rows
        if k <= ONE_BLOCK_ROWS:
            return LoadedBatch(k, self._pinned.ptr, host, None)
        copy = cupy.empty(size, np.uint8)
        copy.set(host)
        copy[:HEAD_BYTES].fill(0)
        return LoadedBatch(k, copy.data.ptr, host, copy, reading=True)


class LoadedBatch:
    """Addresses, as the device sees them: of an `OUTCOME`, then columns capacity and change int64[k], rows int32[k]."""

    def __init__(self, k: int, at: int, host: NDArray[np.uint8], copy: Array | None, *, reading: bool = False) -> None:
        self._k = np.int32(k)
        self._outcome, self._capacity = np.int64(at), np.int64(at + HEAD_BYTES)
        self._change, self._rows = np.int64(at + HEAD_BYTES + 8 * k), np.int64(at + HEAD_BYTES + 16 * k)
        self._host, self._copy = host, copy
        self._stored = False
        self._reading = reading
        """The device may not be done with the host's memory."""

    def store(self, topology: Topology) -> None:
        """Keep the new capacities, unless a flow state's update did."""
        if not self._stored:
            arguments = (self._k, self._rows, self._capacity, topology.capacity, self._change)
            _run_all("store", int(self._k), False, *arguments)
            self._stored = self._reading = True

    def wait(self) -> None:
        """Until the host's memory may be written again."""
        if self._reading:
            cupy.cuda.get_current_stream().synchronize()
            self._reading = False

    def apply(self, topology: Topology, state: State) -> NDArray[np.void]:
        """Change the capacities in one state and say what came of it, as an `OUTCOME` record. Waits."""
        k, wide = int(self._k), state.wide
        flow = (state.arcs, state.excess, state.role, state.source_side, self._outcome)
        if self._copy is None:
            batch = (self._k, self._rows, self._capacity, topology.capacity, self._change, np.bool_(not self._stored))
            threads = min(1024, -(-k // 32) * 32)
            kernel("state.cu", "apply", wide=wide)((1,), (threads,), (*batch, *topology.edges(state), *flow))
            self._stored = self._reading = True
            self.wait()
            told: NDArray[np.void] = self._host[: OUTCOME.itemsize].view(OUTCOME)[0]
            return told
        self.store(topology)
        self._copy[: OUTCOME.itemsize].fill(0)
        changed = (self._k, self._rows, self._change, *topology.edges(state), state.arcs, self._outcome)
        _run_all("apply_change", k, wide, *changed)
        mended = (state.arcs, state.excess, state.source_side, self._outcome)
        _run_all("apply_mend", k, wide, self._k, self._rows, *topology.edges(state), *mended)
        _run_all("apply_look", k, wide, self._k, self._rows, *topology.edges(state), *flow)
        told = self._copy[: OUTCOME.itemsize].get().view(OUTCOME)[0]
        self._reading = False
        return told


def _run_all(name: str, count: int, wide: bool, *arguments: Any) -> None:
    """A thread for each item."""
    kernel("state.cu", name, wide=wide)((-(-count // BLOCK),), (BLOCK,), arguments)


# ---- certificates ---------------------------------------------------------------------------------------------


def certify(topology: Topology, state: State, own: Array) -> NDArray[np.void]:
    """A `FINDINGS` record for excesses ``own`` int64[n] at zero flow. O(n + m), waits."""
    n, n_arcs = len(own), len(state.arcs)
    blank = np.zeros(1, FINDINGS)
    for name in ("residual", "balance", "terminal", "crossing", "side"):
        blank[name] = -1
    findings, outflow = cupy.asarray(blank.view(np.uint8)), cupy.zeros(n, np.int64)
    capacity = arc_capacity(topology, state)
    arcs = (np.int32(n_arcs), state.arcs, capacity, state.source_side, outflow, findings)
    _run("certify.cu", "certify_arcs", n_arcs, state.wide, *arcs)
    vertices = (np.int32(n), own, outflow, state.excess, state.role, state.source_side, findings)
    _run("certify.cu", "certify_vertices", n, state.wide, *vertices)
    found: NDArray[np.void] = np.frombuffer(findings.get().tobytes(), FINDINGS)[0]
    return found
