"""A network with more vertices and edges: its compressed rows with new arcs merged in, the old ones in their order.

New edges come at capacity 0, so no flow changes: whoever keeps an array by arc puts it at `Growth.place`, and zeros at
the new arcs. They get their capacities by an update like any other, which repairs the flows.
"""

import copy
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.errors import TooLarge
from gpu_engine.networks.coordinates import VERTEX_BYTES
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure, alike, placed
from gpu_engine.types import MAX_ARCS, MAX_VERTICES, NO_ARC, ArcArray, BoolArray, UnitArray, VertexArray

BLOCK_BITS: Final = 6
BLOCK: Final = 1 << BLOCK_BITS
"""Arcs that mostly move by the same: the shifts of all blocks stay in a cache, the places of all arcs do not."""
MIXED: Final = -1


@dataclass(frozen=True, slots=True)
class Growth:
    """A network that has grown, and where its arcs are now."""

    network: Network
    place: ArcArray | None
    """int32[arcs before]: the place of each arc; None: all arcs are where they were, and there are no others."""

    def moved(self, by_arc: UnitArray) -> UnitArray:
        """int64[arcs]: an array by arc of the network before, with zeros at new arcs. O(arcs)."""
        if self.place is None:
            return by_arc
        moved = np.zeros(self.network.n_arcs, np.int64)
        _scatter(self.place, by_arc, moved)
        return moved


Scalar = TypeVar("Scalar", bound=np.generic)


def with_zeros(column: NDArray[Scalar], more: int) -> NDArray[Scalar]:
    """The column with so many zeros behind it; itself if there are none."""
    return column if not more else np.concatenate([column, np.zeros(more, column.dtype)])


def growing_bytes(network: Network, structure: Structure) -> int:
    """The memory that a network takes which has grown, beside the one before, and what it is made with."""
    more = structure.n_edges
    places = 0 if network.coordinates is None else VERTEX_BYTES * structure.n_vertices
    return network.nbytes + 4 * network.n_arcs + 200 * more + 4 * structure.n_vertices + places


def grow(network: Network, structure: Structure) -> Growth:
    """The network with the vertices and edges of ``structure`` added, edges at capacity 0. The network given stays as
    it is; columns that do not change are shared. Deletions are not looked at.

    Raises `TooLarge`. Cost: O(n + m), and O(k log k).
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
    if len(network.deleted_vertices):
        grown.deleted_vertices = with_zeros(network.deleted_vertices, structure.n_vertices)
    place = _add_arcs(network, grown, structure)
    if structure.n_edges:
        zeros = np.zeros(structure.n_edges, np.int64)
        grown.capacity = np.concatenate([network.capacity, zeros])
        grown.undirected = _joined_flags(network, structure.undirected)
        if len(network.deleted):
            grown.deleted = np.concatenate([network.deleted, zeros.astype(np.bool_)])
    return Growth(grown, place)


def _joined_flags(network: Network, more: BoolArray) -> BoolArray:
    """bool[m], or bool[1] when all edges agree."""
    if len(network.undirected) == 1 and (network.n_edges == 0 or (more == network.undirected[0]).all()):
        return network.undirected if network.n_edges else np.atleast_1d(alike(more))
    return np.concatenate([np.broadcast_to(network.undirected, network.n_edges), more])


def _add_arcs(network: Network, grown: Network, structure: Structure) -> ArcArray | None:
    """Give ``grown`` its rows of arcs; returns where the arcs of ``network`` are in them, None: where they were."""
    n, tail, head = network.n_vertices, structure.tail, structure.head
    is_loop = tail == head
    rows = network.n_edges + np.flatnonzero(is_loop)
    grown._loops = np.concatenate([network._loops, rows])
    grown._loop_vertex = np.concatenate([network._loop_vertex, tail[is_loop]])
    csr = network.row_offsets, network.head
    arcs = _find_arcs(*csr, n, tail, head)
    is_new = (arcs == NO_ARC) & ~is_loop
    pairs = tail[is_new].astype(np.int64) << 32 | head[is_new]
    keys = np.unique(np.concatenate([pairs, _turned(pairs)]))
    if not len(keys):
        last = network.row_offsets[-1:]
        grown.row_offsets = np.concatenate([network.row_offsets, np.repeat(last, structure.n_vertices)])
        grown.edge_arc = np.concatenate([network.edge_arc, arcs])
        return None
    new_tail, new_head = (keys >> 32).astype(np.int32), keys.astype(np.int32)
    offsets, heads, place, new_place = _merge(*csr, grown.n_vertices, new_tail, new_head)
    partner = new_place[np.searchsorted(keys, _turned(keys))]
    grown.row_offsets, grown.head = offsets, heads
    shift = _block_shifts(place)
    grown.reverse_arc = _moved_reverse(network.reverse_arc, place, shift, new_place, partner)
    arcs[arcs != NO_ARC] = place[arcs[arcs != NO_ARC]]
    arcs[is_new] = new_place[np.searchsorted(keys, pairs)]
    grown.edge_arc = _moved_edges(network.edge_arc, place, shift, arcs)
    return place


def _turned(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pairs of vertices in one number each, the other way round."""
    return pairs << 32 | pairs >> 32


