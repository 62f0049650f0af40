"""Everything a device engine may run, once: so that no caller waits for a compiler.

Our kernels are compiled by `gpu_engine.cuda.module`; CuPy compiles its own (sorts, reductions, element-wise ones) when
they are first used, each for the types it is used with. A tiny network therefore goes through every call of the engine.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from gpu_engine.control import Control
from gpu_engine.cuda.build import build_csr
from gpu_engine.cuda.engine import CudaEngine
from gpu_engine.cuda.launch.update import ONE_BLOCK_ROWS
from gpu_engine.cuda.module import kernel
from gpu_engine.cuda.pairs import DeviceSeat
from gpu_engine.cuda.partition.resident import CudaResidentPartition
from gpu_engine.footprint import unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.terminals import Terminals
from gpu_engine.pairs.solver import PairSolver
from gpu_engine.partition.problem import Question
from gpu_engine.types import INFINITE

STEPS = 2 * ONE_BLOCK_ROWS
"""Vertices in a row, more than one block updates in one launch."""

ROWS = STEPS // 25
"""Edges that change at once in a partition: fewer than would have it made from nothing."""

PAIR_BYTES = 1 << 24
"""Enough for one block that solves pairs."""

_GROWN = np.array([0, 0], np.int32), np.array([1, STEPS + 1], np.int32)
"""Tails and heads of edges that are inserted: one beside another, and one to a vertex that comes with it."""

NARROW, WIDE = 3, 1 << 40
"""Capacities that 32-bit residuals hold, and that they do not."""


def warm_up() -> None:
    """Run every kernel for both widths. Seconds the first time ever, then some tenths: they are kept on disk."""
    for edges in _networks():
        network = Network(edges, build_csr)
        engine = CudaEngine(network)
        terminals = Terminals.of([0, 1], [STEPS], [INFINITE, 5], [7])
        state = engine.open(terminals)
        engine.solve(state)
        kernel("waves.cu", "waves", wide=state.wide, cooperative=True)  # no path is left to them
        first, last = np.arange(2), np.arange(edges.n_edges - 1)
        for rows, factor in ((first, 0), (first, 1), (last, 2), (last, 1)):
            engine.update(rows, edges.capacity[rows] * factor)
            engine.solve(state)
        for state.depth in (0, STEPS):  # on the device, and from a copy on the host
            engine.cut(state)
            engine.cut(state, near="sinks")
        engine.flow(state)
        engine.certificate(state)
        engine.restore(terminals, engine.export(state))
        fork, capped = engine.fork(state), Terminals.of([0, 1], [STEPS], [INFINITE, 4], [6])
        fork.trials(1)
        for factor, others in ((1, None), (0, None), (1, capped)):
            overlay = fork.overlay(first, edges.capacity[first] * factor, others)
            fork.engine.solve(overlay)
            fork.engine.certificate(overlay)
        fork.drop()
        ends = first.astype(np.int32)
        solver = PairSolver.of(network, ends)
        DeviceSeat(solver, solver.seat(), PAIR_BYTES).values(ends[:1], ends[1:], Control())
        infinite = np.array([edges.n_edges - 1])
        for capacity in (NARROW, INFINITE):
            engine.update(infinite, np.array([capacity]))
            engine.solve(state)
            engine.flow(state)
            engine.certificate(state)  # by other kernels where no edge is infinite
        engine.grow(grow(network, Structure(1, None, *_GROWN, np.zeros(2, np.bool_))))
        engine.solve(state, cold=True)
        _partition(network)


def _partition(network: Network) -> None:
    """Run all kernels of partitions: make a new one on several levels, bring it up to date until all levels are looked
    at again, and compare it with a new one. There are so many parts that METIS, which would need a process, is not
    asked. The first vertex is so heavy that groups of any size are light."""
    n, network = network.n_vertices, network.fork()
    for weights in ("one", "capacity"):
        network.set_capacity(np.array([STEPS]), np.array([NARROW]))  # the one without a limit
        found, weight = CudaResidentPartition(Question(1000, Fraction(1), weights), few=8), np.ones(n, np.int64)
        weight[0] = 1000 * n
        found.bring(network, weight, Control(), unlimited)
        for first in range(0, int(STEPS * 0.3), ROWS):
            rows = np.arange(first, first + ROWS)
            network.set_capacity(rows, network.capacity[rows] + 1)
            if weights == "one":
                network.mark(rows, np.empty(0, np.int64))
            weight[first + 1] = 2
            found.bring(network, weight, Control(), unlimited)


def _networks() -> Iterator[EdgeList]:
    """Paths with a short cut; their last edge is without limit."""
    path = np.arange(STEPS, dtype=np.int32)
    tail, head = np.append(path, 2), np.append(path + 1, STEPS - 2)
    for capacity in (NARROW, WIDE):
        capacities = np.full(STEPS + 1, capacity, np.int64)
        capacities[-1] = INFINITE
        yield EdgeList(STEPS + 1, tail.astype(np.int32), head.astype(np.int32), capacities)
