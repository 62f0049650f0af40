"""Changes of links by rows, against a count in plain Python."""

import numpy as np

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.partition.batch import batch_of


def test_each_change_stands_in_the_rows_of_both_ends() -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(1, 20)), int(rng.integers(0, 60))
        tail, head = rng.integers(0, n, (2, m)).astype(np.int32)  # with loops, parallel and opposite edges
        network = Network(EdgeList(n, tail, head, np.ones(m, np.int64), undirected=rng.random(m) < 0.5))
        edges = np.flatnonzero(rng.random(m) < rng.random())
        change = rng.integers(-5, 6, len(edges))
        wanted: dict[int, list[tuple[int, int]]] = {}
        for edge, own in zip(edges.tolist(), change.tolist(), strict=True):
            a, b = int(tail[edge]), int(head[edge])
            if a != b:
                wanted.setdefault(a, []).append((b, own))
                wanted.setdefault(b, []).append((a, own))
        batch = batch_of(network, edges, change)
        assert batch.vertex.tolist() == sorted(wanted), f"seed {seed}"
        assert (batch.first[0], batch.first[-1]) == (0, len(batch.neighbour))
        for row, vertex in enumerate(batch.vertex.tolist()):
            mine = slice(batch.first[row], batch.first[row + 1])
            found = zip(batch.neighbour[mine].tolist(), batch.change[mine].tolist(), strict=True)
            assert sorted(found) == sorted(wanted[vertex]), f"seed {seed}, vertex {vertex}"