@njit(cache=True, nogil=True)
def _find_arcs(
    row_offsets: ArcArray, arc_head: VertexArray, n_vertices: int, tail: VertexArray, head: VertexArray
) -> ArcArray:
    """int32[k]: the arc from each tail to its head; `NO_ARC` where there is none. O(k log m)."""
    found = np.full(len(tail), NO_ARC, np.int32)
    for i in range(len(tail)):
        if tail[i] >= n_vertices or head[i] >= n_vertices or tail[i] == head[i]:
            continue
        first, last = row_offsets[tail[i]], row_offsets[tail[i] + 1]
        arc = first + np.searchsorted(arc_head[first:last], head[i])
        if arc < last and arc_head[arc] == head[i]:
            found[i] = arc
    return found


@njit(cache=True, nogil=True)
def _merge(
    row_offsets: ArcArray, head: VertexArray, n_vertices: int, new_tail: VertexArray, new_head: VertexArray
) -> tuple[ArcArray, VertexArray, ArcArray, ArcArray]:
    """The rows with new arcs, which are sorted by tail and head, each where its head belongs. Returns ``row_offsets``
    and ``head`` of all, and where the old and the new arcs are."""
    n_old = len(row_offsets) - 1
    offsets, heads = np.empty(n_vertices + 1, np.int32), np.empty(len(head) + len(new_head), np.int32)
    place, new_place = np.empty(len(head), np.int32), np.empty(len(new_head), np.int32)
    offsets[0] = at = j = 0
    for v in range(n_vertices):
        a, end = (row_offsets[v], row_offsets[v + 1]) if v < n_old else (0, 0)
        while j < len(new_tail) and new_tail[j] == v:
            while a < end and head[a] < new_head[j]:
                heads[at] = head[a]
                place[a] = at
                a += 1
                at += 1
            heads[at] = new_head[j]
            new_place[j] = at
            j += 1
            at += 1
        while a < end:
            heads[at] = head[a]
            place[a] = at
            a += 1
            at += 1
        offsets[v + 1] = at
    return offsets, heads, place, new_place


@njit(cache=True, nogil=True)
def _block_shifts(place: ArcArray) -> ArcArray:
    """int32[arcs / BLOCK]: by how much all arcs of a block move, `MIXED` where they differ."""
    shift = np.empty((len(place) + BLOCK - 1) // BLOCK, np.int32)
    for block in range(len(shift)):
        first, last = block * BLOCK, min(len(place), (block + 1) * BLOCK) - 1
        by = place[first] - first
        shift[block] = by if place[last] - last == by else MIXED
    return shift


@njit(cache=True, nogil=True, inline="always")
def _moved(arc: int, place: ArcArray, shift: ArcArray) -> int:
    by = shift[arc >> BLOCK_BITS]
    return int(arc + by if by != MIXED else place[arc])


@njit(cache=True, nogil=True)
def _moved_reverse(
    reverse_arc: ArcArray, place: ArcArray, shift: ArcArray, new_place: ArcArray, partner: ArcArray
) -> ArcArray:
    """int32[arcs]: the reverse of each arc; that of new ones is ``partner``."""
    reverse = np.empty(len(place) + len(new_place), np.int32)
    for a in range(len(place)):
        reverse[place[a]] = _moved(reverse_arc[a], place, shift)
    for j in range(len(new_place)):
        reverse[new_place[j]] = partner[j]
    return reverse


@njit(cache=True, nogil=True)
def _moved_edges(edge_arc: ArcArray, place: ArcArray, shift: ArcArray, more: ArcArray) -> ArcArray:
    """int32[m]: the arc of each edge; ``more`` are those of the new edges, which are told as they are now."""
    moved = np.empty(len(edge_arc) + len(more), np.int32)
    for e in range(len(edge_arc)):
        moved[e] = _moved(edge_arc[e], place, shift) if edge_arc[e] >= 0 else NO_ARC
    moved[len(edge_arc) :] = more
    return moved


@njit(cache=True, nogil=True)
def _scatter(place: ArcArray, values: UnitArray, out: UnitArray) -> None:
    for a in range(len(place)):
        out[place[a]] = values[a]
