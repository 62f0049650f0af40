"""Pseudoflow with distance labels: the kernels behind `drain`.

Definitions. A *pseudoflow* respects capacities; the excess of a vertex is its inflow minus its outflow and may
have either sign. A *label* (height) is a lower bound of a vertex's residual distance to a deficit. The vertices
form a *forest*: every non-root hangs on its parent by an arc (its parent arc, pointing up), and all excess and
all deficit lies on roots. A tree whose root has positive excess is *strong*, every other tree is *weak*.

Step. Take a strong root of highest label k. Search the part of its tree with label k for a residual arc (v, w)
with label(w) = k - 1. If there is one, *merge*: re-root the tree at v, hang v under w, and push the excess of the
old root up to the new one; where a parent arc is too small it is saturated, its lower end keeps the remainder and
becomes a strong root (*split*). A vertex of the searched part without such an arc, whose children of label k are
done, is *relabelled* to k + 1. A root of label 0, a deficit that was filled, waits until no other strong root is
left: so excess moves in waves and not one deep path at a time.

Invariants.
1. 0 <= residual, and the sum over an arc and its reverse never changes.
2. label(u) <= label(v) + 1 for each residual arc (u, v).
3. A parent's label is at most its children's.
4. Excess is zero on every non-root, so dropping the forest at any time leaves a valid pseudoflow: a cancelled
   drain, and a global relabel, simply start again from single-vertex trees.

Gap. If no vertex has label k - 1, no residual path leads from a vertex of label >= k to a deficit; and no path is
longer than n - 1. The vertices that such a strong tree can reach, and the subtrees below, are *cut off*: never touched
again. A set that is cut off is closed, so these vertices at the end are the closed set that `drain` reports.

The first labels are flat: 1 where there is excess, else 0. So few levels are filled, and a gap soon cuts off what is
stuck. Where that does not end within a budget (excess must travel far in a narrow network), labels become exact
distances, as in push-relabel: a global relabel, repeated by work done.

Termination. Labels never fall (a global relabel sets the exact distance, which is at least any valid label) and
stay <= n, so there are at most n^2 relabels. Between two relabels a search moves on in an arc list or ends; a
merge uses an arc that is not admissible again before a relabel, so there are O(n m) merges of O(n) each: O(n^2 m)
in all, the bound of the simple labelling pseudoflow algorithm. Global relabels come only after work in proportion
to n + m.

Hochbaum, "The pseudoflow algorithm: a new algorithm for the maximum-flow problem", Operations Research 56 (2008).
Chandran, Hochbaum, "A computational study of the pseudoflow and push-relabel algorithms for the maximum flow
problem", Operations Research 57 (2009). Exact labels, gaps and global relabels by work done are those of
Cherkassky, Goldberg, "On implementing the push-relabel method for the maximum flow problem", Algorithmica 19 (1997).

The mirrored problem (excess is pulled against the arcs) swaps the residuals of an arc and its reverse and negates
all excess. Kernels take `mirror`: None is the plain problem, an integer the mirrored one. The choice is made by
type, so each variant is compiled from this source without a test in its loops.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.control import Control
from gpu_engine.types import UnitArray

Index = NDArray[np.uint32]
"""Vertices, arcs and forest links are unsigned: an index then needs no test for a negative one."""


class Pseudoflow(NamedTuple):
    """The network (bidirectional CSR) and its flow; `residual` and `excess` are changed in place."""

    row_offsets: Index
    head: Index
    reverse_arc: Index
    residual: UnitArray
    excess: UnitArray
    role: NDArray[np.int8]


class Forest(NamedTuple):
    """Labels, trees and strong roots; contents mean nothing between drains."""

    label: NDArray[np.int32]
    """int32[n]"""
    links: Index
    """uint32[n, 8], half a cache line a vertex: the columns below."""
    population: NDArray[np.int32]
    """int32[n + 2]: vertices of each label."""
    bucket: Index
    """uint32[n + 2]: first strong root of each label."""
    queue: Index
    """uint32[n]"""


PARENT: Final = 0
PARENT_ARC: Final = 1
CHILD: Final = 2
NEXT: Final = 3  # sibling
NEXT_ROOT: Final = 3  # next strong root of the same label: a root has no siblings
PREVIOUS: Final = 4  # sibling
SEARCH: Final = 5  # next child to visit: no child before it has the vertex's own label
CURRENT: Final = 6  # position in the row, see `in_turn`: no arc before it is admissible
LAST: Final = 7  # child

NONE: Final = np.uint32(0xFFFF_FFFF)
ORDINARY: Final = 0
UNLIMITED: Final = 1

CANCEL: Final = Control.CANCEL
PUSHES: Final = Control.PUSHES
RELABELS: Final = Control.RELABELS
GLOBAL_RELABELS: Final = Control.GLOBAL_RELABELS
ARCS_SCANNED: Final = Control.ARCS_SCANNED
NARROW: Final = Control.NARROW
PASSED: Final = Control.PASSED

POLL_MASK: Final = 4095
"""Long loops look at the cancel flag every 4096 vertices: well under a millisecond."""

FLAT_WORK: Final = 16
"""First global relabel after this many times 4 n + m steps (arcs scanned, links turned round, arcs pushed on)."""

GLOBAL_WORK: Final = 4
"""Each later global relabel comes after this many times 4 n + m steps."""


@njit(nogil=True, cache=True)
def along(flow: Pseudoflow, a: int, mirror: int | None) -> int:
    """The index at which the residual of arc `a` lies."""
    if mirror is None:
        return a
    reverse: int = flow.reverse_arc[a]
    return reverse


@njit(nogil=True, cache=True)
def against(flow: Pseudoflow, a: int, mirror: int | None) -> int:
    """The index at which the residual of the reverse of arc `a` lies."""
    if mirror is not None:
        return a
    reverse: int = flow.reverse_arc[a]
    return reverse


@njit(nogil=True, cache=True)
def in_turn(flow: Pseudoflow, v: int, i: int, mirror: int | None) -> int:
    """The arc of v's row whose turn is at ``i``: rows are read from the front, in the mirrored problem from the back.

    So a mirrored solve does what a plain one does on the mirror image with its vertices numbered backwards. Where the
    numbers run with the flow, as in levels and frames, the order of a row makes up to seven times of a solve.
    """
    if mirror is None:
        return i
    last = np.uint64(flow.row_offsets[v + 1]) - np.uint64(1)
    return np.uint64(flow.row_offsets[v]) + last - np.uint64(i)  # type: ignore[return-value]  # an index, unsigned


@njit(nogil=True, cache=True)
def saturate_unlimited(flow: Pseudoflow, mirror: int | None) -> UnitArray:
    """Saturate the arcs into unlimited vertices: their tails get deficits, so no tree grows on one huge root.

    A deficit greater than all positive excess is never filled, so no more is pushed than makes one; that cannot
    overflow. Returns the amounts, one for each arc of an unlimited vertex, in order.
    """
    row_offsets, role, excess = flow.row_offsets, flow.role, flow.excess
    enough = 1
    count = 0
    for v in range(len(role)):
        if role[v] == ORDINARY:
            enough += max(0, excess[v])
        elif role[v] == UNLIMITED:
            count += row_offsets[v + 1] - row_offsets[v]
    pushed = np.zeros(count, np.int64)
    i = 0
    for sink in range(len(role)):
        if role[sink] != UNLIMITED:
            continue
        for b in range(row_offsets[sink], row_offsets[sink + 1]):
            v = flow.head[b]
            if role[v] == ORDINARY and excess[v] > -enough:
                forward = against(flow, b, mirror)
                amount = min(flow.residual[forward], enough + excess[v])
                flow.residual[forward] -= amount
                flow.residual[along(flow, b, mirror)] += amount
                excess[sink] += amount
                excess[v] -= amount
                pushed[i] = amount
            i += 1
    return pushed


@njit(nogil=True, cache=True)
def undo_saturation(flow: Pseudoflow, pushed: UnitArray, mirror: int | None) -> None:
    """Undo `saturate_unlimited` where no excess has filled the deficit that it made."""
    i = 0
    for sink in range(len(flow.role)):
        if flow.role[sink] != UNLIMITED:
            continue
        for b in range(flow.row_offsets[sink], flow.row_offsets[sink + 1]):
            v = flow.head[b]
            if pushed[i] > 0 and flow.excess[v] < 0:
                amount = min(pushed[i], -flow.excess[v])
                flow.residual[against(flow, b, mirror)] += amount
                flow.residual[along(flow, b, mirror)] -= amount
                flow.excess[sink] -= amount
                flow.excess[v] += amount
            i += 1


@njit(nogil=True, cache=True)
def exact_labels(flow: Pseudoflow, forest: Forest, slots: NDArray[np.int64], mirror: int | None) -> None:
    """Breadth-first search from all deficits against residual arcs; vertices that reach none are cut off."""
    slots[GLOBAL_RELABELS] += 1
    label, queue, role = forest.label, forest.queue, flow.role
    n = len(role)
    cut_off = n + 1
    end = 0
    for v in range(n):
        if role[v] != ORDINARY:
            label[v] = n + 2
        elif flow.excess[v] < 0:
            label[v] = 0
            queue[end] = v
            end += 1
        else:
            label[v] = cut_off
    i = 0
    while i < end:
        v = queue[i]
        i += 1
        if i & POLL_MASK == 0 and slots[CANCEL] != 0:
            return
        distance = label[v] + 1
        for a in range(flow.row_offsets[v], flow.row_offsets[v + 1]):
            w = flow.head[a]
            if label[w] == cut_off and flow.residual[against(flow, a, mirror)] > 0:
                label[w] = distance
                queue[end] = w
                end += 1


@njit(nogil=True, cache=True)
def flat_labels(flow: Pseudoflow, label: NDArray[np.int32]) -> None:
    """The simplest valid labels: 1 where there is excess, else 0."""
    n = len(flow.role)
    for v in range(n):
        if flow.role[v] != ORDINARY:
            label[v] = n + 2
        elif flow.excess[v] > 0:
            label[v] = 1
        else:
            label[v] = 0


@njit(nogil=True, cache=True)
def reset_forest(flow: Pseudoflow, forest: Forest) -> int:
    """Single-vertex trees, level counts and strong roots for the labels given; returns the highest strong label."""
    n = len(flow.role)
    for k in range(n + 2):
        forest.population[k] = 0
        forest.bucket[k] = NONE
    highest = 0
    for v in range(n):
        forest.links[v, PARENT] = NONE
        forest.links[v, CHILD] = NONE
        forest.links[v, SEARCH] = NONE
        forest.links[v, LAST] = NONE
        forest.links[v, CURRENT] = flow.row_offsets[v]
        k = forest.label[v]
        if k <= n:
            forest.population[k] += 1
            if flow.excess[v] > 0:
                forest.links[v, NEXT_ROOT] = forest.bucket[k]
                forest.bucket[k] = v
                highest = max(highest, k)
    return highest


@njit(nogil=True, cache=True)
def gap_relabel(root: int, flow: Pseudoflow, forest: Forest, slots: NDArray[np.int64], mirror: int | None) -> None:
    """Cut off all vertices that `root`, above a gap, can reach, and the subtrees below."""
    label, links, queue = forest.label, forest.links, forest.queue
    population = forest.population
    cut_off = len(flow.role) + 1
    population[label[root]] -= 1
    label[root] = cut_off
    queue[0] = root
    i = 0
    end = 1
    while i < end:
        v = queue[i]
        i += 1
        if i & POLL_MASK == 0 and slots[CANCEL] != 0:
            return
        child = links[v, CHILD]
        while child != NONE:
            if label[child] < cut_off:
                population[label[child]] -= 1
                label[child] = cut_off
                queue[end] = child
                end += 1
            child = links[child, NEXT]
        for a in range(flow.row_offsets[v], flow.row_offsets[v + 1]):
            w = flow.head[a]
            if label[w] < cut_off and flow.residual[along(flow, a, mirror)] > 0:
                population[label[w]] -= 1
                label[w] = cut_off
                queue[end] = w
                end += 1


@njit(nogil=True, cache=True)
def search(
    root: int, level: int, flow: Pseudoflow, forest: Forest, slots: NDArray[np.int64], mirror: int | None
) -> tuple[int, int, int]:
    """Depth-first search of the part of root's tree at `level` for an admissible arc, relabelling what has none.

    Returns the arc's tail and the arc (NONE, NONE if the whole part, root included, now has label level + 1),
    and the work done. Children that are passed over count in ``slots`` alone (`PASSED`). While a vertex keeps its
    label, its children are passed over once: those of a hub are thousands.
    """
    label, links = forest.label, forest.links
    v = root
    work = 0
    passed = 0
    relabels = 0
    visited = 0
    found = int(NONE)
    while True:
        first = links[v, CURRENT]
        end = flow.row_offsets[v + 1]
        i = first
        while i < end:
            a = in_turn(flow, v, i, mirror)
            if label[flow.head[a]] == level - 1 and flow.residual[along(flow, a, mirror)] > 0:
                found = a
                break
            i += 1
        links[v, CURRENT] = i
        work += 1 + i - first
        visited += 1
        if found != NONE or (visited & POLL_MASK == 0 and slots[CANCEL] != 0):
            break
        while v != NONE:  # go on to a child of this level, or relabel and go up
            child = links[v, SEARCH]
            while child != NONE and label[child] != level:
                child = links[child, NEXT]
                passed += 1
            if child != NONE:
                links[v, SEARCH] = links[child, NEXT]
                v = child
                break
            label[v] = level + 1
            links[v, CURRENT] = flow.row_offsets[v]
            links[v, SEARCH] = links[v, CHILD]
            relabels += 1
            v = links[v, PARENT]
        if v == NONE:
            break
    forest.population[level] -= relabels
    forest.population[level + 1] += relabels
    slots[RELABELS] += relabels
    slots[ARCS_SCANNED] += work
    slots[PASSED] += passed
    return v, found, work


@njit(nogil=True, cache=True)
def detach(v: int, parent: int, links: Index) -> None:
    """Take v out of its parent's list of children."""
    before = links[v, PREVIOUS]
    after = links[v, NEXT]
    if before == NONE:
        links[parent, CHILD] = after
    else:
        links[before, NEXT] = after
    if after == NONE:
        links[parent, LAST] = before
    else:
        links[after, PREVIOUS] = before
    if links[parent, SEARCH] == v:
        links[parent, SEARCH] = after


