"""A flow state of the CPU engine."""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gpu_engine.cpu.audit import Audit
from gpu_engine.cpu.forking import ForkableState
from gpu_engine.cpu.near import Near
from gpu_engine.networks.growing import Growth, with_zeros
from gpu_engine.types import BoolArray, EdgeArray, UnitArray


@dataclass(eq=False, slots=True, kw_only=True)
class CpuFlowState(ForkableState):
    """See `gpu_engine.cpu.repair` for the invariants. At rest 8 bytes an arc and 20 a vertex.

    While there is a `near`, the flow and the cut are what that lists, and the arrays of residuals, excesses and sides
    mean nothing. They count as memory all the same, as an update may fill them when nobody asks for memory.
    """

    role: NDArray[np.int8]
    residual: UnitArray
    excess: UnitArray
    source_side: BoolArray
    cold_arcs_scanned: int = 0
    cold_steps: int = 0
    """What the last solve from zero took (`gpu_engine.cpu.pseudoflow.steps_taken`): a repair may not take much more."""
    narrow: bool = False
    """The last solve from zero has found the network long and narrow (`gpu_engine.cpu.budget.LONG`)."""
    touched: list[EdgeArray] = field(default_factory=list)
    """Edge rows changed since the last solve; away from their ends all is settled."""
    touched_nbytes: int = 0
    audit: Audit | None = None
    """None: the next proof is a complete one."""
    near: Near | None = None
    """The flow and the cut, if the last solve from zero found them by looking around the terminals."""
    may_be_near: bool = True
    """Whether a solve from zero may begin that way: not once such a flow has failed its proof."""
    interrupted: bool = False
    """A warm solve was cancelled: broken vertices may be anywhere."""

    @property
    def nbytes(self) -> int:
        """An audit counts before it is there, as its first proof may come when nobody asks for memory."""
        audited = self.role.nbytes + self.excess.nbytes + self.source_side.nbytes
        noted = self.audit.noted_nbytes if self.audit else 0
        return self.residual.nbytes + 2 * audited + self.touched_nbytes + noted

    def touch(self, rows: EdgeArray) -> None:
        self.touched.append(rows)
        self.touched_nbytes += rows.nbytes

    def copied(self) -> Self:
        return replace(
            self,
            residual=self.residual.copy(),
            excess=self.excess.copy(),
            source_side=self.source_side.copy(),
            touched=[*self.touched],
            audit=self.audit and self.audit.copy(),
            patience=deepcopy(self.patience),
        )

    def grow(self, growth: Growth, n_more: int) -> None:
        """Append ``n_more`` ordinary vertices, which lie on the sink side, and arcs that carry nothing. O(n + arcs)."""
        self.residual = growth.moved(self.residual)
        self.role, self.excess = with_zeros(self.role, n_more), with_zeros(self.excess, n_more)
        self.source_side = with_zeros(self.source_side, n_more)
        if self.audit:
            self.audit.grow(n_more)

    def settle(self) -> None:
        """Note that the state is solved: no vertex is broken any more."""
        self.touched, self.touched_nbytes, self.interrupted = [], 0, False
