"""A partition whose graph, parts and sums stay on the device; what changes travels there as one batch.

As `gpu_engine.partition.resident.ResidentPartition` it stays with its network and finds out by itself what has changed.
What edges and vertices weighed at the last answer is kept on the host, where the network's columns are.
"""

from contextlib import suppress
from functools import partial
from typing import Final

import cupy
import numpy as np

from gpu_engine.control import Control
from gpu_engine.cuda.launch.arrays import Array
from gpu_engine.cuda.launch.partition import (
    LINKS,
    DeviceBooks,
    Scratch,
    link_weights,
    new_told,
    read,
    refine,
    scratch_bytes,
    strided,
)
from gpu_engine.cuda.memory import device_call, next_stream
from gpu_engine.cuda.partition.attempt import Attempt
from gpu_engine.cuda.partition.full import ALL_BORDERS, AROUND, SEEDS, Whole, few_for
from gpu_engine.cuda.partition.graph import SHARE, BucketList, OnDevice, longer
from gpu_engine.errors import EngineError, OutOfMemory
from gpu_engine.footprint import Footprint, Room
from gpu_engine.networks.network import Network
from gpu_engine.partition.batch import batch_of
from gpu_engine.partition.buckets import bucket_bytes
from gpu_engine.partition.census import Census, ChangedEdges, ChangedVertices, Scales
from gpu_engine.partition.columns import lengthened
from gpu_engine.partition.moves import NOWHERE
from gpu_engine.partition.multilevel import PROCESS_BYTES
from gpu_engine.partition.problem import Question, edge_weight_bytes, limit_of
from gpu_engine.partition.resident import Report, Way
from gpu_engine.partition.survey import ABSENT, changed_weights
from gpu_engine.partition.upkeep import Upkeep
from gpu_engine.types import BoolArray, UnitArray, VertexArray

MATURE: Final = 4
"""How many answers are given between the beginning of a new partition, which is compared with the one at hand, and its
end. It is a number of answers and no time, so that the same questions have the same answers however long the host
takes."""

SORT_BYTES: Final = 48
"""Bytes for each arc while the links of groups are added up."""


def device_partition_bytes(n_vertices: int, n_edges: int, n_arcs: int, k: int) -> int:
    """Bytes that a partition takes on the device at most while it is made: the bucket list once more on the levels, and
    the columns of the network, or the columns with which links are added up."""
    held = bucket_bytes(n_vertices, n_arcs) // 2 + scratch_bytes(n_vertices, k) + 28 * n_vertices
    made = max(12 * n_edges + 12 * n_arcs, 2 * 12 * n_arcs + SORT_BYTES * n_arcs) + 80 * n_vertices
    return (held + made) * (SHARE + 1) // SHARE + (1 << 20)


class Held:
    """The columns on the device, which have room for as many vertices as they are long."""

    def __init__(self, graph: BucketList, part: Array, vertex_weight: Array, k: int) -> None:
        length = len(graph.rows.start)
        self.graph = graph
        self.books = DeviceBooks(longer(part, length, NOWHERE), longer(vertex_weight, length, 0), new_told(k))
        self.scratch = Scratch(length, k)
        self.told_part = longer(cupy.empty(0, np.int32), length, NOWHERE)
        """The parts of the last answer."""

    @property
    def nbytes(self) -> int:
        return self.graph.nbytes + self.books.nbytes + self.scratch.nbytes + int(self.told_part.nbytes)

    def grow(self, n: int) -> None:
        """Have so many vertices; the new ones are nowhere, and weigh nothing."""
        self.graph.grow(n)
        length, books = len(self.graph.rows.start), self.books
        if length > len(books.part):
            books.part, books.vertex_weight = (
                longer(books.part, length, NOWHERE),
                longer(books.vertex_weight, length, 0),
            )
            self.told_part = longer(self.told_part, length, NOWHERE)
            self.scratch = Scratch(length, self.scratch.k)


