"""Compressed rows of arcs, and such that edges were inserted into since.

The rows of a large network take tenths of a second to merge with new arcs, and a device, which has rows of its own,
does not need those of the host to go on. So an insertion leaves `Pending` rows: they know how many arcs there are and
which are new, and are merged when somebody on the host reads one of them.
"""

from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.types import NO_ARC, ArcArray, VertexArray

BLOCK_BITS: Final = 6
BLOCK: Final = 1 << BLOCK_BITS
"""Arcs that mostly move by the same: the shifts of all blocks stay in a cache, the places of all arcs do not."""
MIXED: Final = -1

OLD_LINK: Final = -1
"""In place of a new arc: the link of the edge was there before."""
LOOP: Final = -2
"""In place of a new arc: the edge has none because it is a self-loop."""

MOST_PENDING: Final = 16
"""Rows are merged before the next insertion if more than one in this many of their arcs is pending, because each
insertion looks through all pending arcs."""
FEW: Final = 4096
"""Rows with at most this many pending arcs are not merged for that reason."""


@dataclass(frozen=True, slots=True)
class Rows:
    """``row_offsets`` int32[n+1]; ``head``, ``reverse_arc`` int32[arcs], sorted by tail, then head; ``edge_arc``
    int32[m], `NO_ARC` for self-loops."""

    row_offsets: ArcArray
    head: VertexArray
    reverse_arc: ArcArray
    edge_arc: ArcArray

    @property
    def n_arcs(self) -> int:
        """Directed arcs, two for each link."""
        return len(self.head)

    @property
    def nbytes(self) -> int:
        """Bytes of the four arrays."""
        return self.row_offsets.nbytes + self.head.nbytes + self.reverse_arc.nbytes + self.edge_arc.nbytes

    def find(self, tail: VertexArray, head: VertexArray) -> ArcArray:
        """int32[k]: the arc from each tail to its head; `NO_ARC` where there is none. O(k log m)."""
        return _find_arcs(self.row_offsets, self.head, tail, head)


@dataclass(frozen=True, slots=True)
class Inserted:
    """Edges that are inserted into rows, and the arcs that they bring."""

    tail: VertexArray
    """int32[k], the tails of the edges."""
    head: VertexArray
    keys: NDArray[np.int64]
    """Rising, one for each new arc: its tail and its head in one number (`_key`)."""
    reverse: NDArray[np.int64]
    """For each new arc the place of its reverse among them."""
    arc: NDArray[np.int64]
    """int64[k]: for each edge the place of its arc among the new ones, or `OLD_LINK` or `LOOP`."""

    @property
    def arc_tail(self) -> VertexArray:
        """int32, rising: the tails of the new arcs."""
        return (self.keys >> 32).astype(np.int32)

    @property
    def arc_head(self) -> VertexArray:
        """int32: the heads of the new arcs."""
        return self.keys.astype(np.int32)

    @classmethod
    def of(cls, rows: "Rows | Pending", tail: VertexArray, head: VertexArray) -> "Inserted":
        """What edges with these ends bring to the rows; they may lead to vertices behind the last row. Costs
        O(k log m)."""
        is_loop = tail == head
        is_new = (rows.find(tail, head) == NO_ARC) & ~is_loop
        pairs = _key(tail, head)
        if isinstance(rows, Pending):
            is_new &= ~_are_in(pairs, rows.keys)
        new = pairs[is_new]
        keys = np.unique(np.concatenate([new, _turned(new)]))
        arc = np.where(is_loop, LOOP, OLD_LINK)
        arc[is_new] = np.searchsorted(keys, new)
        return cls(tail, head, keys, np.searchsorted(keys, _turned(keys)), arc)


