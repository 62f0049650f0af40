"""Proof of a global minimum cut: the vertices join a set one by one, and no cut of less can leave any of them out.

The set begins with one vertex. A vertex may join if at least c units flow to it from those that have joined: straight
over arcs from them, or by a flow written out arc by arc. Take any cut with the first vertex on its source side and not
all vertices: let v be the first to join of those on the other side. All who joined before it are on the source side, so
the cut is as large as the flow to v. The least c of all that joined is then at most every such cut.

A vertex may also join if arcs from those that have joined carry no less to it than its own carry to the others, and all
that lead to it carry c units or more. For let v be such a one in the cut above. If it is alone on its side, the cut is
c units or more. Else the cut with v on the source side pays no more, as it need not pay for the arcs from those that
have joined and pays for others of v that lead to vertices that have not: and it has fewer vertices on the other side,
so that by induction it is as large as the least c (Padberg and Rinaldi 1990, section 2). Where edges are
directed the other half, cuts with the first vertex on the sink side, is shown in the network with all arcs turned.

Where edges are undirected, that need not be shown in one network. A cut that divides those that have joined costs the
least c or more, or a cut that does not divide them costs no more than it does; so those may be one vertex. And so may
two vertices that a link of c units or more joins; and v and u, where the link between them carries half or more of all
that leads to v, and that is c units or more: with v on the side of u no cut costs more but the one around v alone. If
several vertices go to u at once, one after the other does, as what binds the next one to u does not become less.
"""

import numpy as np
from numba import njit

from gpu_engine.checks.pairs import WRONG, Ledger
from gpu_engine.types import INFINITE_RESIDUAL, ArcArray, BoolArray, UnitArray, VertexArray


@njit(cache=True, nogil=True)
def flows_straight(
    row_offsets: ArcArray, head: VertexArray, reverse_arc: ArcArray, capacity: UnitArray, joined: BoolArray, v: int
) -> int:
    """The capacity of the arcs from vertices that have ``joined`` to v, at most `INFINITE_RESIDUAL`."""
    arrives = 0
    for a in range(row_offsets[v], row_offsets[v + 1]):
        if joined[head[a]]:
            arrives = min(arrives + min(capacity[reverse_arc[a]], INFINITE_RESIDUAL), INFINITE_RESIDUAL)
    return arrives


@njit(cache=True, nogil=True)
def clings(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    joined: BoolArray,
    v: int,
    least: int,
) -> bool:
    """Whether arcs from vertices that have ``joined`` carry to v what those to all others do, which have limits, or
    more; and whether all that lead to v carry ``least`` or more."""
    bound, leaves, arrives = 0, 0, 0
    for a in range(row_offsets[v], row_offsets[v + 1]):
        back = min(capacity[reverse_arc[a]], INFINITE_RESIDUAL)
        arrives = min(arrives + back, INFINITE_RESIDUAL)
        if joined[head[a]]:
            bound = min(bound + back, INFINITE_RESIDUAL)
        else:
            leaves = min(leaves + min(capacity[a], INFINITE_RESIDUAL), INFINITE_RESIDUAL)
    return not joined[v] and bound >= leaves and leaves < INFINITE_RESIDUAL and arrives >= least


@njit(cache=True, nogil=True)
def flows_to(
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    joined: BoolArray,
    v: int,
    arcs: ArcArray,
    units: UnitArray,
    ledger: Ledger,
) -> int:
    """How many units arrive at v from vertices that have ``joined``, by a feasible flow of ``units`` on ``arcs``;
    `WRONG` if it is no such flow."""
    good = not joined[v]
    for i in range(len(arcs)):
        a = arcs[i]
        good = good and 0 <= units[i] <= capacity[a] and not ledger.used[a]
        ledger.used[a] = True
        ledger.net[head[a]] += units[i]
        ledger.net[head[reverse_arc[a]]] -= units[i]
    arrives = ledger.net[v]
    for i in range(len(arcs)):
        for w in (head[arcs[i]], head[reverse_arc[arcs[i]]]):
            good = good and (w == v or ledger.net[w] == 0 or joined[w])
    for i in range(len(arcs)):
        a = arcs[i]
        ledger.used[a] = False
        ledger.net[head[a]] = 0
        ledger.net[head[reverse_arc[a]]] = 0
    return arrives if good else WRONG


