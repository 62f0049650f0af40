"""Random sums of columns are equal if and only if the columns agree, in networks of every kind."""

import secrets
from collections.abc import Sequence

import numpy as np
import pytest

from gpu_engine.checks import fingerprints
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, UnitArray

SEEDS = 32
"""Seeds that are tried for each wrong column. Each misses it once in a million times, or far more rarely."""


def drawn(seed: int, *, undirected: bool | None, shared: bool) -> Network:
    """50 vertices and 200 edges with some self-loops. ``undirected`` None: each edge as it comes."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 50, (200, 2)).astype(np.int32)
    if not shared:
        _, first = np.unique(np.sort(ends, axis=1), axis=0, return_index=True)
        ends = ends[np.sort(first)]
    capacity = rng.integers(0, 1 << rng.integers(1, 50), len(ends))
    both_ways = rng.random(len(ends)) < 0.5 if undirected is None else undirected
    return Network(EdgeList(50, ends[:, 0].copy(), ends[:, 1].copy(), capacity, both_ways))


def agree(network: Network, claimed: UnitArray) -> list[bool]:
    """By seed."""
    columns = network.edge_arc, network.reverse_arc, network.capacity, network.undirected
    seeds = [np.uint64(secrets.randbits(64)) for _ in range(SEEDS)]
    return [bool(fingerprints.of_edges(*columns, seed) == fingerprints.of_arcs(claimed, seed)) for seed in seeds]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("undirected", [False, True, None])
@pytest.mark.parametrize("seed", range(5))
def test_capacities_of_arcs_agree_with_those_of_edges(seed: int, undirected: bool | None, shared: bool) -> None:
    network = drawn(seed, undirected=undirected, shared=shared)
    right = network.arc_capacity()
    assert all(agree(network, right))
    rng = np.random.default_rng([seed, 1])
    for n_wrong in (1, 2, 5, network.n_arcs):
        at = rng.choice(network.n_arcs, n_wrong, replace=False)
        wrong = right.copy()
        wrong[at] += rng.choice([-1, 1], n_wrong) * rng.integers(1, 1 << 20, n_wrong)
        assert not any(agree(network, wrong))
    moved = right.copy()  # the sum is what it was
    moved[rng.choice(network.n_arcs, 2, replace=False)] += [7, -7]
    assert not any(agree(network, moved))
    coarse = right.copy()
    coarse[rng.choice(network.n_arcs, 2, replace=False)] += [1 << 40, 3 << 40]
    assert not any(agree(network, coarse))


@pytest.mark.parametrize("undirected", [False, True, None])
@pytest.mark.parametrize("seed", range(5))
def test_an_infinite_edge_has_its_own_arc_alone(seed: int, undirected: bool | None) -> None:
    network = drawn(seed, undirected=undirected, shared=False)
    rows = np.flatnonzero(network.edge_arc >= 0)[:10]
    network.set_capacity(rows, np.full(len(rows), INFINITE))
    right = network.arc_capacity()
    assert all(agree(network, right))
    finite = np.flatnonzero(right < INFINITE_RESIDUAL)
    for n_wrong in (1, 2, 4):
        wrong = right.copy()
        wrong[np.flatnonzero(right == INFINITE_RESIDUAL)[:n_wrong]] -= INFINITE_RESIDUAL
        wrong[finite[:n_wrong]] += INFINITE_RESIDUAL
        assert not any(agree(network, wrong))


def cancel(network: Network, residual: UnitArray) -> list[bool]:
    """By seed."""
    columns = network.reverse_arc, network.arc_capacity(), residual
    return [fingerprints.flows_cancel(*columns, np.uint64(secrets.randbits(64))) for _ in range(SEEDS)]


@pytest.mark.parametrize("undirected", [False, True, None])
@pytest.mark.parametrize("seed", range(5))
def test_what_an_arc_carries_is_what_its_reverse_gets(seed: int, undirected: bool | None) -> None:
    network = drawn(seed, undirected=undirected, shared=True)
    rng = np.random.default_rng([seed, 2])
    residual = network.arc_capacity()
    assert all(cancel(network, residual))
    arcs = np.flatnonzero(rng.random(network.n_arcs) < 0.5)
    arcs = arcs[arcs < network.reverse_arc[arcs]]
    flow = rng.integers(0, residual[arcs] + 1)
    residual[arcs] -= flow
    residual[network.reverse_arc[arcs]] += flow
    assert all(cancel(network, residual))
    more: Sequence[int] = (1, 1 << 40, INFINITE_RESIDUAL)
    for amount in more:
        for n_wrong in (1, 2, 5, 50):
            wrong = residual.copy()
            wrong[rng.choice(network.n_arcs, n_wrong, replace=False)] += amount
            assert not any(cancel(network, wrong)) or _cancels(network, wrong)
    a = int(np.flatnonzero(residual < INFINITE_RESIDUAL)[0])
    r = network.reverse_arc[a]
    negative = residual.copy()
    negative[r] += negative[a] + 1
    negative[a] = -1
    assert not any(cancel(network, negative))


def _cancels(network: Network, residual: UnitArray) -> bool:
    """The same, link by link."""
    flow = network.arc_capacity() - residual
    return bool((flow == -flow[network.reverse_arc]).all() and (residual >= 0).all())
