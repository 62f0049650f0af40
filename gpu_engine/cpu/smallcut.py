"""Small cuts first: a blocking flow from both sides, within a budget, before anything floods.

A phase searches from all excesses and all deficits until the two meet (`gpu_engine.cpu.reach`), and then augments along
paths over the meeting arcs until none is left of this length: Dinic's blocking flow, searched from both ends. Where
few paths can exist, or the terminals stand in a corner of the network, it ends after looking at little of it.

Why the flow is right at any time. Each augmentation goes along a simple path (levels fall on either side, no vertex has
both marks) from an excess to a deficit, by at most what they have and what fits. So a pseudoflow stays one, no excess
or deficit changes its sign, and all other vertices keep theirs. Pushing only ever lowers the residual of arcs that
lead down a side, so a current arc that was passed over stays useless for the whole phase: a phase costs O(arcs of what
it reached) and the lengths of its paths. A phase that meets augments.

Why it ends with a cut. If the excesses' side is exhausted, what it reached holds all excess and no deficit, and no
residual arc leaves it but to vertices that are not ordinary: the least minimum cut. If the deficits' side is exhausted,
no residual arc enters what it reached, and the other ordinary vertices hold all excess: the greatest one.

The budget is in arcs scanned (`budget_for`). Without an end the flow stays as the start of the pseudoflow solve, and
the least bound that the layers of either side gave tells from which side that should begin (`AttemptResult`).

Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", Soviet Mathematics
Doklady 11 (1970). Pohl, "Bi-directional search", Machine Intelligence 6 (1971).
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import ARCS_SCANNED, CANCEL, PUSHES, Index, Pseudoflow
from gpu_engine.cpu.reach import (
    DEAD,
    LEVEL,
    USED_UP,
    Ends,
    Layer,
    Reach,
    Side,
    begin,
    clear_marks,
    follow,
    grow,
)

GAVE_UP: Final = 0
SOURCE_CUT: Final = 1
SINK_CUT: Final = 2
MET: Final = 3

FREE_SHARE: Final = 0.1
"""Any attempt may scan this share of the network's size (n + arcs)."""

FEW_PATHS: Final = 64
FEW_SHARE: Final = 2.5
MORE_SHARE: Final = 13.5
"""Where at most so many paths can exist, each as wide as a narrow arc, an attempt may scan this many sizes, and a
second one so many more: between the two `gpu_engine.cpu.drain` tries other ways."""

FEW_PATHS_OF_REPAIR: Final = 8
REPAIR_SHARE: Final = 1.0
"""What stands for these two in a repair, where the pseudoflow algorithm has little to do as well."""

SHALLOW_SHARE: Final = 6.0
"""An attempt may scan this many sizes where the sides meet after few layers, as they do in networks without long
distances: few phases are needed there."""

PHASE_SHARE: Final = 0.4
"""The search of one phase may scan this many sizes where the sides meet after few layers."""

CROWDED: Final = 4
"""With more than one vertex in so many an excess or a deficit, only the first layers are looked at."""

MANY: Final = 8
STRETCH: Final = 2
"""With so many excesses and deficits a phase goes on to twice the depth of the first meeting, while layers do not grow:
paths of unlike lengths are then found in one phase."""

LONG: Final = 64
NARROW: Final = 128
"""A network is long and narrow if the first phase has so many layers, with fewer vertices each in the mean. Streets,
with two to three arcs a vertex, never are unless they are thin: their layers widen, and excess is turned back at many a
crossing."""
THIN: Final = 4
"""A network is thin if these layers have fewer vertices than this in the mean: it is a few chains side by side."""

NARROW_SHARE: Final = 0.5
STREET_SHARE: Final = 2.5
"""In narrow networks a cold solve's attempt may scan so many sizes, as each phase is long and push-relabel needs no
phases; the second one is for streets. Elsewhere the first phase ends after `FREE_SHARE`."""

FANNED: Final = 1.8
FANNED_LAYERS: Final = 16
"""A sparse network fans out if the first phase does not meet in so many layers, of which each reaches so many times as
many vertices in the mean: the sides are trees, which meet at their leaves. In a solid, which is not sparse, the first
layers widen as fast."""

SAMPLE: Final = 256


class Budget(NamedTuple):
    """In arcs scanned."""

    limit: float
    """For the whole attempt."""
    phase: float
    """For the search of one phase."""
    may_grow: bool
    """Whether more may be scanned where the sides meet after few layers."""


class AttemptResult(NamedTuple):
    """``kind`` is SOURCE_CUT, SINK_CUT or GAVE_UP."""

    kind: int
    reached: int
    """How many vertices the exhausted side reached; they stand in `Reach.ahead` or `Reach.behind`."""
    most_out: float
    """An upper bound of the flow from the layers around the excesses."""
    most_in: float
    """An upper bound of the flow from the layers around the deficits."""
    narrow: bool
    """Whether the layers of the first phase were many, with few vertices each."""
    thin: bool
    """Whether they were a few chains side by side."""
    fanned: bool
    """Whether they widened by a factor, each beyond the one before, and did not meet."""


