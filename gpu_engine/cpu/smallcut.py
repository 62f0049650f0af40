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

The budget is in arcs scanned (`gpu_engine.cpu.budget`). Without an end the flow stays as the start of the pseudoflow
solve, and the least bound that the layers of either side gave tells from which side that should begin
(`AttemptResult`).

Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", Soviet Mathematics
Doklady 11 (1970). Pohl, "Bi-directional search", Machine Intelligence 6 (1971).
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.budget import (
    FANNED,
    FANNED_LAYERS,
    FORESEEN,
    FREE_SHARE,
    LONG_SPARSE,
    NARROW_SHARE,
    PARTS,
    PHASE_SHARE,
    SHALLOW,
    SHALLOW_EQUAL,
    SHALLOW_SHARE,
    SPARSE_ENDS,
    STREET_SHARE,
    THIN_GLANCE,
    WIDENING,
    Allowance,
    Budget,
    is_sparse,
    settled,
    shape,
)
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

MANY: Final = 8
"""From this many excesses and deficits on, a phase goes on after the first meeting, so that it finds paths of several
lengths."""
STRETCH: Final = 2
"""Such a phase goes on to this many times the depth of the first meeting, as long as its layers do not widen."""


class Meeting(NamedTuple):
    """How the search of one phase has ended."""

    kind: int
    """MET, SOURCE_CUT, SINK_CUT or GAVE_UP."""
    ahead: Layer
    """The outermost layer around the excesses."""
    behind: Layer
    """The outermost layer around the deficits."""
    met: int
    """How many arcs lead from one side to the other; they are listed in `Reach.meeting`."""
    met_depth: int
    """The depth at which the first of these arcs was found."""
    depth: int
    """The depth of the last layer."""
    work: int
    """Arcs scanned, and vertices whose rows were scanned."""
    apart: bool
    """Whether layers still widened when the search gave up."""


class AttemptResult(NamedTuple):
    """How an attempt has ended, and what its first phase has shown of the network."""

    kind: int
    """SOURCE_CUT, SINK_CUT or GAVE_UP."""
    reached: int
    """How many vertices the exhausted side reached; they stand in `Reach.ahead` or `Reach.behind`."""
    most_out: float
    """An upper bound of the flow from the layers around the excesses."""
    most_in: float
    """An upper bound of the flow from the layers around the deficits."""
    narrow: bool
    """Whether the layers of the first phase were many, with few vertices each."""
    thin: bool
    """Whether these layers were a few chains side by side (`gpu_engine.cpu.budget.THIN`)."""
    fanned: bool
    """Whether each layer was wider than the one before, and the sides did not meet (`gpu_engine.cpu.budget.FANNED`)."""
    shallow: bool
    """Whether the sides met after few layers, or their layers widened without meeting until it was clear that few arcs
    lead from one side to the other."""


