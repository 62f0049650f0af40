"""The certificate of a repaired flow state, in proportion to what has changed since the last one.

`checks.certificate.certify` proves the five conditions of a state from nothing, in O(n + m). Once that is done, a
condition can fail only where something has changed: at an edge with a new capacity, at an arc whose residual is
another, or at a vertex whose excess or side is another. An `Audit` keeps what was proven last and is told what the
engine changes; `Audit.certificate` reads the present arrays and checks all five conditions there:

- each changed edge and every arc of each changed vertex: residuals are >= 0 and add up (1), and none leads from S to
  T unless it is saturated (4);
- each changed vertex: its excess matches the flow over its row (2), its side fits a free vertex (3) and its excess
  (5). A free vertex may send or take any amount, so its excess is no condition and its row, often a very long one,
  is not read: each of its arcs that changed is seen from the other end, or as a changed edge;
- the sum of all excesses is what it was: if the flow on an arc to some vertex had changed of which the audit was not
  told, the excesses of those of which it was told would not add up (2).

The capacity of the cut is kept up: by each new capacity of an edge that crosses the cut, and by each vertex that
changes sides. The audit has its own copy of the sides and excesses, and takes nothing else from the engine than the
list of places to look at. Whether that list is complete is what a full check, now and then, shows.
"""

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.checks.certificate import Certificate, failures
from gpu_engine.networks.free import ORDINARY, SOURCE, free_roles
from gpu_engine.networks.growing import with_zeros
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray

SHARE: Final = 16
"""An audit gives up once it has noted more edges and vertices than one in this many of all vertices: a full check costs
no more."""

_NOTHING: EdgeArray = np.empty(0, np.int64)


@dataclass(eq=False, slots=True)
class Audit:
    """What was proven of one flow state, and where it has changed since. 10 bytes a vertex."""

    role: NDArray[np.int8]
    """int8[n]: ordinary and free vertices, found anew from the network when the audit began."""
    excess: UnitArray
    source_side: BoolArray
    paid: int
    """Capacity of the cut: its arcs, and the caps of sources in T and of sinks in S."""
    rows: list[EdgeArray] = field(default_factory=list)
    vertices: list[VertexArray] = field(default_factory=list)
    n_noted: int = 0

    @classmethod
    def of(
        cls, network: Network, terminals: Terminals, excess: UnitArray, source_side: BoolArray, proven: Certificate
    ) -> "Audit":
        """The audit of a state that a full check has just proven. O(n), and O(n + m) if an edge is infinite."""
        return cls(free_roles(network, terminals), excess.copy(), source_side.copy(), proven.value)

    def copy(self) -> "Audit":
        """An audit that goes on from the same proof. O(n)."""
        excess, source_side = self.excess.copy(), self.source_side.copy()
        return replace(self, excess=excess, source_side=source_side, rows=[*self.rows], vertices=[*self.vertices])

    def grow(self, n_more: int) -> None:
        """The network has so many more vertices, and edges without a capacity: what was proven holds. O(n)."""
        self.role, self.excess = with_zeros(self.role, n_more), with_zeros(self.excess, n_more)
        self.source_side = with_zeros(self.source_side, n_more)

    @property
    def noted_nbytes(self) -> int:
        """Bytes that the notes of changes take, beside the columns that the audit always has."""
        return 8 * self.n_noted

    @property
    def is_full(self) -> bool:
        """Whether it would have to look at so much that a full check costs no more."""
        return SHARE * self.n_noted > len(self.role)

    def note_update(self, rows: EdgeArray, new: UnitArray, network: Network) -> None:
        """The edges ``rows`` int64[k] are about to get the finite capacities ``new`` int64[k]. O(k)."""
        if not self.is_full:
            columns = network.capacity, network.edge_arc, network.undirected, network.head, network.reverse_arc
            self.paid += _change_across(rows, new, *columns, self.source_side)
            self.rows.append(rows)
            self.n_noted += len(rows)

    def note(self, vertices: VertexArray) -> None:
        """Excess, side or an arc of each of ``vertices`` int32[...] may have changed. Keeps the array."""
        if len(vertices) and not self.is_full:
            self.vertices.append(vertices)
            self.n_noted += len(vertices)

    def certificate(
        self,
        network: Network,
        terminals: Terminals,
        capacity: UnitArray,
        residual: UnitArray,
        excess: UnitArray,
        source_side: BoolArray,
    ) -> Certificate:
        """Check what was noted; ``capacity`` int64[arcs], the others as `checks.certificate.certify` has them.

        The audit goes on from the state as it is now. O(edges noted and arcs of vertices noted). An invalid outcome
        may also mean that something was not noted: a full check decides.
        """
        rows = np.concatenate(self.rows) if self.rows else _NOTHING
        vertices = np.concatenate(self.vertices) if self.vertices else _NOTHING.astype(np.int32)
        first = np.full(5, -1, np.int64)
        gained, drift = _check(
            rows,
            vertices,
            network.edge_arc,
            network.row_offsets,
            network.head,
            network.reverse_arc,
            capacity,
            residual,
            excess,
            source_side,
            (terminals.sources, terminals.supply),
            (terminals.sinks, terminals.demand),
            self.role,
            self.excess,
            self.source_side,
            first,
        )
        self.rows, self.vertices, self.n_noted = [], [], 0
        self.paid += gained
        found = failures(first.tolist())
        if drift:
            found += (f"the excesses add up to {drift} units more than they did",)
        return Certificate(not found, self.paid, self.paid, found, complete=False)


