"""More of a cheapest flow, from one that is there."""

from typing import Final

import numpy as np

from gpu_engine.checks.flows import prove_flow
from gpu_engine.cpu.shortest import Streets, settle, sides_of
from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Footprint, Room
from gpu_engine.mincost.cheapest import CheapestFlow, with_potentials
from gpu_engine.mincost.problem import Problem, problem_of
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import UnitArray

SEARCHES: Final = 400
"""Searches of the whole network that are tried, at most; one takes a fraction of a microsecond an arc."""
FARTHEST: Final = 1 << 31
"""Distances are less than this: `settle` keeps them beside a vertex in one number."""
ARC_BYTES: Final = 120


def cheapest_from(
    network: Network,
    cost: UnitArray,
    terminals: Terminals,
    flow: UnitArray,
    more: int,
    control: Control,
    room: Room,
) -> CheapestFlow | None:
    """A cheapest flow of ``more`` units than ``flow`` int64[j] has, which is a cheapest one along the first edges and
    uses no edge that costs anything; no ``cost`` int64[m] is negative. None where that takes too many searches.

    Raises `Cancelled`.
    """
    along = np.zeros(network.n_edges, np.int64)
    along[: len(flow)] = flow
    proof = prove_flow(network, terminals, along)
    if proof.failures:
        return None
    problem = problem_of(network, cost, terminals, proof.value + more)
    room(Footprint(ARC_BYTES * len(problem.tail)))
    divisor = max(1, int(np.gcd.reduce(problem.cost)))
    length = problem.cost // divisor
    steps = min(problem.n_vertices, 2 * int((length > 0).sum()) + 1)
    if int(length.max(initial=0)) * steps >= FARTHEST:
        return None
    there = np.concatenate([_of_arcs(problem, along), proof.supplied, proof.delivered])
    n, none = problem.n_vertices, np.zeros(len(problem.tail), np.int64)
    ends = problem.tail.astype(np.int32), problem.head.astype(np.int32)
    streets = Streets(*ends, length, problem.capacity - there, there, none)
    excess, most_steps = np.zeros(n, np.int64), SEARCHES * 2 * len(problem.tail)
    excess[n - 2], excess[n - 1] = more, -more
    done, _ = settle(streets, sides_of(n, streets), np.zeros(n, np.int64), excess, most_steps, control.slots)
    if control.cancelled:
        raise Cancelled("cancelled while cheapest paths were looked for")
    return with_potentials(network, problem, there + streets.flow, control) if done else None


def _of_arcs(problem: Problem, along: UnitArray) -> UnitArray:
    """What the arcs of edges carry, of a flow by edge: that of an undirected one lies on one of its two arcs."""
    ahead, back = problem.edges[: problem.n_ahead], problem.edges[problem.n_ahead :]
    return np.concatenate([np.maximum(along[ahead], 0), np.maximum(-along[back], 0)])