class CudaResidentPartition:
    """A partition of one network on the current device of the calling thread. One thread at a time.

    After an exception it is made from nothing by the next `bring`.
    """

    def __init__(self, question: Question, few: int | None = None) -> None:
        """Graphs of at most ``few`` vertices are divided by the host; None stands for the best such number."""
        self.question = question
        self._few = few_for(question.k) if few is None else few
        self.stream = next_stream()
        self._held: Held | None = None
        self._attempt: Attempt | None = None
        """A new partition that is being made, to be compared with this one."""
        self._census = Census()
        self._scales = Scales(question.weights)
        self._vertex_weight: UnitArray = np.empty(0, np.int64)
        """int64[n]: what each vertex weighs, `ABSENT` for vertices that do not exist."""
        self._part: VertexArray | None = np.empty(0, np.int32)
        self._part_weight = np.zeros(question.k, np.int64)
        self._cut = self._limit = 0
        self._upkeep = Upkeep()
        self._keeps_limit = True

    @property
    @device_call
    def part(self) -> VertexArray:
        """int32[n]: the part of each vertex, `NOWHERE` for those that were deleted. Copied when it is asked for."""
        if self._part is None:
            assert self._held is not None
            self._part = self._held.books.part[: len(self._vertex_weight)].get()
        return self._part

    @property
    def cut(self) -> int:
        """The weight of all edges between parts, as it was counted on the way."""
        return self._cut

    @property
    def part_weight(self) -> UnitArray:
        """int64[k], as it was counted on the way."""
        return self._part_weight

    @property
    def limit(self) -> int:
        """What a part may weigh at most."""
        return self._limit

    @property
    def heaviest_vertex(self) -> int:
        return int(self._vertex_weight.max(initial=0))

    @property
    def footprint(self) -> Footprint:
        """The memory that the partition takes at rest."""
        host = self._scales.nbytes + self._vertex_weight.nbytes + self._census.nbytes
        host += 0 if self._part is None else self._part.nbytes
        attempt = 0 if self._attempt is None else self._attempt.nbytes
        return Footprint(host, attempt + (0 if self._held is None else self._held.nbytes))

    @device_call
    def bring(self, network: Network, vertex_weight: UnitArray | None, control: Control, room: Room) -> Report:
        """Make it a partition of the network as it is now. ``vertex_weight`` int64[n], of which those of vertices that
        were deleted do not count; None: each weighs 1.

        From nothing if it is none yet, or if too much has changed. Else what the changes take on the device, and where
        edges or vertices weigh other than 1, O(n + m) to compare columns on the host. Raises `InvalidNetwork`,
        `CapacityOverflow`, `OutOfMemory`, `Cancelled`.
        """
        try:
            return self._brought(network, vertex_weight, control, room)
        except BaseException:
            self._held = self._attempt = None  # the columns of host and device may differ
            raise

    def _brought(self, network: Network, vertex_weight: UnitArray | None, control: Control, room: Room) -> Report:
        compare = partial(changed_weights, self._vertex_weight, network.deleted_vertices)
        other = self._census.changed(network, vertex_weight, compare)
        total, limit = other.total, limit_of(other.total, self.question.k, self.question.epsilon)
        make = partial(self._make, network, vertex_weight, (total, limit), control, room)
        if self._held is None:
            return make("it is the first answer, or the partition before was forgotten")
        edges = self._scales.changed(network)
        if not len(edges.rows) and not len(other.rows):
            self._have_vertices(network.n_vertices)
            return Report(Way.UNCHANGED, 0, 0)
        if self._upkeep.change(len(edges.rows), len(other.rows)):
            return make("too much has changed since the last answer, or since it was made from nothing")
        self._limit = limit
        batch, n_other = self._enter(network, edges, other, room)
        held = self._held
        refine(held.graph.rows, held.books, held.scratch, held.graph.n, limit, AROUND, batch.touched)
        moved = self._read()
        if self._upkeep.is_due or self._upkeep.has_grown(self._cut):
            refine(held.graph.rows, held.books, held.scratch, held.graph.n, limit, ALL_BORDERS, None)
            moved = self._read()
            self._upkeep.looked(self._cut)
        report = self._compared(network, total, control, room)
        self._upkeep.settle(self._cut)
        held.told_part[: held.graph.n] = held.books.part[: held.graph.n]
        return report or Report(Way.INCREMENTAL, len(edges.rows) + n_other, moved)

    def _compared(self, network: Network, total: int, control: Control, room: Room) -> Report | None:
        """Begin one from nothing if that is due, which the host divides while further answers are given; compare the
        one at hand with it `MATURE` answers later. None: what is at hand stays."""
        if self._attempt is None:
            if self._upkeep.wants_trial(self._cut):
                counts = network.n_vertices, network.n_edges, network.n_arcs, self.question.k
                try:
                    room(Footprint(SEEDS * PROCESS_BYTES, device_partition_bytes(*counts)))
                except OutOfMemory:
                    self._upkeep.tried(self._cut, self._cut)  # nobody has asked for it
                    return None
                self._attempt = self._whole(total).begin(*self._asked, control)
            return None
        self._attempt.age += 1
        if self._attempt.age < MATURE:
            return None
        report = self._tried(network, self._attempt, total, control)
        self._attempt = None
        return report

    def _tried(self, network: Network, attempt: Attempt, total: int, control: Control) -> Report | None:
        """Finish one from nothing; None: what is at hand stays: it cuts less, or the host had no room for the other."""
        held = self._held
        assert held is not None
        part, told, cut, kept_limit = held.books.part.copy(), held.books.told.copy(), self._cut, self._keeps_limit
        with suppress(OutOfMemory):
            self._whole(total).finish(attempt, control)
        self._read()
        better = self._keeps_limit and (self._cut < cut or not kept_limit)
        if not better:
            held.books.part, held.books.told = part, told
            self._read()
        self._upkeep.tried(cut, self._cut)
        if not better:
            return None
        self._upkeep.replaced(self._cut)
        return Report(
            Way.FULL, network.n_vertices + network.n_edges, 0, "its cut has grown, and one from nothing cuts less"
        )

    @property
    def _asked(self) -> tuple[int, int]:
        """The imbalance in thousandths, and the seed."""
        return int(1000 * self.question.epsilon), self.question.seed

    def _whole(self, total: int) -> Whole:
        held = self._held
        assert held is not None
        return Whole(held.graph.n, held.graph.rows, held.books, held.scratch, (total, self._limit), self._few)

    def _read(self) -> int:
        """Have what a refinement has come to; returns how many vertices had a part at the last answer, and have another
        one now. Waits."""
        held = self._held
        assert held is not None
        n, books = held.graph.n, held.books
        books.moved.fill(0)
        strided(LINKS, "count_moved", n, np.int32(n), held.told_part, books.part, books.moved)
        told = read(books)
        held.graph.read()
        if told.missed:
            raise EngineError("a link of the network is missing in its partition")
        self._cut, self._part_weight = told.cut, told.part_weight
        self._keeps_limit = bool(told.part_weight.max(initial=0) <= self._limit)
        self._part = None
        return told.moved

    def _have_vertices(self, n: int) -> None:
        """Have so many; the new ones are nowhere."""
        assert self._held is not None
        if n > len(self._vertex_weight):
            self._vertex_weight = lengthened(self._vertex_weight, n, ABSENT)
            self._held.grow(n)
            self._part = None

    def _make(
        self,
        network: Network,
        vertex_weight: UnitArray | None,
        sums: tuple[int, int],
        control: Control,
        room: Room,
        reason: str,
    ) -> Report:
        n, m, arcs, k = network.n_vertices, network.n_edges, network.n_arcs, self.question.k
        before = np.zeros(0, np.int32) if self._held is None else self.part
        self._held = self._attempt = None
        host = SEEDS * PROCESS_BYTES + edge_weight_bytes(m, self.question.weights) + 64 * n
        room(Footprint(host, device_partition_bytes(n, m, arcs, k)))
        self._vertex_weight = np.where(network.there, np.int64(1) if vertex_weight is None else vertex_weight, ABSENT)
        weight = self._scales.begin(network)
        links = link_weights(*map(cupy.asarray, (network.edge_arc, network.reverse_arc, weight)))
        offsets = cupy.asarray(network.row_offsets)
        begin, count = offsets[:-1].astype(np.int64), offsets[1:] - offsets[:-1]
        graph = BucketList(begin, count, cupy.asarray(network.head), links)
        del links, begin, count, offsets
        own = cupy.asarray(self._vertex_weight)
        part = np.where(self._vertex_weight < 0, NOWHERE, np.maximum(lengthened(before, n), 0)).astype(np.int32)
        held = Held(graph, cupy.asarray(part), cupy.maximum(own, 0), k)
        self._held = held
        n_links = int(graph.rows.used.sum()) // 2
        total, self._limit = sums
        self._whole(total).from_nothing(*self._asked, control)
        self._read()
        held.told_part[:n] = held.books.part[:n]
        self._upkeep.begin(n_links, int(weight.sum(dtype=np.int64)), self._cut)
        return Report(Way.FULL, n + m, 0, reason)

    def _enter(
        self,
        network: Network,
        edges: ChangedEdges,
        other: ChangedVertices,
        room: Room,
    ) -> tuple[OnDevice, int]:
        """Enter what edges and vertices weigh now; new vertices are in the pseudo-partition. Returns this, with the
        vertices that it touches, and how many vertices have come, have gone or weigh something else."""
        held = self._held
        assert held is not None
        self._have_vertices(network.n_vertices)
        self._upkeep.weigh(int(edges.delta.sum()))
        batch = batch_of(network, edges.rows, edges.delta)
        was = self._vertex_weight[other.rows] != ABSENT
        own = np.where(other.there, other.weight, ABSENT)
        self._vertex_weight[other.rows] = own
        come = other.rows[other.there & ~was]
        touched = np.concatenate([batch.vertex, come[~_among(batch.vertex, come)]])
        on_device = OnDevice(batch, touched, other.rows.astype(np.int64), own)
        self._change_links(held, on_device, room)
        if count := len(own):
            books = held.books
            given = *on_device.more, np.int32(self.question.k), books.part, books.vertex_weight, books.part_weight
            strided(LINKS, "enter_vertices", count, np.int32(count), *given)
        return on_device, int(np.count_nonzero(other.there | was))

    def _change_links(self, held: Held, batch: OnDevice, room: Room) -> None:
        if not batch.rows:
            return
        if not held.graph.fits(held.graph.most(batch)):
            needed = held.graph.reserve(batch)
            for more in (4, 2):
                if held.graph.fits(needed):
                    break
                room(Footprint(device=held.graph.nbytes + 16 * needed))
                held.graph = held.graph.packed_anew(more * needed)
                needed = held.graph.reserve(batch)
        held.graph.change(batch, held.books)


def _among(rising: VertexArray, some: VertexArray) -> BoolArray:
    """bool[k]: which of ``some`` are in the rising array."""
    if not len(rising):
        return np.zeros(len(some), np.bool_)
    found: BoolArray = rising[np.minimum(np.searchsorted(rising, some), len(rising) - 1)] == some
    return found
