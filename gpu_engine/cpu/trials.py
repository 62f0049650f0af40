"""Many small changes of capacity, each tried on the same solved flow, proven and undone, in one call.

A trial is what an update, a solve and a proof are (`gpu_engine.cpu.repair`, `gpu_engine.cpu.audit`), but for the time
that Python takes between them, which for a change of one edge is longer than all three. What was changed is put back
vertex by vertex from the flow that all trials begin with. A change that takes more than a few searches is left to the
engine.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.audit import _change_across, _check
from gpu_engine.cpu.pseudoflow import CANCEL
from gpu_engine.cpu.repair import apply, broken, search
from gpu_engine.networks.free import ORDINARY
from gpu_engine.networks.links import shift_arc_capacity
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray

LEFT: Final = 0
"""The outcome of a change that was not tried to the end: it takes more than it may, or could not be proven."""
UNCHANGED: Final = 1
WARM: Final = 2

MOST_TARGETS: Final = 64
"""A far search has so many targets at most that search as well. They are where a change has left flow, and terminals:
with more of these, one is not far."""


@njit(cache=True, nogil=True)
def try_all(
    offsets: UnitArray,
    rows: EdgeArray,
    new: UnitArray,
    old: UnitArray,
    edge_arc: ArcArray,
    undirected: BoolArray,
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    role: NDArray[np.int8],
    supplies: tuple[VertexArray, UnitArray],
    demands: tuple[VertexArray, UnitArray],
    base: tuple[UnitArray, UnitArray, UnitArray, BoolArray],
    work: tuple[UnitArray, UnitArray, UnitArray, BoolArray],
    seen: tuple[UnitArray, BoolArray],
    memory: tuple[NDArray[np.int32], ArcArray, VertexArray, VertexArray],
    epoch: int,
    slots: NDArray[np.int64],
    reaches: tuple[int, int],
    most: int,
    base_value: int,
    value: UnitArray,
    outcome: NDArray[np.int8],
) -> int:
    """Try each change ``rows[offsets[i] : offsets[i + 1]]``, distinct edges with capacities ``new`` in place of the
    ``old`` int64[m] ones. LEFT is one that comes from or to `INFINITE`, or whose edges have more than ``most`` arcs at
    their ends. Returns the last epoch.

    ``base`` is the solved flow: capacity and residual int64[arcs], excess int64[n], source side bool[n]; ``work`` and
    ``seen``, which are equal to it, are so again afterwards. ``value`` and ``outcome`` take what each comes to. After a
    cancel the rest is LEFT.
    """
    stamp, via, queue, changed = memory
    arc_capacity, residual, excess, side = work
    seen_excess, seen_side = seen
    first = np.empty(5, np.int64)
    targets = np.empty(MOST_TARGETS, np.int32)
    for i in range(len(offsets) - 1):
        outcome[i] = LEFT
        if slots[CANCEL] != 0 or _is_infinite(rows, new, old, offsets[i], offsets[i + 1]):
            continue
        own, capacity = rows[offsets[i] : offsets[i + 1]], new[offsets[i] : offsets[i + 1]]
        if _at_ends(own, edge_arc, row_offsets, head, reverse_arc, role) > most:
            continue
        paid = base_value + _change_across(own, capacity, old, edge_arc, undirected, head, reverse_arc, side)
        reached = base_value + apply(
            own, capacity, old, edge_arc, undirected, arc_capacity, head, reverse_arc, residual, excess, side
        )
        shift_arc_capacity(own, capacity, old, edge_arc, undirected, reverse_arc, arc_capacity, INFINITE_RESIDUAL)
        n_changed, left, was_broken = 0, 0, False
        for deficits in (True, False):
            start = broken(own, edge_arc, head, reverse_arc, excess, role, side, deficits)
            left = len(start)
            was_broken |= left > 0
            count = 0
            if left > 0:
                count = _targets(own, edge_arc, head, reverse_arc, supplies[0] if deficits else demands[0], targets)
            for reach in reaches:
                if left == 0 or n_changed >= len(changed):
                    break
                left, epoch, gained, n_more = search(
                    row_offsets,
                    head,
                    reverse_arc,
                    residual,
                    excess,
                    role,
                    side,
                    start[:left],
                    deficits,
                    epoch,
                    stamp,
                    via,
                    queue,
                    changed[n_changed:],
                    slots,
                    reach,
                    reaches[1],
                    targets[: 0 if reach == reaches[0] else count],
                )
                reached += gained
                n_changed += n_more
            if left > 0:
                break
        if n_changed > len(changed):
            _refill(base, work, seen)
            continue
        epoch += 1
        n_changed = _once(changed, n_changed, stamp, epoch)
        if left == 0:
            first[:] = -1
            more, drift = _check(
                own,
                changed[:n_changed],
                edge_arc,
                row_offsets,
                head,
                reverse_arc,
                arc_capacity,
                residual,
                excess,
                side,
                supplies,
                demands,
                role,
                seen_excess,
                seen_side,
                first,
            )
            if drift == 0 and first.max() < 0 and paid + more == reached:
                value[i] = reached
                outcome[i] = WARM if was_broken or reached != base_value else UNCHANGED
        for k in range(len(own)):
            a = edge_arc[own[k]]
            if a >= 0:
                r = reverse_arc[a]
                for arc in (a, r):
                    arc_capacity[arc], residual[arc] = base[0][arc], base[1][arc]
                _put_back(head[a], base, work, seen)
                _put_back(head[r], base, work, seen)
        for k in range(n_changed):
            v = changed[k]
            _put_back(v, base, work, seen)
            if role[v] == ORDINARY:
                for a in range(row_offsets[v], row_offsets[v + 1]):
                    residual[a], residual[reverse_arc[a]] = base[1][a], base[1][reverse_arc[a]]
    return epoch


@njit(cache=True, nogil=True)
def _is_infinite(rows: EdgeArray, new: UnitArray, old: UnitArray, begin: int, end: int) -> bool:
    """Whether some edge has no limit, or is to have none: the free vertices may be others."""
    for k in range(begin, end):  # noqa: SIM110 - a generator cannot be compiled
        if new[k] == INFINITE or old[rows[k]] == INFINITE:
            return True
    return False


@njit(cache=True, nogil=True)
def _at_ends(
    rows: EdgeArray,
    edge_arc: ArcArray,
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    role: NDArray[np.int8],
) -> int:
    """How many arcs there are at the ends of the edges, but for terminals. Each is looked at, in memory far apart."""
    arcs = 0
    for row in rows:
        a = edge_arc[row]
        if a >= 0:
            for v in (head[a], head[reverse_arc[a]]):
                if role[v] == ORDINARY:
                    arcs += int(row_offsets[v + 1] - row_offsets[v])
    return arcs


@njit(cache=True, nogil=True)
def _targets(
    rows: EdgeArray,
    edge_arc: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    terminals: VertexArray,
    targets: VertexArray,
) -> int:
    """List the ends of the edges and the terminals as ``targets`` of a search, as many as there is room for; returns
    how many."""
    count = 0
    for row in rows:
        a = edge_arc[row]
        if a >= 0 and count + 2 <= len(targets):
            targets[count], targets[count + 1] = head[a], head[reverse_arc[a]]
            count += 2
    for k in range(min(len(terminals), len(targets) - count)):
        targets[count] = terminals[k]
        count += 1
    return count


@njit(cache=True, nogil=True)
def _once(vertices: VertexArray, count: int, stamp: NDArray[np.int32], epoch: int) -> int:
    """Keep each of the first ``count`` once; returns how many that are. Each is proven and put back with all its arcs,
    and every path that goes through a hub lists it."""
    kept = 0
    for k in range(count):
        v = vertices[k]
        if stamp[v] != epoch:
            stamp[v] = epoch
            vertices[kept] = v
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def _put_back(
    v: int,
    base: tuple[UnitArray, UnitArray, UnitArray, BoolArray],
    work: tuple[UnitArray, UnitArray, UnitArray, BoolArray],
    seen: tuple[UnitArray, BoolArray],
) -> None:
    """Set the excess and the side of a vertex back to what they were."""
    work[2][v] = seen[0][v] = base[2][v]
    work[3][v] = seen[1][v] = base[3][v]


@njit(cache=True, nogil=True)
def _refill(
    base: tuple[UnitArray, UnitArray, UnitArray, BoolArray],
    work: tuple[UnitArray, UnitArray, UnitArray, BoolArray],
    seen: tuple[UnitArray, BoolArray],
) -> None:
    """Set all columns back to what they were."""
    work[0][:] = base[0]
    work[1][:] = base[1]
    work[2][:] = base[2]
    work[3][:] = base[3]
    seen[0][:] = base[2]
    seen[1][:] = base[3]
