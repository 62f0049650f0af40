"""Waves (`waves.cu`): the same values, certificates and cuts as without them."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.control import Control  # noqa: E402
from gpu_engine.cpu.engine import CpuEngine  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.cuda.state import CudaFlowState  # noqa: E402
from gpu_engine.cuda.waves import WaveEngine  # noqa: E402
from gpu_engine.errors import Cancelled, Unbounded  # noqa: E402
from gpu_engine.generators import generate  # noqa: E402
from gpu_engine.networks.edgelist import EdgeList  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402
from gpu_engine.types import INFINITE  # noqa: E402
from tests.cases import cases  # noqa: E402
from tests.random_networks import random_network, random_terminals, random_update  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

DEEP = [
    ("grid", {"rows": 300, "columns": 80}),
    ("genrmf-long", {"a": 12}),
    ("genrmf-wide", {"a": 24}),
    ("rlg-long", {"rows": 120}),
    ("rlg-wide", {"rows": 160}),
    ("delaunay", {"n_vertices": 30_000}),
    ("road", {"rows": 120, "columns": 120, "terminals": 60}),
]


def opened(edges: EdgeList) -> tuple[WaveEngine, CudaFlowState]:
    """The engine of a network that names its terminals, and a state of these."""
    engine = WaveEngine(Network(edges))
    assert edges.source is not None
    assert edges.sink is not None
    return engine, engine.open(Terminals.of([edges.source], [edges.sink]))


def agree(engine: WaveEngine, state: CudaFlowState, host: CpuEngine, terminals: Terminals, at: str) -> None:
    """A certificate, and value and cuts as a solve from zero on the host has them."""
    expected = host.open(terminals)
    host.solve(expected)
    assert state.value == expected.value, at
    assert engine.certificate(state).valid, at
    for near in ("sources", "sinks"):
        ours, theirs = engine.cut(state, near=near), host.cut(expected, near=near)
        assert np.array_equal(ours.source_side, theirs.source_side), (at, near)
    host.close(expected)


@pytest.mark.parametrize("factor", [1, 1 << 33])
@pytest.mark.parametrize("start", range(0, cases(400), 50))
def test_small_networks_of_all_kinds(start: int, factor: int) -> None:
    for seed in range(start, start + 50):
        rng, edges = np.random.default_rng(seed), random_network(seed)
        capacity = np.where(edges.capacity < 1 << 20, edges.capacity * factor, edges.capacity)
        terminals = random_terminals(rng, edges.n_vertices)
        supply, demand = (
            np.where(caps == INFINITE, INFINITE, caps * factor) for caps in (terminals.supply, terminals.demand)
        )
        terminals = replace(terminals, supply=supply, demand=demand)
        edges = replace(edges, capacity=capacity)
        engine, host = WaveEngine(Network(edges)), CpuEngine(Network(edges))
        with suppress(Unbounded):  # no cut of these terminals is finite
            state = engine.open(terminals)
            for step in range(4):
                engine.solve(state, cold=step == 3)
                agree(engine, state, host, terminals, f"seed {seed}, step {step}")
                if edges.n_edges:
                    rows, amounts = random_update(rng, engine.network.capacity)
                    engine.update(rows, amounts)
                    host.update(rows, amounts)


@pytest.mark.parametrize(("family", "parameters"), DEEP)
def test_deep_networks(family: str, parameters: dict[str, int]) -> None:
    for seed in (1, 2):
        edges = generate(family, seed=seed, **parameters)
        (engine, state), host = opened(edges), CpuEngine(Network(edges))
        rng = np.random.default_rng(seed)
        finite = np.flatnonzero(edges.capacity != INFINITE)
        for step, share in enumerate((1.0, 0.01, 0.1, 0.001, 1.0)):
            engine.solve(state, cold=step == 4)
            agree(engine, state, host, state.terminals, f"seed {seed}, step {step}")
            rows = np.sort(rng.choice(finite, max(1, int(share * 0.3 * len(finite))), replace=False))
            amounts = rng.integers(0, 2 * int(np.median(edges.capacity[finite])) + 2, len(rows))
            engine.update(rows, amounts)
            host.update(rows, amounts)
        assert engine._is_taken(state)


def test_vertices_that_are_active_before_the_first_wave_has_come() -> None:
    """In a picture all are."""
    edges = generate("vision", seed=1, rows=150, columns=150)
    (engine, state), host = opened(edges), CpuEngine(Network(edges))
    for step in range(20):
        engine.solve(state, cold=True)
        if step % 5 == 0:
            agree(engine, state, host, state.terminals, f"step {step}")


def test_a_network_with_a_hub_is_drained() -> None:
    """Waves would visit its row by eight threads."""
    edges = generate("rmat", seed=1, scale=12)
    (engine, state), host = opened(edges), CpuEngine(Network(edges))
    engine.solve(state)
    assert not engine._is_taken(state)
    agree(engine, state, host, state.terminals, "a hub")


def test_a_cancel_ends_waves() -> None:
    edges = generate("grid", seed=1, rows=1200, columns=1200)
    (engine, state), control = opened(edges), Control()
    assert engine._is_taken(state)
    control.cancel()
    with pytest.raises(Cancelled):
        engine.solve(state, control)
    engine.solve(state)
    assert engine.certificate(state).valid
