"""Bipartite matchings against SciPy's Hopcroft-Karp, with their covers as proof."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import FlowState, Mode
from gpu_engine.errors import InvalidNetwork
from gpu_engine.matching import maximum_matching, read_matching
from gpu_engine.networks.bipartite import one_each
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.types import INFINITE, UnitArray


def size_by_hopcroft_karp(n_left: int, n_right: int, left: np.ndarray, right: np.ndarray) -> int:
    graph = coo_array((np.ones(len(left), np.int8), (left, right)), shape=(n_left, n_right)).tocsr()
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_agree_with_hopcroft_karp(seed: int) -> None:
    """Sparse to dense, lopsided, with parallel edges and lonely vertices."""
    rng = np.random.default_rng(seed)
    n_left, n_right = rng.integers(1, 40, 2).tolist()
    m = int(rng.integers(0, 4 * (n_left + n_right)))
    left, right = rng.integers(0, n_left, m).astype(np.int32), rng.integers(0, n_right, m).astype(np.int32)
    matching = maximum_matching(n_left, n_right, left, right)
    assert matching.failures(left, right) == []
    assert matching.size == size_by_hopcroft_karp(n_left, n_right, left, right)


def test_a_larger_skewed_graph() -> None:
    rng = np.random.default_rng(1)
    left = (2000 * rng.random(20_000) ** 3).astype(np.int32)
    right = (3000 * rng.random(20_000) ** 2).astype(np.int32)
    matching = maximum_matching(2000, 3000, left, right)
    assert matching.failures(left, right) == []
    assert matching.size == size_by_hopcroft_karp(2000, 3000, left, right)


@pytest.mark.parametrize(("n_left", "n_right"), [(0, 0), (0, 3), (3, 0), (2, 2)])
def test_no_edges(n_left: int, n_right: int) -> None:
    matching = maximum_matching(n_left, n_right, np.empty(0, np.int32), np.empty(0, np.int32))
    assert matching.size == 0
    assert (len(matching.cover_left), len(matching.cover_right)) == (n_left, n_right)


def test_a_perfect_matching_of_a_cycle() -> None:
    """
    ::

        0 -- 0        each left i meets right i and i + 1
          \\ /
          / \\
        1 -- 1
    """
    left, right = np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 1, 0], np.int32)
    matching = maximum_matching(2, 2, left, right)
    assert matching.edges.tolist() in ([0, 2], [1, 3])
    assert matching.failures(left, right) == []


def test_a_false_proof_is_noticed() -> None:
    left, right = np.array([0, 1], np.int32), np.array([0, 1], np.int32)
    matching = maximum_matching(2, 2, left, right)
    matching.cover_left[:], matching.cover_right[:] = [True, False], False
    assert matching.failures(left, right) == ["edge 1 is not covered", "1 vertices cover, 2 edges match"]


def test_a_closed_edge_needs_no_cover_and_does_not_match() -> None:
    left, right, closed = np.array([0, 1], np.int32), np.array([0, 1], np.int32), np.array([False, True])
    matching = maximum_matching(2, 2, left[:1], right[:1])
    assert matching.failures(left, right, closed) == []
    both = maximum_matching(2, 2, left, right)
    assert both.failures(left, right, closed) == ["edge 1 is matched and closed"]


@pytest.mark.parametrize("seed", range(40))
def test_a_matching_is_repaired(seed: int) -> None:
    """Batches of closed, opened and widened edges; amounts with a decimal place, which can split a unit in two.

    Odd seeds have unlimited edges as well; when one gets a limit it is solved from zero.
    """
    rng = np.random.default_rng(seed)
    n_left, n_right = rng.integers(60, 160, 2).tolist()
    m = int(rng.integers(n_left, 2 * (n_left + n_right)))
    left = rng.integers(0, n_left, m).astype(np.int32)
    right = rng.integers(n_left, n_left + n_right, m).astype(np.int32)
    capacities = np.array([0, 10, 13, 15, 25] + [INFINITE] * (seed % 2))
    network = Network(EdgeList(n_left + n_right, left, right, rng.choice(capacities, m), decimals=1))
    engine = CpuEngine(network)
    state = engine.open(one_each(network))
    modes = []
    for step in range(20):
        at = f"seed {seed} step {step}"
        modes.append(engine.solve(state).mode)
        is_open = network.capacity > 0
        matching = read_matching(engine, state)
        assert matching.failures(left, right, ~is_open) == [], at
        best = size_by_hopcroft_karp(n_left, n_right, left[is_open], right[is_open] - n_left)
        assert matching.size == best, at
        engine.update(rng.choice(m, 3, replace=False), rng.choice(capacities, 3))
    assert seed % 2 or modes.count(Mode.COLD) == 1, f"seed {seed}"


def test_a_split_unit_is_made_whole() -> None:
    """Half a unit on each edge of a square is a maximum flow as well; it holds a matching of two edges.

    ::

        0 -- 2        left 0 and 1, right 2 and 3, every edge 1.5
          \\ /
          / \\
        1 -- 3
    """
    left, right = np.array([0, 0, 1, 1], np.int32), np.array([2, 3, 3, 2], np.int32)
    network = Network(EdgeList(4, left, right, np.full(4, 15, np.int64), decimals=1))

    class Halves(CpuEngine):
        def flow(self, state: FlowState, control: Control | None = None, *, acyclic: bool = True) -> UnitArray:
            return np.full(4, 5, np.int64)

    engine = Halves(network)
    state = engine.open(one_each(network))
    assert engine.solve(state).value == 20
    assert read_matching(engine, state).edges.tolist() in ([0, 2], [1, 3])


@pytest.mark.parametrize(("left", "right"), [([2], [0]), ([-1], [0]), ([0], [3]), ([0, 1], [0])])
def test_ends_that_do_not_exist_are_refused(left: list[int], right: list[int]) -> None:
    with pytest.raises(InvalidNetwork):
        maximum_matching(2, 3, np.array(left, np.int32), np.array(right, np.int32))
