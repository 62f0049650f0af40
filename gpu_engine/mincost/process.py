"""The process in which OR-tools solves one problem: ``python -m gpu_engine.mincost.process PARENT BYTES``.

OR-tools holds the interpreter's lock while it solves, and cannot be stopped. A process of its own can be, by whoever
waits for it; it ends with its parent, PARENT, and may take BYTES of memory. The problem comes on its standard input:
a line of JSON with the number of vertices and arcs and the value, then tails and heads as int32, capacities and costs
as int64. The last two vertices are where all flow comes from and where it goes to. The answer is a line with the
status, and where that is ``OPTIMAL`` the flow of each arc as int64.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

PR_SET_PDEATHSIG: Final = 1
NO_MEMORY: Final = "NO_MEMORY"


def main() -> None:
    _prepare(int(sys.argv[1]), int(sys.argv[2]))
    status, flow = NO_MEMORY, b""
    try:
        data = sys.stdin.buffer.read()
        status, flow = solved(data)
    except MemoryError:
        pass
    sys.stdout.buffer.write(status.encode() + b"\n")
    sys.stdout.buffer.write(flow)
    sys.stdout.buffer.flush()


def _prepare(parent: int, n_bytes: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to obey
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)
        import_module("ortools.graph.python.min_cost_flow")  # what it takes by itself is not the problem's
        lines = Path("/proc/self/status").read_text().splitlines()
        has = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:"))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (has + n_bytes, hard))


def solved(data: bytes) -> tuple[str, bytes]:
    """Status, and flow of each arc."""
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    head, _, _ = data.partition(b"\n")
    n_vertices, n_arcs, value = json.loads(head)
    at, columns = len(head) + 1, []
    for kind in (np.int32, np.int32, np.int64, np.int64):
        columns.append(np.frombuffer(data, kind, n_arcs, at))
        at += columns[-1].nbytes
    solver = SimpleMinCostFlow()
    arcs: NDArray[np.int32] = solver.add_arcs_with_capacity_and_unit_cost(*columns)
    solver.set_node_supply(n_vertices - 2, value)
    solver.set_node_supply(n_vertices - 1, -value)
    status = solver.solve()
    if status != solver.OPTIMAL:
        return str(status.name), b""
    return str(status.name), np.asarray(solver.flows(arcs), np.int64).tobytes()


if __name__ == "__main__":
    main()
