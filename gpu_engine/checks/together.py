"""Proof that between two factors no minimum cut divides the vertices that were drawn together.

A capacity is a line in the factor, and so is what a cut costs. Let a flow be given at a factor that keeps all
capacities, though vertices may have excess or lack some. A cut X, which holds the source, costs what the flow leaves
of its arcs and what flows across it; the latter is what arrives at the sink and stays in the other vertices beyond X.
So X costs B, which is what arrives at the sink less all that vertices lack, plus what is left of its arcs, plus the
excess of vertices beyond it, plus what vertices in it lack. If some cut costs B, then B is the least, and its line has
the value at this factor.

At a factor between two such ends let X be a minimum cut. Its line is there no higher than that of the minimum cut of
an end, and at that end no lower; so at the other end it is no higher either, as both are lines. With the gap of an end,
what the line of the other end has there above B: X leaves no more than the gap of the end at its arcs, and in vertices.
Hence an arc with more left does not lead from X to what lies beyond it; a vertex with more excess lies in X; one that
lacks more lies beyond it. So vertices that such arcs lead to from one another are on one side of X, and so are those
that they lead to from the source, or from which they lead to the sink.

Where cuts only grow with the factor, or only shrink (`gpu_engine.checks.nested`), some minimum cut also lies between
the cuts of both ends.
"""

from fractions import Fraction
from typing import Final, NamedTuple, Protocol

import numpy as np
from numba import njit

from gpu_engine.checks.nested import Way
from gpu_engine.types import INFINITE_RESIDUAL, ArcArray, BoolArray, UnitArray, VertexArray

SOURCE: Final = 0
SINK: Final = 1


class Line(Protocol):
    """The capacity of a cut, as a line in the factor."""

    @property
    def constant(self) -> int:
        """The cost at factor 0, in units."""

    @property
    def rate(self) -> int:
        """By how many units the cost rises with the factor."""

    def at(self, factor: Fraction) -> Fraction:
        """The cost at this factor, in units."""


class End(NamedTuple):
    """A flow and a minimum cut at one factor ``p / q``."""

    factor: Fraction
    value: Fraction
    line: Line
    """The line of the cut ``side``."""
    flow: UnitArray
    """int64[arcs]: the flow, multiplied by q; negative on arcs against which it runs."""
    side: BoolArray
    """bool[n]: the source side of a minimum cut."""


class Rows(NamedTuple):
    """A bidirectional CSR whose capacities are lines, 0 the source and 1 the sink."""

    row_offsets: ArcArray
    head: VertexArray
    reverse_arc: ArcArray
    constant: UnitArray
    rate: UnitArray


class Drawn(NamedTuple):
    """A network, and the smaller one in which some of its vertices are contracted."""

    label: VertexArray
    """int32[n]: the vertex of the smaller network that each vertex becomes."""
    into: ArcArray
    """int32[arcs]: the arc of the smaller network that each arc becomes a part of, -1 for none."""
    rows: Rows
    """The columns of the smaller network."""


def together_failures(rows: Rows, first: End, last: End, way: Way, drawn: Drawn) -> list[str]:
    """What is wrong with a contraction; nothing if minimum cuts between the ends are those of the contracted network,
    at the same cost. O(n + arcs)."""
    found, open_arcs = [], np.zeros(len(rows.head), np.bool_)
    in_source, in_sink = known_sides(way, first.side, last.side)
    for end, other in ((first, last), (last, first)):
        p, q = end.factor.numerator, end.factor.denominator
        least, gap = end.value * q, (other.line.at(end.factor) - end.value) * q
        if not least.denominator == gap.denominator == 1:
            return [f"at {end.factor} a flow of {end.value}"]
        bound, constant, rate = _bounded(rows, end.flow, end.side, p, q, int(gap), open_arcs, in_source, in_sink)
        if bound != least or end.line.at(end.factor) != end.value:
            found.append(f"at {end.factor} the flow shows {bound} of {least}")
        if (constant, rate) != (end.line.constant, end.line.rate):
            found.append(f"at {end.factor} the cut has another line")
    apart = _apart(rows, drawn.label, open_arcs, in_source, in_sink)
    if apart:
        found.append(f"{apart} vertices are drawn to others without a proof")
    if not _adds_up(rows, drawn):
        found.append("arcs of the network made are not the sums of what they are made of")
    return found


