"""A flow state of the CUDA engine."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Final, Self

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cpu.forking import ForkableState
from gpu_engine.cuda.launch.arrays import Array, held_bytes
from gpu_engine.cuda.launch.sums import EdgeSums
from gpu_engine.types import INFINITE

ARRAYS: Final = ("role", "excess", "source_side", "labels", "arcs", "edge_arc")


@dataclass(eq=False, slots=True, kw_only=True)
class CudaFlowState(ForkableState):
    """Device arrays: arcs (16 bytes each, 24 if wide) in an order of their own (`gpu_engine.cuda.arrange`), edge_arc
    int32[m] into them, excess int64[n], role int8[n], source_side bool[n], labels int32[n]."""

    excess: Array
    source_side: Array
    labels: Array
    """The label that the last drain of its side has left to each vertex, or `UNKNOWN_LABEL`. A repair may begin with
    them, although they may be wrong by then."""
    wide: bool
    arcs: Array = None
    edge_arc: Array = None
    keeps_pair_sums: bool = False
    """The pair sums of the arcs are those of the capacities: updates keep them while the state is solved."""
    sums: EdgeSums | None = None
    """What the last complete proof has added up of the edges, at the capacities of now."""
    n_appended: int = 0
    """Arcs that have come since the arcs were arranged, and which stand at the ends of rows."""
    lacking: int = 0
    """How many ends of changed edges had a deficit in S, counted for each edge; 0: there is none in S."""
    holding: int = 0
    """How many ends of changed edges had an excess in T, counted for each edge; 0: there is none in T."""
    touched: bool = False
    depth: int = 0
    """How many layers a search of the last solve from zero went through, the mean of its first drain; 0: not known."""

    def copied(self) -> Self:
        arrays = {name: array.copy() for name in ARRAYS if (array := getattr(self, name)) is not None}
        return replace(self, patience=deepcopy(self.patience), **arrays)

    def reached(self) -> int:
        """The value, by what is there: all demands with a cap, and the excess of the sink side."""
        demand = self.terminals.demand
        return int(demand[demand != INFINITE].sum()) + int(cupy.where(self.source_side, 0, self.excess).sum())

    def widen(self) -> None:
        """Residuals do not fit int32 any more: the next solve arranges the arcs anew."""
        self.solved, self.wide = False, True
        self.drop_arcs()

    def drop_arcs(self) -> None:
        """Forget the arcs and all that goes by their order: the next solve arranges them anew."""
        self.arcs = self.edge_arc = self.sums = None

    @property
    def nbytes(self) -> int:
        arrays = (getattr(self, name) for name in ARRAYS)
        return sum(held_bytes(array) for array in arrays if array is not None)

    def take(self, result: NDArray[np.void]) -> None:
        """Note what an update did, an `UPDATE_RESULT` record."""
        self.touched = True
        if result["overflow"]:
            self.widen()
        if self.sums:
            self.sums = self.sums.plus(int(result["weighed"]))
        self.value += int(result["gained"])
        self.lacking += int(result["lacking"])
        self.holding += int(result["holding"])

    def sides_of_terminals(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """bool each: whether a source, and whether a sink, lies in S. Where none has a cap all lie on their own side
        of a solved state, and nothing is read."""
        terminals = self.terminals
        if (terminals.supply == INFINITE).all() and (terminals.demand == INFINITE).all():
            return np.ones(len(terminals.sources), np.bool_), np.zeros(len(terminals.sinks), np.bool_)
        sources, sinks = (cupy.asarray(v) for v in (terminals.sources, terminals.sinks))
        return self.source_side[sources].get(), self.source_side[sinks].get()
