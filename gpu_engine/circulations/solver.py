"""A flow within lower and upper bounds, or the barrier that proves there is none."""

from typing import Literal

from gpu_engine.checks.circulations import Barrier, barrier, overfull
from gpu_engine.circulations.parts import worst_part
from gpu_engine.circulations.problem import Problem
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Counts, Footprint, Room, on_cpu, unlimited
from gpu_engine.networks.bounds import LowerBounds
from gpu_engine.networks.network import Network
from gpu_engine.types import BoolArray, UnitArray

BUILD_BYTES = 60
"""Bytes for each edge while the network of the problem is made."""
PROOF_BYTES = 50
"""Bytes for each edge while an answer is proven."""


def find_circulation(
    network: Network, bounds: LowerBounds, control: Control | None = None, room: Room = unlimited
) -> UnitArray | Barrier:
    """A flow int64[m] along each edge that keeps all bounds, which may lead round in cycles; or what proves that there
    is none: of several parts of the network that prove it, the one with the largest shortage.

    One maximum flow from zero on the CPU, in a network of its own. Neither the flow nor the barrier is checked here.
    Raises `CapacityOverflow`, `Cancelled`, `OutOfMemory`.
    """
    control, m = control or Control(), network.n_edges
    room(Footprint(BUILD_BYTES * m))
    if (bounds.lower > network.capacity).any():
        return overfull(network, bounds)
    k = len(bounds.terminals.sources) + len(bounds.terminals.sinks)
    room(on_cpu(Counts(network.n_vertices + 1, m + k, network.n_arcs + 2 * k)).network)
    problem = Problem.of(network, bounds)
    terminals = problem.terminals
    if terminals is None:
        return bounds.lower
    engine = CpuEngine(problem.network, room)
    state = engine.open(terminals)
    if engine.solve(state, control).value == int(terminals.supply.sum()):
        return engine.flow(state, control, acyclic=False)[:m] + bounds.lower
    inside, way = _set_of(problem, engine.cut(state, control).source_side, bounds, control, room)
    room(Footprint(PROOF_BYTES * m))
    return barrier(network, bounds, inside, way)


def _set_of(
    problem: Problem, source_side: BoolArray, bounds: LowerBounds, control: Control, room: Room
) -> tuple[BoolArray, Literal["enter", "leave"]]:
    """The vertices, bool[n], of a barrier, and which one it is. ``source_side`` bool[n + 1] is that of a cut that has
    no room for all that the flow would have to bring across it.

    The root belongs to no barrier: where it is among those that cannot be left by enough, the others cannot be entered
    by enough. Without terminals nothing joins it, both are true, and the shorter one is told. Raises `Cancelled`.
    """
    network, ends = problem.network, bounds.terminals
    room(Footprint(8 * network.n_arcs + 8 * network.n_vertices))
    capacity = network.arc_capacity()

    def part(inside: BoolArray, *, into: bool) -> BoolArray:
        links = network.row_offsets, network.head, network.reverse_arc
        found: BoolArray = worst_part(*links, capacity, problem.balance, inside, into, control.slots)
        if control.cancelled:
            raise Cancelled("cancelled while a proof was looked for")
        return found[:-1]

    if source_side[-1]:
        return part(~source_side, into=True), "enter"
    left = part(source_side, into=False)
    if len(ends.sources) or len(ends.sinks):
        return left, "leave"
    entered = part(~source_side, into=True)
    return (entered, "enter") if entered.sum() <= left.sum() else (left, "leave")
