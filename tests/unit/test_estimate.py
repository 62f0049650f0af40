"""The estimate of `POST /v1/graphs:estimate` is never less than what an engine holds."""

import numpy as np
import pytest

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.edgelist import EdgeList
from gpu_engine.network import Network
from gpu_engine.terminals import Terminals
from service.api.estimate import estimate
from service.models.graphs import EstimateBody


@pytest.mark.parametrize(("n_vertices", "n_edges"), [(2, 0), (2, 1), (50, 40), (300, 5000)])
def test_the_estimate_is_an_upper_bound(n_vertices: int, n_edges: int) -> None:
    rng = np.random.default_rng(n_edges)
    ends = rng.integers(0, n_vertices, (2, n_edges)).astype(np.int32)
    engine = CpuEngine(Network(EdgeList(n_vertices, ends[0], ends[1], rng.integers(1, 9, n_edges))))
    graph_bytes = engine.nbytes
    state = engine.open(Terminals.of([0], [1]))
    engine.solve(state)
    guess = estimate(EstimateBody(n_vertices=n_vertices, n_edges=n_edges), [], 0)
    assert not guess.fits
    assert guess.bytes >= graph_bytes
    assert guess.bytes_per_flow_state >= engine.nbytes - graph_bytes
