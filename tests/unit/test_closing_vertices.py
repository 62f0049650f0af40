"""Closures of vertices without a service: which edges are closed with them, and what they cost at most."""

from typing import Any

import numpy as np
import pytest

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import OutOfMemory, UnknownVertex
from gpu_engine.footprint import Footprint, unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from service.worker.questions.closing_vertices import VertexCandidates
from tests.graphs import drawn
from tests.oracle import maximum_flow

WEB = drawn(4, [(0, 1, 4), (0, 2, 3), (1, 2, 2), (1, 3, 2), (2, 3, 4), (1, 1, 9)])


def named(network: Network, given: Any) -> list[list[int]]:
    found = VertexCandidates.named_vertices(network, given, unlimited)
    return [found.edges(i).tolist() for i in range(len(found))]


def test_candidates_are_vertices_or_lists_of_them() -> None:
    network = Network(WEB)
    assert named(network, [1, 3, 1]) == [[0, 2, 3, 5], [3, 4], [0, 2, 3, 5]]
    assert named(network, [[2, 1, 2], [], [], []]) == [[0, 1, 2, 3, 4, 5], [], [], []]
    assert named(network, [[], []]) == [[], []]
    assert named(network, []) == []
    with pytest.raises(UnknownVertex) as refused:
        named(network, [[0], [4, 9]])
    assert (refused.value.where.field, list(refused.value.where.vertices)) == ("/candidates", [4, 9])
    ends = Terminals.of([0], [3])
    every = VertexCandidates.all_but(network, ends, unlimited)
    assert [every.told(network, i) for i in range(len(every))] == [("vertices", [1]), ("vertices", [2])]
    network.mark(np.array([2]), np.empty(0, np.int64))
    network.mark_vertices(np.array([2], np.int32), np.empty(0, np.int32))
    every = VertexCandidates.all_but(network, ends, unlimited)
    assert [(every.told(network, i), every.edges(i).tolist()) for i in range(len(every))] == [
        (("vertices", [1]), [0, 3, 5])
    ]


def test_what_is_named_often_is_refused_before_it_is_built() -> None:
    """A hub that each of many candidates names has its edges in each of them."""

    def room(needed: Footprint) -> None:
        if needed.host > 10_000:
            raise OutOfMemory("too much")

    network = Network(WEB)
    with pytest.raises(OutOfMemory):
        VertexCandidates.named_vertices(network, [1] * 100, room)
    assert len(VertexCandidates.named_vertices(network, [1] * 10, room)) == 10


def test_what_passes_bounds_a_closure() -> None:
    """Each vertex of random networks, and pairs of them, against a solve of another library without them."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(3, 9)), int(rng.integers(3, 25))
        tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
        edges = EdgeList(n, tail, head, rng.integers(0, 6, m).astype(np.int64), rng.random(m) < 0.4)
        network, ends = Network(edges), Terminals.of([0], [1])
        engine = CpuEngine(network)
        state = engine.open(ends)
        base = engine.solve(state).value
        flow = engine.flow(state)
        pairs = [[int(a), int(b)] for a, b in rng.integers(0, n, (5, 2))]
        tight = 0
        for given in (list(range(n)), pairs):
            found = VertexCandidates.named_vertices(network, given, unlimited)
            most = found.carried(network, flow, base)
            for i in range(len(found)):
                under, closed = np.array(edges.capacity), [given[i]] if isinstance(given[i], int) else given[i]
                under[np.isin(tail, closed) | np.isin(head, closed)] = 0
                loss = base - maximum_flow(edges, under, ends)
                assert loss <= most[i] <= base, (seed, given[i])
                tight += loss == most[i]
        assert tight, seed
