"""Values of many terminal pairs on a device: thousands of searches at once, a warp for each."""

import time
from typing import Final

import cupy
import numpy as np

from gpu_engine.control import Control
from gpu_engine.cuda.launch.pairs import WARPS_OF_A_BLOCK, PairKernel, warp_words
from gpu_engine.cuda.layout import OPEN_PAIR, UNLIMITED_PAIR
from gpu_engine.cuda.memory import device_call, next_stream
from gpu_engine.errors import Cancelled, EngineError, OutOfMemory, SourceIsSink
from gpu_engine.pairs.solver import PairSolver, Seat
from gpu_engine.types import INFINITE, UnitArray, VertexArray

WARPS_OF_A_MULTIPROCESSOR: Final = 8
"""Searches that are on their way at once. Twenty would fit, but the longest search decides how long all take."""

SIZES: Final = 256
"""A search may visit so many times the vertices of the reduced network before the host solves the pair."""

POLL_S: Final = 0.0002
"""The host looks this often, in seconds, whether the device is done."""


def most_warps() -> int:
    """On the current device."""
    return WARPS_OF_A_MULTIPROCESSOR * int(cupy.cuda.Device().attributes["MultiProcessorCount"])


def seat_nbytes(n_vertices: int, n_arcs: int, warps: int) -> int:
    """Bytes that a `DeviceSeat` of so many warps takes on the device, for a reduced network of this size."""
    return 8 * warps * warp_words(n_vertices, n_arcs) + 24 * n_arcs + 4 * n_vertices + 8 * warps + 4096


class DeviceSeat:
    """Solves pairs as `gpu_engine.pairs.solver.Seat` does, for values alone. Pairs that take too long here are solved
    by a seat of the host."""

    def __init__(self, solver: PairSolver, host: Seat, nbytes: int) -> None:
        """Takes at most ``nbytes`` on the current device. Raises `EngineError` if the reduced network cannot be proven
        to be one: proofs of pairs are of that network alone."""
        if not solver.is_proven:
            raise EngineError("the reduced network could not be proven")
        self._solver, self._host = solver, host
        small = solver.small
        self._n, n_arcs = len(small.row_offsets) - 1, len(small.head)
        fits = (nbytes - seat_nbytes(self._n, n_arcs, 0)) // (8 * warp_words(self._n, n_arcs) + 8)
        self._warps = min(most_warps(), fits) // WARPS_OF_A_BLOCK * WARPS_OF_A_BLOCK
        if self._warps <= 0:
            raise OutOfMemory(f"{nbytes} bytes of device memory hold no search of a network of {n_arcs} arcs")
        self.left = 0
        """The number of pairs that the host has solved."""
        self._kernel: PairKernel | None = None
        self.stream = next_stream()

    def values(self, sources: VertexArray, sinks: VertexArray, control: Control) -> UnitArray:
        """int64[k]: the value of each pair, proven, `INFINITE` if no cut of it is finite.

        Raises `SourceIsSink`, and `Cancelled`, after which nothing can be solved here. A full device leaves all of them
        to the host.
        """
        same = np.flatnonzero(sources == sinks)
        if len(same):
            raise SourceIsSink("a vertex is both source and sink", vertices=sources[same].tolist())
        try:
            values = self._found(sources, sinks, control)
        except OutOfMemory:
            values = np.full(len(sources), OPEN_PAIR, np.int64)
        left = np.flatnonzero(values == OPEN_PAIR)
        values[values == UNLIMITED_PAIR] = INFINITE
        self.left += len(left)
        if len(left):
            values[left] = self._host.values(sources[left], sinks[left], control)
        return values

    @device_call
    def _found(self, sources: VertexArray, sinks: VertexArray, control: Control) -> UnitArray:
        """int64[k]: proven values, `OPEN_PAIR` or `UNLIMITED_PAIR`."""
        if self._kernel is None:
            self._kernel = PairKernel(self._solver.small, self._warps)
        number = self._solver.small.number
        queued = self._kernel.start(number[sources], number[sinks], SIZES * self._n)
        self._wait(self._kernel, control)
        values: UnitArray = queued.get()
        return values

    def _wait(self, running: PairKernel, control: Control) -> None:
        done = cupy.cuda.Event(disable_timing=True)
        done.record()
        while not done.done:
            if control.cancelled:
                running.cancel()
                done.synchronize()
                raise Cancelled("cancelled between two pairs")
            time.sleep(POLL_S)
