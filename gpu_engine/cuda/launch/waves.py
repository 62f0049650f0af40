"""waves.cu: the persistent kernel that drains T by waves."""

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array, State, as_struct
from gpu_engine.cuda.launch.drain import ARCS_OF_A_CLUSTER, Carver, Drains, persistent
from gpu_engine.cuda.layout import WAVE_ARGUMENTS, WAVE_MEMORY_BYTES


class Waves(Drains):
    """One launch, and its working memory: 8 bytes a vertex beside that of drains."""

    def __init__(self, n: int, n_arcs: int) -> None:
        super().__init__(n, n_arcs)
        carver = Carver(cupy.empty(WAVE_MEMORY_BYTES + 8 * n + 3 * 256, np.uint8))
        self._wave_memory = carver.take(WAVE_MEMORY_BYTES, np.uint8)
        self._wave_memory.fill(0)
        self._marks, self._targets = carver.take(n, np.int32), carver.take(n, np.int32)

    def start_on_sinks(self, row_offsets: Array, state: State, *, alone: bool = False) -> None:
        """Queue the kernel on T; ``alone`` as for `Drains.start`. If it ends with `ROUNDS_SPENT`, another launch goes
        on."""
        waves = persistent("waves.cu", "waves", state.wide, alone)
        arguments = np.zeros((), WAVE_ARGUMENTS)
        arguments["drain"] = self._arguments(row_offsets, state, state.labels, self._wave_memory)
        arguments["marks"], arguments["targets"] = self._marks.data.ptr, self._targets.data.ptr
        waves(1 + len(state.arcs) // ARCS_OF_A_CLUSTER, as_struct(arguments))
