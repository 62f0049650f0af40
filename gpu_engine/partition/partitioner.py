"""The two ways to a partition, on the host: from nothing, and from the one at hand.

A partitioner works on `Buckets` and `Books` and leaves in them a partition with all its sums. The partition that is
kept on a device (`gpu_engine.cuda.partition.resident`) has no such columns on the host, so it is another
`KeptPartition` and uses no `Partitioner`.
"""

from typing import Final, Protocol

import numpy as np

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Room
from gpu_engine.partition import exact, moves
from gpu_engine.partition.buckets import Buckets
from gpu_engine.partition.contract import contract_bytes, drawn_together, parts_of
from gpu_engine.partition.flow_refine import flow_refine, flow_refine_bytes
from gpu_engine.partition.moves import NOWHERE, Books, Gains
from gpu_engine.partition.multilevel import multilevel, multilevel_bytes
from gpu_engine.partition.pseudo import gather, settle
from gpu_engine.types import BoolArray, VertexArray

LOOKS: Final = 16
"""One refinement looks at this many vertices, at most, for each vertex that it begins with."""

AT_ONCE: Final = 1 << 12
"""How many vertices of a part that is too heavy are compared, of which the cheapest leave; more if more have to
leave."""

ROUNDS: Final = 8
"""How often each pair of neighbouring parts is divided anew, at most."""

FEWER_ROUNDS: Final = 1
"""`ROUNDS` where a partition is brought up to date, or made roughly."""

FEW: Final = 1 << 13
"""A rough partition is made of a graph in which groups of vertices are drawn together until it has this many
vertices."""
FEW_OF_PART: Final = 1 << 7
"""The least number of vertices for each part in that graph."""

LIGHT: Final = 20
"""No group of several vertices in that graph weighs more than one in this many of what a part weighs."""

CLEARLY: Final = 0.85
"""The partition at hand is good enough if its cut is below this share of the cut of a rough partition. A rough one cuts
12 to 25 % more than a good one (benchmarks/NOTES.md)."""
NEARLY: Final = 0.97
"""`CLEARLY` after minimum cuts have straightened the borders of the rough partition, which then cuts 2 to 6 % more."""

SWEEPS: Final = 64
"""How often all parts are searched for one that is too heavy, at most."""


class Partitioner(Protocol):
    """Makes and refines partitions on the host. ``thousandths`` is the imbalance that is asked for, in thousandths;
    ``room`` is asked for what METIS takes beyond `multilevel_bytes`."""

    def full(self, buckets: Buckets, books: Books, thousandths: int, seed: int, control: Control, room: Room) -> None:
        """Give every vertex that is not `NOWHERE` a part, whatever parts it had."""

    def refine(self, buckets: Buckets, books: Books, touched: VertexArray, thorough: bool, control: Control) -> None:
        """Bring the partition up to date after a change that has touched these vertices, int32[...], each named once;
        those that are new are in the pseudo-partition. The sums are right before and after. All borders are looked at
        where ``thorough``, else only what was touched."""

    def holds(self, buckets: Buckets, books: Books, thousandths: int, seed: int, control: Control, room: Room) -> bool:
        """Whether the partition at hand is as good as one from nothing probably is, for a fraction of what that takes.
        Nothing is changed."""


