"""Random networks through random changes, and a count from nothing of what a partition of them says, wherever it is."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pytest

from gpu_engine.checks.partitions import prove_partition
from gpu_engine.control import Control
from gpu_engine.footprint import unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.partition import multilevel, process
from gpu_engine.partition.moves import NOWHERE
from gpu_engine.partition.problem import Question, edge_weights, limit_of
from gpu_engine.partition.resident import KeptPartition, Way
from gpu_engine.types import UnitArray

Opened: TypeAlias = Callable[[Question], Any]
"""Gives a partition that answers a question."""

STEPS = 12


@pytest.fixture(autouse=True)
def partitioned_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """METIS runs here, without a process for each."""

    def run(module: str, data: bytes, limit: int, control: Control) -> tuple[bytes, int]:
        return b"OK\n" + process.partitioned(data), 0

    with monkeypatch.context() as patch:
        patch.setattr(multilevel, "run", run)
        yield


def random_network(rng: np.random.Generator) -> Network:
    n, m = int(rng.integers(12, 90)), int(rng.integers(0, 260))
    tail, head = rng.integers(0, n, (2, m)).astype(np.int32)  # with loops, parallel and opposite edges
    return Network(EdgeList(n, tail, head, rng.integers(0, 5, m), undirected=rng.random(m) < 0.5))


def changed(network: Network, rng: np.random.Generator) -> Network:
    """The network after a random batch: new vertices and edges, deleted ones, other capacities."""
    n_new, m_new = int(rng.integers(0, 4)), int(rng.integers(0, 9))
    there = np.flatnonzero(network.there)
    if rng.random() < 0.6 and len(there):
        ends = np.concatenate([there, network.n_vertices + np.arange(n_new)])
        tail, head = rng.choice(ends, (2, m_new)).astype(np.int32)
        structure = Structure(n_new, None, tail, head, rng.random(m_new) < 0.5)
        m = network.n_edges
        network = grow(network, structure).network.fork()
        network.set_capacity(m + np.arange(m_new), rng.integers(0, 6, m_new))
    rows = network.live(np.arange(network.n_edges))
    some = rng.permutation(rows)[: rng.integers(0, 10)]
    network.set_capacity(some, rng.integers(0, 6, len(some)))
    if rng.random() < 0.5:
        closed = rng.permutation(rows)[: rng.integers(0, 6)]
        network.set_capacity(closed, np.zeros(len(closed), np.int64))
        network.mark(closed, np.empty(0, np.int64))
    if rng.random() < 0.3 and len(there) > 12:
        gone = rng.permutation(np.flatnonzero(network.there))[:2].astype(np.int32)
        every = network.live(np.arange(network.n_edges))
        at = every[np.isin(network.edge_tail(every), gone) | np.isin(network.edge_head(every), gone)]
        network.set_capacity(at, np.zeros(len(at), np.int64))
        network.mark(at, np.empty(0, np.int64))
        network.mark_vertices(gone, np.empty(0, np.int32))
    return network


def check(network: Network, found: KeptPartition, weight: UnitArray) -> None:
    """Held against a count in plain Python, and against the checker."""
    k, part = found.question.k, found.part.tolist()
    of_edge = edge_weights(network, found.question.weights)
    rows = np.arange(network.n_edges)
    ends = zip(network.edge_tail(rows).tolist(), network.edge_head(rows).tolist(), of_edge.tolist(), strict=True)
    cut, per_part = 0, [0] * k
    for tail, head, own in ends:
        cut += own if part[tail] != part[head] else 0
    for v, there in enumerate(network.there.tolist()):
        assert (0 <= part[v] < k) if there else part[v] == NOWHERE
        if there:
            per_part[part[v]] += int(weight[v])
    assert (found.cut, found.part_weight.tolist()) == (cut, per_part)
    assert prove_partition(network, of_edge, weight, found.part, k, (found.cut, found.part_weight)).valid
    assert found.limit == limit_of(sum(per_part), k, found.question.epsilon)


def through_any_changes(opened: Opened, seeds: range, look: Callable[[Any], bool] = lambda found: True) -> None:
    """The limit is kept after each, and what has moved are vertices that were there and are; ``look`` is another thing
    that holds then."""
    ways: set[Way] = set()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        network, k = random_network(rng), int(rng.integers(1, 7))
        epsilon = Fraction(int(rng.integers(0, 3)), 20)
        found, before = opened(Question(k, epsilon, "one" if seed % 2 else "capacity", seed)), list[int]()
        for _ in range(STEPS):
            weight = np.ones(network.n_vertices, np.int64)
            given = None if rng.random() < 0.7 else weight
            report, last = found.bring(network, given, Control(), unlimited), before
            ways.add(report.way)
            check(network, found, weight)
            before = found.part.tolist()
            both = zip(last, before[: len(last)], strict=True)
            moved = sum(old != new for old, new in both if NOWHERE not in (old, new))
            assert report.moved == (moved if report.way is Way.INCREMENTAL else 0), f"seed {seed}"
            assert found.part_weight.max() <= found.limit, f"seed {seed}"
            assert look(found), f"seed {seed}"
            network = changed(network.fork(), rng)
    assert ways >= {Way.FULL, Way.INCREMENTAL}


def with_weights_of_vertices(opened: Opened, seeds: range) -> None:
    """The limit is kept if no vertex is heavier than the room beside an equal share; the books are right anyway."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        network, k = random_network(rng), int(rng.integers(2, 5))
        found = opened(Question(k, Fraction(1, 5), seed=seed))
        for step in range(4):
            weight = rng.integers(0, 1 + 3**step, network.n_vertices)
            unlike = bool(rng.random() < 0.8)
            weight = weight if unlike else np.ones(network.n_vertices, np.int64)
            found.bring(network, weight if unlike else None, Control(), unlimited)
            check(network, found, weight)
            if int(weight.max()) <= found.limit - int(weight.sum()) // k:
                assert found.part_weight.max() <= found.limit, f"seed {seed}, step {step}"


def with_vertices_that_come_and_go(opened: Opened) -> None:
    """Nothing has changed for whoever looks afterwards, but that the next vertices have higher numbers."""
    rng = np.random.default_rng(5)
    for seed in range(6):
        network = random_network(rng)
        found = opened(Question(3, Fraction(1, 10), seed=seed))
        for way in (Way.FULL, *2 * (Way.UNCHANGED, Way.INCREMENTAL)):
            weight = np.ones(network.n_vertices, np.int64)
            assert found.bring(network, weight if seed % 3 else None, Control(), unlimited).way is way, f"seed {seed}"
            check(network, found, weight)
            n, m, nothing = network.n_vertices, network.n_edges, np.empty(0, np.int32)
            if way is Way.UNCHANGED:  # two come, and are linked
                ends = np.array([0, n], np.int32), np.array([n, n + 1], np.int32)
                network = grow(network, Structure(2, None, *ends, np.zeros(2, np.bool_))).network.fork()
                network.set_capacity(m + np.arange(2), np.array([1, 2]))
            else:  # some come, and are gone again
                network = grow(network, Structure(30, None, nothing, nothing, np.zeros(0, np.bool_))).network.fork()
                network.mark_vertices(np.arange(n, n + 30, dtype=np.int32), nothing)
