"""The cut that is shown is the one nearest the sources, whatever was solved before."""

import numpy as np
import pytest

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Unbounded
from gpu_engine.networks.network import Network
from tests.cases import cases
from tests.oracle import nearest_cut
from tests.random_networks import random_edges, random_terminals, random_update

SEEDS_A_CASE = 100


def check_nearest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = random_edges(rng)
    terminals = random_terminals(rng, edges.n_vertices)
    engine = CpuEngine(Network(edges))
    try:
        state = engine.open(terminals)
    except Unbounded:
        return
    for step in range(4):
        engine.solve(state, cold=rng.random() < 0.2)
        capacity = engine.network.capacity
        cut, nearest = engine.cut(state), nearest_cut(edges, capacity, terminals)
        at = f"seed {seed} step {step}"
        assert np.array_equal(cut.source_side, nearest), at
        rows = np.arange(len(capacity))
        leaves, enters = nearest[edges.tail], nearest[edges.head]
        crosses = (leaves & ~enters) | (~leaves & enters & engine.network.is_undirected(rows))
        assert cut.edges.tolist() == np.flatnonzero(crosses & (capacity > 0)).tolist(), at
        if not len(capacity):
            return
        try:
            engine.update(*random_update(rng, capacity))
        except Unbounded:
            continue


@pytest.mark.parametrize("first", range(0, cases(1000), SEEDS_A_CASE))
def test_cuts_are_the_nearest_ones_warm_and_cold(first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        check_nearest(seed)
