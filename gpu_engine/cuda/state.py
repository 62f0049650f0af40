"""A flow state of the CUDA engine."""

from dataclasses import dataclass

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import Array, held_bytes
from gpu_engine.incremental import IncrementalState


@dataclass(eq=False, slots=True, kw_only=True)
class CudaFlowState(IncrementalState):
    """Device arrays: arcs (16 bytes each, 24 if wide) in an order of their own (`gpu_engine.cuda.arrange`), edge_arc
    int32[m] into them, excess int64[n], role int8[n], source_side bool[n]."""

    excess: Array
    source_side: Array
    wide: bool
    arcs: Array = None
    edge_arc: Array = None
    n_appended: int = 0
    """Arcs that have come since the arcs were arranged, and which stand at the ends of rows."""
    lacking: int = 0
    """How many ends of changed edges had a deficit in S, counted for each edge; 0: there is none in S."""
    holding: int = 0
    """How many ends of changed edges had an excess in T, counted for each edge; 0: there is none in T."""
    touched: bool = False

    def widen(self) -> None:
        """Residuals do not fit int32 any more: the next solve arranges the arcs anew."""
        self.solved, self.wide, self.arcs, self.edge_arc = False, True, None, None

    @property
    def nbytes(self) -> int:
        of_arcs = () if self.arcs is None else (self.arcs, self.edge_arc)
        return sum(held_bytes(array) for array in (self.role, self.excess, self.source_side, *of_arcs))

    def take(self, result: NDArray[np.void]) -> None:
        """Note what an update did, an `UPDATE_RESULT` record."""
        self.touched = True
        if result["overflow"]:
            self.widen()
        self.value += int(result["gained"])
        self.lacking += int(result["lacking"])
        self.holding += int(result["holding"])

    def sides_of_terminals(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """bool each: whether a source, and whether a sink, lies in S."""
        sources, sinks = (cupy.asarray(v) for v in (self.terminals.sources, self.terminals.sinks))
        return self.source_side[sources].get(), self.source_side[sinks].get()
