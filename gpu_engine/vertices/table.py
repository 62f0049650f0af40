"""The capacities of vertices, and batches of operations on them.

A vertex without a capacity is unlimited, and gets one when it is first given one, at the load or by an update. It then
has one for good, if only an unlimited one. The throughput of a vertex is what comes in by edges and what it supplies
itself; that of a sink is what comes in.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import (
    ROWS_SHOWN,
    CapacityOverflow,
    EngineError,
    HasVertexCapacities,
    InvalidNetwork,
    Where,
    shown,
)
from gpu_engine.networks.amounts import changed
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.refused import OperationLike, unknown_vertices
from gpu_engine.networks.rounded import UNROUNDED, Rounded
from gpu_engine.networks.rounding import Rounding
from gpu_engine.networks.tally import Tally
from gpu_engine.networks.updates import chosen, vertices_named
from gpu_engine.networks.validate import exact_total, twice
from gpu_engine.text.counted import counted
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray, EdgeArray, UnitArray, VertexArray

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VertexChange:
    """A batch that was checked: distinct rising vertices, int32[k], and their capacities afterwards."""

    vertices: VertexArray
    capacity: UnitArray
    skipped: int = 0
    """How many of the named vertices the network does not have."""
    unchanged: int = 0
    """How many distinct vertices were named and end up as they were; they are not in `vertices`."""
    rounded: Rounded = UNROUNDED


class VertexTable:
    """Which vertices have a capacity, int32[k] rising, and which, int64[k] in units. 12 bytes each."""

    def __init__(self, network: Network, vertices: VertexArray, capacity: UnitArray) -> None:
        self.network = network
        self.vertices = vertices
        self.capacity = capacity

    @classmethod
    def of(cls, network: Network, edges: EdgeList) -> "Self | None":
        """The capacities of vertices in the edge list that the network was made of; None if it has none."""
        if edges.limited is None or edges.vertex_capacity is None:
            return None
        return cls(network, edges.limited.astype(np.int32), np.array(edges.vertex_capacity, np.int64))

    @classmethod
    def none(cls, network: Network) -> Self:
        """A table in which no vertex has a capacity."""
        return cls(network, np.empty(0, np.int32), np.empty(0, np.int64))

    @property
    def nbytes(self) -> int:
        return self.vertices.nbytes + self.capacity.nbytes

    def fork(self, network: Network) -> Self:
        """The table as it is now, for a fork of its network. O(k)."""
        other = copy.copy(self)
        other.network, other.capacity = network, self.capacity.copy()
        return other

    def after(self, change: VertexChange) -> Self:
        """A table of its own in which what was checked is stored. O(vertices with capacities)."""
        other = self.fork(self.network)
        other.apply(change)
        return other

    def apply(self, change: VertexChange) -> None:
        """Store what was checked; vertices that had no capacity get one. O(k), and O(vertices with capacities) then."""
        first = change.vertices[~self.has(change.vertices)]
        if len(first):
            at = np.searchsorted(self.vertices, first)
            self.vertices = np.insert(self.vertices, at, first)
            self.capacity = np.insert(self.capacity, at, INFINITE)
        self.capacity[np.searchsorted(self.vertices, change.vertices)] = change.capacity

    def has(self, vertices: VertexArray) -> BoolArray:
        """bool[...]: which of these vertices have a capacity. O(k log n)."""
        place = np.searchsorted(self.vertices, vertices)
        found: BoolArray = np.append(self.vertices, np.int32(-1))[place] == vertices
        return found

    def is_within(self, network: Network) -> bool:
        """Whether the vertices are such of the network, rising. O(vertices with capacities)."""
        beyond = len(self.vertices) > 0 and (self.vertices[0] < 0 or self.vertices[-1] >= network.n_vertices)
        return not beyond and bool((np.diff(self.vertices) > 0).all())

    def edge_rows(self, change: VertexChange) -> EdgeArray:
        """The rows by which `SplitEngine.update` knows these vertices, which have capacities: behind those of the
        edges."""
        return self.network.n_edges + np.searchsorted(self.vertices, change.vertices)

    def of_vertices(self, vertices: VertexArray) -> UnitArray:
        """int64[...]: the capacities of vertices. O(k log n)."""
        place = np.searchsorted(self.vertices, vertices)
        return np.where(self.has(vertices), np.append(self.capacity, INFINITE)[place], INFINITE)

    def refusal(self, reason: str) -> HasVertexCapacities:
        """The refusal of a question that, for this reason, is not answered where vertices have capacities. It names
        some of these vertices, and where all of them are deleted, says what to do."""
        live = self.vertices[~self.network.are_gone(self.vertices)]
        if not len(live):
            detail = "all vertices that had a capacity are deleted, and a copy of the graph is made without them"
            return HasVertexCapacities(f"{detail}: {reason}")
        names = self.network.vertex_labels.of(live[:ROWS_SHOWN].astype(np.int64))
        several = counted(len(live), "vertex of this graph has", "vertices of this graph have")
        detail = f"{several} a capacity, if only an unlimited one, such as {names[0]!r}"
        return HasVertexCapacities(f"{detail}: {reason}", vertices=names)

    def resolve(
        self,
        batch: Sequence[OperationLike],
        *,
        on_missing: Literal["error", "skip"] = "error",
        rounding: Rounding = "error",
    ) -> VertexChange:
        """Run the operations set, add and scale in order on copies of the capacities; nothing changes yet.

        The ``edges`` of an operation are vertices here. Raises `UnknownVertex`, `InvalidNetwork` or `CapacityOverflow`,
        with at most ten vertices. O(k log k), and O(vertices with capacities).
        """
        place, found, tally = 0, list[Places](), Tally(rounding)
        try:
            for place in range(len(batch)):
                found.append(self._find(batch[place], on_missing))
            touched = np.unique(np.concatenate([*found, np.empty(0, np.int64)]))
            touched = touched[touched >= 0]
            before = self.of_vertices(touched.astype(np.int32))
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
        return VertexChange(touched[moved].astype(np.int32), own[moved], missing, int((~moved).sum()), tally.rounded)

    def check_total(self, named: VertexArray) -> None:
        """Raises `CapacityOverflow`, with vertices of those that are ``named``, if the capacities of edges and vertices
        add up to too much."""
        places = named.astype(np.int64)
        self._check_total(places, self.of_vertices(named))

    def _check_total(self, touched: Places, own: UnitArray) -> None:
        """Raises as the engine would, which a dry run does not ask."""
        after = np.concatenate([self.capacity[~np.isin(self.vertices, touched)], own])
        total = self.network.finite_total + exact_total(after, np.zeros(1, np.bool_))
        if total > MAX_TOTAL:
            labels = self.network.vertex_labels.of(touched[:ROWS_SHOWN])
            detail = f"the capacities would add up to {total} units; the limit is {MAX_TOTAL}"
            raise CapacityOverflow(detail, vertices=labels)

    def _find(self, operation: OperationLike, on_missing: Literal["error", "skip"]) -> Places:
        """int64[k]: each vertex that is named, -1 for those that the network does not have."""
        names = operation.edges
        if names is None or operation.amounts is None or len(names) != len(operation.amounts):
            raise InvalidNetwork("an operation names its vertices, and has an amount for each", field="/vertices")
        rows = vertices_named(self.network, names)
        missing = np.flatnonzero(rows < 0)
        if len(missing) and on_missing == "error":
            first = missing[:ROWS_SHOWN].tolist()
            given = shown([names[i] for i in first])
            raise unknown_vertices(self.network, given, first, count=len(missing), field="/vertices")
        at = twice(rows)
        if at:
            labels = self.network.vertex_labels.of(np.unique(rows[at])[:ROWS_SHOWN])
            detail = f"vertex {labels[0]!r} is named twice in one operation"
            raise InvalidNetwork(detail, at, vertices=labels, field="/vertices")
        return rows

    def _run(self, operation: OperationLike, own: UnitArray, known: Places, tally: Tally) -> UnitArray:
        if operation.op in ("close", "reopen") or operation.amounts is None:
            raise InvalidNetwork(f"{operation.op} is an operation on edges, not on vertices")
        literals = chosen(operation.amounts, known)
        return changed(operation.op, own, literals, known, self.network.decimals, tally)

    def _complete(self, batch: Sequence[OperationLike], place: int, error: EngineError) -> Where:
        """The place of an error in one operation, with the vertices of the rows at fault."""
        where, names = error.where, batch[place].edges
        if where.rows and where.field is None:
            where = replace(where, field=f"/{batch[place].op}")
        if where.rows and not where.vertices and names is not None:
            where = replace(where, vertices=shown([names[int(str(row))] for row in where.rows]))
        if len(batch) > 1:
            where = replace(where, operation=place, field=where.field and f"/batch/{place}{where.field}")
        return where


def changes_any(change: VertexChange | None, table: VertexTable | None) -> TypeGuard[VertexChange]:
    """Whether a change leaves a table behind: not one that has changed nothing where no vertex has a capacity."""
    return change is not None and (table is not None or len(change.vertices) > 0)


def vertices_of(table: VertexTable | None, network: Network) -> VertexTable:
    """The table itself, or that of a ``network`` none of whose vertices has a capacity."""
    return VertexTable.none(network) if table is None else table
