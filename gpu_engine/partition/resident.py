"""A partition that stays with its network: made from nothing once, and brought up to date when it is asked for again.

It keeps what the edges and vertices weighed when it was made. Rows of edges and numbers of vertices are never given
twice, so a comparison of columns says what has changed since, whatever has changed it.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpu_engine.engine import Control
from gpu_engine.footprint import Footprint, Room
from gpu_engine.networks.network import Network
from gpu_engine.partition import moves
from gpu_engine.partition.buckets import (
    Buckets,
    bucket_bytes,
    bucketed,
    change_cost,
    change_links,
    link_weights,
    packed_anew,
    with_vertices,
)
from gpu_engine.partition.flow_refine import flow_refine_bytes
from gpu_engine.partition.moves import NOWHERE, Books
from gpu_engine.partition.multilevel import multilevel_bytes
from gpu_engine.partition.partitioner import HostPartitioner, Partitioner
from gpu_engine.partition.problem import Question, check_vertex_weights, edge_weights, limit_of
from gpu_engine.types import EdgeArray, UnitArray, VertexArray

MOST_AT_ONCE: Final = 0.05
"""Of the links, how many may have changed since the last answer for it to be brought up to date: see `MOST_IN_ALL`."""

MOST_IN_ALL: Final = 0.5
"""And how many since it was made from nothing. Beyond that one from nothing has a cut that is clearly smaller
(benchmarks/partition.py measures both)."""


SOME: Final = 0.02
WORSE: Final = 1.1
"""Once so many links have changed since it was made from nothing, a cut that has grown by so much as well is a sign
that the parts should lie otherwise as a whole, which no refinement finds: then it is made from nothing again."""

THOROUGH: Final = 0.05
"""When so many have changed since all borders were looked at, they are looked at again."""

FEW: Final = 16
"""So many may always have changed."""


class Way(StrEnum):
    """How an answer was reached."""

    UNCHANGED = "unchanged"
    INCREMENTAL = "incremental"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Report:
    """How it went."""

    way: Way
    changed: int
    """Edges and vertices that were not as they were."""
    moved: int
    """Vertices that were there before and have another part now."""
    reason: str | None = None
    """Why it was made from nothing."""


class ResidentPartition:
    """A partition of one network with all that it takes to bring it up to date. One thread at a time.

    After an exception it is of no use any more.
    """

    def __init__(self, question: Question, partitioner: Partitioner | None = None) -> None:
        self.question = question
        self._partitioner: Partitioner = HostPartitioner() if partitioner is None else partitioner
        self._edge_weight: NDArray[np.integer] = np.empty(0, np.int64)
        self._buckets: Buckets | None = None
        self._books = _books(0, question.k)
        self._n_links = 0
        """When it was made from nothing."""
        self._first_cut = 0
        """When it was made from nothing."""
        self._changed_in_all = 0
        self._unseen = 0
        """Links that have changed since all borders were looked at."""

    @property
    def part(self) -> VertexArray:
        """int32[n]: the part of each vertex, `NOWHERE` for those that were deleted."""
        return self._books.part

    @property
    def cut(self) -> int:
        """The weight of all edges between parts, as it was counted on the way."""
        return int(self._books.cut[0])

    @property
    def part_weight(self) -> UnitArray:
        """int64[k], as it was counted on the way."""
        return self._books.part_weight[:-1]

    @property
    def limit(self) -> int:
        """What a part may weigh."""
        return int(self._books.limit[0])

    @property
    def heaviest_vertex(self) -> int:
        return int(self._books.vertex_weight.max(initial=0))

    @property
    def nbytes(self) -> int:
        held = 0 if self._buckets is None else self._buckets.nbytes
        return held + self._edge_weight.nbytes + sum(column.nbytes for column in self._books)

    def bring(self, network: Network, vertex_weight: UnitArray, control: Control, room: Room) -> Report:
        """Make it a partition of the network as it is now. ``vertex_weight`` int64[n], of which those of vertices that
        were deleted do not count.

        From nothing if it is none yet, or if too much has changed: seconds for a million vertices. Else O(n + m) to
        compare columns, a few milliseconds for as much, and what the changes take. Raises `InvalidNetwork`,
        `CapacityOverflow`, `OutOfMemory`, `Cancelled`.
        """
        weight = edge_weights(network, self.question.weights)
        vertex_weight = np.where(network.there, vertex_weight, 0)
        total = check_vertex_weights(vertex_weight)
        limit = limit_of(total, self.question.k, self.question.epsilon)
        make = partial(self._make, network, weight, vertex_weight, limit, control, room)
        if self._buckets is None:
            return make("it is the first answer, or the partition before was forgotten")
        rows = _changed(self._edge_weight, weight)
        there = network.there
        same_there = (self.part != NOWHERE) == there[: len(self.part)]
        other = np.flatnonzero(~same_there)
        gone = other[~there[other]]
        come = np.concatenate([other[there[other]], len(self.part) + np.flatnonzero(there[len(self.part) :])])
        same = np.array_equal(vertex_weight[: len(self.part)], self._books.vertex_weight)
        if not len(rows) and not len(gone) and not len(come) and same:
            self._books = _extended(self._books, network.n_vertices)
            return Report(Way.UNCHANGED, 0, 0)
        self._changed_in_all += len(rows)
        self._unseen += len(rows)
        n_links = self._n_links
        at_once, in_all = (max(FEW, share * n_links) for share in (MOST_AT_ONCE, MOST_IN_ALL))
        if len(rows) > at_once or self._changed_in_all > in_all:
            return make("too much has changed since the last answer, or since it was made from nothing")
        tail, head = network.edge_tail(rows), network.edge_head(rows)
        if change_cost(self._buckets, tail, head) > 4 * (network.n_arcs + network.n_vertices):  # hubs: all is as fast
            return make("what has changed are edges of vertices with very many")
        before = self.part.copy()
        self._enter(network, rows, tail, head, weight, room)
        self._books = _reweighed(self._books, vertex_weight, gone, come, limit)
        touched = np.unique(np.concatenate([tail, head, come.astype(np.int32)]))
        touched = touched[self.part[touched] != NOWHERE]
        thorough = self._unseen > THOROUGH * n_links
        if thorough:
            room(Footprint(flow_refine_bytes(network.n_vertices, network.n_arcs, self.question.k)))
        self._partitioner.refine(self._graph, self._books, touched, thorough, control)
        self._unseen = 0 if thorough else self._unseen
        if self._changed_in_all > max(FEW, SOME * n_links) and self.cut > WORSE * self._first_cut:
            return make("its cut has grown by a tenth since it was made from nothing")
        moved = int(np.count_nonzero((before != self.part[: len(before)]) & (before != NOWHERE)))
        return Report(Way.INCREMENTAL, len(rows) + len(come) + len(gone), moved)

    @property
    def _graph(self) -> Buckets:
        assert self._buckets is not None
        return self._buckets

    def _new(self, network: Network) -> int:
        return network.n_vertices - len(self.part)

    def _make(
        self,
        network: Network,
        weight: NDArray[np.integer],
        vertex_weight: UnitArray,
        limit: int,
        control: Control,
        room: Room,
        reason: str,
    ) -> Report:
        n, arcs, k = network.n_vertices, network.n_arcs, self.question.k
        needed = bucket_bytes(n, arcs) + multilevel_bytes(n, arcs, k) + books_bytes(n, k) + weight.nbytes
        room(Footprint(needed + flow_refine_bytes(n, arcs, k)))
        links = link_weights(arcs, network.edge_arc, network.reverse_arc, weight)
        self._buckets = bucketed(network.row_offsets, network.head, links)
        self._n_links = self._buckets.n_slots_used // 2
        self._edge_weight = weight.copy()
        self._changed_in_all = self._unseen = 0
        self._books = _books(n, k)
        self._books.part[:] = np.where(network.there, k, NOWHERE)
        self._books.vertex_weight[:] = vertex_weight
        self._books.limit[0] = limit
        thousandths = int(1000 * self.question.epsilon)
        self._partitioner.full(self._graph, self._books, thousandths, self.question.seed, control)
        self._first_cut = self.cut
        return Report(Way.FULL, n + network.n_edges, 0, reason)

    def _enter(
        self,
        network: Network,
        rows: EdgeArray,
        tail: VertexArray,
        head: VertexArray,
        weight: NDArray[np.integer],
        room: Room,
    ) -> None:
        """Enter what edges weigh now, and new vertices, which are in the pseudo-partition."""
        n, m = network.n_vertices, network.n_edges
        if m > len(self._edge_weight):
            more = np.zeros(m - len(self._edge_weight), self._edge_weight.dtype)
            self._edge_weight = np.concatenate([self._edge_weight, more])
        self._buckets = with_vertices(self._graph, self._new(network))
        self._books = _extended(self._books, n)
        delta = weight[rows].astype(np.int64) - self._edge_weight[rows]
        done = 0
        while True:
            columns = tail, head, delta, done, self._books.part, self._books.cut
            done = int(change_links(self._graph, *columns))
            if done == len(rows):
                break
            room(Footprint(bucket_bytes(n, self._graph.n_slots_used)))
            wide = 2 * int(max(self._graph.room[tail[done]], self._graph.room[head[done]])) + 4 * (len(rows) - done)
            self._buckets = packed_anew(self._graph, n, 2 * wide)
        self._edge_weight[rows] = weight[rows]


def books_bytes(n_vertices: int, k: int) -> int:
    """What the books take, and what is made of the columns on the way."""
    return 40 * n_vertices + 16 * (k + 1)


def _books(n: int, k: int) -> Books:
    part, zero = np.full(n, NOWHERE, np.int32), np.zeros(1, np.int64)
    return Books(part, np.zeros(n, np.int64), np.zeros(k + 1, np.int64), zero, zero.copy())


def _extended(books: Books, n: int) -> Books:
    """With so many vertices; the new ones are nowhere, and weigh nothing."""
    more = n - len(books.part)
    if not more:
        return books
    part = np.concatenate([books.part, np.full(more, NOWHERE, np.int32)])
    return books._replace(part=part, vertex_weight=np.concatenate([books.vertex_weight, np.zeros(more, np.int64)]))


def _reweighed(
    books: Books, vertex_weight: UnitArray, gone: NDArray[np.int64], come: NDArray[np.int64], limit: int
) -> Books:
    """With other weights; ``come`` are in the pseudo-partition, ``gone`` nowhere, and have no links then."""
    k = len(books.part_weight) - 1
    books.part[gone], books.part[come] = NOWHERE, k
    part_weight = moves.weights_of(books.part, vertex_weight, k)
    return books._replace(vertex_weight=vertex_weight, part_weight=part_weight, limit=np.array([limit], np.int64))


def _changed(before: NDArray[np.integer], now: NDArray[np.integer]) -> EdgeArray:
    """Rows of the edges that weigh something else now; those beyond ``before`` weighed nothing."""
    m = len(before)
    return np.concatenate([np.flatnonzero(now[:m] != before), m + np.flatnonzero(now[m:])])
