"""The proof that a reduced network is one sees whatever is wrong with it."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gpu_engine.footprint import unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.pairs.reduced import Reduced
from gpu_engine.pairs.solver import PairSolver
from gpu_engine.pairs.values import Whole
from tests.random_networks import random_network

LINE = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (4, 3), (2, 5), (5, 6), (6, 2), (1, 7), (7, 8)]
"""Terminals 0 and 3 with two chains between them, a loop at 2 and a dead end at 1, so that 1 and 2 are bends."""


def line() -> PairSolver:
    tail, head = np.array(LINE, np.int32).T
    capacity = np.array([5, 3, 7, 2, 4, 6, 1, 1, 1, 9, 9])
    network = Network(EdgeList(9, np.ascontiguousarray(tail), np.ascontiguousarray(head), capacity, True))
    return PairSolver.of(network, np.array([0, 3], np.int32))


@pytest.mark.parametrize("seed", range(60))
def test_each_reduction_is_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = random_network(seed, 30)
    kept = rng.choice(edges.n_vertices, int(rng.integers(1, edges.n_vertices + 1)), replace=False)
    solver = PairSolver.of(Network(edges), kept.astype(np.int32))
    assert solver.is_proven


@pytest.mark.parametrize("seed", range(60))
def test_a_sparse_network_is_reduced_and_proven(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 60))
    tail, head = rng.integers(0, n, (2, int(1.2 * n))).astype(np.int32)
    network = Network(EdgeList(n, tail, head, rng.integers(0, 9, len(tail)), rng.random(len(tail)) < 0.5))
    solver = PairSolver.of(network, rng.choice(n, 3, replace=False).astype(np.int32))
    assert solver.is_proven


def test_a_reduced_network_that_is_wrong_is_seen() -> None:
    solver = line()
    small = solver.small
    assert solver.is_proven
    assert len(small.row_offsets) - 1 < 9
    longest = int(np.argmax(np.diff(small.offsets)))
    inside = int(solver.whole.head[small.chain[small.offsets[longest]]])
    unnamed = int(np.flatnonzero(small.number < 0)[-1])

    def changed(name: str, at: int, by: int) -> bool:
        column = getattr(small, name).copy()
        column[at] += by
        return replace(solver, small=small._replace(**{name: column})).is_proven

    assert not changed("capacity", longest, 1), "wider than its chain"
    assert not changed("capacity", longest, -1), "narrower: its cuts would be cheaper"
    assert not changed("head", longest, 1 if small.head[longest] == 0 else -1)
    assert not changed("chain", int(small.offsets[longest]), 1)
    assert not changed("number", inside, 1), "a vertex within a chain is taken for another"
    assert not changed("number", unnamed, len(small.row_offsets)), "a vertex that does not exist"
    assert not changed("reverse_arc", longest, 1 if small.reverse_arc[longest] == 0 else -1)


def test_a_link_that_is_left_out_is_seen() -> None:
    """Without the chain by 4 the smaller network has fewer flows, and its cuts are too cheap."""
    solver = line()
    small = solver.small
    gone = [
        a
        for a in range(len(small.head))
        if 4 in solver.whole.head[small.chain[small.offsets[a] : small.offsets[a + 1]]]
    ]
    gone += [int(small.reverse_arc[a]) for a in gone]
    kept = np.array([a for a in range(len(small.head)) if a not in gone])
    new = np.full(len(small.head), -1, np.int32)
    new[kept] = np.arange(len(kept))
    lengths = np.diff(small.offsets)[kept]
    less = small._replace(
        row_offsets=np.searchsorted(kept, small.row_offsets).astype(np.int32),
        head=small.head[kept],
        reverse_arc=new[small.reverse_arc[kept]],
        capacity=small.capacity[kept],
        offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int32),
        chain=np.concatenate([small.chain[small.offsets[a] : small.offsets[a + 1]] for a in kept]),
    )
    assert not replace(solver, small=less).is_proven


def of_paths(network: Network, numbers: dict[int, int], paths: list[list[int]]) -> PairSolver:
    """A smaller network whose arcs stand for these paths of vertices, each there and back."""
    links = {(int(network.head[network.reverse_arc[a]]), int(network.head[a])): a for a in range(network.n_arcs)}
    ways = sorted(
        ((numbers[way[0]], k, way) for k, path in enumerate(paths) for way in (path, path[::-1])),
        key=lambda way: way[:2],
    )
    chains = [[links[ends] for ends in pairwise(way)] for _, _, way in ways]
    capacity = network.arc_capacity()
    number = np.full(network.n_vertices, -1, np.int32)
    number[list(numbers)] = list(numbers.values())
    back = [next(j for j, (_, k, w) in enumerate(ways) if k == ways[i][1] and j != i) for i in range(len(ways))]
    small = Reduced(
        np.searchsorted([tail for tail, _, _ in ways], np.arange(len(numbers) + 1)).astype(np.int32),
        np.array([numbers[way[-1]] for _, _, way in ways], np.int32),
        np.array(back, np.int32),
        np.array([capacity[chain].min() for chain in chains]),
        np.concatenate(([0], np.cumsum([len(chain) for chain in chains]))).astype(np.int32),
        np.concatenate(chains).astype(np.int32),
        number,
    )
    whole = Whole(network.row_offsets, network.head, network.reverse_arc, capacity)
    return PairSolver(network, whole, small, unlimited)


def of_ends(ends: list[tuple[int, int]]) -> Network:
    tail, head = (np.ascontiguousarray(column) for column in np.array(ends, np.int32).T)
    return Network(EdgeList(int(max(tail.max(), head.max())) + 1, tail, head, np.full(len(tail), 3), True))


def test_chains_that_cross_are_seen() -> None:
    """At vertex 4 flow can change over from one chain to the other."""
    star = of_ends([(0, 4), (4, 1), (2, 4), (4, 3)])
    assert not of_paths(star, {0: 0, 1: 1, 2: 2, 3: 3}, [[0, 4, 1], [2, 4, 3]]).is_proven
    apart = of_ends([(0, 4), (4, 1), (2, 5), (5, 3)])
    assert of_paths(apart, {0: 0, 1: 1, 2: 2, 3: 3}, [[0, 4, 1], [2, 5, 3]]).is_proven


def test_a_chain_passes_no_vertex_that_has_a_number() -> None:
    """Flow can end at vertex 1, which in the smaller network has no arcs."""
    line_of_three = of_ends([(0, 1), (1, 2)])
    assert not of_paths(line_of_three, {0: 0, 1: 1, 2: 2}, [[0, 1, 2]]).is_proven
    assert of_paths(line_of_three, {0: 0, 2: 1}, [[0, 1, 2]]).is_proven
