"""update.cu: new capacities, in the network's columns and in flow states."""

from typing import Any, Final, Protocol

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import Array, State, Topology
from gpu_engine.cuda.launch.grid import launch_each
from gpu_engine.cuda.launch.sums import EdgeSums, seeds_of
from gpu_engine.cuda.layout import UPDATE_RESULT
from gpu_engine.cuda.module import kernel
from gpu_engine.types import EdgeArray, UnitArray

ONE_BLOCK_ROWS: Final = 4096
"""Updates up to this size are applied by a single block, in one launch, and read from host memory."""

RESULT_BYTES: Final = 256
"""The result of an update lies before the columns of its batch, in cache lines of its own."""


class WeighedState(State, Protocol):
    """A `State` with what the last proof has added up."""

    sums: EdgeSums | None


class Batch:
    """Host memory that the device reads and writes itself, for one update at a time. Grows, is never shrunk."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._pinned: Any = None

    def load(self, rows: EdgeArray, capacity: UnitArray) -> "LoadedBatch":
        """Lay an update out; small ones are used in place by the kernel, large ones copied in one transfer."""
        k = len(rows)
        size = RESULT_BYTES + 20 * k
        if size > self.nbytes:
            grown = max(2 * size, 1 << 16)
            self._pinned = cupy.cuda.alloc_pinned_memory(grown)
            self.nbytes = grown
        host = np.frombuffer(self._pinned, np.uint8, size)
        host[RESULT_BYTES : RESULT_BYTES + 8 * k].view(np.int64)[:] = capacity
        host[RESULT_BYTES + 16 * k :].view(np.int32)[:] = rows
        if k <= ONE_BLOCK_ROWS:
            return LoadedBatch(k, self._pinned.ptr, host, None)
        copy = cupy.empty(size, np.uint8)
        copy.set(host)
        copy[:RESULT_BYTES].fill(0)
        return LoadedBatch(k, copy.data.ptr, host, copy, reading=True)


class LoadedBatch:
    """An update as the device sees it: addresses of its `UPDATE_RESULT`, and of its columns capacity and change
    int64[k], rows int32[k]."""

    def __init__(self, k: int, at: int, host: NDArray[np.uint8], copy: Array | None, *, reading: bool = False) -> None:
        self._k = np.int32(k)
        self._result, self._capacity = np.int64(at), np.int64(at + RESULT_BYTES)
        self._change, self._rows = np.int64(at + RESULT_BYTES + 8 * k), np.int64(at + RESULT_BYTES + 16 * k)
        self._host, self._copy = host, copy
        self._stored = False
        self._reading = reading
        """The device may not be done with the host's memory."""

    def store(self, topology: Topology) -> None:
        """Keep the new capacities, unless a flow state's update did."""
        if not self._stored:
            arguments = (self._k, self._rows, self._capacity, topology.capacity, self._change)
            launch_each("update.cu", "store_capacities", int(self._k), False, *arguments)
            self._stored = self._reading = True

    def wait(self) -> None:
        """Return once the host's memory may be written again."""
        if self._reading:
            cupy.cuda.get_current_stream().synchronize()
            self._reading = False

    def apply(self, topology: Topology, state: WeighedState) -> NDArray[np.void]:
        """Change the capacities in one state; returns an `UPDATE_RESULT` record. Waits."""
        result: NDArray[np.void]
        if self._copy is None:
            self._apply_in_one_block(topology, state)
            self.wait()
            result = self._host[: UPDATE_RESULT.itemsize].view(UPDATE_RESULT)[0]
            return result
        self.store(topology)
        self._copy[: UPDATE_RESULT.itemsize].fill(0)
        self._apply_in_three_launches(topology, state)
        result = self._copy[: UPDATE_RESULT.itemsize].get().view(UPDATE_RESULT)[0]
        self._reading = False
        return result

    def _apply_in_one_block(self, topology: Topology, state: WeighedState) -> None:
        k, stores = int(self._k), np.bool_(not self._stored)
        batch = (self._k, self._rows, self._capacity, topology.capacity, self._change, stores)
        flow = (state.arcs, state.excess, state.role, state.source_side, seeds_of(state.sums), self._result)
        threads = min(1024, -(-k // 32) * 32)
        kernel("update.cu", "apply", wide=state.wide)((1,), (threads,), (*batch, *topology.edges(state), *flow))
        self._stored = self._reading = True

    def _apply_in_three_launches(self, topology: Topology, state: WeighedState) -> None:
        k, wide, edges = int(self._k), state.wide, topology.edges(state)
        changed = (self._k, self._rows, self._change, *edges, state.arcs, seeds_of(state.sums), self._result)
        launch_each("update.cu", "change_capacities", k, wide, *changed)
        repaired = (self._k, self._rows, *edges, state.arcs, state.excess, state.source_side, self._result)
        launch_each("update.cu", "repair_links", k, wide, *repaired)
        flow = (state.arcs, state.excess, state.role, state.source_side, self._result)
        launch_each("update.cu", "count_broken_ends", k, wide, self._k, self._rows, *edges, *flow)
