"""Rows that edges were inserted into, read at once, later or never: they are those of a network made of all edges."""

import numpy as np
import pytest

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.network import Network
from gpu_engine.networks.rows import Pending
from gpu_engine.networks.spare import Spare
from gpu_engine.networks.structure import Structure
from tests.random_networks import random_edges


def inserted(rng: np.random.Generator, network: Network) -> Structure:
    n_more, k = int(rng.integers(0, 3)), int(rng.integers(0, 12))
    tail, head = rng.integers(0, network.n_vertices + n_more, (2, k)).astype(np.int32)
    return Structure(n_more, None, tail, head, np.zeros(k, np.bool_))


def same_rows(network: Network, tail: np.ndarray, head: np.ndarray) -> None:
    m = network.n_edges
    fresh = Network(EdgeList(network.n_vertices, tail.astype(np.int32), head.astype(np.int32), np.zeros(m, np.int64)))
    assert network.n_arcs == fresh.n_arcs  # known before the rows are
    for name in ("row_offsets", "head", "reverse_arc", "edge_arc"):
        assert np.array_equal(getattr(network, name), getattr(fresh, name)), name
    every = np.arange(m)
    assert np.array_equal(network.edge_tail(every), tail)
    assert np.array_equal(network.edge_head(every), head)


@pytest.mark.parametrize("seed", range(60))
def test_of_all_edges(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = Network(random_edges(rng))
    every = np.arange(network.n_edges)
    tail, head = network.edge_tail(every), network.edge_head(every)
    for _ in range(6):
        structure = inserted(rng, network)
        growth = grow(network, structure)
        if rng.random() < 0.2:
            assert growth.moved(np.ones(network.n_arcs, np.int64)).sum() == network.n_arcs
        network = growth.network
        tail, head = np.concatenate([tail, structure.tail]), np.concatenate([head, structure.head])
        if rng.random() < 0.3:
            same_rows(network, tail, head)
    same_rows(network, tail, head)


def test_nobody_waits_for_rows_that_are_not_read() -> None:
    network = Network(random_edges(np.random.default_rng(1)))
    ends = np.array([0, 1], np.int32)
    grown = grow(network, Structure(0, None, ends, ends[::-1].copy(), np.zeros(2, np.bool_))).network
    assert isinstance(grown.unread_rows, Pending)
    assert grown.n_arcs >= 2
    assert isinstance(grown.unread_rows, Pending)
    pending = grown.nbytes
    assert len(grown.head) == grown.n_arcs
    assert not isinstance(grown.unread_rows, Pending)
    assert grown.nbytes < pending


def test_room_behind_a_column_is_given_once() -> None:
    spare = Spare()
    first = spare.with_zeros(np.arange(100), 1)
    second, other = spare.with_zeros(first, 2), spare.with_zeros(first, 2)
    second[101:], other[101:] = 7, 8
    assert second[100:].tolist() == [0, 7, 7]
    assert other[100:].tolist() == [0, 8, 8]
    assert np.shares_memory(first, second)
    assert spare.nbytes >= 0
