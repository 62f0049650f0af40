"""The network: what the user has, checked, and the links it becomes.

Edges keep their rows, ids and capacities; the topology is a bidirectional CSR over links that every engine
and every flow state shares. Nothing here knows a solver.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu_engine.errors import CapacityOverflow
from gpu_engine.footprint import Counts
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.links import build_csr, sum_arc_capacity, survey_change, swap_capacity
from gpu_engine.networks.presence import Presence
from gpu_engine.networks.rows import Pending, Rows
from gpu_engine.networks.spare import Spare
from gpu_engine.networks.validate import check, exact_total
from gpu_engine.text.names import Names
from gpu_engine.types import (
    INFINITE,
    INFINITE_RESIDUAL,
    MAX_TOTAL,
    ArcArray,
    BoolArray,
    EdgeArray,
    UnitArray,
    VertexArray,
)

CsrBuilder = Callable[[int, VertexArray, VertexArray], tuple[ArcArray, VertexArray, ArcArray, ArcArray]]
"""`gpu_engine.networks.links.build_csr`, or the same on another device, which may be faster."""


class Network(Presence):
    """A checked network. Topology is fixed; `capacity` changes through `set_capacity` only.

    Attributes: those of its `rows`, ``capacity`` int64[m] in units, `INFINITE` where unlimited, ``undirected`` bool[m]
    or bool[1] when all edges agree.

    Raises `InvalidNetwork`, `TooLarge` or `CapacityOverflow`, naming the edge rows. Cost: O(n + m) time.
    """

    def __init__(self, edges: EdgeList, build: CsrBuilder = build_csr) -> None:
        check(edges)
        super().__init__(edges.n_vertices, edges.n_edges, edges.source, edges.sink)
        self.decimals = edges.decimals
        self.capacity: UnitArray = np.array(edges.effective, dtype=np.int64)
        self.undirected: BoolArray = np.atleast_1d(np.array(edges.undirected, dtype=np.bool_))
        self.edge_ids = Names(edges.edge_ids, edges.n_edges, "edge id")
        self.vertex_labels = Names(edges.vertex_labels, edges.n_vertices, "vertex label")
        self.coordinates = edges.coordinates
        """Where the vertices lie; None: nobody has said so."""
        self.loaded = edges.n_vertices, edges.n_edges
        """How many vertices and edges it was made of; the others were inserted later (`networks.growing`)."""
        ends = (np.ascontiguousarray(end, dtype=np.int32) for end in (edges.tail, edges.head))
        self.unread_rows: Rows | Pending = Rows(*build(edges.n_vertices, *ends))
        """Its rows as they are now: to whom it is enough how many arcs there are, these need not be merged."""
        self.spare = Spare()
        """Room behind `capacity`, which networks that have grown out of one another share."""
        self._loops = np.flatnonzero(self.edge_arc < 0)
        """Rows of self-loops, rising: they have no arc that could tell their vertex."""
        self._loop_vertex = np.asarray(edges.tail, np.int32)[self._loops]

    @property
    def rows(self) -> Rows:
        """Its compressed rows of arcs. O(n + m) for who reads them first after an insertion."""
        rows = self.unread_rows
        if isinstance(rows, Pending):
            rows = self.unread_rows = rows.merged()
        return rows

    def settle(self, rows: Rows | Pending) -> None:
        """Have these rows, which are those of its edges."""
        self.unread_rows = rows

    def know_loops(self, rows: EdgeArray, vertices: VertexArray) -> None:
        """Edges behind those it had are self-loops at these vertices."""
        self._loops = np.concatenate([self._loops, rows])
        self._loop_vertex = np.concatenate([self._loop_vertex, vertices])

    @property
    def row_offsets(self) -> ArcArray:
        """int32[n+1]: where the arcs of each vertex begin."""
        return self.rows.row_offsets

    @property
    def head(self) -> VertexArray:
        """int32[arcs]."""
        return self.rows.head

    @property
    def reverse_arc(self) -> ArcArray:
        """int32[arcs]."""
        return self.rows.reverse_arc

    @property
    def edge_arc(self) -> ArcArray:
        """int32[m], `NO_ARC` for self-loops."""
        return self.rows.edge_arc

    @property
    def n_arcs(self) -> int:
        """Directed arcs, two for each link."""
        return self.unread_rows.n_arcs

    @property
    def has_shared_links(self) -> bool:
        """Whether some link has several edges: parallel ones, or opposite ones."""
        return self.n_arcs < 2 * (self.n_edges - len(self._loops))

    @property
    def has_directed_edges(self) -> bool:
        """Whether any edge that was not deleted is directed. O(m)."""
        return not bool(self.is_undirected(self.live(np.arange(self.n_edges))).all())

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays at rest, flow states not counted."""
        arrays = (
            self.capacity,
            self.edge_marks,
            self.vertex_marks,
            self.undirected,
            self._loops,
            self._loop_vertex,
        )
        places = 0 if self.coordinates is None else self.coordinates.nbytes
        own = sum(a.nbytes for a in arrays) + self.unread_rows.nbytes + self.spare.nbytes
        return own + self.edge_ids.nbytes + self.vertex_labels.nbytes + places

    @property
    def counts(self) -> Counts:
        """For `gpu_engine.footprint`; on a device it may also be wide, which an engine tells."""
        return Counts(self.n_vertices, self.n_edges, self.n_arcs, infinite=self.n_infinite > 0)

    def edge_tail(self, rows: EdgeArray) -> VertexArray:
        """int32[k]: the tails of these edge rows."""
        return self._tails(rows, self.edge_arc[rows])

    def edge_head(self, rows: EdgeArray) -> VertexArray:
        """int32[k]: the heads of these edge rows."""
        arcs = self.edge_arc[rows]
        return self._end(rows, arcs, arcs)

    def edge_ends(self, rows: EdgeArray) -> tuple[VertexArray, VertexArray]:
        """int32[k] each: the tails and the heads of these edge rows."""
        arcs = self.edge_arc[rows]
        return self._tails(rows, arcs), self._end(rows, arcs, arcs)

    def _tails(self, rows: EdgeArray, arcs: ArcArray) -> VertexArray:
        return self._end(rows, arcs, self.reverse_arc[arcs] if self.n_arcs else arcs)

    def _end(self, rows: EdgeArray, arcs: ArcArray, toward: ArcArray) -> VertexArray:
        """The vertices that these arcs lead ``toward``, and of loops, which have no arcs, their own."""
        ends = self.head[toward] if self.n_arcs else np.zeros(len(arcs), np.int32)
        if len(self._loops):
            loops = np.flatnonzero(arcs < 0)
            ends[loops] = self._loop_vertex[np.searchsorted(self._loops, rows[loops])]
        return ends

    def is_undirected(self, rows: EdgeArray) -> BoolArray:
        """bool[k]: which of these edge rows are undirected."""
        if len(self.undirected) == 1:
            return np.broadcast_to(self.undirected, rows.shape)
        return self.undirected[rows]

    def arc_capacity(self) -> UnitArray:
        """int64[arcs], computed anew from the edges: O(m) time, 8 bytes an arc."""
        return sum_arc_capacity(
            self.n_arcs,
            self.edge_arc,
            self.reverse_arc,
            self.capacity,
            self.undirected,
            INFINITE,
            INFINITE_RESIDUAL,
        )

    def infinite_arcs(self) -> BoolArray:
        """bool[arcs]: which arcs an infinite edge lies on; empty if there is no such edge. O(m)."""
        if not self.n_infinite:
            return np.empty(0, np.bool_)
        found = np.zeros(self.n_arcs, np.bool_)
        rows = np.flatnonzero((self.capacity == INFINITE) & (self.edge_arc >= 0))
        found[self.edge_arc[rows]] = True
        found[self.reverse_arc[self.edge_arc[rows[self.is_undirected(rows)]]]] = True
        return found

    @cached_property
    def n_infinite(self) -> int:
        """How many edges have no limit."""
        return int((self.capacity == INFINITE).sum())

    @cached_property
    def finite_total(self) -> int:
        """Exact sum of the finite capacities, an undirected edge counted twice."""
        return exact_total(self.capacity, self.undirected)

    def check_update(self, rows: EdgeArray, capacity: UnitArray) -> "CapacityChange":
        """The effect of an update of distinct rows; raises `CapacityOverflow` before anything changes. O(k)."""
        change = CapacityChange.of(survey_change(rows, capacity, self.capacity, self.undirected, INFINITE))
        self._check_total(self.finite_total + change.total, rows, capacity)
        return change

    def set_capacity(self, rows: EdgeArray, capacity: UnitArray) -> None:
        """Store new capacities of distinct edge rows. O(k). Flow states are the engine's to adjust."""
        self.store(rows, capacity, self.check_update(rows, capacity))

    def store(self, rows: EdgeArray, capacity: UnitArray, change: "CapacityChange") -> None:
        """`set_capacity` where `check_update` has just said what changes. O(k)."""
        self.n_infinite += change.to_infinite
        self.finite_total += change.total
        self.capacity[rows] = capacity

    def exchange(self, rows: EdgeArray, capacity: UnitArray) -> "CapacityChange":
        """`check_update` and `set_capacity` in one pass. What touches infinite edges is told but not stored."""
        total, before = self.finite_total, np.empty(len(rows), np.int64)
        sums = swap_capacity(rows, capacity, self.capacity, before, self.undirected, INFINITE)
        change = CapacityChange.of(sums)
        try:
            self._check_total(total + change.total, rows, capacity)
        except CapacityOverflow:
            self.capacity[rows] = before
            raise
        if change.touches_infinite:
            self.capacity[rows] = before
        else:
            self.finite_total = total + change.total
        return change

    def _check_total(self, total: int, rows: EdgeArray, capacity: UnitArray) -> None:
        if total > MAX_TOTAL:
            largest = self.edge_ids.of(rows[np.argsort(capacity)[::-1][:10]])
            raise CapacityOverflow(
                f"the capacities would add up to {total} units; the limit is {MAX_TOTAL}", edges=largest
            )

    def fork(self) -> "Network":
        """The same network with capacities of its own. All else, which never changes, is shared. O(m)."""
        other = copy.copy(self)
        other.capacity, other.spare = self.capacity.copy(), Spare()
        return other

    def multiplied(self, by: int) -> "Network":
        """The same network with every limit multiplied, ``by`` is 1 or more. Raises `CapacityOverflow`. O(m)."""
        total = self.finite_total * by
        if total > MAX_TOTAL:
            raise CapacityOverflow(f"multiplied by {by} the capacities add up to more than {MAX_TOTAL} units")
        other = self.fork()
        np.multiply(self.capacity, by, out=other.capacity, where=self.capacity != INFINITE)
        other.finite_total = total
        return other

    def edge_list(self) -> EdgeList:
        """The network as columns again, with its present capacities. O(m)."""
        rows = np.arange(self.n_edges)
        undirected = bool(self.undirected[0]) if len(self.undirected) == 1 else self.undirected
        return EdgeList(
            n_vertices=self.n_vertices,
            tail=self.edge_tail(rows),
            head=self.edge_head(rows),
            capacity=self.capacity,
            undirected=undirected,
            decimals=self.decimals,
            edge_ids=self.edge_ids.column,
            vertex_labels=self.vertex_labels.column,
            source=self.source,
            sink=self.sink,
            coordinates=self.coordinates,
        )


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """The effect of an update on the network's sums."""

    total: int
    """Change of the finite total in units."""
    to_infinite: int
    """Edges that become infinite, less those that cease to be."""
    touches_infinite: bool
    """Some edge becomes infinite or ceases to be."""

    @classmethod
    def of(cls, sums: tuple[int, int, int, bool]) -> "CapacityChange":
        """From what `gpu_engine.networks.links.survey_change` adds up."""
        high, low, to_infinite, touches = sums
        return cls((high << 32) + low, to_infinite, touches)
