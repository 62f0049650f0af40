"""OR-tools in a process of its own, which is stopped when its answer is not wanted any more."""

import json
from typing import Final

import numpy as np

from gpu_engine.child import run
from gpu_engine.control import Control
from gpu_engine.errors import CapacityOverflow, CostOverflow, Infeasible, OutOfMemory
from gpu_engine.mincost.problem import Problem
from gpu_engine.types import UnitArray

PROCESS_BYTES: Final = 64 << 20
"""The process takes this many bytes at most before it is given a problem."""
ARC_BYTES: Final = 200
"""The process takes this many bytes for each arc, of which a solver makes two, with the columns it is sent."""
VERTEX_BYTES: Final = 100
SLACK_BYTES: Final = 16 << 20
"""The process may take this many bytes more than was reckoned before it is refused memory."""

PROCESS: Final = "gpu_engine.mincost.process"


def solver_bytes(problem: Problem) -> int:
    """Bytes that solving may take, in the other process."""
    return PROCESS_BYTES + ARC_BYTES * len(problem.tail) + VERTEX_BYTES * problem.n_vertices


def solve(problem: Problem, control: Control) -> UnitArray:
    """int64[k]: a cheapest flow of the value along each arc, by cost scaling (Goldberg 1997, in OR-tools).

    Raises `Cancelled`, `Infeasible`, `CapacityOverflow`, `CostOverflow`, `OutOfMemory`.
    Half a second more than the solve: the process is started for it.
    """
    if not len(problem.tail) or (problem.value == 0 and not (problem.cost < 0).any()):
        return np.zeros(len(problem.tail), np.int64)
    limit = solver_bytes(problem) - PROCESS_BYTES + SLACK_BYTES
    answer, returncode = run(PROCESS, packed(problem), limit, control)
    status, _, flow = answer.partition(b"\n")
    if status == b"OPTIMAL" and len(flow) == 8 * len(problem.tail):
        return np.frombuffer(flow, np.int64)
    raise _refusal(status.decode("ascii", "replace"), returncode)


def packed(problem: Problem) -> bytes:
    """The problem as `gpu_engine.mincost.process` reads it. Raises `CapacityOverflow`."""
    divisor = max(1, int(np.gcd.reduce(problem.cost)))  # the solver bounds costs more tightly than int64 does
    head = json.dumps([problem.n_vertices, len(problem.tail), problem.value]).encode() + b"\n"
    columns = (problem.tail, problem.head, problem.bounded(), problem.cost // divisor)
    return b"".join([head, *(column.tobytes() for column in columns)])


def _refusal(status: str, returncode: int) -> Exception:
    if status == "INFEASIBLE":
        return Infeasible("the network cannot carry so much flow")
    if status == "BAD_COST_RANGE":
        return CostOverflow("the costs are too large for exact arithmetic on a network of this size")
    if status == "BAD_CAPACITY_RANGE":
        return CapacityOverflow("the capacities around a vertex are too large for exact arithmetic")
    if status == "NO_MEMORY" or returncode in (-9, -6):
        return OutOfMemory("the cheapest flow took more memory than there is for it")
    return RuntimeError(f"the solver of the cheapest flow ended with {returncode}: {status[:100]}")
