"""Pseudoflow with exact labels: the kernels behind `drain`.

Definitions. A *pseudoflow* respects capacities; the excess of a vertex is its inflow minus its outflow and may
have either sign. A *label* (height) is a lower bound of a vertex's residual distance to a deficit. The vertices
form a *forest*: every non-root hangs on its parent by an arc (its parent arc, pointing up), all excess and all
deficit lies on roots. A tree whose root has positive excess is *strong*, every other tree is *weak*.

Step. Take a strong root of highest label k. Search the part of its tree with label k for a residual arc (v, w)
with label(w) = k - 1. If there is one, *merge*: re-root the tree at v, hang v under w, and push the excess of the
old root up to the new one; where a parent arc is too small it is saturated, its lower end keeps the remainder and
becomes a strong root (*split*). A vertex of the searched part without such an arc, whose children of label k are
done, is *relabelled* to k + 1.

Invariants.
1. 0 <= residual, and the sum over an arc and its reverse never changes.
2. label(u) <= label(v) + 1 for each residual arc (u, v).
3. A parent's label is at most its children's.
4. Excess is zero on every non-root, so dropping the forest at any time leaves a valid pseudoflow: a cancelled
   drain, and a global relabel, simply start again from single-vertex trees.

Gap. If no vertex has label k - 1, no residual path leads from a vertex of label >= k to a deficit. What is
reachable from such a strong tree (and the subtrees below) is *buried*: label n, never touched again. A buried
set is closed, so the buried vertices at the end are the closed set that `drain` reports.

Termination. Labels never fall (a global relabel sets the exact distance, which is at least any valid label) and
stay <= n, so there are at most n^2 relabels. Between two relabels or merges a search moves on in an arc list or
ends; a merge at fixed labels uses an arc that is not admissible again before a relabel, so there are
O(n m) merges, each O(n): O(n^2 m) in all, the bound of the simple labelling pseudoflow algorithm. Global relabels
come only after work proportional to n + m.

Hochbaum, "The pseudoflow algorithm: a new algorithm for the maximum-flow problem", Operations Research 56 (2008).
Chandran, Hochbaum, "A computational study of the pseudoflow and push-relabel algorithms for the maximum flow
problem", Operations Research 57 (2009). Exact initial labels, the gap and work-driven global relabelling are those of
Cherkassky, Goldberg, "On implementing the push-relabel method for the maximum flow problem", Algorithmica 19 (1997).

The mirrored problem (excess is pulled against the arcs) swaps the residuals of an arc and its reverse and negates
all excess. Kernels take `mirror`: None is the plain problem, any integer the mirrored one. The choice is made by
type, so each variant is compiled from this source without a test in its loops.
"""

from typing import Final

import numpy as np
from numba import njit

from gpu_engine.engine import Control

# Columns of the forest, one row of eight int32 (half a cache line) for each vertex.
PARENT: Final = 0
PARENT_ARC: Final = 1
CHILD: Final = 2
SIBLING: Final = 3
SEARCH: Final = 4  # next child to visit in the current search
CURRENT: Final = 5  # current arc: no arc before it is admissible
NEXT_ROOT: Final = 6  # next strong root of the same label
COLUMNS: Final = 8

CANCEL: Final = Control.CANCEL
PUSHES: Final = Control.PUSHES
RELABELS: Final = Control.RELABELS
GLOBAL_RELABELS: Final = Control.GLOBAL_RELABELS
ARCS_SCANNED: Final = Control.ARCS_SCANNED

NONE: Final = -1
ORDINARY: Final = 0
UNLIMITED: Final = 1

POLL_MASK: Final = 4095
"""Loops over whole searches look at the cancel flag every 4096 vertices: well under a millisecond."""

GLOBAL_WORK: Final = 4
"""Global relabel after this many times 4 n + m steps (arcs scanned, forest links changed or walked)."""

FLAT_WORK: Final = 8
"""The same before the first global relabel of a flat start."""

FLAT_DEGREE: Final = 3
"""Start flat below this many arcs a vertex."""


@njit(nogil=True, cache=True)
def along(reverse_arc, a, mirror):
    """The index at which the residual of arc `a` lies."""
    if mirror is None:
        return a
    return reverse_arc[a]


