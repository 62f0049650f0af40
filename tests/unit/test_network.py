"""What a network says of itself, beside what it says by its definition."""

import numpy as np
import pytest

from gpu_engine.networks.network import INFINITE_RESIDUAL, Network
from tests.congruence import random_edges


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_infinite_arcs_are_those_whose_capacity_has_no_limit(first: int) -> None:
    found = 0
    for seed in range(first, first + 100):
        network = Network(random_edges(np.random.default_rng(seed), 30))
        arcs = network.infinite_arcs()
        found += len(arcs) > 0
        wanted = network.arc_capacity() >= INFINITE_RESIDUAL
        assert (arcs == wanted).all() if len(arcs) else not wanted.any(), f"seed {seed}"
    assert found > 10