def known_sides(way: Way, before: BoolArray, after: BoolArray) -> tuple[BoolArray, BoolArray]:
    """bool[n] each: vertices in some minimum cut at any factor between these of its ends, and those beyond it."""
    if way is Way.EITHER:
        return np.zeros_like(before), np.zeros_like(before)
    less, more = (before, after) if way is Way.GROWS else (after, before)
    return less.copy(), ~more


@njit(cache=True, nogil=True)
def _bounded(
    rows: Rows,
    flow: UnitArray,
    side: BoolArray,
    p: int,
    q: int,
    gap: int,
    open_arcs: BoolArray,
    in_source: BoolArray,
    in_sink: BoolArray,
) -> tuple[int, int, int]:
    """What each cut costs at least by a flow, -1 if it is none, and the line of the cut ``side``. Arcs that are not cut
    are marked, and vertices whose side is known."""
    bound, constant, rate = 0, 0, 0
    in_source[SOURCE] = in_sink[SINK] = True
    if not side[SOURCE] or side[SINK]:
        return -1, 0, 0
    for v in range(len(side)):
        stays = 0
        for a in range(rows.row_offsets[v], rows.row_offsets[v + 1]):
            stays -= flow[a]
            if flow[a] != -flow[rows.reverse_arc[a]]:
                return -1, 0, 0
            if rows.constant[a] >= INFINITE_RESIDUAL:
                left = INFINITE_RESIDUAL
            else:
                left = rows.constant[a] * q + rows.rate[a] * p - flow[a]
            if left < 0:
                return -1, 0, 0
            if left > gap:
                open_arcs[a] = True
            if side[v] and not side[rows.head[a]]:
                constant += rows.constant[a]
                rate += rows.rate[a]
        if v == SINK:
            bound += stays
        elif v != SOURCE:
            bound += min(stays, 0)
            in_source[v] |= stays > gap
            in_sink[v] |= -stays > gap
    return bound, constant, rate


@njit(cache=True, nogil=True)
def _apart(
    rows: Rows,
    label: VertexArray,
    open_arcs: BoolArray,
    in_source: BoolArray,
    in_sink: BoolArray,
) -> int:
    """How many vertices are not reached from the first one of their label by open arcs that stay within it, or not the
    other way round. Those with the label of the source are reached from it, or known to lie there, and so at the
    sink."""
    n = len(label)
    missing, queue = 0, np.empty(n, np.int32)
    for behind in range(2):
        reached, begun = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        for root in range(n):
            c = label[root]
            if c < 0 or c >= n:
                return n
            if c > SINK:
                starts = not begun[c]
            elif c == SOURCE:
                starts = behind == 1 or in_source[root]
            else:
                starts = behind == 0 or in_sink[root]
            begun[c] = True
            if reached[root] or not starts:
                continue
            reached[root] = True
            queue[0] = root
            i, end = 0, 1
            while i < end:
                v = queue[i]
                i += 1
                for a in range(rows.row_offsets[v], rows.row_offsets[v + 1]):
                    w = rows.head[a]
                    if reached[w] or label[w] != c or not open_arcs[rows.reverse_arc[a] if behind == 1 else a]:
                        continue
                    reached[w] = True
                    queue[end] = w
                    end += 1
        for v in range(n):
            missing += not reached[v]
    return missing


@njit(cache=True, nogil=True)
def _adds_up(rows: Rows, drawn: Drawn) -> bool:
    """Whether each arc of the network made joins the labels of those that it is made of, and carries their sum."""
    made = drawn.rows
    arcs, k = len(made.head), len(made.row_offsets) - 1
    constant, rate = np.zeros(arcs, np.int64), np.zeros(arcs, np.int64)
    if drawn.label[SOURCE] != SOURCE or drawn.label[SINK] != SINK:
        return False
    for v in range(len(drawn.label)):
        x = drawn.label[v]
        if x < 0 or x >= k:
            return False
        for a in range(rows.row_offsets[v], rows.row_offsets[v + 1]):
            i = drawn.into[a]
            y = drawn.label[rows.head[a]]
            if (i < 0) != (x == y):
                return False
            if i < 0:
                continue
            if i >= arcs or made.head[i] != y or made.head[made.reverse_arc[i]] != x:
                return False
            constant[i] = min(constant[i] + rows.constant[a], INFINITE_RESIDUAL)
            rate[i] += rows.rate[a]
    for x in range(k):
        for i in range(made.row_offsets[x], made.row_offsets[x + 1]):
            if made.head[made.reverse_arc[i]] != x or constant[i] != made.constant[i] or rate[i] != made.rate[i]:
                return False
    return True
