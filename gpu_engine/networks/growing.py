"""A network with more vertices and edges: its compressed rows with new arcs merged in, the old ones in their order.

New edges come at capacity 0, so no flow changes: whoever keeps an array by arc puts it at `Growth.place`, and zeros at
the new arcs. They get their capacities by an update like any other, which repairs the flows. Who has arcs of its own,
as a device has, takes `Growth.inserted` and leaves the rows of the network pending (`gpu_engine.networks.rows`).
"""

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.errors import TooLarge
from gpu_engine.networks.coordinates import VERTEX_BYTES
from gpu_engine.networks.network import Network
from gpu_engine.networks.rows import Inserted, Pending, merge
from gpu_engine.networks.structure import Structure, alike, placed
from gpu_engine.types import MAX_ARCS, MAX_VERTICES, ArcArray, BoolArray, UnitArray


@dataclass(frozen=True)
class Growth:
    """A network that has grown, and where its arcs are now."""

    before: Network
    network: Network
    inserted: Inserted
    """The edges that are new, and the arcs that the network before had not."""

    @cached_property
    def place(self) -> ArcArray | None:
        """int32[arcs before]: the place of each arc; None: all arcs are where they were, and there are no others.
        Cost: O(n + m), for which the rows of the network are merged."""
        rows, place = merge(self.before.rows, self.network.n_vertices, self.inserted)
        self.network.settle(rows)
        return place

    def moved(self, by_arc: UnitArray) -> UnitArray:
        """int64[arcs]: an array by arc of the network before, with zeros at new arcs. O(arcs)."""
        if self.place is None:
            return by_arc
        moved = np.zeros(self.network.n_arcs, np.int64)
        _scatter(self.place, by_arc, moved)
        return moved


Scalar = TypeVar("Scalar", bound=np.generic)


def with_zeros(column: NDArray[Scalar], more: int) -> NDArray[Scalar]:
    """The column with so many zeros appended, or the column itself for none."""
    return column if not more else np.concatenate([column, np.zeros(more, column.dtype)])


def growing_bytes(network: Network, structure: Structure) -> int:
    """Bytes that a network takes once it has grown by ``structure``, beside the network before, with the columns of
    which it is made."""
    more = structure.n_edges
    places = 0 if network.coordinates is None else VERTEX_BYTES * structure.n_vertices
    return network.nbytes + 4 * network.n_arcs + 200 * more + 4 * structure.n_vertices + places


def grow(network: Network, structure: Structure) -> Growth:
    """The network with the vertices and edges of ``structure`` added, edges at capacity 0. The network given stays as
    it is; columns that do not change are shared. Deletions are not looked at.

    Raises `TooLarge`. Cost: O(m) for columns by edge, O(k log m); O(n + m) once its rows are read.
    """
    n, m = network.n_vertices + structure.n_vertices, network.n_edges + structure.n_edges
    if n > MAX_VERTICES:
        raise TooLarge(f"{n} vertices; the limit is {MAX_VERTICES}")
    if 2 * m > MAX_ARCS:
        raise TooLarge(f"{m} edges; the limit is {MAX_ARCS // 2}")
    grown = copy.copy(network)
    grown.n_vertices, grown.n_edges = n, m
    grown.vertex_labels = network.vertex_labels.extended(structure.vertex_labels, structure.n_vertices)
    grown.edge_ids = network.edge_ids.extended(structure.edge_ids, structure.n_edges)
    grown.coordinates = placed(network.coordinates, [structure])
    grown.vertex_marks, grown.edge_marks = network.vertex_marks.longer(n), network.edge_marks.longer(m)
    inserted = _insert(network, grown, structure)
    if structure.n_edges:
        grown.capacity = network.spare.with_zeros(network.capacity, structure.n_edges)
        grown.undirected = _joined_flags(network, structure.undirected)
    return Growth(network, grown, inserted)


def _joined_flags(network: Network, more: BoolArray) -> BoolArray:
    """bool[m], or bool[1] when all edges agree."""
    if len(network.undirected) == 1 and (network.n_edges == 0 or (more == network.undirected[0]).all()):
        return network.undirected if network.n_edges else np.atleast_1d(alike(more))
    return np.concatenate([np.broadcast_to(network.undirected, network.n_edges), more])


def _insert(network: Network, grown: Network, structure: Structure) -> Inserted:
    """Give ``grown`` its rows, which are pending; returns what is new in them."""
    rows, tail, head = network.unread_rows, structure.tail, structure.head
    if isinstance(rows, Pending) and rows.is_long:
        rows = network.rows
    inserted = Inserted.of(rows, tail, head)
    loops = np.flatnonzero(tail == head)
    grown.know_loops(network.n_edges + loops, tail[loops])
    grown.settle(Pending.of(rows, grown.n_vertices, inserted))
    return inserted


@njit(cache=True, nogil=True)
def _scatter(place: ArcArray, values: UnitArray, out: UnitArray) -> None:
    for a in range(len(place)):
        out[place[a]] = values[a]
