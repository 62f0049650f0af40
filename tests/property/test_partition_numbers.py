"""Parts of a new partition keep the numbers of those they come from."""

from fractions import Fraction

import numpy as np

from gpu_engine.checks.partitions import prove_partition
from gpu_engine.control import Control
from gpu_engine.footprint import Room, unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.partition.buckets import Buckets
from gpu_engine.partition.moves import NOWHERE, Books, count_up
from gpu_engine.partition.numbers import numbers, shared
from gpu_engine.partition.partitioner import HostPartitioner
from gpu_engine.partition.problem import Question
from gpu_engine.partition.resident import ResidentPartition


def test_a_partition_that_is_the_same_has_the_same_numbers() -> None:
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(1, 60)), int(rng.integers(1, 9))
        before = rng.integers(NOWHERE, k, n).astype(np.int32)
        other = rng.permutation(k).astype(np.int32)
        now = np.where(before == NOWHERE, NOWHERE, other[before])
        common = shared(before, now, k)
        assert common.sum() == np.count_nonzero(before >= 0), f"seed {seed}"
        number = numbers(common)
        assert sorted(number.tolist()) == list(range(k)), f"seed {seed}"
        there = before >= 0
        assert number[now[there]].tolist() == before[there].tolist(), f"seed {seed}"


def test_the_pair_with_the_most_in_common_comes_first() -> None:
    assert numbers(np.array([[1, 5, 0], [6, 4, 0], [0, 0, 0]])).tolist() == [1, 0, 2]


class Shuffled(HostPartitioner):
    """Numbers its parts otherwise each time."""

    def __init__(self) -> None:
        self._rng, self.made = np.random.default_rng(1), 0

    def full(self, buckets: Buckets, books: Books, thousandths: int, seed: int, control: Control, room: Room) -> None:
        super().full(buckets, books, thousandths, seed, control, room)
        books.part[:] = self._rng.permutation(len(books.part_weight) - 1)[books.part]
        count_up(buckets, books)
        self.made += 1


def test_one_from_nothing_keeps_the_numbers_of_its_parts() -> None:
    """A chain of four grids, which are the parts, with light edges between them; the others change many at a time."""
    side = 12
    at = np.arange(4 * side * side, dtype=np.int32).reshape(4 * side, side)
    tail, head = (
        np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()]),
        np.concatenate([at[:, 1:].ravel(), at[1:].ravel()]),
    )
    between = (tail // side % side == side - 1) & (head - tail == side)
    network = Network(EdgeList(at.size, tail, head, np.where(between, 1, 9)))
    partitioner = Shuffled()
    found = ResidentPartition(Question(4, Fraction(0), "capacity"), partitioner)
    found.bring(network, None, Control(), unlimited)
    first = found.part.tolist()
    assert first == np.array(first[:: side * side])[at.ravel() // (side * side)].tolist()
    for seed in range(8):
        network = network.fork()
        some = np.random.default_rng(seed).choice(np.flatnonzero(~between), network.n_edges // 4, replace=False)
        network.set_capacity(some, np.full(len(some), 8 + seed % 2))
        found.bring(network, None, Control(), unlimited)
        assert found.part.tolist() == first, f"seed {seed}"
        claimed = found.cut, found.part_weight
        assert prove_partition(network, network.capacity, np.ones(at.size, np.int64), found.part, 4, claimed).valid
    assert partitioner.made > 4
