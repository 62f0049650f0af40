"""What a host and a running solve share: whether it is to stop, and how far it is."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

WORK_DONE: Final = ("pushes", "relabels", "global_relabels", "arcs_scanned")


class Control:
    """Memory that a host and a running solve share; one solve at a time. Safe to use from another thread.

    ``slots`` int64[8]: 0 cancel flag, 1 pushes, 2 relabels, 3 global relabels, 4 arcs scanned, 5 what a drain on a CPU
    says: 1 if the network is long and narrow, `gpu_engine.cpu.drain.TOO_LONG`; 6 links of trees that it has turned
    round or passed over. A kernel polls slot 0 about every millisecond.
    """

    CANCEL, PUSHES, RELABELS, GLOBAL_RELABELS, ARCS_SCANNED, NARROW, PASSED = range(7)

    def __init__(self) -> None:
        self.slots: NDArray[np.int64] = np.zeros(8, np.int64)

    def cancel(self) -> None:
        """Ask the running solve to stop; it raises `Cancelled` and its state can be solved again."""
        self.slots[self.CANCEL] = 1

    def go_on(self) -> None:
        """Take `cancel` back: what is solved next is not to stop."""
        self.slots[self.CANCEL] = 0

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called, and not taken back by `go_on`."""
        return bool(self.slots[self.CANCEL])

    def progress(self) -> dict[str, int]:
        """The counters so far; monotone while a solve runs."""
        return {name: int(self.slots[i + 1]) for i, name in enumerate(WORK_DONE)}

    def add(self, work: Mapping[str, int]) -> None:
        """Count work of the same solve that had another control."""
        for i, name in enumerate(WORK_DONE):
            self.slots[i + 1] += work[name]
