"""The maximum flow of one terminal pair by a search from both ends, in proportion to what it reaches.

Phases of a blocking flow from both sides (`gpu_engine.cpu.smallcut`) from zero flow, without anything that costs a
look at the whole network: marks carry the number of their phase and are never cleared, and each arc that was pushed on
is noted so that it can be taken back. The excess of a source without a cap and the deficit of such a sink are more than
any finite cut; where they are used up, an unlimited path leads from one to the other.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.budget import Allowance
from gpu_engine.cpu.pseudoflow import ARCS_SCANNED, CANCEL, PUSHES, Index, Pseudoflow
from gpu_engine.cpu.reach import DEAD, Reach, begin, follow
from gpu_engine.cpu.smallcut import GAVE_UP, MET, SOURCE_CUT, augment, meet
from gpu_engine.types import MAX_TOTAL, UnitArray

UNLIMITED: Final = 4
"""An outcome beside those of `gpu_engine.cpu.smallcut`: no cut of the pair is finite."""

MORE: Final = MAX_TOTAL + 1
"""The amount that an uncapped terminal gives or takes at most."""


class Pair(NamedTuple):
    """A source and a sink, and what they give and take at most: up to `MORE` units."""

    source: int
    sink: int
    supply: int
    demand: int


class Log(NamedTuple):
    """What a search has pushed: on which arcs, some of them several times, and how much in all."""

    arcs: Index
    units: UnitArray


class Found(NamedTuple):
    """How a search ended."""

    kind: int
    """`smallcut.SOURCE_CUT`, `smallcut.SINK_CUT`, `GAVE_UP` or `UNLIMITED`."""
    value: int
    reached: int
    """How many vertices stand in `Reach.ahead` or `Reach.behind`, which are the side that was exhausted. None if it is
    the cap of a terminal that limits the flow."""
    noted: int
    """How many entries the log has."""
    epoch: int
    """The number of the last phase, with which vertices are marked."""
    work: int
    """About how many arcs were scanned."""


@njit(nogil=True, cache=True)
def search_pair(
    flow: Pseudoflow,
    reach: Reach,
    log: Log,
    pair: Pair,
    epoch: int,
    limit: float,
    bounds: NDArray[np.float64],
    slots: NDArray[np.int64],
) -> Found:
    """Find a maximum flow, scanning at most about ``limit`` arcs; ``flow`` is at zero flow and without excess.

    A search whose ``log`` is full gives up, too. ``bounds`` float64[2] is not used.
    """
    source, sink = pair.source, pair.sink
    flow.excess[source], flow.excess[sink] = pair.supply, -pair.demand
    reach.excesses[0], reach.deficits[0] = source, sink
    kind, work, noted, reached = MET, 0, 0, 0
    while kind == MET:
        epoch += 2
        ahead = begin(flow, reach.node, reach.excesses, 1, reach.ahead, epoch, 1)
        behind = begin(flow, reach.node, reach.deficits, 1, reach.behind, epoch + 1, -1)
        if ahead.end == 0 and pair.supply == MORE:
            kind = UNLIMITED
            break
        allowance = Allowance(limit - work, glance=np.inf, one_way=False, parts=0.0, whole=0.0, layers=-1.0)
        found = meet(flow, reach, ahead, behind, epoch, allowance, bounds, bounding=False, slots=slots)
        kind = found.kind
        work += found.work
        reached = found.ahead.end if kind == SOURCE_CUT else found.behind.end
        if kind == MET:
            noted, steps, full = join_noted(flow, reach, log, noted, found.met, epoch, limit - work, slots)
            work += steps
            if work > limit or full:
                kind = GAVE_UP
    value = pair.supply - flow.excess[source]
    flow.excess[source] = flow.excess[sink] = 0
    slots[ARCS_SCANNED] += work
    return Found(GAVE_UP if slots[CANCEL] != 0 else kind, value, reached, noted, epoch + 1, work)


@njit(nogil=True, cache=True)
def join_noted(
    flow: Pseudoflow,
    reach: Reach,
    log: Log,
    noted: int,
    met: int,
    epoch: int,
    allowed: float,
    slots: NDArray[np.int64],
) -> tuple[int, int, bool]:
    """`smallcut.join` for one source and one sink, noting each arc; returns how many are noted, the work, and whether
    it has ended because the log has no room for another path."""
    head, node, trail = flow.head, reach.node, reach.trail
    work = 0
    for i in range(met):
        bridge = reach.meeting[i]
        u, w = head[flow.reverse_arc[bridge]], head[bridge]
        while flow.residual[bridge] > 0:
            if slots[CANCEL] != 0 or work > allowed:
                return noted, work, False
            middle, x, steps = follow(u, flow, node, epoch, trail, 0, None)
            work += steps + 1
            if middle == DEAD:
                break
            end, y, steps = follow(w, flow, node, epoch + 1, trail, middle, 0)
            work += steps + 1
            if end == DEAD:
                break
            if noted + end >= len(log.arcs):
                return noted, work, True
            before = flow.excess[x]
            augment(flow, trail, middle, end, bridge, x, y)
            amount = before - flow.excess[x]
            work += end
            slots[PUSHES] += end + 1
            trail[end] = bridge
            for k in range(end + 1):
                log.arcs[noted] = trail[k]
                log.units[noted] = -amount if k < middle else amount  # the first half was followed against the flow
                noted += 1
            if flow.excess[x] == 0 or flow.excess[y] == 0:
                return noted, work, False
    return noted, work, False


@njit(nogil=True, cache=True)
def take_back(flow: Pseudoflow, log: Log, noted: int) -> None:
    """Bring the residuals back to zero flow."""
    for i in range(noted):
        a, units = log.arcs[i], log.units[i]
        flow.residual[a] += units
        flow.residual[flow.reverse_arc[a]] -= units
