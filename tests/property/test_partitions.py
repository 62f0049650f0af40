"""Partitions of random networks through random sequences of changes: after each the limit is kept wherever it can be,
and all that is kept beside the parts equals a count from nothing."""

from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest

from gpu_engine.checks.partitions import prove_partition
from gpu_engine.control import Control
from gpu_engine.footprint import unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.partition import pseudo
from gpu_engine.partition.buckets import bucketed, link_weights
from gpu_engine.partition.flow_refine import flow_refine
from gpu_engine.partition.moves import Books, count_up
from gpu_engine.partition.problem import Question
from gpu_engine.partition.resident import ResidentPartition, Way
from gpu_engine.types import MAX_TOTAL
from tests.random_partitions import (
    changed,
    check,
    partitioned_here,
    random_network,
    through_any_changes,
    with_vertices_that_come_and_go,
    with_weights_of_vertices,
)

__all__ = ["partitioned_here"]

SEEDS = 24


@pytest.mark.parametrize("first", range(0, SEEDS, 6))
def test_any_sequence_of_changes(first: int) -> None:
    through_any_changes(ResidentPartition, range(first, first + 6))


def test_vertices_with_weights() -> None:
    with_weights_of_vertices(ResidentPartition, range(8))


def test_vertices_that_have_come_and_gone_between_two_answers() -> None:
    with_vertices_that_come_and_go(ResidentPartition)


def test_the_same_question_has_the_same_answer() -> None:
    network = random_network(np.random.default_rng(7))
    weight = np.ones(network.n_vertices, np.int64)
    both = [ResidentPartition(Question(3, Fraction(3, 100))) for _ in range(2)]
    for found in both:
        found.bring(network, weight, Control(), unlimited)
    assert both[0].part.tolist() == both[1].part.tolist()
    assert both[0].bring(network, weight, Control(), unlimited).way is Way.UNCHANGED


def test_the_cut_is_what_networkx_counts() -> None:
    rng = np.random.default_rng(3)
    network = random_network(rng)
    found = ResidentPartition(Question(3, Fraction(1, 10), "one"))
    for _ in range(3):
        found.bring(network, np.ones(network.n_vertices, np.int64), Control(), unlimited)
        graph, rows = nx.MultiGraph(), network.live(np.arange(network.n_edges))
        graph.add_nodes_from(range(network.n_vertices))
        graph.add_edges_from(zip(network.edge_tail(rows).tolist(), network.edge_head(rows).tolist(), strict=True))
        parts = [set(np.flatnonzero(found.part == p).tolist()) for p in range(3)]
        assert found.cut == sum(nx.cut_size(graph, one) for one in parts) // 2
        network = changed(network.fork(), rng)


def test_a_chain_of_new_vertices_takes_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their numbers rise along the chain: an order by number would let one of them choose in each round."""
    n = 2000
    path = np.arange(n + 26, dtype=np.int32)
    network = Network(EdgeList(n, path[: n - 1], path[1:n], np.ones(n - 1, np.int64)))
    found = ResidentPartition(Question(4, Fraction(1, 10)))
    found.bring(network, np.ones(n, np.int64), Control(), unlimited)
    grown = grow(network, Structure(26, None, path[n - 1 : -1], path[n:], np.zeros(26, np.bool_))).network.fork()
    grown.set_capacity(np.arange(n - 1, n + 25), np.ones(26, np.int64))
    rounds: list[int] = []
    choose = pseudo.choose

    def counted(*given: Any) -> Any:
        rounds.append(1)
        return choose(*given)

    monkeypatch.setattr(pseudo, "choose", counted)
    found.bring(grown, np.ones(n + 26, np.int64), Control(), unlimited)
    assert found.cut <= 8
    assert 0 < len(rounds) < 12


def test_a_border_is_a_minimum_cut_of_its_corridor() -> None:
    """A grid divided along a staircase: the border becomes straight, and no part is heavier than it may be."""
    side = 24
    at = np.arange(side * side, dtype=np.int32).reshape(side, side)
    tail, head = (
        np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()]),
        np.concatenate([at[:, 1:].ravel(), at[1:].ravel()]),
    )
    network = Network(EdgeList(side * side, tail, head, np.ones(len(tail), np.int64), undirected=True))
    weights = link_weights(network.n_arcs, network.edge_arc, network.reverse_arc, network.capacity)
    graph = bucketed(network.row_offsets, network.head, weights)
    row, column = np.divmod(np.arange(side * side), side)
    part = (column >= side // 2 + row // 4 - 3).astype(np.int32)
    limit = 24 * 13
    books = Books(part, np.ones(side * side, np.int64), np.zeros(3, np.int64), np.zeros(1, np.int64), np.array([limit]))
    count_up(graph, books)
    before = int(books.cut[0])
    moved = flow_refine(graph, books, 8, Control())
    assert len(moved)
    assert (before, int(books.cut[0])) == (29, 24)
    assert books.part_weight.max() <= limit
    assert prove_partition(
        network, network.capacity, books.vertex_weight, books.part, 2, (int(books.cut[0]), books.part_weight[:2])
    ).valid


def test_capacities_may_add_up_to_the_limit() -> None:
    """Where corridors of links, each as wide both ways, would add up to more."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, m = 100, 300
        tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
        capacity = rng.integers(MAX_TOTAL // m * 9 // 10, MAX_TOTAL // m, m)
        network = Network(EdgeList(n, tail, head, capacity))
        found = ResidentPartition(Question(2, Fraction(1, 2), seed=seed))
        found.bring(network, np.ones(n, np.int64), Control(), unlimited)
        check(network, found, np.ones(n, np.int64))
        rough = ResidentPartition(found.question)
        rough.bring(Network(EdgeList(n, tail, head, capacity >> 3)), np.ones(n, np.int64), Control(), unlimited)
        assert found.cut <= 1.2 * (rough.cut << 3), f"seed {seed}"


def test_a_part_without_a_border_gives_vertices_away() -> None:
    """Two paths that nothing links, each a part: one is too heavy once the vertices of the other weigh nothing."""
    path = np.arange(40, dtype=np.int32)
    tail, head = np.concatenate([path[:19], path[20:39]]), np.concatenate([path[1:20], path[21:]])
    network = Network(EdgeList(40, tail, head, np.ones(38, np.int64)))
    found = ResidentPartition(Question(2, Fraction(1, 10)))
    found.bring(network, np.ones(40, np.int64), Control(), unlimited)
    assert found.cut == 0
    weight = (path < 20).astype(np.int64)
    assert found.bring(network, weight, Control(), unlimited).way is Way.INCREMENTAL
    check(network, found, weight)
    assert found.part_weight.max() <= found.limit == 11
    assert found.cut <= 3