@njit(nogil=True, cache=True)
def against(reverse_arc, a, mirror):
    """The index at which the residual of the reverse of arc `a` lies."""
    if mirror is None:
        return reverse_arc[a]
    return a


@njit(nogil=True, cache=True)
def lend(row_offsets, head, reverse_arc, residual, excess, role, mirror):
    """Saturate the arcs into unlimited vertices: their tails get deficits, so no tree grows on one huge root.

    A deficit greater than all positive excess is never filled, so no more is lent than makes one; that cannot
    overflow. Returns the amounts, one for each arc of an unlimited vertex, in order.
    """
    enough = 1
    slots = 0
    for v in range(len(role)):
        if role[v] == ORDINARY:
            enough += max(0, excess[v])
        elif role[v] == UNLIMITED:
            slots += row_offsets[v + 1] - row_offsets[v]
    lent = np.zeros(slots, np.int64)
    i = 0
    for sink in range(len(role)):
        if role[sink] != UNLIMITED:
            continue
        for b in range(row_offsets[sink], row_offsets[sink + 1]):
            v = head[b]
            if role[v] == ORDINARY and excess[v] > -enough:
                forward = against(reverse_arc, b, mirror)
                amount = min(residual[forward], enough + excess[v])
                residual[forward] -= amount
                residual[along(reverse_arc, b, mirror)] += amount
                excess[sink] += amount
                excess[v] -= amount
                lent[i] = amount
            i += 1
    return lent


@njit(nogil=True, cache=True)
def take_back(row_offsets, head, reverse_arc, residual, excess, role, lent, mirror):
    """Undo what of `lend` no excess has filled."""
    i = 0
    for sink in range(len(role)):
        if role[sink] != UNLIMITED:
            continue
        for b in range(row_offsets[sink], row_offsets[sink + 1]):
            v = head[b]
            if lent[i] > 0 and excess[v] < 0:
                amount = min(lent[i], -excess[v])
                residual[against(reverse_arc, b, mirror)] += amount
                residual[along(reverse_arc, b, mirror)] -= amount
                excess[sink] -= amount
                excess[v] += amount
            i += 1


@njit(nogil=True, cache=True)
def exact_labels(row_offsets, head, reverse_arc, residual, excess, role, label, queue, control, mirror, nearest):
    """Breadth-first search from all deficits against residual arcs; vertices that reach none get label n.

    With `nearest` it stops at the first excess, at distance k, and all that is farther gets label k: exact labels
    behind the excess give no direction, they only fill levels and so put off the gaps.
    """
    control[GLOBAL_RELABELS] += 1
    n = len(role)
    end = 0
    for v in range(n):
        if role[v] != ORDINARY:
            label[v] = n + 1
        elif excess[v] < 0:
            label[v] = 0
            queue[end] = v
            end += 1
        else:
            label[v] = n
    i = 0
    while i < end:
        v = queue[i]
        i += 1
        if i & POLL_MASK == 0 and control[CANCEL] != 0:
            return
        distance = label[v] + 1
        for a in range(row_offsets[v], row_offsets[v + 1]):
            w = head[a]
            if label[w] == n and residual[against(reverse_arc, a, mirror)] > 0:
                label[w] = distance
                queue[end] = w
                end += 1
                if nearest and excess[w] > 0:
                    for x in range(n):
                        label[x] = min(label[x], distance) if role[x] == ORDINARY else n + 1
                    return


@njit(nogil=True, cache=True)
def flat_labels(excess, role, label):
    """The simplest valid labels: 1 where there is excess, else 0."""
    n = len(role)
    for v in range(n):
        if role[v] != ORDINARY:
            label[v] = n + 1
        elif excess[v] > 0:
            label[v] = 1
        else:
            label[v] = 0


@njit(nogil=True, cache=True)
def plant(row_offsets, excess, role, label, forest, count, bucket):
    """Single-vertex trees, level counts and strong roots for the labels given; returns the highest strong label."""
    n = len(role)
    for k in range(n + 2):
        count[k] = 0
        bucket[k] = NONE
    highest = 0
    for v in range(n):
        forest[v, PARENT] = NONE
        forest[v, CHILD] = NONE
        forest[v, SIBLING] = NONE
        forest[v, CURRENT] = row_offsets[v]
        k = label[v]
        if k < n:
            count[k] += 1
            if excess[v] > 0:
                forest[v, NEXT_ROOT] = bucket[k]
                bucket[k] = v
                highest = max(highest, k)
    return highest


