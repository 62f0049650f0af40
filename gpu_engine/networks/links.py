"""Edges to links to bidirectional CSR, in O(n + m) by two counting sorts.

Every edge that is no self-loop contributes two half-arcs, ``2e`` (tail to head) and ``2e + 1`` (head to
tail). Sorting the half-arcs by (from, to) makes those of one ordered vertex pair neighbours; each run of
equal pairs becomes one arc. Both runs of a vertex pair contain the same edges, so the arcs of a link pair up.
"""

import numpy as np
from numba import njit

from gpu_engine.types import ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray


@njit(cache=True, nogil=True)
def build_csr(
    n_vertices: int, tail: VertexArray, head: VertexArray
) -> tuple[ArcArray, VertexArray, ArcArray, ArcArray]:
    """Return ``row_offsets`` int32[n+1], ``head``, ``reverse_arc`` int32[arcs] and ``edge_arc`` int32[m].

    Arcs are sorted by tail, then head. ``edge_arc[e]`` is the arc from the edge's tail to its head, -1 for a
    self-loop. Scratch: 20 bytes an edge.
    """
    m = len(tail)
    by_to, starts = _sort_halves_by_to(n_vertices, tail, head)
    by_from = np.empty(len(by_to), np.int64)
    place = starts.copy()  # every vertex has as many half-arcs out as in
    for half in by_to:
        edge = half >> 1
        vertex = head[edge] if half & 1 else tail[edge]
        by_from[place[vertex]] = half
        place[vertex] += 1

    row_offsets = np.zeros(n_vertices + 1, np.int32)
    half_arc = np.empty(2 * m, np.int32)
    arc_head = np.empty(len(by_from), np.int32)
    arcs = 0
    for vertex in range(n_vertices):
        last = -1
        for i in range(starts[vertex], starts[vertex + 1]):
            half = by_from[i]
            edge = half >> 1
            to = tail[edge] if half & 1 else head[edge]
            if to != last:
                arc_head[arcs] = to
                arcs += 1
                last = to
            half_arc[half] = arcs - 1
        row_offsets[vertex + 1] = arcs

    reverse_arc = np.empty(arcs, np.int32)
    edge_arc = np.full(m, -1, np.int32)
    for edge in range(m):
        if tail[edge] != head[edge]:
            forward, backward = half_arc[2 * edge], half_arc[2 * edge + 1]
            edge_arc[edge] = forward
            reverse_arc[forward] = backward
            reverse_arc[backward] = forward
    return row_offsets, arc_head[:arcs].copy(), reverse_arc, edge_arc


@njit(cache=True, nogil=True)
def _sort_halves_by_to(n_vertices: int, tail: VertexArray, head: VertexArray) -> tuple[UnitArray, UnitArray]:
    """Half-arcs ordered by their far end, and the bucket starts int64[n+1]."""
    starts = np.zeros(n_vertices + 1, np.int64)
    for edge in range(len(tail)):
        if tail[edge] != head[edge]:
            starts[tail[edge] + 1] += 1
            starts[head[edge] + 1] += 1
    for vertex in range(n_vertices):
        starts[vertex + 1] += starts[vertex]
    place = starts.copy()
    halves = np.empty(starts[n_vertices], np.int64)
    for edge in range(len(tail)):
        if tail[edge] != head[edge]:
            halves[place[head[edge]]] = 2 * edge
            place[head[edge]] += 1
            halves[place[tail[edge]]] = 2 * edge + 1
            place[tail[edge]] += 1
    return halves, starts


@njit(cache=True, nogil=True)
def sum_arc_capacity(
    n_arcs: int,
    edge_arc: ArcArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    undirected: BoolArray,
    infinite: int,
    infinite_residual: int,
) -> UnitArray:
    """Capacity of each arc, int64[arcs]: the sum of its edges, or ``infinite_residual`` if one is infinite.

    ``undirected`` is bool[m], or bool[1] when all edges agree.
    """
    total = np.zeros(n_arcs, np.int64)
    same = len(undirected) == 1
    for edge in range(len(edge_arc)):
        arc = edge_arc[edge]
        if arc < 0:
            continue
        both = undirected[0] if same else undirected[edge]
        units = capacity[edge]
        if units == infinite:
            total[arc] = infinite_residual
            if both:
                total[reverse_arc[arc]] = infinite_residual
            continue
        if total[arc] < infinite_residual:
            total[arc] += units
        if both and total[reverse_arc[arc]] < infinite_residual:
            total[reverse_arc[arc]] += units
    return total


@njit(cache=True, nogil=True)
def shift_arc_capacity(
    rows: EdgeArray,
    new: UnitArray,
    old: UnitArray,
    edge_arc: ArcArray,
    undirected: BoolArray,
    reverse_arc: ArcArray,
    arc_capacity: UnitArray,
    infinite_residual: int,
) -> None:
    """Bring what `sum_arc_capacity` returned up to new finite capacities of distinct rows. ``old`` int64[m]. O(k)."""
    for i in range(len(rows)):
        row = rows[i]
        arc = edge_arc[row]
        if arc < 0:
            continue
        change = new[i] - old[row]
        if arc_capacity[arc] < infinite_residual:
            arc_capacity[arc] += change
        if undirected[row if len(undirected) > 1 else 0] and arc_capacity[reverse_arc[arc]] < infinite_residual:
            arc_capacity[reverse_arc[arc]] += change


@njit(cache=True, nogil=True)
def survey_change(
    rows: EdgeArray, new: UnitArray, old: UnitArray, undirected: BoolArray, infinite: int
) -> tuple[int, int, int, bool]:
    """Change of the finite total as (high, low) 32-bit sums, of the count of infinite edges, and whether any edge
    becomes or ceases to be infinite. ``old`` int64[m]; exact for up to 2**29 rows. O(k).
    """
    high, low, to_infinite, touches = 0, 0, 0, False
    for i in range(len(rows)):
        before, after = old[rows[i]], new[i]
        if before == after:
            continue
        if before == infinite:
            to_infinite -= 1
            touches = True
            before = 0
        if after == infinite:
            to_infinite += 1
            touches = True
            after = 0
        times = 2 if undirected[rows[i] if len(undirected) > 1 else 0] else 1
        high += times * ((after >> 32) - (before >> 32))
        low += times * ((after & 0xFFFFFFFF) - (before & 0xFFFFFFFF))
    return high, low, to_infinite, touches


@njit(cache=True, nogil=True)
def swap_capacity(
    rows: EdgeArray, new: UnitArray, capacity: UnitArray, before: UnitArray, undirected: BoolArray, infinite: int
) -> tuple[int, int, int, bool]:
    """Store ``new`` in ``capacity`` and what was there in ``before``; returns what `survey_change` does.

    One pass: of a large network each row is a cache miss.
    """
    for i in range(len(rows)):
        before[i] = capacity[rows[i]]
        capacity[rows[i]] = new[i]
    places = np.arange(len(rows))
    if len(undirected) > 1:
        return survey_change(places, new, before, undirected[rows], infinite)
    return survey_change(places, new, before, undirected, infinite)