@njit(nogil=True, cache=True)
def meet(
    flow: Pseudoflow,
    reach: Reach,
    ahead: Layer,
    behind: Layer,
    epoch: int,
    allowance: Allowance,
    bounds: NDArray[np.float64],
    bounding: bool,
    slots: NDArray[np.int64],
) -> Meeting:
    """Grow both sides, the one that has scanned less first, until they meet, one is exhausted or it costs too much.

    If ``bounding``, ``bounds`` float64[2] falls to the least one of either side's layers.
    """
    from_excesses, from_deficits = Side(reach.ahead, epoch, epoch + 1), Side(reach.behind, epoch + 1, epoch)
    met, met_depth, depth, last_step = 0, 0, 0, 0
    scanned_ahead, scanned_behind, work = 0, 0, 0
    before_ahead, before_behind, apart = ahead.arcs, behind.arcs, False
    allowed, glance, early = allowance.most, THIN_GLANCE * allowance.glance, True
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
            return Meeting(SOURCE_CUT, ahead, behind, met, met_depth, depth, work, apart=False)
        elif behind.first == behind.end:
            return Meeting(SINK_CUT, ahead, behind, met, met_depth, depth, work, apart=False)
        forward = scanned_ahead + ahead.arcs <= scanned_behind + behind.arcs
        step = ahead.arcs if forward else behind.arcs
        if work + step > allowed and met == 0 and depth <= allowance.layers:
            allowed = max(allowed, allowance.whole)
        if work + step > allowed or slots[CANCEL] != 0:
            widens = met == 0 and step >= WIDENING * (before_ahead if forward else before_behind)
            if not widens or work + step > allowance.parts or slots[CANCEL] != 0:
                apart = widens and allowance.parts > 0
                break
        if met == 0 and work + step > glance:
            long = depth >= LONG_SPARSE or (not early and not is_sparse(flow))
            narrow, thin = shape(flow, ahead.end + behind.end, depth, allowance.one_way)
            if long and (thin if early else narrow):
                break
            glance, early = allowance.glance if early else np.inf, False
        if met == 0:
            last_step = step
        depth += 1
        if forward:
            work += step + ahead.end - ahead.first
            scanned_ahead += step
            before_ahead = step
            ahead, met, most = grow(flow, reach, from_excesses, ahead, met, bounding, slots, None)
            bounds[0] = min(bounds[0], most) if bounding else bounds[0]
        else:
            work += step + behind.end - behind.first
            scanned_behind += step
            before_behind = step
            behind, met, most = grow(flow, reach, from_deficits, behind, met, bounding, slots, 0)
            bounds[1] = min(bounds[1], most) if bounding else bounds[1]
    return Meeting(MET if met > 0 else GAVE_UP, ahead, behind, met, met_depth, depth, work, apart)


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
    """Try to move all excess that can reach a deficit to deficits; ``ends`` as `list_ends` has just listed them.

    A cancelled attempt returns GAVE_UP. The head of this file says how it works.
    """
    bounds = np.array([ends.up, ends.down])
    left = min(ends.up, ends.down)
    if left > 0 and budget.limit == 0:
        return AttemptResult(GAVE_UP, 0, ends.up, ends.down, narrow=False, thin=False, fanned=False, shallow=False)
    clear_marks(flow, reach.node)
    size = float(len(flow.role) + len(flow.head))
    n_excesses, n_deficits = ends.n_excesses, ends.n_deficits
    work, epoch, narrow, thin, fanned, shallow = 0, 0, False, False, False, False
    shallow_depth = np.log2(size) * (SHALLOW_EQUAL if budget.equal else SHALLOW)
    share = STREET_SHARE if is_sparse(flow) else NARROW_SHARE
    glance = FREE_SHARE * size if budget.may_grow else np.inf
    while True:
        begun = work
        epoch += 2
        work += n_excesses + n_deficits
        ahead = begin(flow, reach.node, reach.excesses, n_excesses, reach.ahead, epoch, 1)
        behind = begin(flow, reach.node, reach.deficits, n_deficits, reach.behind, epoch + 1, -1)
        n_excesses, n_deficits = ahead.end, behind.end
        first = begun == 0
        growing = first and budget.may_grow
        layers = shallow_depth / FORESEEN if growing and budget.equal else -1.0
        most = min(budget.limit - begun, budget.phase)
        widening = growing and min(n_excesses, n_deficits) >= MANY and not is_sparse(flow)
        parts = PARTS * size if widening else 0.0
        allowance = Allowance(most, glance, budget.one_way, parts, size, layers)
        found = meet(flow, reach, ahead, behind, epoch, allowance, bounds, first, slots)
        kind, depth = found.kind, found.depth
        work += found.work
        if first:
            reached = found.ahead.end + found.behind.end
            narrow, thin = shape(flow, reached, depth, budget.one_way)
            widened = reached / max(1, n_excesses + n_deficits) > FANNED ** (depth / 2)
            shallow = found.apart
            fanned = kind == GAVE_UP and depth >= FANNED_LAYERS and widened and is_sparse(flow)
            glance = np.inf
        if first and narrow and budget.may_grow:
            budget = settled(budget, limit=min(budget.limit, share * size), phase=budget.phase)
        if kind == MET:
            if growing and found.met_depth <= shallow_depth:
                shallow = (n_excesses + n_deficits) * SPARSE_ENDS <= len(flow.role)
                phase = max(budget.phase, PHASE_SHARE * size, 1.5 * found.work if budget.equal else 0.0)
                budget = settled(budget, limit=max(budget.limit, SHALLOW_SHARE * size), phase=phase)
            work += join(flow, reach, found.met, epoch, budget.limit - work, slots)
            if work <= budget.limit:
                continue
            kind = GAVE_UP
        slots[ARCS_SCANNED] += work
        reached = found.ahead.end if kind == SOURCE_CUT else found.behind.end
        kind = GAVE_UP if slots[CANCEL] != 0 else kind
        return AttemptResult(kind, reached, bounds[0], bounds[1], narrow, thin, fanned, shallow)
