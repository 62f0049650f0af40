"""Every id and quantity width, named once.

A *vertex* is a dense index ``0 .. n-1``; an *edge* is a row of what the caller sent; a *link* is an
unordered vertex pair that carries all edges of that pair; an *arc* is one direction of a link.
Capacities, residuals and excesses are exact integers in *units*: ``10 ** -decimals`` of the caller's unit.
"""

from typing import Final, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

VertexArray: TypeAlias = NDArray[np.int32]
"""Vertex indices, ``0 <= v < n``."""

EdgeArray: TypeAlias = NDArray[np.int64]
"""Edge rows, ``0 <= e < m``, in the order the caller sent them."""

ArcArray: TypeAlias = NDArray[np.int32]
"""Arc indices; ``-1`` (`NO_ARC`) where an edge has none because it is a self-loop."""

UnitArray: TypeAlias = NDArray[np.int64]
"""Capacities, residuals, flows or excesses in units."""

BoolArray: TypeAlias = NDArray[np.bool_]

End: TypeAlias = Literal["sources", "sinks"]
"""One end of a flow."""


class Links(Protocol):
    """Links as arcs by row (bidirectional CSR), without capacities."""

    @property
    def n_vertices(self) -> int: ...
    @property
    def row_offsets(self) -> ArcArray: ...
    @property
    def head(self) -> VertexArray: ...
    @property
    def reverse_arc(self) -> ArcArray: ...


NO_ARC: Final = -1

INFINITE: Final = int(np.iinfo(np.int64).max)
"""The capacity of an edge that never limits. Stored in capacity columns only, never in residuals."""

MAX_TOTAL: Final = 1 << 60
"""Largest sum of finite capacities (an undirected edge counts twice) a network may have.

Every excess is bounded by that sum plus the supplies, so no excess and no pair sum can reach 2**63."""

INFINITE_RESIDUAL: Final = 1 << 61
"""An infinite edge adds this to its arc's residual: more than `MAX_TOTAL`, so no flow can use it up."""

MAX_DECIMALS: Final = 9
"""Most fixed-point decimals a network may have; 10**9 units in one of the caller's unit."""

MAX_VERTICES: Final = 2**31 - 2
MAX_ARCS: Final = 2**31 - 2
