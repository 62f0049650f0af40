"""The maximum flow at one factor after the other, each solved between the cuts that are known on both sides of it.

Where cuts only grow with the factor, or only shrink (`gpu_engine.checks.nested`), a vertex that is on the source side
at both ends of a span of factors is there all along it, and so is one on the sink side. Both sides are drawn together,
and a flow in what is left of the network tells the value: its vertices are those of one span alone, so all spans at
once have no more than the network. Gallo, Grigoriadis, Tarjan, "A fast parametric maximum flow algorithm", SIAM Journal
on Computing 18 (1989), section 3.3.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.checks.nested import Way, are_nested, way_of_cuts
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.free import free_vertices
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.parametric.curve import Line, Point
from gpu_engine.parametric.probes import Prober, overflow
from gpu_engine.types import INFINITE, MAX_TOTAL, ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray

IN_SOURCE: Final = -2
IN_SINK: Final = -1


class Span(NamedTuple):
    """Factors between two that were asked for."""

    first: Fraction
    last: Fraction
    vertices: VertexArray
    """Those that are on one side at ``first`` and on the other at ``last``."""
    rows: EdgeArray
    """Edges with these vertices, and perhaps others."""
    paid: Line
    """What the cut costs that has all these vertices on the sink side."""


class Left(NamedTuple):
    """What is left of a network: edges between vertices, and what leads to and from the two sides around them."""

    rows: EdgeArray
    tail: VertexArray
    head: VertexArray
    capacity: UnitArray
    sums: UnitArray
    """int64[4, k]: for each vertex what leads to it from the source side, as it is and to be scaled, and the same of
    what leads from it to the sink side."""


@dataclass(eq=False, slots=True)
class SpanProber:
    """Asks a `Prober` for the first two factors, and between these solves in spans where cuts only grow or shrink.

    `gpu_engine.parametric.curve` asks: first for both ends, and then never to the left of what it is through with. One
    thread at a time.
    """

    prober: Prober
    _way: Way = field(init=False)
    _ends: list[tuple[Point, BoolArray]] = field(default_factory=list)
    _waiting: list[Span] = field(default_factory=list)
    """From right to left."""
    _place: VertexArray = field(init=False)
    """int32[n]: on which side each vertex is for the last span of those that wait."""

    def __post_init__(self) -> None:
        prober = self.prober
        role = free_vertices(prober.network, prober.terminals).role
        supply, demand = prober.scaled.supply, prober.scaled.demand
        self._way = way_of_cuts(prober.network, role, prober.rows, supply=supply, demand=demand)

    def __call__(self, factor: Fraction) -> Point:
        """As `Prober.__call__`, and raises RuntimeError for cuts that are not as they must be. O(n + m), and a solve in
        the span."""
        while self._waiting and self._waiting[-1].last <= factor:
            self._place[self._waiting.pop().vertices] = self._passed
        if self._waiting and self._waiting[-1].first < factor:
            return self._between(self._waiting.pop(), factor)
        point, side = self.prober.ask(factor)
        if self._way is not Way.EITHER and len(self._ends) < 2:
            self._ends.append((point, side))
            if len(self._ends) == 2:
                self._begin(*sorted(self._ends, key=lambda end: end[0].factor))
        return point

    @property
    def _passed(self) -> int:
        """Where the vertices of a span are at larger factors."""
        return IN_SOURCE if self._way is Way.GROWS else IN_SINK

    @property
    def _ahead(self) -> int:
        """Where they are at lesser ones."""
        return IN_SINK if self._way is Way.GROWS else IN_SOURCE

    def _begin(self, first: tuple[Point, BoolArray], last: tuple[Point, BoolArray]) -> None:
        (at, before), (to, after) = first, last
        self._must_be_nested(before, after)
        vertices = np.flatnonzero(before != after).astype(np.int32)
        self._place = np.where(before, IN_SOURCE, IN_SINK).astype(np.int32)
        least = at.line if self._way is Way.GROWS else to.line
        rows = np.arange(self.prober.network.n_edges)
        self._waiting.append(Span(at.factor, to.factor, vertices, rows, least))

    def _must_be_nested(self, before: BoolArray, after: BoolArray) -> None:
        if not are_nested(self._way, before, after):
            raise RuntimeError("minimum cuts at two factors are not within each other")

    def _between(self, span: Span, factor: Fraction) -> Point:
        left = self._left(span)
        value, on_source_side = self._solved(span, left, factor)
        side = self._place == IN_SOURCE
        side[span.vertices] = on_source_side
        point = self.prober.point(factor, value, side)
        near, far = (span.vertices[on_source_side], span.paid), (span.vertices[~on_source_side], point.line)
        (before, paid_before), (after, paid_after) = (near, far) if self._way is Way.GROWS else (far, near)
        self._place[span.vertices] = self._ahead
        if len(after):
            is_after = np.zeros(len(side), np.bool_)
            is_after[after] = True
            rows = left.rows[np.logical_or(*(is_after[end] for end in self.prober.network.edge_ends(left.rows)))]
            self._waiting.append(Span(factor, span.last, after, rows, paid_after))
        if len(before):
            self._waiting.append(Span(span.first, factor, before, left.rows, paid_before))
        return point

    def _left(self, span: Span) -> Left:
        """O(n + rows)."""
        prober, k = self.prober, len(span.vertices)
        network, ends, place = prober.network, prober.terminals, self._place
        place[span.vertices] = np.arange(k)
        arcs = network.edge_arc, network.head, network.reverse_arc
        left = Left(*left_of(span.rows, place, k, *arcs, network.capacity, network.undirected, prober.is_scaled))
        for at, vertices, caps, is_scaled in (
            (0, ends.sources, ends.supply, prober.scaled.supply),
            (2, ends.sinks, ends.demand, prober.scaled.demand),
        ):
            within = place[vertices] >= 0
            left.sums[at + is_scaled, place[vertices[within]]] += caps[within]
        return left

    def _solved(self, span: Span, left: Left, factor: Fraction) -> tuple[Fraction, BoolArray]:
        """The value of the whole network, and which vertices of the span are on the source side of the nearest cut."""
        p, q, k = factor.numerator, factor.denominator, len(span.vertices)
        finite = left.capacity[left.capacity != INFINITE]
        as_it_is, scaled = (int(left.sums[at::2].sum()) for at in (0, 1))
        if (int(finite.sum()) + as_it_is) * q + scaled * p > MAX_TOTAL:
            raise overflow(factor)
        enters, leaves = (left.sums[at] * q + left.sums[at + 1] * p for at in (0, 2))
        around = Line(span.paid.constant - int(left.sums[0].sum()), span.paid.rate - int(left.sums[1].sum()))
        flow, side = through_one(enters, leaves) if k == 1 else self._flow(left, q, enters, leaves)
        return Fraction(flow, q) + around.at(factor), side

    def _flow(self, left: Left, q: int, enters: UnitArray, leaves: UnitArray) -> tuple[int, BoolArray]:
        """The flow through what is left, proven."""
        k = len(enters)
        capacity = np.where(left.capacity == INFINITE, INFINITE, left.capacity * q)
        source, sink, each = np.full(k, k, np.int32), np.full(k, k + 1, np.int32), np.arange(k, dtype=np.int32)
        tail, head = np.concatenate((left.tail, source, each)), np.concatenate((left.head, each, sink))
        network = Network(EdgeList(k + 2, tail, head, np.concatenate((capacity, enters, leaves))))
        engine, ends = CpuEngine(network, self.prober.room), Terminals.of([k], [k + 1])
        state = engine.open(ends)
        flow = self.prober.solve(engine, state, ends)
        return flow, engine.cut(state).source_side[:k]


def through_one(enters: UnitArray, leaves: UnitArray) -> tuple[int, BoolArray]:
    """The flow through one vertex, which is on the source side of the nearest cut if not all that enters can leave."""
    return min(int(enters[0]), int(leaves[0])), enters > leaves


@njit(cache=True, nogil=True)
def left_of(
    rows: EdgeArray,
    place: VertexArray,
    k: int,
    edge_arc: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    undirected: BoolArray,
    scaled: BoolArray,
) -> tuple[EdgeArray, VertexArray, VertexArray, UnitArray, UnitArray]:
    """The columns of `Left`, of these edges, where ``place`` int32[n] is one of k vertices, or a side.

    ``undirected`` and ``scaled`` are bool[m], or bool[1] when all edges agree. O(k + rows), and O(m) to see whether any
    edge is undirected.
    """
    kept, sums = np.empty(len(rows), np.int64), np.zeros((4, k), np.int64)
    most = len(rows) * (2 if undirected.any() else 1)
    tails, heads, amounts = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int64)
    n_kept, count = 0, 0
    for row in rows:
        arc = edge_arc[row]
        if arc < 0 or capacity[row] == 0:
            continue
        x, y = place[head[reverse_arc[arc]]], place[head[arc]]
        if x < 0 and y < 0:
            continue
        kept[n_kept] = row
        n_kept += 1
        is_scaled = 1 if scaled[0 if len(scaled) == 1 else row] else 0
        for back in range(2 if undirected[0 if len(undirected) == 1 else row] else 1):
            v, w = (y, x) if back else (x, y)
            if v >= 0 and w >= 0:
                tails[count], heads[count], amounts[count] = v, w, capacity[row]
                count += 1
            elif v == IN_SOURCE:
                sums[is_scaled, w] += capacity[row]
            elif w == IN_SINK:
                sums[2 + is_scaled, v] += capacity[row]
    return kept[:n_kept].copy(), tails[:count].copy(), heads[:count].copy(), amounts[:count].copy(), sums
