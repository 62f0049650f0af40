"""The common currency of formats and generators: columns, one row per edge."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_engine.networks.coordinates import Coordinates
from gpu_engine.networks.rounded import UNROUNDED, Rounded
from gpu_engine.types import BoolArray, UnitArray, VertexArray


@dataclass(frozen=True, slots=True)
class EdgeList:
    """A network as its owner describes it; every format reads into one, every generator makes one.

    Parallel edges, anti-parallel edges, undirected edges and self-loops are all legal.
    `Network` checks ranges and sums; a reader only checks that its text or bytes are well-formed.
    """

    n_vertices: int
    tail: VertexArray
    """int32[m], dense vertex index of each edge's tail."""
    head: VertexArray
    """int32[m], dense vertex index of each edge's head."""
    capacity: UnitArray
    """int64[m] in units of ``10 ** -decimals``; `types.INFINITE` where the edge never limits."""
    undirected: bool | BoolArray = False
    """True for all, none, or bool[m]: the edge carries up to `capacity` in either direction."""
    decimals: int = 0
    edge_ids: NDArray[np.int64] | Sequence[str] | None = None
    """The caller's ids, unique; None: the row number is the id."""
    vertex_labels: NDArray[np.int64] | Sequence[str] | None = None
    """The caller's names of vertices ``0 .. n-1``, unique; None: the index is the name."""
    source: int | None = None
    """Default terminals, as DIMACS and npz files carry them; dense indices."""
    sink: int | None = None
    closed: BoolArray | None = None
    """bool[m]: edges that let nothing through until they are reopened, then `capacity`; None: all are open."""
    cost: UnitArray | None = None
    """int64[m], what a unit of flow costs on each edge, in units of ``10 ** -cost_decimals``; None: the edges have no
    costs. Negative on directed edges only."""
    cost_decimals: int = 0
    limited: VertexArray | None = None
    """int32[k], rising: the vertices that have a capacity; None: none has."""
    vertex_capacity: UnitArray | None = None
    """int64[k]: how much may pass each of them, inflow plus own supply, in units; `types.INFINITE` for a capacity that
    never limits."""
    coordinates: Coordinates | None = None
    """The coordinates of the vertices; None: they are not known."""
    lower: UnitArray | None = None
    """int64[m], how much each edge carries at least in a circulation, in units, 0 on undirected ones; None: the edges
    have no lower bounds."""
    rounded: Rounded = UNROUNDED
    """What rounding has changed of the capacities as they were sent."""
    rounded_costs: Rounded = UNROUNDED

    @property
    def effective(self) -> UnitArray:
        """int64[m]: the capacities that flows are bound by, 0 where an edge is closed."""
        return self.capacity if self.closed is None else np.where(self.closed, 0, self.capacity)

    @property
    def n_edges(self) -> int:
        """The number of edges, closed ones included."""
        return len(self.tail)
