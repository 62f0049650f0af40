"""The process in which OR-tools solves one problem: ``python -m gpu_engine.mincost.process PARENT BYTES``.

OR-tools holds the interpreter's lock while it solves, and cannot be stopped. A process of its own can be, by whoever
waits for it; it ends with its parent, PARENT, and may take BYTES of memory. The problem comes on its standard input:
a line of JSON with the number of vertices and arcs and the value, then tails and heads as int32, capacities and costs
as int64. The last two vertices are where all flow comes from and where it goes to. The answer is a line with the
status, and where that is ``OPTIMAL`` the flow of each arc as int64.
"""

import json
import sys
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpu_engine import child

NO_MEMORY: Final = "NO_MEMORY"


def main() -> None:
    """Read a problem, solve it, write the answer."""
    child.begin("ortools.graph.python.min_cost_flow")
    status, flow = NO_MEMORY, b""
    try:
        data = sys.stdin.buffer.read()
        status, flow = solved(data)
    except MemoryError:
        pass
    sys.stdout.buffer.write(status.encode() + b"\n")
    sys.stdout.buffer.write(flow)
    sys.stdout.buffer.flush()


def solved(data: bytes) -> tuple[str, bytes]:
    """The status, and the flow of each arc as int64, of a problem as it comes on standard input."""
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
