"""drain.cu and waves.cu: the persistent kernels that settle one side of a cut, and the memory they work in."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.control import WORK_DONE
from gpu_engine.cuda.launch.arrays import Array, State, as_struct, unknown_labels
from gpu_engine.cuda.layout import (
    DRAIN_ARGUMENTS,
    DRAIN_PROGRESS,
    GRID_MEMORY_BYTES,
    LEVEL_BITS,
    PROGRESS_BYTES,
    THREADS,
    UNKNOWN_LABEL,
    WAVE_MEMORY_BYTES,
)
from gpu_engine.cuda.module import cluster_size, kernel
from gpu_engine.footprint import HUB_ROW, LONG_ROW, SPARE_ROWS

ARCS_OF_A_CLUSTER: Final = 1 << 17
"""A drain takes a cluster more for so many arcs: small ones run side by side, and have cheaper barriers."""

PATIENCE: Final = 0.75
"""A global relabel follows after this many times the depth of the last one, in rounds."""

TRUST: Final = 16
"""A repair begins with the labels of the drain before if no vertex that has excess has a higher one: in deeper networks
old labels mislead more often than they save a search."""

SMALL: Final = 256
"""Frontiers up to this size are left to the leading cluster."""

DEEP: Final = 64
ARCS_OF_A_LEVEL: Final = 1 << 15
"""A drain of T leaves what it has not done to waves once a search has gone through at least `DEEP` levels, with at most
so many arcs each in the mean: a solve from zero after the first search, a repair after the second. Elsewhere a search
is short beside the rounds."""

LEAST_WIDTH: Final = 32
"""And with at least so many vertices each: the leading cluster does all that there is in a narrower network, and a step
of waves takes it twice as long."""

LARGE: Final = 1 << 17
"""Repairs of networks of fewer vertices are left to nobody: the leading cluster does most of their steps, and those of
waves take longer there."""

ROUND_LIMIT: Final = 1 << 30
"""No drain makes more rounds than this."""


class Carver:
    """Consecutive arrays in one buffer, each aligned to 256 bytes."""

    def __init__(self, buffer: Array) -> None:
        self._buffer, self._at = buffer, 0

    def take(self, count: int, dtype: type[np.generic], width: int = 1) -> Array:
        """The next ``count`` items of this dtype, in rows of ``width`` of them."""
        size = count * width * np.dtype(dtype).itemsize
        piece = self._buffer[self._at : self._at + size].view(dtype)
        self._at += -(-size // 256) * 256
        return piece if width == 1 else piece.reshape(count, width)


class Drains:
    """The drains of one solve: their working memory, about 88 bytes a vertex, and what they report."""

    MOST = 2

    def __init__(self, n: int, n_arcs: int) -> None:
        pieces = n_arcs // LONG_ROW + 1
        searched = n + pieces + SPARE_ROWS
        counts = {"search_even": searched, "search_odd": searched, "active_even": n, "active_odd": n}
        counts |= {"long_even": min(n, pieces), "long_odd": min(n, pieces)}
        zeroed = self.MOST * (PROGRESS_BYTES + GRID_MEMORY_BYTES) + WAVE_MEMORY_BYTES
        hubs = n_arcs // HUB_ROW + 1
        buffer = cupy.empty(zeroed + (n + sum(counts.values())) * 16 + hubs * 4 + n * 8 + 18 * 256, np.uint8)
        carver = Carver(buffer)
        self.progress_records = carver.take(self.MOST * PROGRESS_BYTES, np.uint8).reshape(self.MOST, PROGRESS_BYTES)
        self._memory = carver.take(self.MOST * GRID_MEMORY_BYTES, np.uint8).reshape(self.MOST, GRID_MEMORY_BYTES)
        self._wave_memory = carver.take(WAVE_MEMORY_BYTES, np.uint8)
        self._vertices = carver.take(n, np.int64, 2)
        self._frontiers = {name: carver.take(count, np.int32, 4) for name, count in counts.items()}
        self._hubs = carver.take(hubs, np.int32)
        self._marks, self._targets = carver.take(n, np.int32), carver.take(n, np.int32)
        self._zeroed = buffer[:zeroed]
        self._zeroed.fill(0)
        self._started, self._by_waves = 0, False

    def start(
        self,
        row_offsets: Array,
        state: State,
        *,
        deficits: bool,
        alone: bool = False,
        trusting: bool = False,
        leaving: bool = False,
    ) -> None:
        """Queue the persistent kernel on one side of the state's cut; as many blocks as fit at once. If ``alone`` it
        has the whole device, and others wait for it. If ``trusting`` it begins with the labels of the drain before. If
        ``leaving`` it may end with `LEFT_DRAIN`, and `go_on` does the rest, of T."""
        drain = _persistent("drain.cu", "drain_mirrored" if deficits else "drain_forward", state.wide, alone)
        n, deep = len(state.excess), 0
        if leaving and (LARGE if trusting else 0) <= n < 1 << LEVEL_BITS:
            deep = max(DEEP, len(state.arcs) // ARCS_OF_A_LEVEL)
        at = self._memory[self._started]
        self._launch(drain, row_offsets, state, state.labels, at, trust=TRUST if trusting else 0, deep=deep)

    def go_on(self, row_offsets: Array, state: State, *, alone: bool = False) -> None:
        """Queue what a drain of T has left, after its results were read, which are forgotten: waves at first, and where
        those leave something too, a drain that leaves nothing."""
        self._zeroed.fill(0)
        self._started = 0
        if self._by_waves:
            self.start(row_offsets, state, deficits=False, alone=alone)
            return
        self._by_waves = True
        waves = _persistent("waves.cu", "waves", state.wide, alone)
        self._launch(waves, row_offsets, state, state.labels, self._wave_memory)

    def reached(self, row_offsets: Array, state: State, *, from_sources: bool) -> Array:
        """bool[n]: who is reached by residual arcs from excesses and sources in S, or else who reaches a deficit or
        sink in T by such arcs. The state is solved, and not changed. O(n + m); a cancel does not end it."""
        labels = unknown_labels(len(state.excess))
        search = _persistent("drain.cu", "reach_mirrored" if from_sources else "reach_forward", state.wide, False)
        self._launch(search, row_offsets, state, labels, self._memory[self._started])
        return labels != UNKNOWN_LABEL

    def _launch(
        self,
        kernel: "Cooperative",
        row_offsets: Array,
        state: State,
        labels: Array,
        memory: Array,
        *,
        trust: int = 0,
        deep: int = 0,
    ) -> None:
        record = self.progress_records[self._started]
        self._started += 1
        arrays = {
            "row_offsets": row_offsets,
            "arcs": state.arcs,
            "excess": state.excess,
            "role": state.role,
            "source_side": state.source_side,
            "labels": labels,
            "vertices": self._vertices,
            **self._frontiers,
            "hubs": self._hubs,
            "marks": self._marks,
            "targets": self._targets,
            "memory": memory,
            "progress": record,
        }
        arguments = np.zeros((), DRAIN_ARGUMENTS)
        for name, array in arrays.items():
            arguments[name] = array.data.ptr
        arguments["n"] = len(state.excess)
        arguments["patience"], arguments["small"], arguments["round_limit"] = PATIENCE, SMALL, ROUND_LIMIT
        arguments["trust"], arguments["deep"], arguments["deepest"] = trust, deep, len(state.excess) // LEAST_WIDTH
        arguments["capacity"] = len(self._frontiers["search_even"])
        kernel(1 + len(state.arcs) // ARCS_OF_A_CLUSTER, as_struct(arguments))

    def cancel(self) -> None:
        """Stop the drains, by a copy on a stream of its own: a kernel might not get to run beside them."""
        with cupy.cuda.Stream(non_blocking=True) as stream:
            for record in self.progress_records[: self._started]:
                record[:4].set(np.ones(1, np.int32).view(np.uint8), stream=stream)
            stream.synchronize()

    def progress(self) -> NDArray[np.int64]:
        """int64[4]: pushes, relabels, global relabels and scanned arcs of all, as of their last searches."""
        with cupy.cuda.Stream(non_blocking=True) as stream:
            raw = self.progress_records[: self._started].get(stream=stream)
            stream.synchronize()
        records = raw[:, : DRAIN_PROGRESS.itemsize].copy().view(DRAIN_PROGRESS)
        return np.array([records[name].sum() for name in WORK_DONE], np.int64)

    def results(self) -> Iterator[NDArray[np.void]]:
        """A `DRAIN_PROGRESS` record of each drain, in order; waits for them."""
        for raw in self.progress_records[: self._started].get():
            yield np.frombuffer(raw.tobytes()[: DRAIN_PROGRESS.itemsize], DRAIN_PROGRESS)[0]


@dataclass(slots=True)
class Cooperative:
    """A kernel whose blocks must all run at once, in clusters of ``step``, and how many of them may."""

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
def _persistent(file: str, name: str, wide: bool, alone: bool) -> Cooperative:
    """An eighth of the device is left to small work of others: searches bound by memory take a sixth longer then, and
    nobody waits for a long drain."""
    cluster = cluster_size()
    multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    blocks = max(1, multiprocessors * (8 if alone else 7) // 8 // cluster) * cluster
    return Cooperative(kernel(file, name, wide=wide, cooperative=True), blocks, cluster)
