"""pairs.cu: maximum flows of many terminal pairs, a warp for each."""

from typing import Final

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array, as_struct
from gpu_engine.cuda.launch.words import Word
from gpu_engine.cuda.layout import OPEN_PAIR, PAIR_ARC, PAIR_ARGUMENTS, PAIR_THREADS
from gpu_engine.cuda.module import kernel
from gpu_engine.pairs.reduced import Reduced
from gpu_engine.types import VertexArray

WARPS_OF_A_BLOCK: Final = PAIR_THREADS // 32
MOST_VISITS: Final = 1 << 30


def log_size(n_arcs: int) -> int:
    """Arcs that one warp can note."""
    return n_arcs // 4 + 1024


def warp_words(n_vertices: int, n_arcs: int) -> int:
    """Memory of one warp in words of 8 bytes; `PairMemory` in pair_memory.cuh says what for."""
    log = log_size(n_arcs)
    words = 3 * n_vertices + n_arcs + log + -(-(2 * n_vertices + log) // 2)
    return words + words % 2  # nodes of 16 bytes lie first


class PairKernel:
    """A network on the current device, and the memory of so many warps."""

    def __init__(self, small: Reduced, warps: int) -> None:
        n, n_arcs = len(small.row_offsets) - 1, len(small.head)
        arcs = np.empty(n_arcs, PAIR_ARC)
        arcs["head"], arcs["reverse"], arcs["capacity"] = small.head, small.reverse_arc, small.capacity
        arcs["backward"] = small.capacity[small.reverse_arc]
        self._arrays: dict[str, Array] = {
            "row_offsets": cupy.asarray(small.row_offsets),
            "arcs": cupy.asarray(arcs.view(np.uint8)),
            "memory": cupy.zeros(warps * warp_words(n, n_arcs), np.int64),
            "epochs": cupy.zeros(warps, np.int32),
            "next": cupy.zeros(1, np.int32),
            "cancel": cupy.zeros(1, np.int32),
        }
        self._cancel = Word(self._arrays["cancel"])
        self._arguments = np.zeros((), PAIR_ARGUMENTS)
        self._arguments["n"], self._arguments["n_arcs"] = n, n_arcs
        self._arguments["log_size"], self._arguments["memory_words"] = log_size(n_arcs), warp_words(n, n_arcs)
        self._warps = warps

    def start(self, sources: VertexArray, sinks: VertexArray, most_visits: int) -> Array:
        """Queue the search for each pair; its value, `OPEN_PAIR` or `UNLIMITED_PAIR` will stand in the array int64[k]
        that is returned. A search that would visit more vertices is given up."""
        values = cupy.full(len(sources), OPEN_PAIR, np.int64)
        self._arrays["next"].fill(0)
        pairs = {"sources": cupy.asarray(sources), "sinks": cupy.asarray(sinks), "values": values}
        arguments = self._arguments
        for name, array in (self._arrays | pairs).items():
            arguments[name] = array.data.ptr
        arguments["n_pairs"], arguments["most_visits"] = len(sources), min(most_visits, MOST_VISITS)
        blocks = min(self._warps, len(sources) + WARPS_OF_A_BLOCK - 1) // WARPS_OF_A_BLOCK
        kernel("pairs.cu", "solve_pairs", wide=True)((blocks,), (PAIR_THREADS,), (as_struct(arguments),))
        self._held = pairs  # until the kernel has read them
        return values

    def cancel(self) -> None:
        """Stop the searches; nothing can be started any more."""
        self._cancel.write(1)
