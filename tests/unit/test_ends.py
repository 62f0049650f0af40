"""Edges by their ends, against a look at all edges."""

import numpy as np
import pytest

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.ends import EndIndex
from gpu_engine.networks.network import Network


def expected(edges: EdgeList, undirected: np.ndarray, tail: int, head: int) -> list[int]:
    ends = list(zip(edges.tail.tolist(), edges.head.tolist(), undirected.tolist(), strict=True))
    return [
        row
        for row, (t, h, both) in enumerate(ends)
        if (t, h) == (tail, head) or (both and tail != head and (h, t) == (tail, head))
    ]


@pytest.mark.parametrize("kind", ["directed", "undirected", "mixed"])
@pytest.mark.parametrize(("n", "m", "seed"), [(1, 3, 1), (3, 0, 2), (4, 30, 3), (40, 60, 4), (30, 500, 5)])
def test_edges_are_found_by_their_ends(n: int, m: int, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
    undirected = rng.integers(0, 2, m).astype(bool) if kind == "mixed" else np.full(m, kind == "undirected")
    flag = undirected if kind == "mixed" else kind == "undirected"
    edges = EdgeList(n, tail, head, np.ones(m, np.int64), undirected=flag)
    index = EndIndex(Network(edges))
    pairs = [(t, h) for t in range(-1, n) for h in range(-1, n)]
    found, counts = index.find(np.array([t for t, _ in pairs]), np.array([h for _, h in pairs]))
    for (t, h), row, count in zip(pairs, found.tolist(), counts.tolist(), strict=True):
        rows = [] if min(t, h) < 0 else expected(edges, undirected, t, h)
        assert count == len(rows), (t, h)
        assert row in (rows or [-1]), (t, h)
        if rows:
            assert sorted(index.all(t, h).tolist()) == rows
