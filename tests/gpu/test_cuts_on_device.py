"""Cuts that are searched on the device are those that the host finds in a copy of the same state."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.cpu import derive  # noqa: E402
from gpu_engine.cpu.engine import CpuEngine  # noqa: E402
from gpu_engine.cuda import cutting  # noqa: E402
from gpu_engine.cuda.engine import CudaEngine  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.cuda.state import CudaFlowState  # noqa: E402
from gpu_engine.cuda.transfer import host_copy  # noqa: E402
from gpu_engine.errors import Unbounded  # noqa: E402
from gpu_engine.generators import generate  # noqa: E402
from gpu_engine.networks.edgelist import EdgeList  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402
from gpu_engine.types import INFINITE, End  # noqa: E402
from tests.cases import cases  # noqa: E402
from tests.random_networks import random_network, random_terminals, random_update  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

ENDS: tuple[End, ...] = ("sources", "sinks")


def agree(engine: CudaEngine, state: CudaFlowState, at: str) -> int:
    """Both cuts as the host finds them, and the state as it was; returns how many of them are the only ones."""
    before = engine.export(state)
    on_host = host_copy(engine.network, engine._topology, state)
    unique = 0
    for near in ENDS:
        expected, found = (
            derive.cut(engine.network, on_host, near=near),
            cutting.cut(engine.network, engine._topology, state, near),
        )
        assert np.array_equal(found.source_side, expected.source_side), (at, near)
        assert found.edges.dtype == expected.edges.dtype
        assert np.array_equal(found.edges, expected.edges), (at, near)
        assert (found.value, found.unique) == (expected.value, expected.unique), (at, near)
        unique += found.unique
    after = engine.export(state)
    assert all(np.array_equal(after[name], before[name]) for name in before), at
    return unique


@pytest.mark.parametrize("factor", [1, 1 << 33])
@pytest.mark.parametrize("start", range(0, cases(300), 50))
def test_small_networks_of_all_kinds(start: int, factor: int) -> None:
    unique, looked = 0, 0
    for seed in range(start, start + 50):
        rng, edges = np.random.default_rng(seed), random_network(seed)
        capacity = np.where(edges.capacity < 1 << 20, edges.capacity * factor, edges.capacity)
        terminals = random_terminals(rng, edges.n_vertices)
        supply, demand = (
            np.where(caps == INFINITE, INFINITE, caps * factor) for caps in (terminals.supply, terminals.demand)
        )
        terminals = replace(terminals, supply=supply, demand=demand)
        engine = CudaEngine(Network(replace(edges, capacity=capacity)))
        with suppress(Unbounded):  # no cut of these terminals is finite
            state = engine.open(terminals)
            for _ in range(3):
                engine.solve(state)
                unique += agree(engine, state, f"seed {seed}")
                looked += 2
                if edges.n_edges:
                    engine.update(*random_update(rng, engine.network.capacity))
    assert 0 < unique < looked


LARGE = [
    ("rmat", {"scale": 15, "edge_factor": 16}),
    ("grid", {"rows": 200, "columns": 200}),
    ("road", {"rows": 150, "columns": 150, "terminals": 20}),
    ("line", {"length": 3000}),
    ("vision", {"rows": 120, "columns": 120}),
]


@pytest.mark.parametrize(("family", "parameters"), LARGE)
@pytest.mark.parametrize("large", [False, True])
def test_large_networks_and_their_repairs(family: str, parameters: dict[str, int], large: bool) -> None:
    edges = generate(family, seed=3, **parameters)
    rows = np.flatnonzero(edges.capacity < 1 << 40)
    if large:
        capacity = edges.capacity.copy()
        capacity[rows] <<= 22
        edges = replace(edges, capacity=capacity)
    rng = np.random.default_rng(3)
    engine, host = CudaEngine(Network(edges)), CpuEngine(Network(edges))
    pairs = [(edges.source, edges.sink), *rng.choice(edges.n_vertices, (4, 2), replace=False).tolist()]
    for source, sink in pairs:
        terminals = Terminals.of([source], [sink])
        state, other = engine.open(terminals), host.open(terminals)
        engine.solve(state)
        agree(engine, state, f"{source} to {sink}")
        host.solve(other)
        for near in ENDS:
            ours, theirs = engine.cut(state, near=near), host.cut(other, near=near)
            assert np.array_equal(ours.source_side, theirs.source_side)
            assert np.array_equal(ours.edges, theirs.edges)
        engine.close(state), host.close(other)
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    engine.solve(state)
    for share in (5000, 50):
        some = rng.choice(rows, max(1, len(rows) // share), replace=False)
        for capacity in (engine.network.capacity[some] // 2, edges.capacity[some]):
            engine.update(some, capacity)
            engine.solve(state)
            agree(engine, state, f"one in {share}")


def test_a_deep_network_is_left_to_the_host() -> None:
    edges = generate("line", seed=1, length=4000)
    engine = CudaEngine(Network(edges))
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    engine.solve(state)
    assert cutting.is_deep(engine.network, state)
    cut = engine.cut(state)
    state.depth = 0
    again = engine.cut(state)
    assert np.array_equal(cut.source_side, again.source_side)
    assert np.array_equal(cut.edges, again.edges)
    wide = generate("rmat", seed=1, scale=14)
    engine = CudaEngine(Network(wide))
    state = engine.open(Terminals.of([wide.source], [wide.sink]))
    engine.solve(state)
    assert not cutting.is_deep(engine.network, state)


def test_a_network_without_arcs() -> None:
    nothing = np.empty(0, np.int32)
    engine = CudaEngine(Network(EdgeList(3, nothing, nothing, np.empty(0, np.int64))))
    state = engine.open(Terminals.of([0], [2]))
    engine.solve(state)
    agree(engine, state, "no arcs")