@njit(nogil=True, cache=True)
def attach(v: int, parent: int, after: int, links: Index) -> None:
    """Put v into the list of children of `parent`, before the child `after`, or last if that is NONE."""
    before = links[parent, LAST] if after == NONE else links[after, PREVIOUS]
    links[v, PREVIOUS] = before
    links[v, NEXT] = after
    if before == NONE:
        links[parent, CHILD] = v
    else:
        links[before, NEXT] = v
    if after == NONE:
        links[parent, LAST] = v
    else:
        links[after, PREVIOUS] = v


@njit(nogil=True, cache=True)
def merge(v: int, arc: int, flow: Pseudoflow, links: Index) -> int:
    """Merge v's tree into another: re-root it at v and make v a child of the head of `arc`.

    v has a higher label than its new parent, which need not visit it; those on the path to the old root have one label,
    and each is the next child that its new parent visits. Returns the length of the path turned round.
    """
    parent = flow.head[arc]
    steps = 0
    while True:
        old_parent = links[v, PARENT]
        old_arc = links[v, PARENT_ARC]
        if old_parent != NONE:
            detach(v, old_parent, links)
        if steps == 0:
            attach(v, parent, links[parent, CHILD], links)
        else:
            attach(v, parent, links[parent, SEARCH], links)
            links[parent, SEARCH] = v
        links[v, PARENT] = parent
        links[v, PARENT_ARC] = arc
        steps += 1
        if old_parent == NONE:
            return steps
        arc = flow.reverse_arc[old_arc]
        parent = v
        v = old_parent


