"""The CuPy arrays that kernels work on, on the current device.

``arcs`` int32[arcs, 4] or int64[arcs, 3] (wide: head and reverse share the first word) has one `Arc` record of arc.cuh
in each row.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.layout import UNKNOWN_LABEL

Array = Any
"""A cupy.ndarray; CuPy has no generic array type that a checker could use."""


def held_bytes(array: Array) -> int:
    """The memory that an array keeps, with what lies behind it if it is part of a longer one."""
    return int((array if array.base is None else array.base).nbytes)


class State(Protocol):
    """The arrays of a flow state that kernels use; see `gpu_engine.cuda.engine.CudaFlowState`."""

    role: Array
    excess: Array
    source_side: Array
    labels: Array
    """int32[n]: the label that the last drain of its side has left to each vertex, or `UNKNOWN_LABEL`."""
    arcs: Array
    edge_arc: Array
    wide: bool
    keeps_pair_sums: bool
    """The pair sums of the records are those of the capacities."""


@dataclass(frozen=True, slots=True)
class Topology:
    """The arrays that all states of a network share on the device. Each has its own order of the arcs in a row."""

    n: int
    n_arcs: int
    row_offsets: Array
    capacity: Array
    undirected: Array

    @property
    def nbytes(self) -> int:
        return sum(held_bytes(array) for array in (self.row_offsets, self.capacity, self.undirected))

    def with_own_capacity(self) -> Self:
        """This topology with a copy of the capacities, which nobody else changes."""
        return replace(self, capacity=self.capacity.copy())

    def edges(self, state: State) -> tuple[Any, ...]:
        """The arguments by which kernels find an edge's arc."""
        return state.edge_arc, self.undirected, np.int32(len(self.undirected))


def new_arcs(head: Array, reverse_arc: Array, wide: bool) -> Array:
    """Arc records without capacities."""
    arcs = cupy.empty((len(head), 3), np.int64) if wide else cupy.empty((len(head), 4), np.int32)
    words = arcs.view(np.int32)
    words[:, 0], words[:, 1] = head, reverse_arc
    return arcs


def unknown_labels(n: int) -> Array:
    """int32[n]: labels of vertices that no drain has labelled."""
    return cupy.full(n, UNKNOWN_LABEL, np.int32)


def heads_and_reverses(arcs: Array) -> tuple[Array, Array]:
    """int32[arcs] each, views of the records."""
    words = arcs.view(np.int32)
    return words[:, 0], words[:, 1]


def residuals(arcs: Array, wide: bool) -> Array:
    """The residuals, a view of the records."""
    return arcs[:, 1] if wide else arcs[:, 2]


def as_struct(record: NDArray[np.void]) -> NDArray[np.void]:
    """One record as an argument of a kernel. CuPy asks for an array's description at each launch, which NumPy writes
    field by field: 8 to 13 us for records of 16 to 32 fields, 1 us without their names."""
    return record.view(np.dtype((np.void, record.dtype.itemsize)))
