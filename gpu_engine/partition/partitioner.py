"""The two ways to a partition, on the host: from nothing, and from the one at hand.

A partitioner works on `Buckets` and `Books` and leaves in them a partition with all its sums. One on another device has
the same two functions.
"""

from typing import Final, Protocol

import numpy as np

from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled
from gpu_engine.partition import moves
from gpu_engine.partition.buckets import Buckets
from gpu_engine.partition.flow_refine import flow_refine
from gpu_engine.partition.moves import NOWHERE, Books, Gains
from gpu_engine.partition.multilevel import multilevel
from gpu_engine.partition.pseudo import gather, settle
from gpu_engine.types import BoolArray, VertexArray

LOOKS: Final = 16
"""Looks at vertices that one refinement takes, for each vertex that it begins with."""

AT_ONCE: Final = 1 << 12
"""Vertices that may leave a part which is too heavy, among which the cheapest are chosen; more where more must go."""

ROUNDS: Final = 8
"""Times that pairs of parts are divided anew, at most."""

FEWER_ROUNDS: Final = 2
"""The same where a partition is brought up to date."""

SWEEPS: Final = 64
"""Times that all parts are looked through for one that is too heavy, at most."""


class Partitioner(Protocol):
    """One kind of device. ``thousandths``: the imbalance that is asked for, in thousandths."""

    def full(self, buckets: Buckets, books: Books, thousandths: int, seed: int, control: Control) -> None:
        """Give every vertex that is not `NOWHERE` a part, from nothing."""

    def refine(self, buckets: Buckets, books: Books, touched: VertexArray, thorough: bool, control: Control) -> None:
        """Bring the partition up to date after a change that has touched these vertices, each named once; those that
        are new are in the pseudo-partition. The sums are right before and after. ``thorough``: look at all borders, and
        not only at what was touched."""


class HostPartitioner:
    """METIS and kernels of ours. Raises `Cancelled`, and the books are of no use then."""

    def full(self, buckets: Buckets, books: Books, thousandths: int, seed: int, control: Control) -> None:
        k = len(books.part_weight) - 1
        there = books.part != NOWHERE
        found = multilevel(buckets, there, books.vertex_weight, k, thousandths, seed, control)
        books.part[there] = k if found is None else found[there]
        moves.count_up(buckets, books)
        self._spread(books)
        moves.count_up(buckets, books)
        self._finish(buckets, books, moves.boundary(buckets, books.part), control)
        self._finish(buckets, books, flow_refine(buckets, books, ROUNDS, control), control)

    def refine(self, buckets: Buckets, books: Books, touched: VertexArray, thorough: bool, control: Control) -> None:
        k = len(books.part_weight) - 1
        pseudo = gather(buckets, books, touched, np.zeros(len(books.part), np.bool_))
        settle(buckets, books, moves.gains_for(k), pseudo)
        self._finish(buckets, books, np.concatenate([pseudo, touched]), control)
        if thorough:
            self._finish(buckets, books, flow_refine(buckets, books, FEWER_ROUNDS, control), control)

    def _finish(self, buckets: Buckets, books: Books, begin_with: VertexArray, control: Control) -> None:
        n, gains = len(books.part), moves.gains_for(len(books.part_weight) - 1)
        queued: BoolArray = np.zeros(n, np.bool_)
        moved = balance(buckets, books, gains, control)
        begin_with = np.concatenate([begin_with, moved])
        moves.improve(buckets, books, gains, begin_with, queued, LOOKS * len(begin_with) + n // 8, control.slots)
        _go_on(control)

    def _spread(self, books: Books) -> None:
        """Give vertices that METIS has no part for, the heaviest first, to the parts that are the lightest by then."""
        k = len(books.part_weight) - 1
        waiting = np.flatnonzero(books.part == k)
        waiting = waiting[np.argsort(-books.vertex_weight[waiting], kind="stable")]
        moves.fill_up(books, waiting.astype(np.int32))


def balance(buckets: Buckets, books: Books, gains: Gains, control: Control) -> VertexArray:
    """Have vertices leave parts that are too heavy until none is; returns these and where more may be won now.

    It succeeds if no vertex weighs more than the limit less what the lightest part weighs. What cannot be done stays.
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
        inside = not gone  # at the borders nobody can go
    return np.concatenate(touched) if touched else np.empty(0, np.int32)


def _go_on(control: Control) -> None:
    if control.cancelled:
        raise Cancelled("cancelled while it was partitioned")
