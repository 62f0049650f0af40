"""The cheapest flow of a value between terminals, with the potentials that prove it."""

from dataclasses import dataclass

import numpy as np

from gpu_engine.control import Control
from gpu_engine.footprint import Footprint, Room, unlimited
from gpu_engine.mincost.potentials import potentials
from gpu_engine.mincost.problem import Problem, problem_of, unbounded_cost
from gpu_engine.mincost.solver import solve, solver_bytes
from gpu_engine.mincost.successive import Sent, sent
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, UnitArray

BUILD_BYTES = 60
"""Bytes for each arc: the columns of the problem, and the arrays that the solver and the potentials are made from."""

SEARCHES = 24
"""How many searches of the whole network are tried before OR-tools is asked, which takes as long as hundreds of
them."""
FEW_UNITS = 200
"""A flow of at most this many units, each as large as the greatest common divisor of all capacities, is always sent
without OR-tools: each unit needs one search at most."""
FEW_STEPS = 4_000_000
"""The searches may look at this many arcs in any case. That takes a tenth of a second, less than the start of the
process in which OR-tools runs."""


@dataclass(frozen=True, slots=True)
class CheapestFlow:
    """A cheapest flow: ``flow`` int64[m] along each edge, and ``potential`` int64[n] that proves it. The vertex from
    which all flow comes has the potential 0."""

    flow: UnitArray
    potential: UnitArray
    sink_potential: int
    """The potential of the vertex to which all flow goes, beyond the sinks, each of which has a potential of its
    own."""
    by_solver: bool = False
    """Whether OR-tools has found the flow, and not shortest paths."""


def cheapest_flow(
    network: Network,
    cost: UnitArray,
    terminals: Terminals,
    value: int,
    control: Control | None = None,
    room: Room = unlimited,
) -> CheapestFlow:
    """A flow of ``value`` units that costs least; ``cost`` int64[m] is for a unit of flow, at most
    `gpu_engine.networks.validate.largest_cost`.

    Raises `Unbounded` for a cycle without limit that costs less than nothing, `Infeasible`, `CapacityOverflow`,
    `CostOverflow`, `Cancelled`, `OutOfMemory`. Cost scaling takes O(n^2 m log(nC)) at worst; ``room`` is asked for what
    the solver takes, in a process of its own, and 60 bytes an arc.
    """
    control = control or Control()
    room(Footprint(2 * BUILD_BYTES * network.n_edges))
    problem = problem_of(network, cost, terminals, value)
    _refuse_unlimited_cycles(network, problem, control)
    found = _by_few_paths(problem, control, room)
    if found is not None:
        return of_arcs(network, problem, *found)
    room(Footprint(solver_bytes(problem)))
    flow = solve(problem, control)
    return of_arcs(network, problem, flow, _potentials_of(problem, flow, control), by_solver=True)


def _by_few_paths(problem: Problem, control: Control, room: Room) -> Sent | None:
    """The flow if successive shortest paths from zero find it in little time, else None."""
    if (problem.cost < 0).any():
        return None
    if problem.value == 0:
        return Sent(np.zeros(len(problem.tail), np.int64), np.zeros(problem.n_vertices, np.int64))
    limits = problem.capacity[problem.capacity != INFINITE]
    units = problem.value // int(np.gcd(np.gcd.reduce(limits), problem.value))
    searches = max(SEARCHES, 2 * units if units <= FEW_UNITS else 0, FEW_STEPS // max(1, 2 * len(problem.tail)))
    return sent(problem, np.zeros(len(problem.tail), np.int64), problem.value, searches, control, room)


def _refuse_unlimited_cycles(network: Network, problem: Problem, control: Control) -> None:
    """Raises `Unbounded` for a cycle of arcs without a limit that costs less than nothing."""
    endless = np.flatnonzero(problem.capacity == INFINITE)
    if not (problem.cost[endless] < 0).any():
        return
    columns = (problem.tail[endless], problem.head[endless], problem.cost[endless])
    _, cycle = potentials(problem.n_vertices, *columns, control)
    if len(cycle):
        raise unbounded_cost(network, cycle)


def _potentials_of(problem: Problem, flow: UnitArray, control: Control) -> UnitArray:
    """int64[n_vertices]: potentials of the residual network. If there are none, as the flow is not a cheapest one,
    whoever proves the flow finds that. Raises `Cancelled`."""
    ahead, back = flow < problem.capacity, flow > 0
    tail = np.concatenate([problem.tail[ahead], problem.head[back]])
    head = np.concatenate([problem.head[ahead], problem.tail[back]])
    cost = np.concatenate([problem.cost[ahead], -problem.cost[back]])
    found, _ = potentials(problem.n_vertices, tail, head, cost, control)
    return found


def of_arcs(
    network: Network, problem: Problem, flow: UnitArray, potential: UnitArray, *, by_solver: bool = False
) -> CheapestFlow:
    """The flow int64[k] along each arc by edge, with its potentials int64[n_vertices]."""
    potential = potential - potential[-2]
    return CheapestFlow(problem.flow_of_edges(network, flow), potential[:-2], int(potential[-1]), by_solver)
