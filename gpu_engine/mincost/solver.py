"""OR-tools in a process of its own, which is stopped when its answer is not wanted any more."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final

import numpy as np

from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled, CapacityOverflow, CostOverflow, Infeasible, OutOfMemory
from gpu_engine.mincost.problem import Problem
from gpu_engine.types import UnitArray

TICK_S: Final = 0.02
"""How often a caller that waits looks for a cancel."""

PROCESS_BYTES: Final = 64 << 20
"""What the process takes before it is given a problem, at most."""
ARC_BYTES: Final = 200
"""For each arc, of which a solver makes two, with the column it comes in."""
VERTEX_BYTES: Final = 100
SLACK_BYTES: Final = 16 << 20
"""It may take so much more than that before it is refused memory."""

ENVIRONMENT: Final = ("PATH", "HOME", "PYTHONPATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
"""Passed on; the password of Redis is not."""


def solver_bytes(problem: Problem) -> int:
    """Memory that solving may take, in the other process."""
    return PROCESS_BYTES + ARC_BYTES * len(problem.tail) + VERTEX_BYTES * problem.n_vertices


def solve(problem: Problem, control: Control) -> UnitArray:
    """int64[k]: a cheapest flow of the value along each arc, by cost scaling (Goldberg 1997, in OR-tools).

    Raises `Cancelled` within `TICK_S` of a cancel, `Infeasible`, `CapacityOverflow`, `CostOverflow`, `OutOfMemory`.
    Half a second more than the solve: the process is started for it.
    """
    if not len(problem.tail) or (problem.value == 0 and not (problem.cost < 0).any()):
        return np.zeros(len(problem.tail), np.int64)
    limit = solver_bytes(problem) - PROCESS_BYTES + SLACK_BYTES
    answer, returncode = run(packed(problem), limit, control)
    status, _, flow = answer.partition(b"\n")
    if status == b"OPTIMAL" and len(flow) == 8 * len(problem.tail):
        return np.frombuffer(flow, np.int64)
    raise _refusal(status.decode("ascii", "replace"), returncode)


def packed(problem: Problem) -> bytes:
    """The problem as `gpu_engine.mincost.process` reads it. Raises `CapacityOverflow`."""
    divisor = max(1, int(np.gcd.reduce(problem.cost)))  # the solver has less room for costs than int64
    head = json.dumps([problem.n_vertices, len(problem.tail), problem.value]).encode() + b"\n"
    columns = (problem.tail, problem.head, problem.bounded(), problem.cost // divisor)
    return b"".join([head, *(column.tobytes() for column in columns)])


def run(data: bytes, limit: int, control: Control) -> tuple[bytes, int]:
    """What the process answers, with its exit status. It may take ``limit`` bytes. Raises `Cancelled`."""
    command = [sys.executable, "-m", "gpu_engine.mincost.process", str(os.getpid()), str(limit)]
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    environment |= {"OPENBLAS_NUM_THREADS": "1"}
    with _file(data) as problem, _file() as answer:
        process = subprocess.Popen(command, env=environment, stdin=problem, stdout=answer)
        try:
            _wait(process, control)
        except BaseException:
            process.kill()
            process.wait()
            raise
        answer.seek(0)
        return answer.read(), process.returncode


@contextmanager
def _file(data: bytes = b"") -> Iterator[BinaryIO]:
    """A file in memory, at its beginning."""
    with open(os.memfd_create("mincost"), "w+b") as file:
        file.write(data)
        file.seek(0)
        yield file


def _wait(process: "subprocess.Popen[bytes]", control: Control) -> None:
    while not control.cancelled:
        with suppress(subprocess.TimeoutExpired):
            process.wait(TICK_S)
            return
    raise Cancelled("cancelled while the cheapest flow was computed")


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
