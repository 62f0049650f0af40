"""A flow state of the CUDA engine."""

from dataclasses import dataclass

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import Array
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
    lacking: int = 0
    """How many ends of changed edges had a deficit in S, counted for each edge; 0: there is none in S."""
    holding: int = 0
    """How many ends of changed edges had an excess in T, counted for each edge; 0: there is none in T."""
    touched: bool = False

    def widen(self) -> None:
        """Residuals do not fit int32 any more: the next solve arranges the arcs anew."""
        self.solved, self.wide, self.arcs, self.edge_arc = False, True, None, None

    def grow(self, n_more: int) -> None:
        """Have so many more vertices, ordinary ones before the cut's far side. The arcs are to be arranged anew."""
        self.arcs = self.edge_arc = None
        self.role, self.excess, self.source_side = (
            cupy.concatenate([a, cupy.zeros(n_more, a.dtype)]) for a in (self.role, self.excess, self.source_side)
        )

    @property
    def nbytes(self) -> int:
        at_rest = self.role.nbytes + self.excess.nbytes + self.source_side.nbytes
        return int(at_rest + (0 if self.arcs is None else self.arcs.nbytes + self.edge_arc.nbytes))

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