class HostPartitioner:
    """Uses METIS and our own kernels, and branch and bound for few vertices. After `Cancelled` the books must not be
    used any more."""

    def full(self, buckets: Buckets, books: Books, thousandths: int, seed: int, control: Control, room: Room) -> None:
        k = len(books.part_weight) - 1
        there = books.part != NOWHERE
        found = multilevel(buckets, there, books.vertex_weight, k, thousandths, seed, control, room)
        books.part[there] = k if found is None else found[there]
        moves.count_up(buckets, books)
        self._spread(books)
        moves.count_up(buckets, books)
        self._finish(buckets, books, moves.boundary(buckets, books.part), control)
        self._finish(buckets, books, flow_refine(buckets, books, ROUNDS, control), control)
        exact.divide(buckets, books)

    def refine(self, buckets: Buckets, books: Books, touched: VertexArray, thorough: bool, control: Control) -> None:
        k = len(books.part_weight) - 1
        pseudo, beside = gather(buckets, books, touched, np.zeros(len(books.part), np.bool_))
        settle(buckets, books, moves.gains_for(k), pseudo)
        self._finish(buckets, books, np.concatenate([pseudo, beside]), control)
        if thorough:
            self._finish(buckets, books, flow_refine(buckets, books, FEWER_ROUNDS, control), control)
        exact.divide(buckets, books)

    def holds(self, buckets: Buckets, books: Books, thousandths: int, seed: int, control: Control, room: Room) -> bool:
        """The partition is compared with one of a contracted graph (`contract.py`), which is refined on the way back to
        the whole graph. Returns False for few vertices: to make a new partition of these takes no longer."""
        k, there = len(books.part_weight) - 1, books.part != NOWHERE
        heaviest = max(1, int(books.part_weight.sum()) // (LIGHT * k))
        few = max(FEW, FEW_OF_PART * k)
        levels, small, weight = drawn_together(buckets, books.vertex_weight, there, few, heaviest)
        if not levels:
            return False
        everyone = np.ones(len(weight), np.bool_)
        part = multilevel(small, everyone, weight, k, thousandths, seed, control, room)
        if part is None:
            return False
        for level in reversed(levels):
            part = parts_of(part, level.group)
            rough = Books(part, level.vertex_weight, np.zeros(k + 1, np.int64), np.zeros(1, np.int64), books.limit)
            moves.count_up(level.buckets, rough)
            self._finish(level.buckets, rough, moves.boundary(level.buckets, part), control)
        if int(books.cut[0]) < CLEARLY * int(rough.cut[0]):
            return True
        self._finish(buckets, rough, flow_refine(buckets, rough, FEWER_ROUNDS, control), control)
        return int(books.cut[0]) < NEARLY * int(rough.cut[0])

    def _finish(self, buckets: Buckets, books: Books, begin_with: VertexArray, control: Control) -> None:
        n, gains = len(books.part), moves.gains_for(len(books.part_weight) - 1)
        queued: BoolArray = np.zeros(n, np.bool_)
        moved = balance(buckets, books, gains, control)
        begin_with = np.concatenate([begin_with, moved])
        moves.improve(buckets, books, gains, begin_with, queued, LOOKS * len(begin_with) + n // 8, control.slots)
        _go_on(control)

    def _spread(self, books: Books) -> None:
        """Put vertices that METIS has no part for, the heaviest first, into the parts that are the lightest by then."""
        k = len(books.part_weight) - 1
        waiting = np.flatnonzero(books.part == k)
        waiting = waiting[np.argsort(-books.vertex_weight[waiting], kind="stable")]
        moves.fill_up(books, waiting.astype(np.int32))


def holds_bytes(n_vertices: int, n_arcs: int, k: int) -> int:
    """Bytes that `HostPartitioner.holds` takes at most."""
    rough = contract_bytes(n_vertices, n_arcs) + multilevel_bytes(n_vertices // 2, n_arcs, k)
    return rough + flow_refine_bytes(n_vertices, n_arcs, k) + 8 * n_vertices + 8 * k


def balance(buckets: Buckets, books: Books, gains: Gains, control: Control) -> VertexArray:
    """Move vertices out of parts that are too heavy until none is. Returns the vertices that were looked at,
    int32[...], around which more may be won now.

    It succeeds if no vertex weighs more than the limit less what the lightest part weighs. Otherwise a part may stay
    too heavy.
    """
    touched: list[VertexArray] = []
    inside = False
    for _ in range(SWEEPS):
        heavy = np.flatnonzero(books.part_weight[:-1] > books.limit[0])
        if not len(heavy):
            break
        gone = 0
        for p in map(int, heavy):
            _go_on(control)
            n_of_part = int(np.count_nonzero(books.part == p))
            share = (int(books.part_weight[p]) - int(books.limit[0])) / max(int(books.part_weight[p]), 1)
            most = n_of_part if inside else min(n_of_part, AT_ONCE + int(4 * share * n_of_part))
            found, loss = moves.leavers(buckets, books, gains, p, most, inside)
            gone += moves.leave(buckets, books, gains, p, found, np.lexsort((found, loss)))
            touched.append(found)
        if not gone and inside:
            break
        inside = not gone  # no vertex at a border has a part to go to
    return np.concatenate(touched) if touched else np.empty(0, np.int32)


def _go_on(control: Control) -> None:
    if control.cancelled:
        raise Cancelled("cancelled while it was partitioned")
