"""Working memory of the kernels, shared by all graphs a thread serves, so that no graph holds any at rest."""

import threading

import numpy as np
from numpy.typing import NDArray

EPOCH_LIMIT = 2**31 - 2


class Scratch(threading.local):
    """Per-thread int32 arrays of at least n entries each, grown on demand and kept.

    ``stamp`` marks a vertex as seen in the search whose number it holds; `epoch` is the last number used, so
    nothing is cleared between searches. The arrays from ``label`` on belong to `pseudoflow`; no contents last.
    """

    def __init__(self) -> None:
        self.stamp: NDArray[np.int32] = np.zeros(0, np.int32)
        self.via: NDArray[np.int32] = np.zeros(0, np.int32)
        self.queue: NDArray[np.int32] = np.zeros(0, np.int32)
        self.epoch = 0
        self.label: NDArray[np.int32] = np.empty(0, np.int32)
        self.count: NDArray[np.int32] = np.empty(0, np.int32)
        self.bucket: NDArray[np.int32] = np.empty(0, np.int32)
        self.forest: NDArray[np.int32] = np.empty((0, 8), np.int32)

    def reserve_forest(self, n_vertices: int) -> None:
        """Make room for `pseudoflow.drain_kernel`: 44 bytes a vertex."""
        if len(self.label) < n_vertices:
            self.label = np.empty(n_vertices, np.int32)
            self.count = np.empty(n_vertices + 2, np.int32)
            self.bucket = np.empty(n_vertices + 2, np.int32)
            self.forest = np.empty((n_vertices, 8), np.int32)

    def reserve(self, n_vertices: int) -> None:
        """Make room for ``n_vertices``; each later search of up to that many steps has a fresh epoch."""
        if len(self.stamp) < n_vertices:
            self.stamp = np.zeros(n_vertices, np.int32)
            self.via = np.empty(n_vertices, np.int32)
            self.queue = np.empty(n_vertices, np.int32)
            self.epoch = 0
        elif self.epoch > EPOCH_LIMIT // 2:
            self.stamp[:] = 0
            self.epoch = 0
