"""A partition that stays with its network: made from nothing once, and brought up to date when it is asked for again.

It knows what the edges and vertices weighed at the last answer (`gpu_engine.partition.census`). Rows of edges and
numbers of vertices are never used twice, so that is enough to find what has changed since, whatever has changed it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Protocol

import numpy as np

from gpu_engine.control import Control
from gpu_engine.footprint import Footprint, Room
from gpu_engine.networks.network import Network
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
from gpu_engine.partition.census import Census, ChangedEdges, Scales
from gpu_engine.partition.columns import lengthened
from gpu_engine.partition.flow_refine import flow_refine_bytes
from gpu_engine.partition.moves import NOWHERE, Books
from gpu_engine.partition.multilevel import multilevel_bytes
from gpu_engine.partition.numbers import numbers, shared
from gpu_engine.partition.partitioner import HostPartitioner, Partitioner, holds_bytes
from gpu_engine.partition.problem import Question, edge_weight_bytes, limit_of
from gpu_engine.partition.survey import (
    changed_vertices,
    enter_vertices,
    n_moved,
    touched_vertices,
)
from gpu_engine.partition.upkeep import Upkeep
from gpu_engine.types import UnitArray, VertexArray


class Way(StrEnum):
    """How an answer was reached."""

    UNCHANGED = "unchanged"
    INCREMENTAL = "incremental"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Report:
    """How a partition was brought up to date."""

    way: Way
    changed: int
    """How many edges and vertices were not as they were."""
    moved: int
    """How many vertices existed before and have another part now."""
    reason: str | None = None
    """Why the partition was made from nothing; None where it was not."""


class KeptPartition(Protocol):
    """A partition that stays with its network, on the host or on a device. One thread at a time may use it."""

    question: Question

    @property
    def part(self) -> VertexArray:
        """int32[n]: the part of each vertex, `NOWHERE` for those that were deleted."""

    @property
    def cut(self) -> int:
        """The weight of all edges between parts, as it was counted on the way."""

    @property
    def part_weight(self) -> UnitArray:
        """int64[k], as it was counted on the way."""

    @property
    def limit(self) -> int:
        """What a part may weigh."""

    @property
    def heaviest_vertex(self) -> int: ...

    @property
    def footprint(self) -> Footprint:
        """What it takes at rest."""

    def bring(self, network: Network, vertex_weight: UnitArray | None, control: Control, room: Room) -> Report:
        """Make it a partition of the network as it is now. ``vertex_weight`` int64[n], of which those of vertices that
        were deleted do not count; None: each weighs 1. Raises `InvalidNetwork`, `CapacityOverflow`, `OutOfMemory`,
        `Cancelled`."""


class ResidentPartition:
    """A partition of one network, on the host, with all that it takes to bring it up to date.

    One thread at a time may use it. After an exception it must not be used any more.
    """

    def __init__(self, question: Question, partitioner: Partitioner | None = None) -> None:
        self.question = question
        self._partitioner: Partitioner = HostPartitioner() if partitioner is None else partitioner
        self._scales = Scales(question.weights)
        self._buckets: Buckets | None = None
        self._census = Census()
        self._books = _books(0, question.k)
        self._upkeep = Upkeep()

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
        return held + self._scales.nbytes + self._census.nbytes + sum(column.nbytes for column in self._books)

    @property
    def footprint(self) -> Footprint:
        return Footprint(self.nbytes)

    def bring(self, network: Network, vertex_weight: UnitArray | None, control: Control, room: Room) -> Report:
        """Make it a partition of the network as it is now. ``vertex_weight`` int64[n], of which those of vertices that
        were deleted do not count; None: each weighs 1.

        From nothing if it is none yet, or if too much has changed: seconds for a million vertices. Else what the
        changes take, and where edges or vertices weigh other than 1, O(n + m) to compare columns, a few milliseconds
        for as much. Raises `InvalidNetwork`, `CapacityOverflow`, `OutOfMemory`, `Cancelled`.
        """
        compare = partial(changed_vertices, self._books, network.deleted_vertices)
        other = self._census.changed(network, vertex_weight, compare)
        limit = limit_of(other.total, self.question.k, self.question.epsilon)
        make = partial(self._make, network, vertex_weight, limit, control, room)
        if self._buckets is None:
            return make("it is the first answer, or the partition before was forgotten")
        edges = self._scales.changed(network)
        rows = edges.rows
        if not len(rows) and not len(other.rows):
            self._books = _extended(self._books, network.n_vertices)
            return Report(Way.UNCHANGED, 0, 0)
        if self._upkeep.change(len(rows), len(other.rows)):
            return make("too much has changed since the last answer, or since it was made from nothing")
        tail, head = network.edge_ends(rows)
        # Changes at vertices of high degree cost as much as a new partition.
        if change_cost(self._buckets, tail, head) > 4 * (network.n_arcs + network.n_vertices):
            return make("what has changed are edges of vertices with very many")
        before = self.part.copy()
        self._enter(network, edges, tail, head, room)
        come, n_other = enter_vertices(self._books, other.rows, other.there, other.weight)
        self._books.limit[0] = limit
        touched = np.sort(touched_vertices(self.part, tail, head, come))
        self._refine(network, touched, self._upkeep.is_due, control, room)
        if self._upkeep.has_grown(self.cut):
            self._refine(network, touched[:0], True, control, room)
        if self._upkeep.wants_trial(self.cut):
            report = self._tried(network, make, control, room)
            if report is not None:
                return report
        self._upkeep.settle(self.cut)
        return Report(Way.INCREMENTAL, len(rows) + n_other, n_moved(before, self.part))

    def _refine(self, network: Network, touched: VertexArray, thorough: bool, control: Control, room: Room) -> None:
        if thorough:
            room(Footprint(flow_refine_bytes(network.n_vertices, network.n_arcs, self.question.k)))
        self._partitioner.refine(self._graph, self._books, touched, thorough, control)
        if thorough:
            self._upkeep.looked(self.cut)

    def _tried(self, network: Network, make: Callable[[str], Report], control: Control, room: Room) -> Report | None:
        """Compare the partition with a rough one from nothing, and replace it by a good one if that pays. Returns None
        where it stays."""
        needed = Footprint(holds_bytes(network.n_vertices, network.n_arcs, self.question.k))
        room(needed)
        kept, report, before = self._books, None, self.cut
        thousandths = int(1000 * self.question.epsilon)
        holds = self._partitioner.holds(self._graph, kept, thousandths, self.question.seed, control, room)
        room(Footprint() - needed)  # a good one from nothing is made after the rough one, not beside it
        if not holds:
            report = make("its cut has grown, and one from nothing promised to cut less")
            kept_fits, fits = (books.part_weight.max() <= books.limit[0] for books in (kept, self._books))
            if kept_fits and (self.cut >= kept.cut[0] or not fits):
                self._books, report = kept, None
        self._upkeep.tried(before, self.cut)
        return report

    @property
    def _graph(self) -> Buckets:
        assert self._buckets is not None
        return self._buckets

    def _make(
        self,
        network: Network,
        vertex_weight: UnitArray | None,
        limit: int,
        control: Control,
        room: Room,
        reason: str,
    ) -> Report:
        n, arcs, k = network.n_vertices, network.n_arcs, self.question.k
        needed = bucket_bytes(n, arcs) + multilevel_bytes(n, arcs, k) + books_bytes(n, k)
        needed += edge_weight_bytes(network.n_edges, self.question.weights)
        room(Footprint(needed + flow_refine_bytes(n, arcs, k)))
        weight = self._scales.begin(network)
        links = link_weights(arcs, network.edge_arc, network.reverse_arc, weight)
        before = self._books.part if self._buckets is not None else None
        self._buckets = bucketed(network.row_offsets, network.head, links)
        self._books = _books(n, k)
        self._books.part[:] = np.where(network.there, k, NOWHERE)
        self._books.vertex_weight[:] = np.where(network.there, 1 if vertex_weight is None else vertex_weight, 0)
        self._books.limit[0] = limit
        thousandths = int(1000 * self.question.epsilon)
        self._partitioner.full(self._graph, self._books, thousandths, self.question.seed, control, room)
        if before is not None:
            renumber(self._books, before)
        self._upkeep.begin(self._buckets.n_slots_used // 2, int(weight.sum(dtype=np.int64)), self.cut)
        return Report(Way.FULL, n + network.n_edges, 0, reason)

    def _enter(
        self,
        network: Network,
        edges: ChangedEdges,
        tail: VertexArray,
        head: VertexArray,
        room: Room,
    ) -> None:
        """Enter what edges weigh now, and new vertices, which belong to no part yet."""
        n = network.n_vertices
        self._buckets = with_vertices(self._graph, n - len(self._graph.start))  # some were added and deleted since
        self._books = _extended(self._books, n)
        self._upkeep.weigh(int(edges.delta.sum()))
        done = 0
        while True:
            columns = tail, head, edges.delta, done, self._books.part, self._books.cut
            done = int(change_links(self._graph, *columns))
            if done == len(tail):
                break
            room(Footprint(bucket_bytes(n, self._graph.n_slots_used)))
            wide = 2 * int(max(self._graph.room[tail[done]], self._graph.room[head[done]])) + 4 * (len(tail) - done)
            self._buckets = packed_anew(self._graph, n, 2 * wide)


def renumber(books: Books, before: VertexArray) -> None:
    """Let parts keep the numbers they had as far as they have the same vertices; ``before`` is int32[n] of then. O(n +
    k²)."""
    k = len(books.part_weight) - 1
    number = numbers(shared(before, books.part, k))
    there = books.part != NOWHERE
    books.part[there] = number[books.part[there]]
    books.part_weight[number] = books.part_weight[:-1].copy()


def books_bytes(n_vertices: int, k: int) -> int:
    """Bytes that the books take, and the columns that are made on the way to them."""
    return 40 * n_vertices + 16 * (k + 1)


def _books(n: int, k: int) -> Books:
    part, zero = np.full(n, NOWHERE, np.int32), np.zeros(1, np.int64)
    return Books(part, np.zeros(n, np.int64), np.zeros(k + 1, np.int64), zero, zero.copy())


def _extended(books: Books, n: int) -> Books:
    """The books with ``n`` vertices, of which the new ones are `NOWHERE` and weigh nothing."""
    part = lengthened(books.part, n, NOWHERE)
    return books._replace(part=part, vertex_weight=lengthened(books.vertex_weight, n))
