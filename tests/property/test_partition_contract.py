"""Graphs with groups of vertices drawn together, and partitions that are held against rough ones of such a graph."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_engine.control import Control
from gpu_engine.footprint import Footprint, Room, unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.partition.buckets import Buckets, bucketed, link_weights
from gpu_engine.partition.contract import GROUP, drawn_together, parts_of
from gpu_engine.partition.moves import NOWHERE, Books, count_up
from gpu_engine.partition.partitioner import HostPartitioner
from gpu_engine.partition.problem import Question
from gpu_engine.partition.resident import ResidentPartition, Way

SIDE = 160


def buckets_of(network: Network) -> Buckets:
    links = link_weights(network.n_arcs, network.edge_arc, network.reverse_arc, network.capacity)
    return bucketed(network.row_offsets, network.head, links)


def books_of(buckets: Buckets, part: NDArray[np.int32], weight: NDArray[np.int64], k: int, limit: int) -> Books:
    books = Books(part, weight, np.zeros(k + 1, np.int64), np.zeros(1, np.int64), np.array([limit]))
    count_up(buckets, books)
    return books


def square() -> Network:
    at = np.arange(SIDE * SIDE, dtype=np.int32).reshape(SIDE, SIDE)
    tail = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    head = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    return Network(EdgeList(SIDE * SIDE, tail, head, np.ones(len(tail), np.int64), undirected=True))


def test_parts_of_groups_are_parts_of_vertices_with_the_same_sums() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, m, k = int(rng.integers(20, 300)), int(rng.integers(0, 900)), int(rng.integers(2, 5))
        tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
        there = rng.random(n) < 0.9
        capacity = np.where(there[tail] & there[head], rng.integers(0, 5, m), 0)
        buckets = buckets_of(Network(EdgeList(n, tail, head, capacity, undirected=True)))
        weight, heaviest = np.where(there, rng.integers(0, 4, n), 0), int(rng.integers(3, 60))
        levels, small, of_group = drawn_together(buckets, weight, there, 5, heaviest)
        for level in levels:
            members = np.bincount(level.group[level.group >= 0])
            assert members.min() >= 1
            assert members.max() <= 2 * GROUP + 1
        assert of_group.max() <= max(heaviest, int(weight.max()))
        assert of_group.sum() == weight.sum()
        part = rng.integers(0, k, len(of_group)).astype(np.int32)
        few = books_of(small, part if levels else np.where(there, part, NOWHERE).astype(np.int32), of_group, k, 0)
        for level in reversed(levels):
            part = parts_of(part, level.group)
        if levels:
            assert ((part == NOWHERE) == ~there).all()
            many = books_of(buckets, part, weight, k, 0)
            assert many.cut.tolist() == few.cut.tolist()
            assert many.part_weight.tolist() == few.part_weight.tolist()


def test_a_straight_border_holds_and_a_crooked_one_does_not() -> None:
    network = square()
    buckets, weight = buckets_of(network), np.ones(SIDE * SIDE, np.int64)
    row = np.arange(SIDE * SIDE) // SIDE
    limit = int(1.03 * SIDE * SIDE / 2)
    straight = (row >= SIDE // 2).astype(np.int32)
    crooked = ((row // (SIDE // 4)) % 2).astype(np.int32)  # three borders, where one would do
    for part, good in ((straight, True), (crooked, False)):
        books = books_of(buckets, part, weight, 2, limit)
        before = part.tolist(), books.cut.tolist()
        assert HostPartitioner().holds(buckets, books, 30, 0, Control(), unlimited) is good
        assert (part.tolist(), books.cut.tolist()) == before


def into_a_cylinder(network: Network, seed: int) -> Network:
    """Edges from the first columns to the last ones."""
    rng, more = np.random.default_rng(seed), 600
    row, left, right = rng.integers(0, SIDE, more), *rng.integers(0, 4, (2, more))
    ends = (row * SIDE + left).astype(np.int32), (row * SIDE + SIDE - 1 - right).astype(np.int32)
    grown = grow(network, Structure(0, None, *ends, np.ones(more, np.bool_))).network.fork()
    grown.set_capacity(network.n_edges + np.arange(more), np.ones(more, np.int64))
    return grown


def test_a_square_that_becomes_a_cylinder_gets_other_borders() -> None:
    """One that is divided into a left and a right half has the new edges between them twice."""
    network, weight, column = square(), np.ones(SIDE * SIDE, np.int64), np.arange(SIDE * SIDE) % SIDE
    for seed in range(20):
        found = ResidentPartition(Question(2, Fraction(3, 100), seed=seed))
        found.bring(network, weight, Control(), unlimited)
        if np.ptp(column[found.part == 0]) < SIDE - 1:
            break
    ways = []
    for step in range(4):
        network = into_a_cylinder(network, step)
        ways.append(found.bring(network, weight, Control(), unlimited).way)
    fresh = ResidentPartition(found.question)
    fresh.bring(network, weight, Control(), unlimited)
    assert Way.FULL in ways
    assert found.cut <= 1.1 * fresh.cut


class Worse(HostPartitioner):
    """Says that no partition holds, and makes none from nothing that is better than the first: it cuts more, or nothing
    because one part has all vertices."""

    def __init__(self, among: int) -> None:
        self.asked = self.made = 0
        self._among = among

    def full(self, buckets: Buckets, books: Books, thousandths: int, seed: int, control: Control, room: Room) -> None:
        self.made += 1
        super().full(buckets, books, thousandths, seed, control, room)
        if self.made > 1:
            books.part[:] = np.arange(len(books.part)) % self._among
            count_up(buckets, books)

    def holds(self, buckets: Buckets, books: Books, thousandths: int, seed: int, control: Control, room: Room) -> bool:
        self.asked += 1
        return False


@pytest.mark.parametrize(("seed", "among"), [(0, 2), (1, 2), (2, 1)])
def test_one_from_nothing_that_is_no_better_does_not_replace_the_one_at_hand(seed: int, among: int) -> None:
    network, weight, partitioner = square(), np.ones(SIDE * SIDE, np.int64), Worse(among)
    found = ResidentPartition(Question(2, Fraction(3, 100), seed=seed), partitioner)
    found.bring(network, weight, Control(), unlimited)
    rng = np.random.default_rng(seed)
    for _ in range(15):
        network = network.fork()
        rows = rng.choice(network.n_edges, 2000, replace=False)  # in the end more than `upkeep.UNTRIED` of all links
        network.set_capacity(rows, rng.integers(1, 4, 2000))
        assert found.bring(network, weight, Control(), unlimited).way is Way.INCREMENTAL
        books = books_of(buckets_of(network), found.part, weight, 2, found.limit)
        assert (found.cut, found.part_weight.tolist()) == (int(books.cut[0]), books.part_weight[:2].tolist())
        assert found.part_weight.max() <= found.limit
    assert partitioner.asked >= 1
    assert partitioner.made == 1 + partitioner.asked
    assert partitioner.asked <= 8


def test_a_rough_partition_and_the_one_made_after_it_need_no_room_side_by_side() -> None:
    """What one from nothing takes is enough for any answer that follows. Either may be a process of METIS."""
    network, weight = square(), np.ones(SIDE * SIDE, np.int64)
    taken = [0, 0]  # now, and at most

    def room(needed: Footprint) -> None:
        taken[0] += needed.host
        taken[1] = max(taken)

    found = ResidentPartition(Question(2, Fraction(3, 100)), Worse(2))
    found.bring(network, weight, Control(), room)
    first, rng = taken[1], np.random.default_rng(0)
    for _ in range(15):
        taken[:] = 0, 0
        network = network.fork()
        rows = rng.choice(network.n_edges, 2000, replace=False)
        network.set_capacity(rows, rng.integers(1, 4, 2000))
        found.bring(network, weight, Control(), room)
        assert taken[1] < 1.3 * first
