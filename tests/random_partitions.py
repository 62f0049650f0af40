"""Random networks through random changes, and a count from nothing of what a partition of them says."""

import numpy as np

from gpu_engine.checks.partitions import prove_partition
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.partition.moves import NOWHERE
from gpu_engine.partition.problem import edge_weights, limit_of
from gpu_engine.partition.resident import KeptPartition
from gpu_engine.types import UnitArray


def random_network(rng: np.random.Generator) -> Network:
    n, m = int(rng.integers(12, 90)), int(rng.integers(0, 260))
    tail, head = rng.integers(0, n, (2, m)).astype(np.int32)  # with loops, parallel and opposite edges
    return Network(EdgeList(n, tail, head, rng.integers(0, 5, m), undirected=rng.random(m) < 0.5))


def changed(network: Network, rng: np.random.Generator) -> Network:
    """The network after a random batch: new vertices and edges, deleted ones, other capacities."""
    n_new, m_new = int(rng.integers(0, 4)), int(rng.integers(0, 9))
    there = np.flatnonzero(network.there)
    if rng.random() < 0.6 and len(there):
        ends = np.concatenate([there, network.n_vertices + np.arange(n_new)])
        tail, head = rng.choice(ends, (2, m_new)).astype(np.int32)
        structure = Structure(n_new, None, tail, head, rng.random(m_new) < 0.5)
        m = network.n_edges
        network = grow(network, structure).network.fork()
        network.set_capacity(m + np.arange(m_new), rng.integers(0, 6, m_new))
    rows = network.live(np.arange(network.n_edges))
    some = rng.permutation(rows)[: rng.integers(0, 10)]
    network.set_capacity(some, rng.integers(0, 6, len(some)))
    if rng.random() < 0.5:
        closed = rng.permutation(rows)[: rng.integers(0, 6)]
        network.set_capacity(closed, np.zeros(len(closed), np.int64))
        network.mark(closed, np.empty(0, np.int64))
    if rng.random() < 0.3 and len(there) > 12:
        gone = rng.permutation(np.flatnonzero(network.there))[:2].astype(np.int32)
        every = network.live(np.arange(network.n_edges))
        at = every[np.isin(network.edge_tail(every), gone) | np.isin(network.edge_head(every), gone)]
        network.set_capacity(at, np.zeros(len(at), np.int64))
        network.mark(at, np.empty(0, np.int64))
        network.mark_vertices(gone, np.empty(0, np.int32))
    return network


def check(network: Network, found: KeptPartition, weight: UnitArray) -> None:
    """Held against a count in plain Python, and against the checker."""
    k, part = found.question.k, found.part.tolist()
    of_edge = edge_weights(network, found.question.weights)
    rows = np.arange(network.n_edges)
    ends = zip(network.edge_tail(rows).tolist(), network.edge_head(rows).tolist(), of_edge.tolist(), strict=True)
    cut, per_part = 0, [0] * k
    for tail, head, own in ends:
        cut += own if part[tail] != part[head] else 0
    for v, there in enumerate(network.there.tolist()):
        assert (0 <= part[v] < k) if there else part[v] == NOWHERE
        if there:
            per_part[part[v]] += int(weight[v])
    assert (found.cut, found.part_weight.tolist()) == (cut, per_part)
    assert prove_partition(network, of_edge, weight, found.part, k, (found.cut, found.part_weight)).valid
    assert found.limit == limit_of(sum(per_part), k, found.question.epsilon)