@njit(cache=True, nogil=True)
def _change_across(
    rows: EdgeArray,
    new: UnitArray,
    old: UnitArray,
    edge_arc: ArcArray,
    undirected: BoolArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    source_side: BoolArray,
) -> int:
    """By how much the capacity from S to T changes with that of ``rows``."""
    change = 0
    for i in range(len(rows)):
        a = edge_arc[rows[i]]
        if a < 0:
            continue
        tail_in_s, head_in_s = source_side[head[reverse_arc[a]]], source_side[head[a]]
        both_ways = undirected[rows[i] if len(undirected) > 1 else 0]
        if tail_in_s != head_in_s and (tail_in_s or both_ways):
            change += new[i] - old[rows[i]]
    return change


@njit(cache=True, nogil=True)
def _check(
    rows: EdgeArray,
    vertices: VertexArray,
    edge_arc: ArcArray,
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    residual: UnitArray,
    excess: UnitArray,
    source_side: BoolArray,
    supplies: tuple[VertexArray, UnitArray],
    demands: tuple[VertexArray, UnitArray],
    role: NDArray[np.int8],
    seen_excess: UnitArray,
    seen_side: BoolArray,
    first: UnitArray,
) -> tuple[int, int]:
    """The ends of ``rows`` and all of ``vertices``: see the module. ``first`` takes the first offender against each
    condition. Returns by how much what the cut pays and the sum of the excesses have changed."""
    gained, drift = 0, 0
    n_ends = 2 * len(rows)
    for i in range(n_ends + len(vertices)):
        if i < n_ends:
            a = edge_arc[rows[i // 2]]
            if a < 0:
                continue
            _check_arcs(a, a + 1, head, reverse_arc, capacity, residual, source_side, first)
            v = head[a] if i & 1 else head[reverse_arc[a]]
        else:
            v = vertices[i - n_ends]
        drift += excess[v] - seen_excess[v]
        seen_excess[v] = excess[v]
        supply, demand = _cap(supplies, v), _cap(demands, v)
        if seen_side[v] != source_side[v]:
            for a in range(row_offsets[v], row_offsets[v + 1]):
                gained += _gain(source_side[v], seen_side[head[a]], capacity[a], capacity[reverse_arc[a]])
            gained += (demand - supply) if source_side[v] else (supply - demand)
            seen_side[v] = source_side[v]
        if role[v] != ORDINARY:
            if first[2] < 0 and source_side[v] != (role[v] == SOURCE):
                first[2] = v
            continue
        arcs = row_offsets[v], row_offsets[v + 1]
        leaves = _check_arcs(*arcs, head, reverse_arc, capacity, residual, source_side, first)
        if supply - demand - leaves != excess[v] and first[1] < 0:
            first[1] = v
        if first[4] < 0 and ((source_side[v] and excess[v] < 0) or (not source_side[v] and excess[v] > 0)):
            first[4] = v
    return gained, drift


@njit(cache=True, nogil=True)
def _check_arcs(
    begin: int,
    end: int,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    residual: UnitArray,
    source_side: BoolArray,
    first: UnitArray,
) -> int:
    """Conditions 1 and 4 on these arcs and their reverses; what flows over them. A call for each arc takes ten times as
    long and more."""
    flows = 0
    for a in range(begin, end):
        r = reverse_arc[a]
        flows += capacity[a] - residual[a]
        if residual[a] < 0 or residual[r] < 0 or residual[a] + residual[r] != capacity[a] + capacity[r]:
            first[0] = a if first[0] < 0 else first[0]
        tail_in_s, head_in_s = source_side[head[r]], source_side[head[a]]
        if tail_in_s != head_in_s and residual[a if tail_in_s else r] != 0:
            first[3] = a if first[3] < 0 else first[3]
    return flows


@njit(cache=True, nogil=True)
def _gain(now_in_s: bool, other_in_s: bool, out: int, back: int) -> int:
    """What the cut pays more for a link when one end has come to S (``now_in_s``) or to T, ``out`` being the capacity
    from that end to the other."""
    if now_in_s:
        return -back if other_in_s else out
    return back if other_in_s else -out


@njit(cache=True, nogil=True)
def _cap(caps: tuple[VertexArray, UnitArray], v: int) -> int:
    """The finite cap of a vertex in columns that are sorted by vertex; else 0."""
    at, amounts = caps
    i = np.searchsorted(at, v)
    return amounts[i] if i < len(at) and at[i] == v and amounts[i] != INFINITE else 0
