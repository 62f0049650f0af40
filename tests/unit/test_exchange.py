"""Capacities exchanged in one pass come to the same as checked and then stored."""

import numpy as np
import pytest

from gpu_engine.errors import CapacityOverflow
from gpu_engine.networks.network import Network
from gpu_engine.types import INFINITE, MAX_TOTAL
from tests.random_networks import random_edges


@pytest.mark.parametrize("seed", range(50))
def test_as_checked_and_stored(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, 20)
    one, two = Network(edges), Network(edges)
    for _ in range(5):
        k = int(rng.integers(0, edges.n_edges + 1))
        rows = rng.choice(edges.n_edges, k, replace=False) if k else np.empty(0, np.int64)
        capacity = rng.integers(0, 100, k)
        capacity[rng.random(k) < 0.02] = INFINITE
        wanted = two.check_update(rows, capacity)
        assert one.exchange(rows, capacity) == wanted
        if wanted.touches_infinite:
            np.testing.assert_array_equal(one.capacity, two.capacity)
            one.set_capacity(rows, capacity)
        two.set_capacity(rows, capacity)
        np.testing.assert_array_equal(one.capacity, two.capacity)
        assert (one.finite_total, one.n_infinite) == (two.finite_total, two.n_infinite)


def test_too_much_is_refused_and_nothing_changes() -> None:
    network = Network(random_edges(np.random.default_rng(1), 20))
    before, total = network.capacity.copy(), network.finite_total
    rows = np.arange(2)
    with pytest.raises(CapacityOverflow):
        network.exchange(rows, np.full(2, MAX_TOTAL))
    np.testing.assert_array_equal(network.capacity, before)
    assert network.finite_total == total
