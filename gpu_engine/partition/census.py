"""Which vertices came, went or weigh something else since a partition was brought up to date."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_engine.networks.network import Network
from gpu_engine.partition.survey import changed_items
from gpu_engine.types import BoolArray, UnitArray, VertexArray


class ChangedVertices(NamedTuple):
    """Vertices that came, went or weigh something else now."""

    rows: VertexArray
    """int32[k]."""
    there: BoolArray
    """bool[k]: which of them are there now."""
    weight: UnitArray
    """int64[k]: what they weigh now, if they are there."""
    total: int
    """What all that are there weigh together."""


class Census:
    """Who was there at the last answer: all there is to compare where each vertex weighs 1, a byte for each."""

    def __init__(self) -> None:
        self._there: NDArray[np.int8] | None = None
        """None: not each one weighed 1."""

    @property
    def nbytes(self) -> int:
        return 0 if self._there is None else self._there.nbytes

    def changed(
        self, network: Network, weight: UnitArray | None, compare: Callable[[UnitArray], tuple[VertexArray, int]]
    ) -> ChangedVertices:
        """Since the last call. ``weight`` int64[n], or None: each weighs 1. ``compare`` says of such a column which
        vertices have changed, and what all weigh together. O(n)."""
        before, self._there = self._there, network.there.view(np.int8) if weight is None else None
        if before is not None and self._there is not None:
            rows, total = changed_items(before, self._there).astype(np.int32), network.n_live_vertices
        else:
            rows, total = compare(np.ones(network.n_vertices, np.int64) if weight is None else weight)
        own = np.ones(len(rows), np.int64) if weight is None else weight[rows]
        gone = network.deleted_vertices
        there = ~gone[rows] if len(gone) else np.ones(len(rows), np.bool_)
        return ChangedVertices(rows, there, own, total)