@njit(cache=True, nogil=True)
def belong_together(
    row_offsets: ArcArray, head: VertexArray, capacity: UnitArray, into: VertexArray, least: int
) -> bool:
    """Whether each vertex may become one with that which ``into`` int32[n] names, if that is another: a link of
    ``least`` or more joins them; or one of half or more of what leads to the vertex, which is ``least`` or more.

    No arc counts for more than ``least``: of a vertex with such an arc to another one, the link that is less is less
    than half of all that leads to it then as well.
    """
    for v in range(len(into)):
        u = into[v]
        if u == v:
            continue
        bound, leads = 0, 0
        for a in range(row_offsets[v], row_offsets[v + 1]):
            units = min(capacity[a], least)
            leads = min(leads + units, INFINITE_RESIDUAL)
            if head[a] == u:
                bound = min(bound + units, INFINITE_RESIDUAL)
        if into[u] != u or (bound < least and (2 * bound < leads or leads < least)):
            return False
    return True


@njit(cache=True, nogil=True)
def drawn_together(
    row_offsets: ArcArray, head: VertexArray, capacity: UnitArray, group: VertexArray, count: int
) -> tuple[ArcArray, VertexArray, ArcArray, UnitArray]:
    """The rows of an undirected network in which all vertices of a ``group`` int32[n], 0 to ``count`` - 1, are one:
    offsets, heads in rising order, reverse arcs, and capacities, at most `INFINITE_RESIDUAL`. O(n + arcs + count)."""
    first = np.zeros(count + 1, np.int64)
    for v in range(len(group)):
        for a in range(row_offsets[v], row_offsets[v + 1]):
            if group[v] != group[head[a]] and capacity[a] > 0:
                first[group[v] + 1] += 1
    for z in range(count):
        first[z + 1] += first[z]
    end, tails, units = first[:count].copy(), np.empty(first[count], np.int32), np.empty(first[count], np.int64)
    for v in range(len(group)):
        for a in range(row_offsets[v], row_offsets[v + 1]):
            z = group[head[a]]
            if group[v] != z and capacity[a] > 0:
                tails[end[z]], units[end[z]] = group[v], capacity[a]
                end[z] += 1
    end, heads, sums = first[:count].copy(), np.empty(first[count], np.int32), np.empty(first[count], np.int64)
    for z in range(count):
        for i in range(first[z], first[z + 1]):
            at = end[tails[i]]
            if at > first[tails[i]] and heads[at - 1] == z:
                sums[at - 1] = min(sums[at - 1] + units[i], INFINITE_RESIDUAL)
            else:
                heads[at], sums[at] = z, units[i]
                end[tails[i]] += 1
    offsets = np.zeros(count + 1, np.int32)
    for z in range(count):
        offsets[z + 1] = offsets[z] + end[z] - first[z]
    ends, reverse, carries = (
        np.empty(offsets[count], np.int32),
        np.empty(offsets[count], np.int32),
        sums[: offsets[count]],
    )
    place = offsets[:count].copy()
    for z in range(count):
        for i in range(first[z], end[z]):
            ends[offsets[z] + i - first[z]] = heads[i]
            carries[offsets[z] + i - first[z]] = sums[i]
    for z in range(count):
        for a in range(offsets[z], offsets[z + 1]):
            if ends[a] > z:  # in the row of its other end, those of lesser numbers stand first and in order
                reverse[a], reverse[place[ends[a]]] = place[ends[a]], a
                place[ends[a]] += 1
    return offsets, ends, reverse, carries


@njit(cache=True, nogil=True)
def cut_capacity(row_offsets: ArcArray, head: VertexArray, capacity: UnitArray, source_side: BoolArray) -> int:
    """The capacity of the arcs that leave ``source_side``, bool[n]; `WRONG` if the side has all vertices or none, or an
    arc without a limit leaves it. O(n + arcs)."""
    paid, n_inside = 0, 0
    for v in range(len(source_side)):
        if not source_side[v]:
            continue
        n_inside += 1
        for a in range(row_offsets[v], row_offsets[v + 1]):
            if not source_side[head[a]]:
                paid = min(paid + min(capacity[a], INFINITE_RESIDUAL), INFINITE_RESIDUAL)
    good = 0 < n_inside < len(source_side) and paid < INFINITE_RESIDUAL
    return paid if good else WRONG
