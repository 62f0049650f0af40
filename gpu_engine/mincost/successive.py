"""A cheapest flow by successive shortest paths, from one that is there (Ahuja, Magnanti, Orlin, "Network Flows" (1993),
section 9.8)."""

from typing import Final, NamedTuple

import numpy as np

from gpu_engine.cpu.shortest import Streets, settle, sides_of
from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Footprint, Room
from gpu_engine.mincost.problem import Problem
from gpu_engine.types import UnitArray

FARTHEST: Final = 1 << 31
"""Distances are less than this: `settle` keeps them beside a vertex in one number."""
ARC_BYTES: Final = 120


class Sent(NamedTuple):
    """``flow`` int64[k] along each arc; with ``potential`` int64[n_vertices] no arc with room is a shortcut
    (`gpu_engine.mincost.potentials`)."""

    flow: UnitArray
    potential: UnitArray


def sent(problem: Problem, there: UnitArray, more: int, searches: int, control: Control, room: Room) -> Sent | None:
    """A cheapest flow of ``more`` units than ``there`` int64[k], which is a cheapest one and uses no arc that costs
    anything; no arc costs less than nothing.

    None where that takes more than so many searches of the whole network, which take a fraction of a microsecond an arc
    each, where distances do not fit, and where so much cannot flow. Raises `Cancelled`, and what ``room`` raises.
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
    most_steps = searches * 2 * len(problem.tail)
    done, _ = settle(streets, sides_of(n, streets), potential, excess, most_steps, control.slots)
    if control.cancelled:
        raise Cancelled("cancelled while cheapest paths were looked for")
    return Sent(there + streets.flow, divisor * potential) if done else None
