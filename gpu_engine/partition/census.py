"""What vertices and edges weighed when a partition was brought up to date, and what has changed since.

Where each of them weighs 1, the marks of those that were deleted are enough. A network never changes its marks but
makes others, so they can be kept without a copy, and marks know what has changed since others.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_engine.networks.marks import Marks
from gpu_engine.networks.network import Network
from gpu_engine.partition.columns import lengthened
from gpu_engine.partition.problem import Weights, edge_weights
from gpu_engine.partition.survey import changed_items, changed_marks
from gpu_engine.types import BoolArray, EdgeArray, UnitArray, VertexArray


class ChangedVertices(NamedTuple):
    """Vertices that were added, were deleted or weigh something else now."""

    rows: VertexArray
    """int32[k]: the vertices."""
    there: BoolArray
    """bool[k]: which of them exist now."""
    weight: UnitArray
    """int64[k]: what they weigh now; it does not count for those that were deleted."""
    total: int
    """The weight of all vertices that exist."""


class Census:
    """Which vertices existed at the last answer, if each one weighed 1 then."""

    def __init__(self) -> None:
        self._marks: Marks | None = None
        """None where not each vertex weighed 1."""

    @property
    def nbytes(self) -> int:
        return 0 if self._marks is None else self._marks.nbytes

    def changed(
        self, network: Network, weight: UnitArray | None, compare: Callable[[UnitArray], tuple[VertexArray, int]]
    ) -> ChangedVertices:
        """The vertices that have changed since the last call. ``weight`` is int64[n], or None where each weighs 1.
        ``compare`` tells of such a column which vertices have changed, int32[k], and what all weigh together. O(n), or
        O(changes) without weights."""
        before, self._marks = self._marks, network.vertex_marks if weight is None else None
        if before is not None and self._marks is not None:
            rows, total = changed_marks(before, self._marks).astype(np.int32), network.n_live_vertices
        else:
            rows, total = compare(np.ones(network.n_vertices, np.int64) if weight is None else weight)
        own = np.ones(len(rows), np.int64) if weight is None else weight[rows]
        return ChangedVertices(rows, ~network.are_gone(rows), own, total)


class ChangedEdges(NamedTuple):
    """Edges that weigh something else now."""

    rows: EdgeArray
    """int64[k], rising: the rows of the edges."""
    delta: UnitArray
    """int64[k]: how much more each weighs now."""


class Scales:
    """What each edge weighed at the last answer."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._marks = Marks(0)
        self._capacity: UnitArray = np.empty(0, np.int64)
        """A copy of the capacities, int64[m]; of no length where each edge weighs 1."""

    @property
    def nbytes(self) -> int:
        return self._marks.nbytes + self._capacity.nbytes

    def begin(self, network: Network) -> NDArray[np.integer]:
        """Keep and return what edges weigh now, as `edge_weights` tells it and with its errors. O(m)."""
        weight = edge_weights(network, self._weights)
        self._marks = network.edge_marks
        self._capacity = np.array(weight if self._weights == "capacity" else [], np.int64)
        return weight

    def changed(self, network: Network) -> ChangedEdges:
        """The edges that have changed since the last call. Raises as `edge_weights` does; what was kept stays then.
        O(m), or O(changes) where each edge weighs 1."""
        if self._weights == "one":
            before, self._marks = self._marks, network.edge_marks
            rows = changed_marks(before, self._marks)
            return ChangedEdges(rows, 1 - 2 * self._marks.of(rows).astype(np.int64))
        weight = edge_weights(network, self._weights)
        rows = changed_items(self._capacity, weight)
        self._capacity = lengthened(self._capacity, len(weight))
        delta = weight[rows].astype(np.int64) - self._capacity[rows]
        self._capacity[rows] = weight[rows]
        return ChangedEdges(rows, delta)
