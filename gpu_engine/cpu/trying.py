"""Trials on the CPU: the arrays that `gpu_engine.cpu.trials` works on."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpu_engine.control import Control
from gpu_engine.cpu.scratch import SCRATCH
from gpu_engine.cpu.settling import NEAR
from gpu_engine.cpu.trials import LEFT, WARM, try_all
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.trials import Changes, Trials, Tried
from gpu_engine.types import BoolArray, UnitArray

Base = tuple[UnitArray, UnitArray, UnitArray, BoolArray]
"""A solved flow: capacity and residual of arcs, excess and source side of vertices."""


class CpuTrials(Trials):
    """Numba kernels on one core; the GIL is released while they run. 24 bytes an arc, 22 a vertex and 8 an edge, of
    which all trials of one flow share a third."""

    def __init__(
        self,
        network: Network,
        capacity: UnitArray,
        terminals: Terminals,
        role: NDArray[np.int8],
        base: Base,
        value: int,
        limit: int,
        most: int,
    ) -> None:
        """`base` is a flow of this `value`, solved and proven, at these capacities int64[m]; nobody changes either. A
        search may scan `limit` arcs, and a change with more than `most` arcs at the ends of its edges is not tried."""
        self._network = network
        self._old = capacity
        self._supplies = terminals.sources, terminals.supply
        self._demands = terminals.sinks, terminals.demand
        self._role = role
        self._base = base
        self._work = base[0].copy(), base[1].copy(), base[2].copy(), base[3].copy()
        self._seen = base[2].copy(), base[3].copy()
        self._changed = np.empty(network.n_vertices, np.int32)
        self._value = value
        self._reaches = NEAR, limit
        self._most = most

    def run(self, changes: Changes, control: Control) -> Tried:
        network = self._network
        SCRATCH.reserve(network.n_vertices)
        value, outcome = np.full(len(changes), self._value, np.int64), np.empty(len(changes), np.int8)
        SCRATCH.epoch = try_all(
            changes.offsets,
            changes.rows,
            changes.capacity,
            self._old,
            network.edge_arc,
            network.undirected,
            network.row_offsets,
            network.head,
            network.reverse_arc,
            self._role,
            self._supplies,
            self._demands,
            self._base,
            self._work,
            self._seen,
            (SCRATCH.stamp, SCRATCH.via, SCRATCH.queue, self._changed),
            SCRATCH.epoch,
            control.slots,
            self._reaches,
            self._most,
            self._value,
            value,
            outcome,
        )
        return Tried(value, outcome != LEFT, outcome == WARM)


def trials_of(
    network: Network,
    arc_capacity: UnitArray,
    terminals: Terminals,
    role: NDArray[np.int8],
    flow: tuple[UnitArray, UnitArray, BoolArray],
    value: int,
    limit: int,
    most: int,
    count: int,
) -> Sequence[Trials]:
    """So many, one for each thread. ``flow``: residual, excess and source side, which nobody changes; ``limit`` and
    ``most`` are those of `CpuTrials`."""
    residual, excess, side = flow
    base, capacity = (arc_capacity.copy(), residual, excess, side), network.capacity.copy()
    return [CpuTrials(network, capacity, terminals, role, base, value, limit, most) for _ in range(count)]
