"""Deep networks are left to waves (`waves.cu`): the same values, certificates and cuts as without them."""

import threading
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.control import Control  # noqa: E402
from gpu_engine.cpu.engine import CpuEngine  # noqa: E402
from gpu_engine.cuda.engine import CudaEngine  # noqa: E402
from gpu_engine.cuda.launch import drain  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.cuda.state import CudaFlowState  # noqa: E402
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


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What drains have left is noted here, and who goes on with it."""
    noted: list[str] = []
    persistent = drain._persistent

    def noting(file: str, name: str, wide: bool, alone: bool) -> object:
        noted.append(name)
        return persistent(file, name, wide, alone)

    monkeypatch.setattr(drain, "_persistent", noting)
    return noted


@pytest.fixture
def deep(monkeypatch: pytest.MonkeyPatch, left: list[str]) -> list[str]:
    """All networks are deep."""
    monkeypatch.setattr(drain, "DEEP", 1)
    monkeypatch.setattr(drain, "ARCS_OF_A_LEVEL", 1 << 40)
    monkeypatch.setattr(drain, "LEAST_WIDTH", 1)
    monkeypatch.setattr(drain, "LARGE", 0)
    return left


def opened(edges: EdgeList) -> tuple[CudaEngine, CudaFlowState]:
    """The engine of a network that names its terminals, and a state of these."""
    engine = CudaEngine(Network(edges))
    assert edges.source is not None
    assert edges.sink is not None
    return engine, engine.open(Terminals.of([edges.source], [edges.sink]))


def agree(engine: CudaEngine, state: CudaFlowState, host: CpuEngine, terminals: Terminals, at: str) -> None:
    """A certificate, and value and cuts as a solve from zero on the host has them."""
    expected = host.open(terminals)
    host.solve(expected)
    assert state.value == expected.value, at
    assert engine.certificate(state).valid, at
    for near in ("sources", "sinks"):
        ours, theirs = engine.cut(state, near=near), host.cut(expected, near=near)
        assert np.array_equal(ours.source_side, theirs.source_side), (at, near)
    host.close(expected)


@pytest.mark.parametrize("steps", [drain.ROUND_LIMIT, 3])
@pytest.mark.parametrize("factor", [1, 1 << 33])
@pytest.mark.parametrize("start", range(0, cases(400), 50))
def test_small_networks_of_all_kinds(
    start: int, factor: int, steps: int, deep: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few steps waves leave something too, and a drain goes on."""
    persistent, rounds = drain._persistent, drain.ROUND_LIMIT

    def limiting(file: str, name: str, wide: bool, alone: bool) -> object:
        monkeypatch.setattr(drain, "ROUND_LIMIT", steps if name == "waves" else rounds)
        return persistent(file, name, wide, alone)

    monkeypatch.setattr(drain, "_persistent", limiting)
    for seed in range(start, start + 50):
        rng, edges = np.random.default_rng(seed), random_network(seed)
        capacity = np.where(edges.capacity < 1 << 20, edges.capacity * factor, edges.capacity)
        terminals = random_terminals(rng, edges.n_vertices)
        supply, demand = (
            np.where(caps == INFINITE, INFINITE, caps * factor) for caps in (terminals.supply, terminals.demand)
        )
        terminals = replace(terminals, supply=supply, demand=demand)
        edges = replace(edges, capacity=capacity)
        engine, host = CudaEngine(Network(edges)), CpuEngine(Network(edges))
        with suppress(Unbounded):  # no cut of these terminals is finite
            state = engine.open(terminals)
            for step in range(4):
                engine.solve(state, cold=step == 3)
                agree(engine, state, host, terminals, f"seed {seed}, step {step}")
                if edges.n_edges:
                    rows, amounts = random_update(rng, engine.network.capacity)
                    engine.update(rows, amounts)
                    host.update(rows, amounts)
    assert "waves" in deep


@pytest.mark.parametrize(("family", "parameters"), DEEP)
def test_deep_networks(
    family: str, parameters: dict[str, int], left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "LEAST_WIDTH", 1)
    monkeypatch.setattr(drain, "LARGE", 0)
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
        assert "waves" in left


WIDE = [("vision", {"rows": 150, "columns": 150}), ("rmat", {"scale": 12}), ("ac", {"n_vertices": 300})]


@pytest.mark.parametrize(("family", "parameters"), WIDE)
def test_waves_are_right_where_they_do_not_pay(family: str, parameters: dict[str, int], deep: list[str]) -> None:
    """Most vertices are active in these, so that a thread visits a row alone."""
    edges = generate(family, seed=1, **parameters)
    (engine, state), host = opened(edges), CpuEngine(Network(edges))
    for step in range(20):
        engine.solve(state, cold=True)
        if step % 5 == 0:
            agree(engine, state, host, state.terminals, f"step {step}")
    assert ("waves" in deep) == (family == "vision"), "the others have long rows"


def test_a_network_with_hubs_is_not_left(left: list[str]) -> None:
    """A wave would visit their rows by eight threads."""
    edges = generate("road", seed=1, rows=60, columns=60, terminals=50)
    spokes = np.arange(0, edges.n_vertices, 7, dtype=np.int32)
    hub = np.full(len(spokes), edges.n_vertices, np.int32)
    engine, state = opened(edges)
    engine.solve(state)
    assert "waves" in left
    left.clear()
    edges = replace(
        edges,
        n_vertices=edges.n_vertices + 1,
        tail=np.append(edges.tail, spokes),
        head=np.append(edges.head, hub),
        capacity=np.append(edges.capacity, np.ones(len(spokes), np.int64)),
        undirected=False,
    )
    engine, state = opened(edges)
    engine.solve(state)
    assert "waves" not in left


def test_a_narrow_network_is_not_left(left: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    edges = generate("line", seed=1, length=4000)
    for width, expected in ((1, True), (drain.LEAST_WIDTH, False)):
        monkeypatch.setattr(drain, "LEAST_WIDTH", width)
        left.clear()
        engine, state = opened(edges)
        engine.solve(state)
        assert engine.certificate(state).valid
        assert ("waves" in left) == expected


def test_a_repair_of_a_small_network_is_not_left(left: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    edges = generate("grid", seed=1, rows=200, columns=200)
    finite = np.flatnonzero(edges.capacity != INFINITE)[::40]
    for large, expected in ((0, True), (drain.LARGE, False)):
        monkeypatch.setattr(drain, "LARGE", large)
        engine, state = opened(edges)
        engine.solve(state)
        left.clear()
        for factor in (3, 1, 0):
            engine.update(finite, edges.capacity[finite] * factor)
            engine.solve(state)
            assert engine.certificate(state).valid
        assert ("waves" in left) == expected


def test_a_cancel_ends_waves(left: list[str]) -> None:
    """Most of a solve is theirs in this network."""
    edges = generate("grid", seed=1, rows=700, columns=700)
    (engine, state), control = opened(edges), Control()
    engine.solve(state)
    value = state.value
    assert "waves" in left
    threading.Timer(0.02, control.cancel).start()
    with pytest.raises(Cancelled):
        engine.solve(state, control, cold=True)
    engine.solve(state)
    assert state.value == value
    assert engine.certificate(state).valid
