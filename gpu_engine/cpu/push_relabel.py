"""Push-relabel with exact labels, for networks that are long and narrow, such as those that are unrolled over time.

Excess moves down the labels, that of the highest label first, so what comes to a vertex from many sides goes on in one
push. In a long and narrow network the shortest way to a deficit is nearly the only one: most excess arrives with the
first labels, in one pass over the network. The pseudoflow algorithm (`gpu_engine.cpu.pseudoflow`), which is faster
elsewhere, carries each amount by itself along trees that are as deep there as the network is long.

Labels are distances to the nearest deficit by residual arcs, exact at first and again after `AGAIN` sizes of the
network in relabelling; in between a vertex without an admissible arc takes the least label that lets it go on. Where
nobody else has the label that a vertex leaves, no residual path leads from it to a deficit, nor from anybody with a
higher label: all of these are cut off, with their excess (the gap heuristic). So the vertices of each label are listed,
and the end needs no search: what is cut off then is closed. Whether the network is one for this algorithm shows as it
goes: the excess comes nearer to the deficits, or it does not.

Rows are read from the end whose arcs lead down at first, so that few arcs are looked at in vain, and the order does not
depend on how the vertices are numbered. From the second exact labels on they are read from the other end: two chains
side by side can send their excess round in circles under one order and not under the other.

It can be left at any time, as excess and residuals are a pseudoflow between two discharges. O(n^2 sqrt(m)), but it ends
at its limit of work.

Goldberg, Tarjan, "A new approach to the maximum-flow problem", Journal of the ACM 35 (1988). Cherkassky, Goldberg, "On
implementing the push-relabel method for the maximum flow problem", Algorithmica 19 (1997).
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import (
    ARCS_SCANNED,
    CANCEL,
    CURRENT,
    NEXT_ROOT,
    NONE,
    PUSHES,
    RELABELS,
    Forest,
    Index,
    Pseudoflow,
    exact_labels,
)
from gpu_engine.types import VertexArray

AGAIN: Final = 0.5
"""Labels are made exact again (a global relabel) once relabelling has scanned this many sizes of the network (n +
arcs)."""

NEARER: Final = 0.3
"""While the algorithm is on trial, excess must come down by this share of its labels for each size of the network that
is scanned. Excess that is turned back half way climbs instead: the pseudoflow algorithm is better for such networks."""

POLL_EACH: Final = 1 << 16
"""Arcs scanned between two looks at the caller's cancel, and in one discharge; a vertex that has more to do is
discharged again later."""

SAMPLED: Final = 16
"""One vertex in this many tells from which end rows are read."""

NEXT_ACTIVE: Final = NEXT_ROOT
"""Column of `Forest.links`: the next vertex with excess of the same label."""
AFTER: Final = 2
"""Column of `Forest.links`: the next vertex of the same label, whether it has excess or not."""
BEFORE: Final = 4
"""Column of `Forest.links`: the one before."""


@njit(nogil=True, cache=True)
def list_labels(flow: Pseudoflow, forest: Forest, members: Index) -> tuple[int, int]:
    """List the vertices of each label, for the labels given.

    ``members`` uint32[n + 2] becomes the first vertex of each label, and `Forest.bucket` the first with excess. Returns
    the highest label with excess, and the highest of all.
    """
    label, links, active = forest.label, forest.links, forest.bucket
    n, highest, deepest = len(flow.role), 0, 0
    for k in range(n + 2):
        members[k] = active[k] = NONE
    for v in range(n):
        k = int(label[v])
        if k > n:
            continue
        after = members[k]
        links[v, AFTER], links[v, BEFORE], links[v, CURRENT] = after, NONE, flow.row_offsets[v]
        if after != NONE:
            links[after, BEFORE] = v
        members[k] = v
        deepest = max(deepest, k)
        if flow.excess[v] > 0:
            links[v, NEXT_ACTIVE] = active[k]
            active[k] = v
            highest = max(highest, k)
    return highest, deepest


@njit(nogil=True, cache=True)
def runs_down(flow: Pseudoflow, label: VertexArray) -> bool:
    """Whether the first arc of a row leads nearer to the deficits than the last one, by one vertex in `SAMPLED`."""
    row_offsets, head = flow.row_offsets, flow.head
    votes = 0
    for v in range(0, len(label), SAMPLED):
        row, end = row_offsets[v], row_offsets[v + 1]
        if end > row:
            first, last = label[head[row]], label[head[end - 1]]
            if first != last:
                votes += 1 if first < last else -1
    return votes >= 0


@njit(nogil=True, cache=True)
def push_excess(
    flow: Pseudoflow, forest: Forest, limit: float, trial: float, slots: NDArray[np.int64], mirror: int | None
) -> bool:
    """Move excess to deficits until none can be moved; labels then say what is cut off, as those of `solve` do.

    False if it is cancelled, or costs more than about ``limit`` arcs scanned, or if excess has not come nearer
    (`NEARER`) after ``trial`` sizes of the network in work: the pseudoflow algorithm can go on.

    One loop, which discharges the vertices one after the other and calls nothing: as a call for each it takes three
    times as long, since arrays taken from a tuple are counted in and out again.
    """
    links, active, members = forest.links, forest.bucket, forest.population.view(np.uint32)
    row_offsets, head, reverse_arc = flow.row_offsets, flow.head, flow.reverse_arc
    residual, excess = flow.residual, flow.excess
    n = len(flow.role)
    label = forest.label[:n]
    size = n + len(head)
    work, since, began, unheard = 0.0, np.inf, 0.0, 0
    highest, deepest, furthest, lowest, pushes, relabels = 0, 0, 0, n, 0, 0
    tried, closed, ended, ascending, first_way = False, True, False, False, False
    while work <= limit:
        if since > AGAIN * size:
            exact_labels(flow, forest, slots, mirror)
            if slots[CANCEL] != 0:
                break
            highest, deepest = list_labels(flow, forest, members)
            ascending = runs_down(flow, label) if work == 0 else not first_way
            if work == 0:
                furthest, began, first_way = highest, float(size), ascending
            work, since, closed = work + size, 0.0, True
        while highest >= 0 and active[highest] == NONE:
            highest -= 1
        lowest = min(lowest, highest)
        if highest < 0:
            if not closed:  # what those that were cut off reach is not cut off yet
                exact_labels(flow, forest, slots, mirror)
            ended = slots[CANCEL] == 0
            break
        if not tried and work - began > trial * size:
            if furthest - lowest < NEARER * trial * furthest:
                break
            tried = True
        v = active[highest]
        active[highest] = links[v, NEXT_ACTIVE]
        row, end = np.int64(row_offsets[v]), np.int64(row_offsets[np.int64(v) + 1])
        last = row + end - 1
        level, left, i, done = np.int64(label[v]), excess[v], np.int64(links[v, CURRENT]), 1
        while True:
            first = i
            while i < end:
                a = i if ascending else last - i
                w = head[a]
                if label[w] == level - 1:
                    forward, back = np.uint64(a), np.uint64(reverse_arc[a])
                    if mirror is not None:
                        forward, back = back, forward
                    room = residual[forward]
                    if room > 0:
                        amount = min(left, room)
                        residual[forward] = room - amount
                        residual[back] += amount
                        had = excess[w]
                        excess[w] = had + amount
                        left -= amount
                        pushes += 1
                        done += 1
                        if had <= 0 and had + amount > 0:
                            links[w, NEXT_ACTIVE] = active[level - 1]
                            active[level - 1] = w
                            highest = max(highest, level - 1)  # type: ignore[assignment]
                        if left == 0:
                            break
                i += 1
            done += i - first  # type: ignore[assignment]  # whole numbers of one width
            if left == 0:
                break
            after, before = links[v, AFTER], links[v, BEFORE]
            if after != NONE:
                links[after, BEFORE] = before
            if before != NONE:
                links[before, AFTER] = after
            else:
                members[level] = after
            if before == NONE and after == NONE:
                for k in range(level + 1, deepest + 1):  # a gap
                    u = members[k]
                    members[k] = NONE
                    while u != NONE:
                        label[u] = n + 1
                        u = links[u, AFTER]
                        done += 1
                    if slots[CANCEL] != 0:
                        break
                label[v], deepest = n + 1, level  # type: ignore[assignment]
                break
            done += end - row  # type: ignore[assignment]
            since += end - row
            relabels += 1
            least = n
            for turn in range(row, end):
                arc = turn if ascending else last - turn
                if label[head[arc]] < least:
                    forward = np.uint64(arc)
                    if mirror is not None:
                        forward = np.uint64(reverse_arc[arc])
                    if residual[forward] > 0:
                        least = int(label[head[arc]])
                        i = turn  # type: ignore[assignment]
            if least >= n - 1:
                label[v] = n + 1
                closed = closed and least == n
                break
            level = np.int64(least + 1)
            label[v] = level
            after = members[level]
            links[v, AFTER], links[v, BEFORE] = after, NONE
            if after != NONE:
                links[after, BEFORE] = v
            members[level] = v
            deepest = max(deepest, level)  # type: ignore[assignment]
            if done > POLL_EACH:
                break
        excess[v] = left
        links[v, CURRENT] = i
        if left > 0 and label[v] <= n:
            links[v, NEXT_ACTIVE] = active[level]
            active[level] = v
            highest = max(highest, level)  # type: ignore[assignment]
        work += done
        unheard += done
        if unheard > POLL_EACH:
            unheard = 0
            if slots[CANCEL] != 0:
                break
    slots[ARCS_SCANNED] += int(work)
    slots[PUSHES] += pushes
    slots[RELABELS] += relabels
    return ended