@njit(nogil=True, cache=True)
def push_up(v: int, highest: int, flow: Pseudoflow, forest: Forest, mirror: int | None) -> tuple[int, int]:
    """Push the excess of v, an old root, up to the root of its new tree, splitting where an arc is too small.

    Returns the highest label of a strong root and the length of the path.
    """
    excess, residual, links = flow.excess, flow.residual, forest.links
    amount = excess[v]
    excess[v] = 0
    steps = 0
    while True:
        parent = links[v, PARENT]
        pushed = amount
        steps += 1
        if parent == NONE:
            before = excess[v]
            excess[v] = before + amount
            if before > 0 or before + amount <= 0:
                return highest, steps
        else:
            arc = links[v, PARENT_ARC]
            forward = along(flow, arc, mirror)
            available = residual[forward]
            pushed = min(available, amount)
            residual[forward] = available - pushed
            residual[against(flow, arc, mirror)] += pushed
            if pushed == amount:
                v = parent
                continue
            excess[v] = amount - pushed
            detach(v, parent, links)
            links[v, PARENT] = NONE
        k = forest.label[v]
        links[v, NEXT_ROOT] = forest.bucket[k]
        forest.bucket[k] = v
        highest = max(highest, k)
        if parent == NONE or pushed == 0:
            return highest, steps
        amount = pushed
        v = parent


