"""Partitions of graphs with a few vertices, held against every division there is."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.footprint import unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.partition.problem import Question, limit_of
from gpu_engine.partition.resident import ResidentPartition
from gpu_engine.types import UnitArray
from tests.cases import cases


def least_cut(network: Network, weight: list[int], k: int, limit: int) -> int | None:
    """By trying all divisions of the vertices that are there; None if none keeps the limit."""
    rows = np.flatnonzero(network.capacity)
    tail, head, own = (c.tolist() for c in (network.edge_tail(rows), network.edge_head(rows), network.capacity[rows]))
    there = np.flatnonzero(network.there).tolist()
    best = None
    for parts in product(range(k), repeat=len(there)):
        of = dict(zip(there, parts, strict=True))
        if any(sum(weight[v] for v in there if of[v] == p) > limit for p in range(k)):
            continue
        cut = sum(own[e] for e in range(len(rows)) if of[tail[e]] != of[head[e]])
        best = cut if best is None else min(best, cut)
    return best


@pytest.mark.parametrize("first", range(0, cases(60), 10))
def test_the_least_cut_cold_and_warm(first: int) -> None:
    for seed in range(first, first + 10):
        rng = np.random.default_rng(seed)
        n, k, m = int(rng.integers(2, 8)), int(rng.integers(1, 4)), int(rng.integers(0, 20))
        k = min(k, n)
        tail, head = rng.integers(0, n, (2, m)).astype(np.int32)  # with loops, parallel and opposite edges
        network = Network(EdgeList(n, tail, head, rng.integers(0, 9, m), undirected=rng.random(m) < 0.5))
        weight: UnitArray = rng.integers(0, 4, n) if seed % 2 else np.ones(n, np.int64)
        found = ResidentPartition(Question(k, Fraction(int(rng.integers(0, 5)), 10), seed=seed))
        for step in range(3):
            found.bring(network, weight, Control(), unlimited)
            counted = np.where(network.there, weight, 0)
            limit = limit_of(int(counted.sum()), k, found.question.epsilon)
            best = least_cut(network, weight.tolist(), k, limit)
            if best is not None:
                assert found.part_weight.max() <= limit, f"seed {seed}, step {step}"
                assert found.cut == best, f"seed {seed}, step {step}"
            network = without_one(network) if step and n > 3 else recosted(network, rng)


def recosted(network: Network, rng: np.random.Generator) -> Network:
    network = network.fork()
    some = network.live(rng.permutation(network.n_edges)[:3])
    network.set_capacity(some, rng.integers(0, 9, len(some)))
    return network


def without_one(network: Network) -> Network:
    """Without its first vertex."""
    network = network.fork()
    rows = network.live(np.arange(network.n_edges))
    at = rows[(network.edge_tail(rows) == 0) | (network.edge_head(rows) == 0)]
    network.set_capacity(at, np.zeros(len(at), np.int64))
    network.mark(at, np.empty(0, np.int64))
    network.mark_vertices(np.array([0], np.int32), np.empty(0, np.int32))
    return network


def test_parts_keep_their_numbers() -> None:
    """Two triangles with a weak link: a change within one of them moves nobody."""
    tail, head = np.array([[0, 1, 2, 3, 4, 5, 2], [1, 2, 0, 4, 5, 3, 3]], np.int32)
    network = Network(EdgeList(6, tail, head, np.array([5, 5, 5, 5, 5, 5, 1])))
    found = ResidentPartition(Question(2, Fraction(0)))
    weight = np.ones(6, np.int64)
    found.bring(network, weight, Control(), unlimited)
    before = found.part.copy()
    assert found.cut == 1
    network = network.fork()
    network.set_capacity(np.array([0, 6]), np.array([2, 4]))
    report = found.bring(network, weight, Control(), unlimited)
    assert (report.moved, found.cut, found.part.tolist()) == (0, 4, before.tolist())


def test_a_search_that_is_too_long_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of 32 vertices with links between all: the limit holds, and the books are right."""
    monkeypatch.setattr("gpu_engine.partition.exact.MOST_TRIED", 500)
    rng = np.random.default_rng(3)
    tail, head = np.triu_indices(32, 1)
    network = Network(EdgeList(32, tail.astype(np.int32), head.astype(np.int32), rng.integers(1, 99, len(tail))))
    found = ResidentPartition(Question(5, Fraction(0)))
    found.bring(network, np.ones(32, np.int64), Control(), unlimited)
    between = found.part[tail] != found.part[head]
    assert found.part_weight.max() <= found.limit == 7
    assert found.cut == int(network.capacity[between].sum())