@njit(nogil=True, cache=True)
def narrow_capacity(flow: Pseudoflow) -> int:
    """The tenth of a hundred capacities between ordinary vertices, sampled; 1 if there is none."""
    arcs = len(flow.head)
    sample = np.empty(SAMPLE, np.int64)
    count = 0
    for i in range(min(arcs, SAMPLE)):
        a = i * arcs // min(arcs, SAMPLE)
        r = flow.reverse_arc[a]
        capacity = max(flow.residual[a], flow.residual[r])
        if capacity > 0 and flow.role[flow.head[a]] == 0 and flow.role[flow.head[r]] == 0:
            sample[count] = capacity
            count += 1
    if count == 0:
        return 1
    return int(np.sort(sample[:count])[count // 10])


@njit(nogil=True, cache=True)
def are_few(ends: Ends, narrow: int, repair: bool) -> bool:
    """Whether few paths can exist, by what the excesses and the deficits add up to; ``narrow`` as in `budget_for`."""
    return bool(min(ends.up, ends.down) <= (FEW_PATHS_OF_REPAIR if repair else FEW_PATHS) * narrow)


@njit(nogil=True, cache=True)
def budget_for(flow: Pseudoflow, ends: Ends, narrow: int, repair: bool) -> Budget:
    """``narrow``: about the capacity of the narrowest arc of a short path."""
    size = float(len(flow.role) + len(flow.head))
    share = FREE_SHARE
    if are_few(ends, narrow, repair):
        share = REPAIR_SHARE if repair else FEW_SHARE
    elif (ends.n_excesses + ends.n_deficits) * CROWDED > len(flow.role):
        share = 0.0
    return Budget(share * size, share * size, not repair)


@njit(nogil=True, cache=True)
def is_sparse(flow: Pseudoflow) -> bool:
    """Whether vertices have two to three arcs in the mean, as those of streets and trees have."""
    return 2 * len(flow.role) <= len(flow.head) < 3 * len(flow.role)


@njit(nogil=True, cache=True)
def shape(flow: Pseudoflow, reached: int, depth: int) -> tuple[bool, bool]:
    """Whether a network is narrow, and whether it is thin, where ``depth`` layers have ``reached`` vertices."""
    thin = depth >= LONG and reached < THIN * depth
    return thin or (not is_sparse(flow) and depth >= LONG and reached < NARROW * depth), thin


@njit(nogil=True, cache=True)
def meet(
    flow: Pseudoflow,
    reach: Reach,
    ahead: Layer,
    behind: Layer,
    epoch: int,
    allowed: float,
    glance: float,
    bounds: NDArray[np.float64],
    bounding: bool,
    slots: NDArray[np.int64],
) -> tuple[int, Layer, Layer, int, int, int, int]:
    """Grow both sides, the one that has scanned less first, until they meet, one is exhausted or it costs too much.

    Returns MET, a cut or GAVE_UP, the outermost layers, how many meeting arcs there are, the depth at which the first
    was found, that of the last layer, and the work done. If ``bounding``, ``bounds`` float64[2] falls to the least one
    of either side's layers. If the network is seen to be narrow after ``glance`` arcs, it is given up.
    """
    from_excesses, from_deficits = Side(reach.ahead, epoch, epoch + 1), Side(reach.behind, epoch + 1, epoch)
    met, met_depth, depth, last_step = 0, 0, 0, 0
    scanned_ahead, scanned_behind, work = 0, 0, 0
    many = min(ahead.end, behind.end) >= MANY
    while True:
        if met > 0:
            if met_depth == 0:
                met_depth = depth
            exhausted = ahead.first == ahead.end or behind.first == behind.end
            wider = min(ahead.arcs, behind.arcs) > last_step
            if not many or exhausted or wider or depth >= STRETCH * met_depth:
                break
        elif ahead.first == ahead.end:
            return SOURCE_CUT, ahead, behind, met, met_depth, depth, work
        elif behind.first == behind.end:
            return SINK_CUT, ahead, behind, met, met_depth, depth, work
        forward = scanned_ahead + ahead.arcs <= scanned_behind + behind.arcs
        step = ahead.arcs if forward else behind.arcs
        if work + step > allowed or slots[CANCEL] != 0:
            break
        if met == 0 and work + step > glance:
            if shape(flow, ahead.end + behind.end, depth)[0]:
                break
            glance = np.inf
        if met == 0:
            last_step = step
        depth += 1
        if forward:
            work += step + ahead.end - ahead.first
            scanned_ahead += step
            ahead, met, most = grow(flow, reach, from_excesses, ahead, met, bounding, slots, None)
            bounds[0] = min(bounds[0], most) if bounding else bounds[0]
        else:
            work += step + behind.end - behind.first
            scanned_behind += step
            behind, met, most = grow(flow, reach, from_deficits, behind, met, bounding, slots, 0)
            bounds[1] = min(bounds[1], most) if bounding else bounds[1]
    return MET if met > 0 else GAVE_UP, ahead, behind, met, met_depth, depth, work


@njit(nogil=True, cache=True)
def augment(flow: Pseudoflow, trail: Index, middle: int, end: int, bridge: int, x: int, y: int) -> None:
    """Push along the path from the excess x over the arc ``bridge`` to the deficit y as much as fits."""
    amount = min(flow.residual[bridge], min(flow.excess[x], -flow.excess[y]))
    for i in range(middle):
        amount = min(amount, flow.residual[flow.reverse_arc[trail[i]]])
    for i in range(middle, end):
        amount = min(amount, flow.residual[trail[i]])
    for i in range(end):
        gives = amount if i >= middle else -amount  # the first half was followed against the flow
        flow.residual[trail[i]] -= gives
        flow.residual[flow.reverse_arc[trail[i]]] += gives
    flow.residual[bridge] -= amount
    flow.residual[flow.reverse_arc[bridge]] += amount
    flow.excess[x] -= amount
    flow.excess[y] += amount


@njit(nogil=True, cache=True)
def join(
    flow: Pseudoflow,
    reach: Reach,
    met: int,
    epoch: int,
    allowed: float,
    slots: NDArray[np.int64],
) -> int:
    """Augment over the meeting arcs; returns the work done."""
    head, node, trail = flow.head, reach.node, reach.trail
    work = 0
    for i in range(met):
        bridge = reach.meeting[i]
        u, w = head[flow.reverse_arc[bridge]], head[bridge]
        while flow.residual[bridge] > 0:
            if slots[CANCEL] != 0 or work > allowed:
                return work
            middle, x, steps = follow(u, flow, node, epoch, trail, 0, None)
            work += steps + 1
            if middle == DEAD:
                break
            if flow.excess[x] <= 0:
                node[x, LEVEL] = USED_UP
                continue
            end, y, steps = follow(w, flow, node, epoch + 1, trail, middle, 0)
            work += steps + 1
            if end == DEAD:
                break
            if flow.excess[y] >= 0:
                node[y, LEVEL] = USED_UP
                continue
            augment(flow, trail, middle, end, bridge, x, y)
            work += end
            slots[PUSHES] += end + 1
    return work


@njit(nogil=True, cache=True)
def attempt(flow: Pseudoflow, reach: Reach, ends: Ends, budget: Budget, slots: NDArray[np.int64]) -> AttemptResult:
    """Try to move all excess that can reach a deficit there; ``ends`` as `list_ends` has just listed them.

    Cancelled, it has given up. See the head of this file.
    """
    bounds = np.array([ends.up, ends.down])
    left = min(ends.up, ends.down)
    if left > 0 and budget.limit == 0:
        return AttemptResult(GAVE_UP, 0, ends.up, ends.down, False, False, False)
    clear_marks(flow, reach.node)
    size = float(len(flow.role) + len(flow.head))
    n_excesses, n_deficits = ends.n_excesses, ends.n_deficits
    work, epoch, narrow, thin, fanned = 0, 0, False, False, False
    share = STREET_SHARE if is_sparse(flow) else NARROW_SHARE
    glance = FREE_SHARE * size if budget.may_grow and not is_sparse(flow) else np.inf
    while True:
        begun = work
        epoch += 2
        work += n_excesses + n_deficits
        ahead = begin(flow, reach.node, reach.excesses, n_excesses, reach.ahead, epoch, 1)
        behind = begin(flow, reach.node, reach.deficits, n_deficits, reach.behind, epoch + 1, -1)
        n_excesses, n_deficits = ahead.end, behind.end
        allowed = min(budget.limit - begun, budget.phase)
        first = begun == 0
        result, ahead, behind, met, met_depth, depth, steps = meet(
            flow, reach, ahead, behind, epoch, allowed, glance, bounds, first, slots
        )
        work += steps
        if first:
            narrow, thin = shape(flow, ahead.end + behind.end, depth)
            reached = ahead.end + behind.end
            widened = reached / max(1, n_excesses + n_deficits) > FANNED ** (depth / 2)
            fanned = result == GAVE_UP and depth >= FANNED_LAYERS and widened and is_sparse(flow)
            glance = np.inf
        if first and narrow and budget.may_grow:
            budget = Budget(min(budget.limit, share * size), budget.phase, False)
        if result == MET:
            if first and budget.may_grow and met_depth <= np.log2(size) / 2:
                budget = Budget(max(budget.limit, SHALLOW_SHARE * size), max(budget.phase, PHASE_SHARE * size), False)
            work += join(flow, reach, met, epoch, budget.limit - work, slots)
            if work <= budget.limit:
                continue
            result = GAVE_UP
        slots[ARCS_SCANNED] += work
        reached = ahead.end if result == SOURCE_CUT else behind.end
        kind = GAVE_UP if slots[CANCEL] != 0 else result
        return AttemptResult(kind, reached, bounds[0], bounds[1], narrow, thin, fanned)
