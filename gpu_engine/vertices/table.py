"""The capacities of vertices, and batches of operations on them.

A vertex has a capacity from its load on, or never: one that is not limited yet is loaded as unlimited. The throughput
of a vertex is what comes in by edges and what it supplies itself; that of a sink is what comes in.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import ROWS_SHOWN, CapacityOverflow, EngineError, InvalidNetwork, NoVertexCapacity, Where, shown
from gpu_engine.networks.amounts import changed
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.refused import OperationLike, unknown_vertices
from gpu_engine.networks.rounded import UNROUNDED, Rounded
from gpu_engine.networks.rounding import Rounding
from gpu_engine.networks.tally import Tally
from gpu_engine.networks.updates import chosen, rows_of
from gpu_engine.networks.validate import exact_total
from gpu_engine.types import MAX_TOTAL, EdgeArray, UnitArray, VertexArray

Places = NDArray[np.int64]

ADVICE: Final = ': load it with one for each vertex that may get one later, "inf" if it is not to limit yet'


@dataclass(frozen=True, slots=True)
class VertexChange:
    """A batch that was checked: distinct rising places in the table, and the capacities there afterwards."""

    rows: Places
    capacity: UnitArray
    skipped: int = 0
    """Named vertices that the network does not have."""
    unchanged: int = 0
    """Distinct vertices that were named and end up as they were; they are not in `rows`."""
    rounded: Rounded = UNROUNDED


class VertexTable:
    """Which vertices have a capacity, int32[k] rising, and which, int64[k] in units. 12 bytes each."""

    def __init__(self, network: Network, vertices: VertexArray, capacity: UnitArray) -> None:
        self.network = network
        self.vertices = vertices
        self.capacity = capacity

    @classmethod
    def of(cls, network: Network, edges: EdgeList) -> "Self | None":
        """Those of the edges that the network was made of; None if it has none."""
        if edges.limited is None or edges.vertex_capacity is None:
            return None
        return cls(network, edges.limited.astype(np.int32), np.array(edges.vertex_capacity, np.int64))

    @property
    def nbytes(self) -> int:
        return self.vertices.nbytes + self.capacity.nbytes

    def fork(self, network: Network) -> Self:
        """The table as it is now, for a fork of its network. O(k)."""
        other = copy.copy(self)
        other.network, other.capacity = network, self.capacity.copy()
        return other

    def apply(self, change: VertexChange) -> None:
        """Store what was checked. O(k)."""
        self.capacity[change.rows] = change.capacity

    def edge_rows(self, change: VertexChange) -> EdgeArray:
        """The rows by which `SplitEngine.update` knows these vertices: behind those of the edges."""
        return self.network.n_edges + change.rows

    def of_vertices(self, vertices: VertexArray) -> UnitArray:
        """int64[...]: the capacities of vertices that have one. O(k log n)."""
        return self.capacity[np.searchsorted(self.vertices, vertices)]

    def resolve(
        self,
        batch: Sequence[OperationLike],
        *,
        on_missing: Literal["error", "skip"] = "error",
        rounding: Rounding = "error",
    ) -> VertexChange:
        """Run the operations set, add and scale in order on copies of the capacities; nothing changes yet.

        The ``edges`` of an operation are vertices here. Raises `UnknownVertex`, `NoVertexCapacity`, `InvalidNetwork` or
        `CapacityOverflow`, with at most ten vertices. O(k log k), and O(vertices with capacities).
        """
        place, found, tally = 0, list[Places](), Tally(rounding)
        try:
            for place in range(len(batch)):
                found.append(self._find(batch[place], on_missing))
            touched = np.unique(np.concatenate([*found, np.empty(0, np.int64)]))
            touched = touched[touched >= 0]
            before = self.capacity[touched]
            own = before.copy()
            for place, operation in enumerate(batch):
                known = np.flatnonzero(found[place] >= 0)
                at = np.searchsorted(touched, found[place][known])
                own[at] = self._run(operation, own[at], known, tally)
        except EngineError as error:
            error.where = self._complete(batch, place, error)
            raise
        self._check_total(touched, own)
        moved = own != before
        missing = sum(int((rows < 0).sum()) for rows in found)
        return VertexChange(touched[moved], own[moved], missing, int((~moved).sum()), tally.rounded)

    def _check_total(self, touched: Places, own: UnitArray) -> None:
        """Raises as the engine would, which a dry run does not ask."""
        after = self.capacity.copy()
        after[touched] = own
        total = self.network.finite_total + exact_total(after, np.zeros(1, np.bool_))
        if total > MAX_TOTAL:
            labels = self.network.vertex_labels.of(self.vertices[touched[:ROWS_SHOWN]].astype(np.int64))
            detail = f"the capacities would add up to {total} units; the limit is {MAX_TOTAL}"
            raise CapacityOverflow(detail, vertices=labels)

    def _find(self, operation: OperationLike, on_missing: Literal["error", "skip"]) -> Places:
        """int64[k]: the place of each vertex that is named, -1 for those that the network does not have."""
        names = operation.edges
        if names is None or operation.amounts is None or len(names) != len(operation.amounts):
            raise InvalidNetwork("an operation names its vertices, and has an amount for each", field="/vertices")
        rows = rows_of(self.network.vertex_labels, names)
        missing = np.flatnonzero(rows < 0)
        if len(missing) and on_missing == "error":
            first = missing[:ROWS_SHOWN].tolist()
            given = shown([names[i] for i in first])
            raise unknown_vertices(self.network, given, first, count=len(missing), field="/vertices")
        place = np.searchsorted(self.vertices, rows)
        has_one = self.vertices[np.minimum(place, len(self.vertices) - 1)] == rows if len(self.vertices) else rows < -1
        bare = np.flatnonzero((rows >= 0) & ~has_one)
        if len(bare):
            raise _without(self.network, rows[bare], bare)
        order = np.sort(place[rows >= 0])
        twice = order[1:][order[1:] == order[:-1]]
        if len(twice):
            labels = self.network.vertex_labels.of(self.vertices[twice[:ROWS_SHOWN]].astype(np.int64))
            detail = f"vertex {labels[0]!r} is named twice in one operation"
            raise InvalidNetwork(detail, vertices=labels, field="/vertices")
        return np.where(rows >= 0, place, -1)

    def _run(self, operation: OperationLike, own: UnitArray, known: Places, tally: Tally) -> UnitArray:
        if operation.op in ("close", "reopen") or operation.amounts is None:
            raise InvalidNetwork(f"{operation.op} is an operation on edges, not on vertices")
        literals = chosen(operation.amounts, known)
        return changed(operation.op, own, literals, known, self.network.decimals, tally)

    def _complete(self, batch: Sequence[OperationLike], place: int, error: EngineError) -> Where:
        """What is at fault in one operation, with its place and the vertices of its rows."""
        where, names = error.where, batch[place].edges
        if where.rows and where.field is None:
            where = replace(where, field=f"/{batch[place].op}")
        if where.rows and not where.vertices and names is not None:
            where = replace(where, vertices=shown([names[int(str(row))] for row in where.rows]))
        if len(batch) > 1:
            where = replace(where, operation=place, field=where.field and f"/batch/{place}{where.field}")
        return where


def vertices_of(table: VertexTable | None) -> VertexTable:
    """The table itself. Raises `NoVertexCapacity` if no vertex of the graph has a capacity."""
    if table is None:
        raise NoVertexCapacity(f"the vertices of this graph have no capacities{ADVICE}")
    return table


def _without(network: Network, vertices: NDArray[np.int64], rows: Places) -> NoVertexCapacity:
    """The refusal of vertices that were loaded without a capacity."""
    labels = network.vertex_labels.of(vertices[:ROWS_SHOWN])
    more = f" (and {len(vertices) - 1} more)" if len(vertices) > 1 else ""
    detail = f"the vertex {labels[0]!r}{more} was loaded without a capacity{ADVICE}"
    return NoVertexCapacity(detail, rows[:ROWS_SHOWN].tolist(), vertices=labels, field="/vertices")
