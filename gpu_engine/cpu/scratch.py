"""Working memory of the kernels, shared by all graphs a thread serves, so that no graph holds any at rest."""

import threading

import numpy as np
from numpy.typing import NDArray

from gpu_engine.cpu.audit import SHARE
from gpu_engine.cpu.forests import Forests
from gpu_engine.cpu.near import Desk
from gpu_engine.cpu.pseudoflow import Forest
from gpu_engine.cpu.reach import Reach

EPOCH_LIMIT = 2**31 - 2


class Scratch(threading.local):
    """Per-thread int32 arrays of at least n entries each, grown on demand and kept.

    ``stamp`` marks a vertex as seen in the search whose number it holds; `epoch` is the last number used, so
    nothing is cleared between searches. ``changed`` takes as many vertices as an `Audit` would look at.
    """

    def __init__(self) -> None:
        self.stamp: NDArray[np.int32] = np.zeros(0, np.int32)
        self.via: NDArray[np.int32] = np.zeros(0, np.int32)
        self.queue: NDArray[np.int32] = np.zeros(0, np.int32)
        self.epoch = 0
        self.changed: NDArray[np.int32] = np.zeros(0, np.int32)
        self._block: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._forest: Forest | None = None
        self._desk = Desk(0)

    def desk(self, n_vertices: int) -> Desk:
        """The memory of `near.Near.look`: 28 bytes a vertex."""
        if not self._desk.fits(n_vertices):
            self._desk = Desk(n_vertices)
        return self._desk

    def forest(self, n_vertices: int) -> Forest:
        """The arrays of `pseudoflow.solve`: 48 bytes a vertex."""
        n = n_vertices
        if self._forest is None or len(self._forest.label) < n:
            block = np.empty(8 * n + 8, np.uint32)
            aligned = (-block.ctypes.data) % 32 // 4  # rows of 32 bytes, none across two cache lines
            self._block = block[aligned : aligned + 8 * n]
            self._forest = Forest(
                label=np.empty(n, np.int32),
                links=self._block.reshape(n, 8),
                population=np.empty(n + 2, np.int32),
                bucket=np.empty(n + 2, np.uint32),
                queue=np.empty(n, np.uint32),
            )
        return self._forest

    def reach(self, n_vertices: int) -> Reach:
        """The arrays of `smallcut.attempt`, in the memory of the forest, which is reset later: 40 of its bytes a
        vertex."""
        n, forest, block = n_vertices, self.forest(n_vertices), self._block
        return Reach(
            node=block[: 4 * n].view(np.int32).reshape(n, 4),
            ahead=forest.queue[:n],
            behind=forest.bucket[:n],
            excesses=block[4 * n : 5 * n],
            deficits=block[5 * n : 6 * n],
            trail=block[6 * n : 8 * n],
            meeting=forest.population[:n].view(np.uint32),
        )

    def forests(self, n_vertices: int) -> Forests:
        """The arrays of `ibfs.search`, in the same memory: 48 bytes a vertex."""
        n, forest, block = n_vertices, self.forest(n_vertices), self._block
        return Forests(
            node=block[: 4 * n].view(np.int32).reshape(n, 4),
            heap=forest.population[: n + 2],
            link=forest.label[:n],
            detached=forest.bucket[:n],
            offered=forest.queue[:n],
            layers=block[4 * n : 8 * n].reshape(4, n),
        )

    def reserve(self, n_vertices: int) -> None:
        """Grow the arrays to ``n_vertices``; each later search of up to that many steps has a fresh epoch."""
        if len(self.stamp) < n_vertices:
            self.stamp = np.zeros(n_vertices, np.int32)
            self.via = np.empty(n_vertices, np.int32)
            self.queue = np.empty(n_vertices, np.int32)
            self.changed = np.empty(n_vertices // SHARE, np.int32)
            self.epoch = 0
        elif self.epoch > EPOCH_LIMIT // 2:
            self.stamp[:] = 0
            self.epoch = 0


SCRATCH = Scratch()
"""Each thread finds its own arrays here."""
