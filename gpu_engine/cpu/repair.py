"""Repair of a flow state after capacity updates, in proportion to what changed.

Definitions. A flow state is a pseudoflow (``residual``, signed ``excess``) with a cut (S, T); ``source_side`` is S.
It is *settled* when (a) every arc from S to T is saturated, (b) no ordinary vertex of S has a deficit, (c) no
ordinary vertex of T has an excess. A settled state is optimal (proof in `gpu_engine.checks`): an excess may rest in
S and a deficit in T for ever, so nothing is returned to sources or sinks until edge flows are asked for.

`apply` enters new capacities: flow above a capacity is cancelled, an arc that opens from S to T is saturated at
once. That keeps (a) and breaks (b) or (c) only at the ends of changed arcs; if it breaks neither, the cut is still
minimum and the update costs O(batch). This covers every increase that is not on the cut, every decrease down to
the flow, and every decrease of a cut arc.

`search` restores (b) and then (c) by breadth-first augmentation from each broken vertex. For (c): the excess at x
goes along residual arcs of T to the nearest sink or deficit. If none can be reached, the visited set is closed
under residual arcs and holds no deficit, so it moves to S. (b) is the mirror image: a deficit is filled from the
nearest excess or source of S over arcs taken backwards, else the visited set moves to T. Deficits come first: what
they leave in T may serve the excesses, while (c) creates no deficit in S.

`search` stops when its work limit is reached; `drain` then finishes the job from the pseudoflow it left.

The new capacities are entered as by Kannappan, Kumar, Nasre, "Scalable Maxflow Processing for Dynamic Graphs", section
4, Algorithm 5; deficits may rest in T and excesses in S as in Hochbaum, "The pseudoflow algorithm: a new algorithm for
the maximum-flow problem", Operations Research 56 (2008), section 4. The augmentations are along shortest paths:
Edmonds, Karp, "Theoretical improvements in algorithmic efficiency for network flow problems", Journal of the ACM 19
(1972), section 1.2.

Kernels that Python calls take their arrays one by one, and bundle them for the kernels inside: a named tuple in a call
from Python costs half a microsecond, of twelve for an update of one edge with its solve.

The value follows along in O(1) for each change: it is the capped demand plus the excess of T, because every unit
into T over the cut ends in a sink or fills a deficit.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.meeting import PUT_OFF, Flow, Rows, Search, nearest
from gpu_engine.cpu.pseudoflow import ARCS_SCANNED, CANCEL, PUSHES
from gpu_engine.networks.free import ORDINARY
from gpu_engine.types import INFINITE_RESIDUAL, ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray


@njit(cache=True, nogil=True)
def apply(
    rows: EdgeArray,
    new: UnitArray,
    old: UnitArray,
    edge_arc: ArcArray,
    undirected: BoolArray,
    arc_capacity: UnitArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    residual: UnitArray,
    excess: UnitArray,
    source_side: BoolArray,
) -> int:
    """Change the capacities of ``rows`` int64[k] to ``new`` int64[k]; return the value's change. O(k).

    ``old`` int64[m] are all edges' present capacities, ``arc_capacity`` int64[arcs] what they come to: finite edges on
    an arc with an infinite one change nothing.
    """
    for i in range(len(rows)):
        a = edge_arc[rows[i]]
        if a >= 0:
            r = reverse_arc[a]
            change = new[i] - old[rows[i]]
            if arc_capacity[a] < INFINITE_RESIDUAL:
                residual[a] += change
            if undirected[rows[i] if len(undirected) > 1 else 0] and arc_capacity[r] < INFINITE_RESIDUAL:
                residual[r] += change
    gained = 0
    for i in range(len(rows)):
        a = edge_arc[rows[i]]
        if a < 0:
            continue
        r = reverse_arc[a]
        u, v = head[r], head[a]
        pushed = min(residual[a], 0) - min(residual[r], 0)  # cancels flow above a capacity
        if source_side[u] and not source_side[v]:
            pushed = residual[a]
        elif source_side[v] and not source_side[u]:
            pushed = -residual[r]
        if pushed != 0:
            residual[a] -= pushed
            residual[r] += pushed
            excess[u] -= pushed
            excess[v] += pushed
            gained += (0 if source_side[v] else pushed) - (0 if source_side[u] else pushed)
    return gained


@njit(cache=True, nogil=True)
def broken(
    rows: EdgeArray,
    edge_arc: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    excess: UnitArray,
    role: NDArray[np.int8],
    source_side: BoolArray,
    deficits: bool,
) -> VertexArray:
    """The ends of ``rows`` that break (b), if ``deficits``, else (c): int32[...], possibly repeated. O(k)."""
    count = 0
    out = np.empty(2 * len(rows), np.int32)
    for i in range(len(rows)):
        a = edge_arc[rows[i]]
        if a < 0:
            continue
        for v in (head[a], head[reverse_arc[a]]):
            if source_side[v] == deficits and role[v] == ORDINARY and (excess[v] < 0 if deficits else excess[v] > 0):
                out[count] = v
                count += 1
    return out[:count]


@njit(cache=True, nogil=True)
def search(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    residual: UnitArray,
    excess: UnitArray,
    role: NDArray[np.int8],
    source_side: BoolArray,
    start: VertexArray,
    deficits: bool,
    epoch: int,
    stamp: NDArray[np.int32],
    via: ArcArray,
    queue: VertexArray,
    changed: VertexArray,
    slots: NDArray[np.int64],
    reach: int,
    work_limit: int,
    targets: VertexArray,
) -> tuple[int, int, int, int]:
    """Augment from each of ``start`` until it is settled; return (how many are left, last epoch, value's change, how
    many vertices it changed).

    A search that has scanned ``reach`` arcs without an end puts its vertex off; those put off stand at the front of
    ``start`` afterwards. So do all that remain when ``slots`` (`Control.slots`) say cancel or ``work_limit`` arcs have
    been scanned. The state is a pseudoflow that keeps (a) at any time. ``changed`` int32[...] takes the vertices of
    augmented paths and those moved, as many as it can hold. ``stamp`` (all <= ``epoch``), ``via`` and ``queue`` are
    those of `Search`. Where ``targets`` int32[...] are given, those of them that can end a search are searched from as
    well (`gpu_engine.cpu.meeting`). Each search ends with an augmentation, with a vertex put off, or by moving its
    visited set to the other side, for good while this call lasts, so there are at most n moves; the work limit bounds
    the rest.
    """
    rows, flow, memory = (
        Rows(row_offsets, head, reverse_arc),
        Flow(residual, excess, role, source_side),
        Search(stamp, via, queue),
    )
    sign = -1 if deficits else 1
    work, gained, left, n_changed = 0, 0, 0, 0
    for i in range(len(start)):
        x = start[i]
        while source_side[x] == deficits and sign * excess[x] > 0:
            if work > work_limit or slots[CANCEL] != 0:
                start[left] = x
                left += 1
                break
            epoch += 1
            target, visited, scanned = nearest(rows, flow, memory, x, deficits, epoch, reach, slots, targets)
            epoch += 1  # it uses two
            work += scanned
            slots[ARCS_SCANNED] += scanned
            if target == PUT_OFF:
                start[left] = x
                left += 1
                break
            if target >= 0:
                n_changed = _augment(rows, flow, via, x, target, sign, changed, n_changed)
                slots[PUSHES] += 1
                continue
            for k in range(visited):
                v = queue[k]
                source_side[v] = not deficits
                gained -= sign * excess[v]
                n_changed = _list(v, changed, n_changed)
    return left, epoch, gained, n_changed


@njit(cache=True, nogil=True)
def _list(v: int, changed: VertexArray, n_changed: int) -> int:
    """Append ``v`` if there is room; count it in any case."""
    if n_changed < len(changed):
        changed[n_changed] = v
    return n_changed + 1


@njit(cache=True, nogil=True, inline="always")
def _augment(
    rows: Rows, flow: Flow, via: ArcArray, x: int, target: int, sign: int, changed: VertexArray, n_changed: int
) -> int:
    """Move as much as fits along the path x .. target; ``sign`` -1 moves it the other way round. The path's vertices
    go to ``changed``, which holds ``n_changed``; returns how many it holds then."""
    head, reverse_arc, residual, excess = rows.head, rows.reverse_arc, flow.residual, flow.excess
    amount = sign * excess[x]
    if flow.role[target] == ORDINARY:
        amount = min(amount, -sign * excess[target])
    v = target
    while v != x:
        a = via[v]
        amount = min(amount, residual[a] if sign > 0 else residual[reverse_arc[a]])
        v = head[reverse_arc[a]]
    v = target
    while v != x:
        a = via[v]
        residual[a] -= sign * amount
        residual[reverse_arc[a]] += sign * amount
        n_changed = _list(v, changed, n_changed)
        v = head[reverse_arc[a]]
    excess[x] -= sign * amount
    excess[target] += sign * amount
    return _list(x, changed, n_changed)


@njit(cache=True, nogil=True)
def saturate(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    vertices: VertexArray,
    residual: UnitArray,
    excess: UnitArray,
    source_side: BoolArray,
) -> None:
    """Fill every arc from ``vertices``, which lie in S, to T: invariant (a) at the start of a cold solve."""
    for i in range(len(vertices)):
        v = vertices[i]
        for a in range(row_offsets[v], row_offsets[v + 1]):
            if not source_side[head[a]]:
                excess[head[a]] += residual[a]
                excess[v] -= residual[a]
                residual[reverse_arc[a]] += residual[a]
                residual[a] = 0
