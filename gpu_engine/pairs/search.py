"""The maximum flow of one terminal pair by a search from both ends, in proportion to what it reaches.

Phases of a blocking flow from both sides (`gpu_engine.cpu.smallcut`) from zero flow, without anything that costs a
look at the whole network: marks carry the number of their phase and are never cleared, and each arc that was pushed on
is noted so that it can be taken back. The excess of the source and the deficit of the sink are more than any finite
cut; where they are used up, an unlimited path leads from one to the other.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.budget import Allowance
from gpu_engine.cpu.pseudoflow import ARCS_SCANNED, CANCEL, PUSHES, Index, Pseudoflow
from gpu_engine.cpu.reach import DEAD, Reach, begin, follow
from gpu_engine.cpu.smallcut import GAVE_UP, MET, augment, meet
from gpu_engine.types import MAX_TOTAL, UnitArray

UNLIMITED: Final = 4
"""An outcome beside those of `gpu_engine.cpu.smallcut`: no cut of the pair is finite."""

MORE: Final = MAX_TOTAL + 1


class Found(NamedTuple):
    """How a search ended."""

    kind: int
    """`smallcut.SOURCE_CUT`, `smallcut.SINK_CUT`, `GAVE_UP` or `UNLIMITED`."""
    value: int
    noted: int
    """How many arcs are noted in the log; more than it has places for if it was too short."""
    epoch: int
    """The number of the last phase, with which vertices are marked."""
    work: int
    """About how many arcs were scanned."""


@njit(nogil=True, cache=True)
def search_pair(
    flow: Pseudoflow,
    reach: Reach,
    log: Index,
    source: int,
    sink: int,
    epoch: int,
    limit: float,
    bounds: NDArray[np.float64],
    slots: NDArray[np.int64],
) -> Found:
    """Find a maximum flow, scanning at most about ``limit`` arcs; ``flow`` is at zero flow and without excess.

    Arcs on which flow was pushed stand in ``log``, some of them several times. ``bounds`` float64[2] is not used.
    """
    flow.excess[source], flow.excess[sink] = MORE, -MORE
    reach.excesses[0], reach.deficits[0] = source, sink
    kind, work, noted = MET, 0, 0
    while kind == MET:
        epoch += 2
        ahead = begin(flow, reach.node, reach.excesses, 1, reach.ahead, epoch, 1)
        behind = begin(flow, reach.node, reach.deficits, 1, reach.behind, epoch + 1, -1)
        if ahead.end == 0:
            kind = UNLIMITED
            break
        allowance = Allowance(limit - work, glance=np.inf, one_way=False, parts=0.0, whole=0.0, layers=-1.0)
        found = meet(flow, reach, ahead, behind, epoch, allowance, bounds, bounding=False, slots=slots)
        kind = found.kind
        work += found.work
        if kind == MET:
            noted, steps = join_noted(flow, reach, log, noted, found.met, epoch, limit - work, slots)
            work += steps
            if work > limit or noted > len(log):
                kind = GAVE_UP
    value = MORE - flow.excess[source]
    flow.excess[source] = flow.excess[sink] = 0
    slots[ARCS_SCANNED] += work
    return Found(GAVE_UP if slots[CANCEL] != 0 else kind, value, noted, epoch + 1, work)


@njit(nogil=True, cache=True)
def join_noted(
    flow: Pseudoflow,
    reach: Reach,
    log: Index,
    noted: int,
    met: int,
    epoch: int,
    allowed: float,
    slots: NDArray[np.int64],
) -> tuple[int, int]:
    """`smallcut.join` for one source and one sink, noting each arc; returns how many are noted, and the work."""
    head, node, trail = flow.head, reach.node, reach.trail
    work = 0
    for i in range(met):
        bridge = reach.meeting[i]
        u, w = head[flow.reverse_arc[bridge]], head[bridge]
        while flow.residual[bridge] > 0:
            if slots[CANCEL] != 0 or work > allowed or noted > len(log):
                return noted, work
            middle, x, steps = follow(u, flow, node, epoch, trail, 0, None)
            work += steps + 1
            if middle == DEAD:
                break
            end, y, steps = follow(w, flow, node, epoch + 1, trail, middle, 0)
            work += steps + 1
            if end == DEAD:
                break
            augment(flow, trail, middle, end, bridge, x, y)
            work += end
            slots[PUSHES] += end + 1
            for k in range(min(end, len(log) - noted)):
                log[noted + k] = trail[k]
            if noted + end < len(log):
                log[noted + end] = bridge
            noted += end + 1
            if flow.excess[x] == 0:
                return noted, work
    return noted, work


@njit(nogil=True, cache=True)
def take_back(flow: Pseudoflow, capacity: UnitArray, log: Index, noted: int) -> None:
    """Bring the residuals back to zero flow."""
    if noted > len(log):
        flow.residual[:] = capacity
        return
    for i in range(noted):
        for a in (log[i], flow.reverse_arc[log[i]]):
            flow.residual[a] = capacity[a]
