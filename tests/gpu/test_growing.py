"""Networks that grow under flow states on a device: flows are carried over, and repaired there."""

import time

import numpy as np
import pytest

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Engine, FlowState, Mode
from gpu_engine.errors import Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.terminals import Terminals
from gpu_engine.select import missing_device, open_engine
from gpu_engine.types import INFINITE
from tests.random_networks import random_edges, random_terminals, random_update

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(missing_device()), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]


def random_growth(rng: np.random.Generator, network: Network) -> tuple[Structure, np.ndarray, np.ndarray]:
    n_more, k = int(rng.integers(0, 4)), int(rng.integers(0, 20))
    tail, head = rng.integers(0, network.n_vertices + n_more, (2, k)).astype(np.int32)
    capacity = rng.integers(0, 30, k)
    capacity[rng.random(k) < rng.choice([0, 0, 0.05])] = INFINITE
    structure = Structure(n_more, None, tail, head, rng.random(k) < rng.choice([0, 0.5]))
    return structure, network.n_edges + np.arange(k), capacity


@pytest.mark.parametrize("choice", ["cuda", "cuda:wbpr-tc-rcsr", "auto"])
@pytest.mark.parametrize("seed", range(40))
def test_values_of_a_load_from_scratch(seed: int, choice: str) -> None:
    rng = np.random.default_rng(seed)
    network = Network(random_edges(rng))
    engine = open_engine(network, choice)
    terminals = random_terminals(rng, network.n_vertices)
    try:
        state = engine.open(terminals)
    except Unbounded:
        return
    engine.solve(state)
    for _ in range(6):
        structure, rows, capacity = random_growth(rng, engine.network)
        engine.grow(grow(engine.network, structure))
        try:
            engine.update(rows, capacity)
            if engine.network.n_edges and rng.random() < 0.5:
                engine.update(*random_update(rng, engine.network.capacity))
        except Unbounded:
            return
        value = engine.solve(state).value
        assert engine.certificate(state).valid
        fresh = CpuEngine(Network(engine.network.edge_list()))
        assert value == fresh.solve(fresh.open(terminals)).value


def timed(engine: Engine, state: FlowState, structure: Structure) -> dict[str, float]:
    rows = engine.network.n_edges + np.arange(structure.n_edges)
    times = [time.perf_counter()]
    growth = grow(engine.network, structure)
    times.append(time.perf_counter())
    engine.grow(growth)
    times.append(time.perf_counter())
    engine.update(rows, np.full(len(rows), 50))
    times.append(time.perf_counter())
    report = engine.solve(state)
    times.append(time.perf_counter())
    assert report.mode is not Mode.COLD
    assert engine.certificate(state).valid
    return dict(zip(("rows", "engine", "update", "solve"), (1e3 * np.diff(times)).round(1).tolist(), strict=True))


def test_ten_million_arcs(capsys: pytest.CaptureFixture[str]) -> None:
    """10,000 edges at once; the times are printed."""
    rng = np.random.default_rng(1)
    n, m, k = 1_000_000, 5_000_000, 10_000
    tail = rng.integers(0, n, m).astype(np.int32)
    head = ((tail + rng.integers(1, 200, m)) % n).astype(np.int32)
    engine = open_engine(Network(EdgeList(n, tail, head, rng.integers(1, 100, m))), "cuda")
    state = engine.open(Terminals.of([0], [n // 2]))
    engine.solve(state)
    for _ in range(3):
        ends = rng.integers(0, n, (2, k)).astype(np.int32)
        found = timed(engine, state, Structure(0, None, *ends, np.zeros(k, np.bool_)))
        with capsys.disabled():
            print(found)
