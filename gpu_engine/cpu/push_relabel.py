"""Push-relabel with exact labels, for networks that are long and narrow, such as those that are unrolled over time.

Excess moves down the labels, that of the highest label first, so what comes to a vertex from many sides goes on in one
push. In a long and narrow network the shortest way to a deficit is nearly the only one: most excess arrives with the
first labels, in one pass over the network. The pseudoflow algorithm (`gpu_engine.cpu.pseudoflow`), which is faster
elsewhere, carries each amount by itself along trees that are as deep there as the network is long.

Labels are distances to the nearest deficit by residual arcs, exact at first and again after `AGAIN` sizes of the
network in relabelling; in between a vertex without an admissible arc takes the least label that lets it go on. Where
nobody else has the label that a vertex leaves, no residual path leads from it to a deficit: it is cut off, with its
excess. Whether the network is one for it shows as it goes: the excess comes nearer to the deficits, or it does not.

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
    Pseudoflow,
    exact_labels,
    reset_forest,
)

AGAIN: Final = 0.5
"""Labels are made exact again (a global relabel) once relabelling has scanned this many sizes of the network (n +
arcs)."""

NEARER: Final = 0.3
"""While the algorithm is on trial, excess must come down by this share of its labels for each size of the network that
is scanned. Excess that is turned back half way climbs instead: the pseudoflow algorithm is better for such networks."""

POLL_EACH: Final = 1 << 16
"""Arcs scanned between two looks at the caller's cancel, and in one discharge; a vertex that has more to do is
discharged again later."""


@njit(nogil=True, cache=True)
def push_excess(
    flow: Pseudoflow, forest: Forest, limit: float, trial: float, slots: NDArray[np.int64], mirror: int | None
) -> bool:
    """Move excess to deficits until none can be moved; labels then say what is cut off, as those of `solve` do.

    False if it is cancelled, or costs more than about ``limit`` arcs scanned, or if excess has not come nearer
    (`NEARER`) after ``trial`` sizes of the network in work: the pseudoflow algorithm can go on.

    One loop, which discharges the vertices one after the other: as a call for each it takes three times as long, since
    arrays taken from a tuple are counted in and out again.
    """
    label, links, bucket, population = forest.label, forest.links, forest.bucket, forest.population
    row_offsets, head, reverse_arc = flow.row_offsets, flow.head, flow.reverse_arc
    residual, excess = flow.residual, flow.excess
    n = len(flow.role)
    size = n + len(head)
    work, since, began, unheard = 0.0, np.inf, 0.0, 0
    highest, furthest, lowest, pushes, relabels = 0, 0, n, 0, 0
    tried, closed, ended = False, True, False
    while work <= limit:
        if since > AGAIN * size:
            exact_labels(flow, forest, slots, mirror)
            if slots[CANCEL] != 0:
                break
            highest = int(reset_forest(flow, forest))
            if work == 0:
                furthest, began = highest, float(size)
            work, since, closed = work + size, 0.0, True
        while highest >= 0 and bucket[highest] == NONE:
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
        v = bucket[highest]
        bucket[highest] = links[v, NEXT_ROOT]
        row, end = np.int64(row_offsets[v]), np.int64(row_offsets[np.int64(v) + 1])
        level, left, i, done = label[v], excess[v], np.int64(links[v, CURRENT]), 1
        while True:
            first = i
            while i < end:
                w = head[i]
                if label[w] == level - 1:
                    forward, back = np.uint64(i), np.uint64(reverse_arc[i])
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
                            links[w, NEXT_ROOT] = bucket[level - 1]
                            bucket[level - 1] = w
                            highest = max(highest, level - 1)
                        if left == 0:
                            break
                i += 1
            done += i - first  # type: ignore[assignment]  # a whole number of one width, here and below
            if left == 0:
                break
            done += end - row  # type: ignore[assignment]
            since += end - row
            relabels += 1
            least = n
            for a in range(row, end):
                if label[head[a]] < least:
                    forward = np.uint64(a)
                    if mirror is not None:
                        forward = np.uint64(reverse_arc[a])
                    if residual[forward] > 0:
                        least, i = np.int64(label[head[a]]), a  # type: ignore[assignment]
            population[level] -= 1
            if least >= n - 1 or population[level] == 0:
                label[v] = n + 1
                closed = False
                break
            level = np.int32(least + 1)
            label[v] = level
            population[level] += 1
            if done > POLL_EACH:
                break
        excess[v] = left
        links[v, CURRENT] = i
        if left > 0 and label[v] <= n:
            links[v, NEXT_ROOT] = bucket[level]
            bucket[level] = v
            highest = max(highest, level)
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
