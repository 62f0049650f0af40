"""A network's rows in shards. A shard has the arcs of its vertices, numbered from 0; the reverse of an arc is known by
its place in the shard that owns the arc's head."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import Array, new_arcs
from gpu_engine.cuda.layout import NARROW_LIMIT
from gpu_engine.cuda.sharded.places import Place, Places
from gpu_engine.networks.network import Network
from gpu_engine.types import ArcArray, UnitArray


@dataclass(frozen=True, slots=True)
class Topology:
    """The columns that all flow states of a network share. ``first_vertex`` and ``first_arc``, int64[shards + 1], say
    where each shard begins. On the device of each shard lie ``row_offsets``, int32[vertices + 1] from 0, and
    ``capacity``, int32[arcs], or int64 if wide."""

    places: Places
    first_vertex: NDArray[np.int64]
    first_arc: NDArray[np.int64]
    row_offsets: list[Array]
    capacity: list[Array]
    wide: bool

    @property
    def n(self) -> int:
        return int(self.first_vertex[-1])

    def vertices(self, shard: int) -> int:
        """How many a shard has."""
        return int(self.first_vertex[shard + 1] - self.first_vertex[shard])

    def arcs(self, shard: int) -> int:
        """How many a shard has."""
        return int(self.first_arc[shard + 1] - self.first_arc[shard])

    def rows(self, shard: int) -> slice:
        """The vertices of a shard."""
        return slice(int(self.first_vertex[shard]), int(self.first_vertex[shard + 1]))

    def places_of(self, arcs: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """int32 each: the shards of these arcs of the network, and their places there."""
        owner = np.searchsorted(self.first_arc, arcs, side="right") - 1
        return owner.astype(np.int32), (arcs - self.first_arc[owner]).astype(np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes on all devices."""
        return sum(int(array.nbytes) for array in (*self.row_offsets, *self.capacity))


def split(row_offsets: ArcArray, shards: int) -> NDArray[np.int64]:
    """int64[shards + 1]: ranges of vertices with about as many arcs each; some are empty if there are few vertices."""
    n = len(row_offsets) - 1
    shares = np.arange(1, shards) * int(row_offsets[-1]) // shards
    bounds = np.searchsorted(row_offsets, shares).clip(0, n)
    return np.concatenate([[0], np.maximum.accumulate(bounds), [n]]).astype(np.int64)


def topology_of(network: Network, places: Places) -> Topology:
    """The network's shards, by their arcs. O(n + m), one pass over the edges on the host."""
    capacity = network.arc_capacity()
    wide = _needs_wide(network, capacity)
    first_vertex = split(network.row_offsets, len(places))
    first_arc = network.row_offsets[first_vertex].astype(np.int64)
    offsets, capacities = [], []
    for shard, place in enumerate(places.all):
        begin, end = first_arc[shard : shard + 2]
        own = network.row_offsets[first_vertex[shard] : first_vertex[shard + 1] + 1] - np.int32(begin)
        with place.on():
            offsets.append(cupy.asarray(own))
            capacities.append(cupy.asarray(capacity[begin:end].astype(np.int64 if wide else np.int32)))
    return Topology(places, first_vertex, first_arc, offsets, capacities, wide)


def arcs_of(network: Network, topology: Topology) -> list[Array]:
    """Records of each shard's arcs, without residuals."""
    found = []
    for shard, place in enumerate(topology.places.all):
        begin, end = topology.first_arc[shard : shard + 2]
        with place.on():
            head, reverse = (cupy.asarray(column[begin:end]) for column in (network.head, network.reverse_arc))
            start = cupy.zeros_like(reverse)
            for first in topology.first_arc[1:-1]:
                start = cupy.where(reverse >= first, np.int32(first), start)
            found.append(new_arcs(head, reverse - start, topology.wide))
    return found


def _needs_wide(network: Network, capacity: UnitArray) -> bool:
    """Whether a pair sum may not fit int32: infinite edges have one that no flow uses up."""
    if network.n_infinite:
        return True
    return network.finite_total >= NARROW_LIMIT and 2 * int(capacity.max(initial=0)) >= NARROW_LIMIT


def on_all(places: Sequence[Place], columns: Sequence[NDArray[Any]]) -> list[Array]:
    """A copy of each column at its place."""
    found = []
    for place, column in zip(places, columns, strict=True):
        with place.on():
            found.append(cupy.asarray(column))
    return found
