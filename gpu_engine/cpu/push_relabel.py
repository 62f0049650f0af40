"""Push-relabel with exact labels, for networks that are long and narrow, such as those that are unrolled over time.

Excess moves down the labels, that of the highest label first, so what comes to a vertex from many sides goes on in one
push. In a long and narrow network the shortest way to a deficit is nearly the only one: most excess arrives with the
first labels, in one pass over the network. The pseudoflow algorithm (`gpu_engine.cpu.pseudoflow`), which is faster
elsewhere, carries each amount by itself along trees that are as deep there as the network is long.

Labels are distances to the nearest deficit by residual arcs, exact at first and again after each `AGAIN` sizes of the
network in work; in between a vertex without an admissible arc takes the least label that lets it go on. Where nobody
else has the label that a vertex leaves, no residual path leads from it to a deficit: it is cut off, with its excess.

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
    against,
    along,
    exact_labels,
    reset_forest,
)

AGAIN: Final = 0.5
"""Labels are made exact again after so many sizes of the network (n + arcs) in work."""

WIDEST: Final = 64
"""Vertices of a label in the mean: with more of them it is not tried."""

LOOSE: Final = 0.5
TIGHT: Final = 0.125
"""Nor where more than such a share of the labels lets, on shortest ways, less than twice the excess pass that comes
there: then much of it is turned back half way, and climbs, which the pseudoflow algorithm is made for."""

POLL_EACH: Final = 1 << 16
"""Work between two looks at the caller's cancel, and in one discharge: a vertex with more to do takes another turn."""


@njit(nogil=True, cache=True)
def discharge(
    v: int, flow: Pseudoflow, forest: Forest, highest: int, slots: NDArray[np.int64], mirror: int | None
) -> tuple[int, int]:
    """Push the excess of v on until it has none or is cut off. Returns the highest label with excess, and the work."""
    label, links, head, residual, excess = forest.label, forest.links, flow.head, flow.residual, flow.excess
    n, row, end = len(flow.role), int(np.int64(flow.row_offsets[v])), int(np.int64(flow.row_offsets[v + 1]))
    level, left, i = int(label[v]), excess[v], int(np.int64(links[v, CURRENT]))
    work, pushes, relabels = 1, 0, 0
    while True:
        first = i
        while i < end:
            w = head[i]
            if label[w] == level - 1:
                forward = along(flow, i, mirror)
                amount = min(left, residual[forward])
                if amount > 0:
                    residual[forward] -= amount
                    residual[against(flow, i, mirror)] += amount
                    had = excess[w]
                    excess[w] = had + amount
                    left -= amount
                    pushes += 1
                    if had <= 0 and had + amount > 0:
                        links[w, NEXT_ROOT] = forest.bucket[level - 1]
                        forest.bucket[level - 1] = w
                        highest = max(highest, level - 1)
                    if left == 0:
                        break
            i += 1
        work += i - first
        if left == 0:
            break
        work += end - row
        relabels += 1
        least = n
        for a in range(row, end):
            if label[head[a]] < least and residual[along(flow, a, mirror)] > 0:
                least, i = int(label[head[a]]), a
        forest.population[level] -= 1
        if least >= n - 1 or forest.population[level] == 0:
            label[v] = n + 1
            break
        level = least + 1
        label[v] = level
        forest.population[level] += 1
        if work > POLL_EACH:
            break
    excess[v] = left
    links[v, CURRENT] = i
    if left > 0 and label[v] <= n:
        links[v, NEXT_ROOT] = forest.bucket[level]
        forest.bucket[level] = v
        highest = max(highest, level)
    slots[PUSHES] += pushes
    slots[RELABELS] += relabels
    return highest, work + pushes


@njit(nogil=True, cache=True)
def is_suited(flow: Pseudoflow, forest: Forest, mirror: int | None) -> bool:
    """Whether labels, which are exact, are many and have few vertices each, and most of them let all excess pass."""
    n, label, furthest, there = len(flow.role), forest.label, 0, 0
    for v in range(n):
        if label[v] <= n:
            there += 1
            furthest = max(furthest, label[v])
    if there > WIDEST * furthest:
        return False
    comes, fits = np.zeros(furthest + 2), np.zeros(furthest + 2)
    for v in range(n):
        k = label[v]
        if k == 0 or k > n:
            continue
        comes[k] += max(flow.excess[v], 0)
        for a in range(flow.row_offsets[v], flow.row_offsets[v + 1]):
            if label[flow.head[a]] == k - 1:
                fits[k] += flow.residual[along(flow, a, mirror)]
    tight, carried = 0, 0.0
    for k in range(furthest, 0, -1):
        carried += comes[k]
        tight += carried > LOOSE * fits[k]
    return tight <= TIGHT * furthest


@njit(nogil=True, cache=True)
def push_excess(
    flow: Pseudoflow, forest: Forest, limit: float, sure: bool, slots: NDArray[np.int64], mirror: int | None
) -> bool:
    """Move excess to deficits until none can be moved; labels then say what is cut off, as those of `solve` do.

    False if it is cancelled, or costs more than about ``limit`` arcs scanned: the pseudoflow algorithm can go on. So it
    is at once, unless ``sure``, where it seems not suited.
    """
    n = len(flow.role)
    size = n + len(flow.head)
    work, since, unheard, highest = 0.0, np.inf, 0, 0
    while work <= limit:
        if since > AGAIN * size:
            exact_labels(flow, forest, slots, mirror)
            if slots[CANCEL] != 0:
                return False
            highest = int(reset_forest(flow, forest))
            if work == 0 and not sure and not is_suited(flow, forest, mirror):
                slots[ARCS_SCANNED] += 2 * size
                return False
            work, since = work + size, 0.0
        while highest >= 0 and forest.bucket[highest] == NONE:
            highest -= 1
        if highest < 0:
            if since > 0:  # labels are not exact any more, and are what tells the cut
                exact_labels(flow, forest, slots, mirror)
            slots[ARCS_SCANNED] += int(work)
            return slots[CANCEL] == 0  # type: ignore[no-any-return]
        v = int(np.int64(forest.bucket[highest]))
        forest.bucket[highest] = forest.links[v, NEXT_ROOT]
        highest, done = discharge(v, flow, forest, highest, slots, mirror)
        work += done
        since += done
        unheard += done
        if unheard > POLL_EACH:
            unheard = 0
            if slots[CANCEL] != 0:
                return False
    slots[ARCS_SCANNED] += int(work)
    return False