class Pending:
    """Rows that edges were inserted into, and which nobody has read since."""

    def __init__(self, base: Rows, n_vertices: int, tail: VertexArray, head: VertexArray, keys: NDArray[np.int64]):
        self._base, self._n_vertices = base, n_vertices
        self._tail, self._head = tail, head
        self.keys = keys
        """Rising: all arcs that the base lacks, as `Inserted.keys` has them."""
        self.n_arcs = base.n_arcs + len(keys)
        self._lock = Lock()
        self._merged: Rows | None = None

    @classmethod
    def of(cls, rows: "Rows | Pending", n_vertices: int, inserted: Inserted) -> "Pending":
        """The rows with what is inserted, and with so many vertices in all."""
        if isinstance(rows, Pending):
            tail = np.concatenate([rows._tail, inserted.tail])
            head = np.concatenate([rows._head, inserted.head])
            keys = np.sort(np.concatenate([rows.keys, inserted.keys]), kind="stable")
            return cls(rows._base, n_vertices, tail, head, keys)
        return cls(rows, n_vertices, inserted.tail, inserted.head, inserted.keys)

    def find(self, tail: VertexArray, head: VertexArray) -> ArcArray:
        """`Rows.find` in the rows of before: the arcs that are `keys` are not found."""
        return self._base.find(tail, head)

    @property
    def is_long(self) -> bool:
        """Whether the rows should be merged before more is inserted."""
        return len(self.keys) > max(FEW, self._base.n_arcs // MOST_PENDING)

    @property
    def nbytes(self) -> int:
        """Bytes of what is pending, of the rows before, and of the merged rows with what it takes to make them."""
        merged = 4 * (self._n_vertices + 1) + 12 * self.n_arcs + 4 * (len(self._base.edge_arc) + len(self._tail))
        return self._base.nbytes + self._tail.nbytes + self._head.nbytes + self.keys.nbytes + merged

    def merged(self) -> Rows:
        """The rows. Cost: O(n + m) for the first who asks."""
        with self._lock:
            if self._merged is None:
                inserted = Inserted.of(self._base, self._tail, self._head)
                self._merged, _ = merge(self._base, self._n_vertices, inserted)
            return self._merged


def merge(rows: Rows, n_vertices: int, inserted: Inserted) -> tuple[Rows, ArcArray | None]:
    """Rows with new arcs, each where its head belongs, and int32[arcs before]: where each old arc is in them; None:
    where it was, as there is no new one. O(n + m)."""
    arcs = rows.find(inserted.tail, inserted.head)
    if not len(inserted.keys):
        more = n_vertices + 1 - len(rows.row_offsets)
        offsets = np.concatenate([rows.row_offsets, np.repeat(rows.row_offsets[-1:], more)])
        return Rows(offsets, rows.head, rows.reverse_arc, np.concatenate([rows.edge_arc, arcs])), None
    of_new = inserted.arc_tail, inserted.arc_head
    offsets, heads, place, new_place = _merge(rows.row_offsets, rows.head, n_vertices, *of_new)
    shift = _block_shifts(place)
    reverse = _moved_reverse(rows.reverse_arc, place, shift, new_place, new_place[inserted.reverse])
    old, new = arcs != NO_ARC, inserted.arc >= 0
    arcs[old] = place[arcs[old]]
    arcs[new] = new_place[inserted.arc[new]]
    return Rows(offsets, heads, reverse, _moved_edges(rows.edge_arc, place, shift, arcs)), place


def _key(tail: VertexArray, head: VertexArray) -> NDArray[np.int64]:
    """Pairs of vertices in one number each."""
    return tail.astype(np.int64) << 32 | head


def _turned(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pairs the other way round."""
    return keys << 32 | keys >> 32


def _are_in(keys: NDArray[np.int64], rising: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(rising):
        return np.zeros(len(keys), np.bool_)
    at = np.minimum(np.searchsorted(rising, keys), len(rising) - 1)
    return np.asarray(rising[at] == keys)


@njit(cache=True, nogil=True)
def _find_arcs(row_offsets: ArcArray, arc_head: VertexArray, tail: VertexArray, head: VertexArray) -> ArcArray:
    found = np.full(len(tail), NO_ARC, np.int32)
    n_vertices = len(row_offsets) - 1
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
    """``row_offsets`` and ``head`` of all arcs, and where the old and the new ones are."""
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
