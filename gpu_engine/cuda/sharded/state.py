"""A flow state over shards."""

from dataclasses import dataclass, field

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import Array, residuals
from gpu_engine.cuda.sharded.topology import Topology, on_all
from gpu_engine.incremental import IncrementalState
from gpu_engine.types import INFINITE, BoolArray, UnitArray


@dataclass(slots=True)
class Columns:
    """The arrays of a state on the devices, for each shard: arcs (16 bytes each, 24 if wide), and of its vertices
    excess int64, role int8 and source_side bool."""

    arcs: list[Array]
    excess: list[Array]
    role: list[Array]
    source_side: list[Array]

    @classmethod
    def of(cls, topology: Topology, arcs: list[Array], role: NDArray[np.int8]) -> "Columns":
        """The columns of arcs whose pair sums and residuals are not set yet."""
        shards = range(len(topology.places))
        roles = [role[topology.rows(shard)] for shard in shards]
        blank = [np.zeros(topology.vertices(shard), np.int64) for shard in shards]
        sides = [np.zeros(topology.vertices(shard), np.bool_) for shard in shards]
        places = topology.places.all
        return cls(arcs, on_all(places, blank), on_all(places, roles), on_all(places, sides))

    @property
    def nbytes(self) -> int:
        """Bytes on all devices."""
        return sum(int(a.nbytes) for a in (*self.arcs, *self.excess, *self.role, *self.source_side))

    def excess_on_host(self, topology: Topology) -> UnitArray:
        """int64[n]."""
        return _joined(topology, self.excess).astype(np.int64)

    def sides_on_host(self, topology: Topology) -> BoolArray:
        """bool[n]: which vertices lie in S."""
        return _joined(topology, self.source_side).astype(np.bool_)

    def residuals_on_host(self, topology: Topology) -> UnitArray:
        """int64[arcs], in the order of the network."""
        return _joined(topology, [residuals(arcs, topology.wide) for arcs in self.arcs]).astype(np.int64)

    def in_sinks(self, topology: Topology) -> int:
        """The sum of all excess in T."""
        total = 0
        for shard, place in enumerate(topology.places.all):
            with place.on():
                total += int(cupy.where(self.source_side[shard], 0, self.excess[shard]).sum().get())
        return total


@dataclass(eq=False, slots=True, kw_only=True)
class ShardedFlowState(IncrementalState):
    """``role`` int8[n] is on the host, all else in `columns`: None before the first solve, and after a change that
    takes new ones."""

    columns: Columns | None = None
    lacking: int = 0
    """As in `gpu_engine.cuda.state`."""
    holding: int = 0
    touched: bool = False
    counters: dict[str, int] = field(default_factory=dict)

    def reached(self, topology: Topology) -> int:
        """The value, by what is there: all demands with a cap, and the excess of the sink side."""
        assert self.columns is not None
        demand = self.terminals.demand
        return int(demand[demand != INFINITE].sum()) + self.columns.in_sinks(topology)

    def forget_columns(self) -> None:
        """The next solve lays the state out anew, and starts from zero flow."""
        self.columns, self.solved = None, False


def _joined(topology: Topology, arrays: list[Array]) -> NDArray[np.generic]:
    parts = []
    for place, array in zip(topology.places.all, arrays, strict=True):
        with place.on():
            parts.append(array.get())
    return np.concatenate(parts)