@njit(nogil=True, cache=True)
def lift_filled(flow: Pseudoflow, forest: Forest) -> int:
    """Relabel the strong roots of label 0, deficits filled meanwhile, to 1; returns the highest strong label."""
    root = forest.bucket[0]
    if root == NONE:
        return 0
    forest.bucket[0] = NONE
    while root != NONE:
        following = forest.links[root, NEXT_ROOT]
        forest.label[root] = 1
        forest.population[0] -= 1
        forest.population[1] += 1
        forest.links[root, CURRENT] = flow.row_offsets[root]
        forest.links[root, SEARCH] = forest.links[root, CHILD]
        forest.links[root, NEXT_ROOT] = forest.bucket[1]
        forest.bucket[1] = root
        root = following
    return 1


@njit(nogil=True, cache=True)
def steps_taken(slots: NDArray[np.int64]) -> int:
    """Arcs scanned and pushed over, and links of trees turned round or passed over, until now."""
    return int(slots[ARCS_SCANNED] + slots[PUSHES] + slots[PASSED])


@njit(nogil=True, cache=True)
def solve(flow: Pseudoflow, forest: Forest, allowed: float, slots: NDArray[np.int64], mirror: int | None) -> bool:
    """Move excess to deficits until none can; returns False if cancelled, or if it takes more than about ``allowed``
    steps (`steps_taken`). See the head of this file.
    """
    n = len(flow.role)
    size = 4 * n + len(flow.head)
    limit, between = FLAT_WORK * size, GLOBAL_WORK * size
    work, begun = 0, steps_taken(slots)
    flat_labels(flow, forest.label)
    highest = reset_forest(flow, forest)
    while highest > 0:
        if slots[CANCEL] != 0 or steps_taken(slots) - begun > allowed:
            return False
        if work >= limit:
            work, limit = 0, between
            exact_labels(flow, forest, slots, mirror)
            highest = reset_forest(flow, forest)
            continue
        root = forest.bucket[highest]
        if root == NONE:
            highest -= 1
            if highest == 0:
                highest = lift_filled(flow, forest)
            continue
        forest.bucket[highest] = forest.links[root, NEXT_ROOT]
        if forest.label[root] != highest:
            continue  # cut off while it waited
        if forest.population[highest - 1] == 0 or highest == n:
            gap_relabel(root, flow, forest, slots, mirror)
            continue
        v, arc, steps = search(root, highest, flow, forest, slots, mirror)
        work += steps
        if arc == NONE:
            highest += 1
            forest.links[root, NEXT_ROOT] = forest.bucket[highest]
            forest.bucket[highest] = root
            continue
        turned = merge(v, arc, flow, forest.links)
        slots[PASSED] += turned
        work += turned
        highest, steps = push_up(root, highest, flow, forest, mirror)
        work += steps
        slots[PUSHES] += steps
    return not slots[CANCEL]
