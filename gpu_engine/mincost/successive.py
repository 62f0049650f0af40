"""A cheapest flow by successive shortest paths, from one that is there (Ahuja, Magnanti, Orlin, "Network Flows" (1993),
section 9.8)."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.control import Control
from gpu_engine.cpu.shortest import Sides, Streets, settle, sides_of
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Footprint, Room
from gpu_engine.mincost.problem import Problem
from gpu_engine.types import UnitArray

FARTHEST: Final = 1 << 31
"""Distances are less than this: `settle` keeps them beside a vertex in one number."""
ARC_BYTES: Final = 120

ROUNDS: Final = 16
"""After the first searches, others are made in rounds. A round has one search for this many edges of the shortest way
between the terminals, because OR-tools looks at each arc about once for each edge of that way in long networks."""
MOST_ROUNDS: Final = 12
"""Another round is made only if the flow would be complete within this many rounds at the pace of the last one."""


class Sent(NamedTuple):
    """``flow`` int64[k] along each arc; with ``potential`` int64[n_vertices] no arc with room is a shortcut
    (`gpu_engine.mincost.potentials`)."""

    flow: UnitArray
    potential: UnitArray


def sent(problem: Problem, there: UnitArray, more: int, searches: int, control: Control, room: Room) -> Sent | None:
    """A cheapest flow of ``more`` units than ``there`` int64[k], which is a cheapest one and uses no arc that costs
    anything; no arc costs less than nothing.

    None where that takes more than so many searches of the whole network, which take a fraction of a microsecond an arc
    each, and would not soon be done in a long one; where distances do not fit, and where so much cannot flow. Raises
    `Cancelled`, and what ``room`` raises.
    """
    divisor = max(1, int(np.gcd.reduce(problem.cost)))
    length = problem.cost // divisor
    steps = min(problem.n_vertices, 2 * int((length > 0).sum()) + 1)
    if int(length.max(initial=0)) * steps >= FARTHEST:
        return None
    room(Footprint(ARC_BYTES * len(problem.tail)))
    n, none = problem.n_vertices, np.zeros(len(problem.tail), np.int64)
    ends = problem.tail.astype(np.int32), problem.head.astype(np.int32)
    streets = Streets(*ends, length, problem.capacity - there, there, none)
    excess, potential = np.zeros(n, np.int64), np.zeros(n, np.int64)
    excess[n - 2], excess[n - 1] = more, -more
    arcs, sides = 2 * len(problem.tail), sides_of(n, streets)

    def search(times: int) -> bool:
        return bool(settle(streets, sides, potential, excess, times * arcs, control.slots)[0])

    done = search(searches) or _in_rounds(search, excess, hops(sides, n - 2, n - 1), searches)
    if control.cancelled:
        raise Cancelled("cancelled while cheapest paths were looked for")
    return Sent(there + streets.flow, divisor * potential) if done else None


def _in_rounds(search: Callable[[int], bool], excess: UnitArray, length: int, used: int) -> bool:
    """Whether more searches, after so many ``used``, have sent the rest of ``excess`` over a way of this ``length``.
    They go on while, at the pace of the last round, they would be done in time."""
    a_round, most = length // ROUNDS, MOST_ROUNDS * length // ROUNDS
    while a_round > 0 and used + a_round <= most:
        before = int(excess[-2])
        if search(a_round):
            return True
        used += a_round
        flown = before - int(excess[-2])
        if flown == 0 or used + a_round * int(excess[-2]) // flown > most:
            break
    return False


@njit(cache=True, nogil=True)
def hops(sides: Sides, source: int, sink: int) -> int:
    """The least number of links on a way from one vertex to another, 0 if there is none. O(n + m)."""
    far = np.full(len(sides.offsets) - 1, -1, np.int32)
    queue = np.empty(len(far), np.int32)
    far[source], queue[0] = 0, source
    end, k = 1, 0
    while k < end and far[sink] < 0:
        v = queue[k]
        k += 1
        for i in range(sides.offsets[v], sides.offsets[v + 1]):
            w = sides.to[i]
            if sides.number[i] & 1 == 0 and far[w] < 0:
                far[w] = far[v] + 1
                queue[end] = w
                end += 1
    return max(int(far[sink]), 0)