@njit(nogil=True, cache=True)
def bury(root, row_offsets, head, reverse_arc, residual, label, forest, count, queue, control, mirror):
    """Give label n to all that `root`, above a gap, can reach and to the subtrees below."""
    n = len(row_offsets) - 1
    count[label[root]] -= 1
    label[root] = n
    queue[0] = root
    i = 0
    end = 1
    while i < end:
        v = queue[i]
        i += 1
        if i & POLL_MASK == 0 and control[CANCEL] != 0:
            return
        child = forest[v, CHILD]
        while child >= 0:
            if label[child] < n:
                count[label[child]] -= 1
                label[child] = n
                queue[end] = child
                end += 1
            child = forest[child, SIBLING]
        for a in range(row_offsets[v], row_offsets[v + 1]):
            w = head[a]
            if label[w] < n and residual[along(reverse_arc, a, mirror)] > 0:
                count[label[w]] -= 1
                label[w] = n
                queue[end] = w
                end += 1


@njit(nogil=True, cache=True)
def search(root, level, row_offsets, head, reverse_arc, residual, label, forest, count, control, mirror):
    """Depth-first search of the part of root's tree at `level` for an admissible arc, relabelling what has none.

    Returns the arc's tail and the arc (NONE, NONE if the whole part, root included, now has label level + 1),
    and the work done.
    """
    v = root
    work = 0
    relabels = 0
    visited = 0
    below = level - 1
    found = NONE
    forest[v, SEARCH] = forest[v, CHILD]
    while True:
        first = forest[v, CURRENT]
        end = row_offsets[v + 1]
        a = first
        while a < end:
            if label[head[a]] == below and residual[along(reverse_arc, a, mirror)] > 0:
                found = a
                break
            a += 1
        forest[v, CURRENT] = a
        work += 1 + a - first
        visited += 1
        if found >= 0 or (visited & POLL_MASK == 0 and control[CANCEL] != 0):
            break
        while v >= 0:  # go on to a child of this level, or relabel and go up
            child = forest[v, SEARCH]
            while child >= 0 and label[child] != level:
                child = forest[child, SIBLING]
            if child >= 0:
                forest[v, SEARCH] = forest[child, SIBLING]
                v = child
                forest[v, SEARCH] = forest[v, CHILD]
                break
            label[v] = level + 1
            forest[v, CURRENT] = row_offsets[v]
            relabels += 1
            v = forest[v, PARENT]
        if v < 0:
            break
    count[level] -= relabels
    count[level + 1] += relabels
    control[RELABELS] += relabels
    control[ARCS_SCANNED] += work
    return v, found, work


@njit(nogil=True, cache=True)
def detach(v, parent, forest):
    """Take v out of its parent's list of children."""
    child = forest[parent, CHILD]
    if child == v:
        forest[parent, CHILD] = forest[v, SIBLING]
        return
    while forest[child, SIBLING] != v:
        child = forest[child, SIBLING]
    forest[child, SIBLING] = forest[v, SIBLING]


@njit(nogil=True, cache=True)
def rehang(v, arc, head, reverse_arc, forest):
    """Re-root v's tree at v and hang v under the head of `arc`; returns the length of the path turned round."""
    parent = head[arc]
    steps = 0
    while True:
        old_parent = forest[v, PARENT]
        old_arc = forest[v, PARENT_ARC]
        if old_parent >= 0:
            detach(v, old_parent, forest)
        forest[v, PARENT] = parent
        forest[v, PARENT_ARC] = arc
        forest[v, SIBLING] = forest[parent, CHILD]
        forest[parent, CHILD] = v
        steps += 1
        if old_parent < 0:
            return steps
        arc = reverse_arc[old_arc]
        parent = v
        v = old_parent


