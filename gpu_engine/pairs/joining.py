"""A set of vertices that no cut of less than the best one known divides, and how it grows: see
`gpu_engine.pairs.global_cut`."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.checks.global_cuts import clings, flows_straight, flows_to
from gpu_engine.checks.pairs import Ledger
from gpu_engine.cpu.pseudoflow import ARCS_SCANNED, CANCEL, POLL_MASK, PUSHES
from gpu_engine.pairs.values import Whole
from gpu_engine.types import INFINITE_RESIDUAL, ArcArray, BoolArray, UnitArray, VertexArray


class Joining(NamedTuple):
    """The set that grows, and the memory of its searches."""

    joined: BoolArray
    bound: UnitArray
    """int64[n]: what arcs from the set carry to each vertex outside."""
    rest: UnitArray
    """int64[n]: what arcs from each vertex outside carry to others outside; `INFINITE_RESIDUAL` where any of its arcs
    has no limit."""
    listed: BoolArray
    """bool[n]: the vertices that are in ``edge``."""
    edge: VertexArray
    """int32[n]: the neighbours of the set, in the order found."""
    ready: VertexArray
    """int32[2 n]: those neighbours to which arcs from the set carry as much as the best cut, or as much as their own
    arcs carry to others outside; some are listed twice."""
    counts: UnitArray
    """int64[6]: how many vertices have joined, the end of ``edge`` and its next place, the end of ``ready``, the number
    of the last search, and the value of the best cut."""
    best_side: BoolArray
    """bool[n]: the side of the best cut that does not hold the first vertex, if this pass found that cut."""
    residual: UnitArray
    mark: NDArray[np.int32]
    level: NDArray[np.int32]
    """int32[n]: how many arcs lead from a vertex that a search has found to where it began."""
    found_by: ArcArray
    """int32[n]: by which arc it was found."""
    present: ArcArray
    """int32[n]: the arc of its row whose turn it is to lead nearer, beginning with that one; -1: none does."""
    trail: ArcArray
    """int32[n + 1]: those of a path."""
    queue: VertexArray
    log: ArcArray
    units: UnitArray
    ledger: Ledger


JOINED, END, NEXT, READY, EPOCH, BEST = range(6)
BROKEN: Final = -2
"""Returned where a proof has failed."""


@njit(cache=True, nogil=True)
def join(whole: Whole, joining: Joining, v: int) -> None:
    """Put v into the set, and count its arcs to its neighbours outside."""
    joining.joined[v] = True
    counts, bound, rest = joining.counts, joining.bound, joining.rest
    counts[JOINED] += 1
    for a in range(whole.row_offsets[v], whole.row_offsets[v + 1]):
        w = whole.head[a]
        if joining.joined[w]:
            continue
        was, clung = bound[w], bound[w] >= rest[w]
        bound[w] = min(was + min(whole.capacity[a], INFINITE_RESIDUAL), INFINITE_RESIDUAL)
        if rest[w] < INFINITE_RESIDUAL:
            rest[w] -= whole.capacity[whole.reverse_arc[a]]
        if whole.capacity[a] > 0 and not joining.listed[w]:
            joining.listed[w] = True
            joining.edge[counts[END]] = w
            counts[END] += 1
        if was < counts[BEST] <= bound[w] or (rest[w] <= bound[w] and not clung):
            joining.ready[counts[READY]] = w
            counts[READY] += 1


@njit(cache=True, nogil=True)
def join_some(whole: Whole, joining: Joining, steps: int, slots: NDArray[np.int64], most: float = np.inf) -> int:
    """Let up to so many vertices join, or fewer once more than ``most`` arcs are scanned; returns how many have in all,
    or `BROKEN`."""
    counts, n, begun = joining.counts, len(whole.row_offsets) - 1, slots[ARCS_SCANNED]
    for _ in range(steps):
        if counts[JOINED] == n or slots[CANCEL] != 0 or slots[ARCS_SCANNED] - begun > most:
            break
        v = next_to_join(joining)
        if v < 0:  # no arc leads out of the set
            counts[BEST] = 0
            joining.best_side[:] = ~joining.joined
            counts[JOINED] = n
            break
        if joining.rest[v] <= joining.bound[v] < counts[BEST]:
            if not clings(
                whole.row_offsets,
                whole.head,
                whole.reverse_arc,
                whole.capacity,
                joining.joined,
                v,
                counts[BEST],
            ):
                return BROKEN
            join(whole, joining, v)
            continue
        if joining.bound[v] < counts[BEST]:
            reached, noted = flow_to(whole, joining, v, slots)
            if slots[CANCEL] != 0:
                list_flow(whole, joining, noted)  # takes it back
                counts[NEXT] -= 1
                joining.edge[counts[NEXT]] = v
                break
            arrives = proven_flow(whole, joining, v, noted)
            if reached >= 0:  # fewer units arrived than the best cut has: what was reached is a better one
                joining.best_side[:] = False
                joining.best_side[joining.queue[:reached]] = True
        else:
            arrives = flows_straight(
                whole.row_offsets, whole.head, whole.reverse_arc, whole.capacity, joining.joined, v
            )
        if arrives < counts[BEST]:
            return BROKEN
        join(whole, joining, v)
    return int(counts[JOINED])


@njit(cache=True, nogil=True)
def next_to_join(joining: Joining) -> int:
    """The next vertex to join: one that is listed in ``ready``, else a neighbour of the set, else -1."""
    counts = joining.counts
    while counts[READY] > 0:
        counts[READY] -= 1
        v = joining.ready[counts[READY]]
        if not joining.joined[v]:
            return int(v)
    while counts[NEXT] < counts[END]:
        v = joining.edge[counts[NEXT]]
        counts[NEXT] += 1
        if not joining.joined[v]:
            return int(v)
    return -1


@njit(cache=True, nogil=True)
def flow_to(whole: Whole, joining: Joining, v: int, slots: NDArray[np.int64], most: float = np.inf) -> tuple[int, int]:
    """Let flow come to v from the set until it is as much as the best cut, or until so many arcs are scanned: along
    shortest paths, all of one length that there are after one search backward from v.

    Returns how many vertices of ``queue`` are cut off from the set, or -1, and how many arcs are noted; with a cut,
    the best cut becomes it. Noted arcs are distinct only by path; on more than there are, the rest is found by a look
    at all (`list_flow`).
    """
    counts, residual, reverse, joined = joining.counts, joining.residual, whole.reverse_arc, joining.joined
    mark, level, queue, found_by, log = joining.mark, joining.level, joining.queue, joining.found_by, joining.log
    arrives, noted, scanned = 0, 0, 0
    while arrives < counts[BEST]:
        counts[EPOCH] += 1
        epoch = counts[EPOCH]
        mark[v], level[v], queue[0] = epoch, 0, v
        end, k, farthest = 1, 0, -1
        while k < end and arrives < counts[BEST]:
            x = queue[k]
            if farthest >= 0 and level[x] > farthest:
                break
            k += 1
            if (k & POLL_MASK == 0 and slots[CANCEL] != 0) or scanned > most:
                return -1, noted
            scanned += whole.row_offsets[x + 1] - whole.row_offsets[x]
            slots[ARCS_SCANNED] += whole.row_offsets[x + 1] - whole.row_offsets[x]
            for a in range(whole.row_offsets[x], whole.row_offsets[x + 1]):
                w = whole.head[a]
                if mark[w] == epoch or residual[reverse[a]] == 0:
                    continue
                if joined[w]:
                    farthest, bridge, y = level[x], reverse[a], x
                    amount = min(residual[bridge], counts[BEST] - arrives)
                    while y != v and amount > 0:
                        amount = min(amount, residual[found_by[y]])
                        y = whole.head[found_by[y]]
                    y, over = x, bridge
                    while amount > 0:  # as it was found; a call takes as long as many arcs
                        residual[over] -= amount
                        residual[reverse[over]] += amount
                        if noted < len(log):
                            log[noted] = over
                        noted += 1
                        if y == v:
                            arrives += amount
                            slots[PUSHES] += 1
                            break
                        over = found_by[y]
                        y = whole.head[over]
                    if arrives < counts[BEST] and residual[bridge] > 0 and level[x] > 1:
                        amount, noted = _let_in(whole, joining, bridge, v, counts[BEST] - arrives, noted, slots)
                        arrives += amount
                    if arrives == counts[BEST] or residual[bridge] > 0:  # then x leads on no more
                        break
                elif farthest < 0:
                    mark[w], level[w] = epoch, level[x] + 1
                    found_by[w] = joining.present[w] = reverse[a]
                    queue[end] = w
                    end += 1
        if slots[CANCEL] != 0:
            return -1, noted
        if farthest < 0 and arrives < counts[BEST]:
            counts[BEST] = arrives
            return end, noted
    return -1, noted


@njit(cache=True, nogil=True)
def _let_in(
    whole: Whole, joining: Joining, bridge: int, v: int, most: int, noted: int, slots: NDArray[np.int64]
) -> tuple[int, int]:
    """Let up to so much flow in over the arc ``bridge`` and on to v, by paths on which each vertex is nearer to v than
    the one before. Returns how much arrives, and how many arcs are noted."""
    residual, trail, log, head = joining.residual, joining.trail, joining.log, whole.head
    arrives = 0
    trail[0] = bridge
    while arrives < most and residual[bridge] > 0:
        length = _way(whole, joining, int(head[bridge]), v)
        if length == 0:
            break
        amount = most - arrives
        for i in range(length):
            amount = min(amount, residual[trail[i]])
        for i in range(length):
            residual[trail[i]] -= amount
            residual[whole.reverse_arc[trail[i]]] += amount
            if noted + i < len(log):
                log[noted + i] = trail[i]
        noted += length
        arrives += amount
        slots[PUSHES] += 1
    return arrives, noted


@njit(cache=True, nogil=True)
def _way(whole: Whole, joining: Joining, x: int, v: int) -> int:
    """Put a path from x to v into ``trail``, behind its first arc; returns its length with that, or 0 if there is none.
    Arcs that were of no use once are passed over."""
    head, row_offsets, trail = whole.head, whole.row_offsets, joining.trail
    present, found_by, mark, level = joining.present, joining.found_by, joining.mark, joining.level
    epoch, length = mark[v], 1
    while x != v:
        a = present[x]
        while a >= 0 and not (joining.residual[a] > 0 and mark[head[a]] == epoch and level[head[a]] == level[x] - 1):
            a = _next_arc(a, row_offsets[x], row_offsets[x + 1], found_by[x])
        present[x] = a
        if a >= 0:
            trail[length] = a
            length += 1
            x = int(head[a])
            continue
        if length == 1:
            return 0
        length -= 1
        a = trail[length]
        x = int(head[whole.reverse_arc[a]])
        present[x] = _next_arc(a, row_offsets[x], row_offsets[x + 1], found_by[x])
    return length


@njit(cache=True, nogil=True)
def _next_arc(a: int, first: int, end: int, begun: int) -> int:
    """The arc behind ``a`` in a row that is read round from the one where it was ``begun``; -1 behind the last."""
    a = a + 1 if a + 1 < end else first
    return -1 if a == begun else a


@njit(cache=True, nogil=True)
def list_flow(whole: Whole, joining: Joining, noted: int) -> int:
    """Put the arcs that carry flow into ``log``, what they carry into ``units``, and take the flow back; returns how
    many there are."""
    residual, capacity = joining.residual, whole.capacity
    everything = noted > len(joining.log)
    k = 0
    for i in range(len(residual) if everything else noted):
        a = i if everything else joining.log[i]
        r = whole.reverse_arc[a]
        units = capacity[a] - residual[a]
        if units == 0 or (everything and units < 0):
            continue
        residual[a], residual[r] = capacity[a], capacity[r]
        if units < 0:
            a, units = r, -units
        joining.log[k] = a
        joining.units[k] = units
        k += 1
    return k


@njit(cache=True, nogil=True)
def proven_flow(whole: Whole, joining: Joining, v: int, noted: int) -> int:
    """How many units a flow brings to v from what has joined, as its arcs show, which lie in ``log`` then. It is taken
    back."""
    k = list_flow(whole, joining, noted)
    log, units = joining.log[:k], joining.units[:k]
    arrives: int = flows_to(
        whole.head, whole.reverse_arc, whole.capacity, joining.joined, v, log, units, joining.ledger
    )
    return arrives
