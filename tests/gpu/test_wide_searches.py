"""Searches whose frontiers are a large part of the network, so that the others look back from their own rows."""

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.cpu.engine import CpuEngine  # noqa: E402
from gpu_engine.cuda.engine import CudaEngine  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.footprint import HUB_ROW  # noqa: E402
from gpu_engine.generators import generate  # noqa: E402
from gpu_engine.networks.edgelist import EdgeList  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

N = 40_000
ROWS = (20, 33, 100, 129, 500, HUB_ROW, HUB_ROW + 1, 3 * HUB_ROW + 7)
"""Degrees around the limits between a thread, its warp and a block."""


def layers(seed: int, *, mirrored: bool = False, large: bool = False) -> EdgeList:
    """A wide layer beside the sink, a wide one behind it, and between them vertices of each of `ROWS` arcs, whose few
    open arcs stand at the end of their rows, or are missing."""
    rng = np.random.default_rng(seed)
    near, far = np.arange(2, N // 2), np.arange(N // 2, N)
    n, tail, head, capacity = N, [near], [np.ones(len(near), int)], [rng.integers(1, 9, len(near))]
    tail.append(np.zeros(len(far), int))
    head.append(far)
    capacity.append(rng.integers(1, 9, len(far)))
    for degree in ROWS:
        for opened in (0, 1, 2):
            others = rng.choice(near, degree)
            tail += [np.full(degree, n), rng.choice(far, 8)]
            head += [others, np.full(8, n)]
            capacity += [np.where(np.arange(degree) >= degree - opened, 5, 0), rng.integers(1, 9, 8)]
            n += 1
    tail.append(rng.choice(far, 3000))
    head.append(rng.choice(near, 3000))
    capacity.append(rng.integers(0, 5, 3000))
    tails, heads, amounts = np.concatenate(tail), np.concatenate(head), np.concatenate(capacity).astype(np.int64)
    if mirrored:
        tails, heads = heads, tails
    source, sink = (1, 0) if mirrored else (0, 1)
    scale = 1 << 32 if large else 1
    return EdgeList(n, tails.astype(np.int32), heads.astype(np.int32), amounts * scale, source=source, sink=sink)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_layers_of_all_degrees(seed: int, mirrored: bool, large: bool) -> None:
    agree(layers(seed, mirrored=mirrored, large=large), seed)


@pytest.mark.parametrize("seed", range(3))
def test_networks_with_hubs(seed: int) -> None:
    agree(generate("rmat", scale=15, edge_factor=16, seed=seed), seed)


def agree(edges: EdgeList, seed: int) -> None:
    """Cold solves and repairs of three sizes have the values of the CPU engine, and proofs."""
    assert edges.source is not None
    assert edges.sink is not None
    terminals = Terminals.of([edges.source], [edges.sink])
    engines = CpuEngine(Network(edges)), CudaEngine(Network(edges))
    states = [engine.open(terminals) for engine in engines]
    rng = np.random.default_rng(seed)
    for changes in (0, 10, 1_000, 20_000, 1_000):
        if changes:
            rows = np.sort(rng.choice(len(edges.capacity), min(changes, len(edges.capacity)), replace=False))
            capacity = rng.permutation(edges.capacity[rows])
            for engine in engines:
                engine.update(rows, capacity)
        values = {engine.solve(state).value for engine, state in zip(engines, states, strict=True)}
        assert len(values) == 1
        proof = engines[1].certificate(states[1])
        assert proof.valid, proof.failures
        assert {proof.value} == values
        cuts = [engine.cut(state).value for engine, state in zip(engines, states, strict=True)]
        assert set(cuts) == values