@njit(nogil=True, cache=True)
def push_up(v, reverse_arc, residual, excess, label, forest, count, bucket, highest, mirror):
    """Push the excess of v, an old root, up to the root of its new tree, splitting where an arc is too small.

    Returns the highest label of a strong root and the length of the path.
    """
    amount = excess[v]
    excess[v] = 0
    steps = 0
    while True:
        parent = forest[v, PARENT]
        steps += 1
        if parent < 0:
            before = excess[v]
            excess[v] = before + amount
            if before > 0 or before + amount <= 0:
                return highest, steps
        else:
            arc = forest[v, PARENT_ARC]
            forward = along(reverse_arc, arc, mirror)
            back = against(reverse_arc, arc, mirror)
            room = residual[forward]
            pushed = min(room, amount)
            residual[forward] = room - pushed
            residual[back] += pushed
            if room >= amount:
                v = parent
                continue
            excess[v] = amount - pushed
            detach(v, parent, forest)
            forest[v, PARENT] = NONE
        forest[v, NEXT_ROOT] = bucket[label[v]]
        bucket[label[v]] = v
        highest = max(highest, label[v])
        if parent < 0 or pushed == 0:
            return highest, steps
        amount = pushed
        v = parent


@njit(nogil=True, cache=True)
def lift_filled(row_offsets, label, forest, count, bucket):
    """Relabel the strong roots of label 0, deficits filled meanwhile, to 1; returns the highest strong label.

    They wait until no other strong root is left, so that excess moves in waves and not one deep path at a time.
    """
    root = bucket[0]
    bucket[0] = NONE
    if root < 0:
        return 0
    while root >= 0:
        following = forest[root, NEXT_ROOT]
        label[root] = 1
        count[0] -= 1
        count[1] += 1
        forest[root, CURRENT] = row_offsets[root]
        forest[root, NEXT_ROOT] = bucket[1]
        bucket[1] = root
        root = following
    return 1


@njit(nogil=True, cache=True)
def solve(row_offsets, head, reverse_arc, residual, excess, role, label, forest, count, bucket, queue, control, mirror):
    """Move excess to deficits until none can; returns False if cancelled. See the head of this file."""
    n = len(role)
    size = 4 * n + len(head)
    work = 0
    if len(head) < FLAT_DEGREE * n:
        limit = FLAT_WORK * size
        flat_labels(excess, role, label)
    else:
        limit = GLOBAL_WORK * size
        exact_labels(row_offsets, head, reverse_arc, residual, excess, role, label, queue, control, mirror, True)
    highest = plant(row_offsets, excess, role, label, forest, count, bucket)
    while highest > 0:
        if control[CANCEL] != 0:
            return False
        if work > limit:
            work = 0
            limit = GLOBAL_WORK * size
            exact_labels(row_offsets, head, reverse_arc, residual, excess, role, label, queue, control, mirror, False)
            highest = plant(row_offsets, excess, role, label, forest, count, bucket)
            continue
        root = bucket[highest]
        if root < 0:
            highest -= 1
            if highest == 0:
                highest = lift_filled(row_offsets, label, forest, count, bucket)
            continue
        bucket[highest] = forest[root, NEXT_ROOT]
        if label[root] != highest:
            continue  # buried while it waited
        if count[highest - 1] == 0:
            bury(root, row_offsets, head, reverse_arc, residual, label, forest, count, queue, control, mirror)
            continue
        v, arc, steps = search(
            root, highest, row_offsets, head, reverse_arc, residual, label, forest, count, control, mirror
        )
        work += steps
        if arc < 0:
            highest += 1
            forest[root, NEXT_ROOT] = bucket[highest]
            bucket[highest] = root
            continue
        work += rehang(v, arc, head, reverse_arc, forest)
        highest, steps = push_up(
            root, reverse_arc, residual, excess, label, forest, count, bucket, highest, mirror
        )
        work += steps
        control[PUSHES] += steps
    return control[CANCEL] == 0


@njit(nogil=True, cache=True)
def drain_kernel(
    row_offsets, head, reverse_arc, residual, excess, role, side, label, forest, count, bucket, queue, control, mirror
):  # fmt: skip
    """Lend, solve, take back, and mark the buried set; returns False if cancelled (then `side` is not written)."""
    n = len(role)
    if mirror is not None:
        for v in range(n):
            excess[v] = -excess[v]
    lent = lend(row_offsets, head, reverse_arc, residual, excess, role, mirror)
    done = solve(
        row_offsets, head, reverse_arc, residual, excess, role, label, forest, count, bucket, queue, control, mirror
    )
    take_back(row_offsets, head, reverse_arc, residual, excess, role, lent, mirror)
    if done:
        for v in range(n):
            side[v] = label[v] == n
    if mirror is not None:
        for v in range(n):
            excess[v] = -excess[v]
    return done
