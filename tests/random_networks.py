"""Random networks and terminals of every kind; a seed determines all of it."""

from itertools import pairwise

import numpy as np

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, UnitArray


def random_edges(rng: np.random.Generator, largest: int = 30) -> EdgeList:
    """Up to ``largest`` vertices with parallel, anti-parallel, undirected, zero, infinite and self-loop edges."""
    n = int(rng.integers(2, largest))
    m = int(rng.integers(0, 4 * n))
    capacity = rng.integers(0, int(rng.choice([2, 10, 1000])), m)
    capacity[rng.random(m) < rng.choice([0, 0, 0.1])] = INFINITE
    undirected = (False, True, rng.random(m) < 0.5)[int(rng.integers(3))]
    tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
    return EdgeList(n, tail, head, capacity.astype(np.int64), undirected)


def road_like(rng: np.random.Generator) -> EdgeList:
    """A few junctions with long chains between them, dead ends, and a ring that nothing leads to."""
    junctions = int(rng.integers(2, 7))
    ends: list[tuple[int, int]] = []
    n = junctions
    for _ in range(int(rng.integers(1, 12))):
        u, w = rng.integers(0, junctions, 2).tolist()
        inner = int(rng.integers(0, 4))
        chain = [u, *range(n, n + inner), w]
        if rng.random() < 0.3:
            chain.pop()  # a dead end
        n += inner
        ends += pairwise(chain)
    ends += [(n, n + 1), (n + 1, n + 2), (n + 2, n)]
    tail, head = np.array(ends, np.int32).T
    turned = rng.random(len(tail)) < 0.5
    tail, head = np.where(turned, head, tail), np.where(turned, tail, head)
    capacity = rng.integers(0, 9, len(tail)).astype(np.int64)
    capacity[rng.random(len(tail)) < rng.choice([0, 0, 0.2])] = INFINITE
    return EdgeList(n + 3, tail, head, capacity, (True, rng.random(len(tail)) < 0.6)[int(rng.integers(2))])


def random_network(seed: int, largest: int = 12) -> EdgeList:
    """One of either kind: `random_edges` or `road_like`."""
    rng = np.random.default_rng(seed)
    return road_like(rng) if seed % 2 else random_edges(rng, largest)


def random_terminals(rng: np.random.Generator, n: int) -> Terminals:
    """One or many sources and sinks; none, some or all of them capped."""
    vertices = rng.permutation(n)
    n_sources = int(rng.integers(1, max(2, min(n, 5))))
    n_sinks = int(rng.integers(1, n - n_sources + 1)) if rng.random() < 0.2 else 1

    def caps(count: int) -> UnitArray:
        amounts = rng.integers(0, 300, count)
        amounts[rng.random(count) < rng.choice([0, 0.5, 1])] = INFINITE
        return amounts

    sinks = vertices[n_sources : n_sources + n_sinks]
    return Terminals.of(vertices[:n_sources], sinks, caps(n_sources), caps(n_sinks))


def random_caps(rng: np.random.Generator, terminals: Terminals) -> Terminals:
    """The same vertices with other caps; none, some or all of them capped."""

    def caps(old: UnitArray) -> UnitArray:
        amounts = np.where(rng.random(len(old)) < 0.5, old, rng.integers(0, 300, len(old)))
        amounts[rng.random(len(old)) < rng.choice([0, 0.3])] = INFINITE
        return amounts

    return Terminals.of(terminals.sources, terminals.sinks, caps(terminals.supply), caps(terminals.demand))


def random_update(rng: np.random.Generator, capacity: UnitArray) -> tuple[np.ndarray, UnitArray]:
    """Rows and their new capacities: more, less, closed, and now and then from or to infinite."""
    m = len(capacity)
    rows = rng.choice(m, int(rng.integers(1, max(2, m // 2))), replace=False)
    finite = capacity[capacity != INFINITE]
    top = int(finite.max()) + 2 if len(finite) else 10
    new = rng.integers(0, top, len(rows)).astype(np.int64)
    was_infinite = capacity[rows] == INFINITE
    if rng.random() < 0.7:
        new[was_infinite] = INFINITE
    elif was_infinite.any():
        new[rng.random(len(rows)) < 0.2] = INFINITE
    return rows, new
