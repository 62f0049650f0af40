"""The CUDA engine, on a device: the suites of the CPU engine, and larger networks against the CPU engine."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.control import Control  # noqa: E402
from gpu_engine.cpu.engine import CpuEngine  # noqa: E402
from gpu_engine.cuda.engine import CudaEngine  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.engine import FlowState, Fork  # noqa: E402
from gpu_engine.errors import Unbounded  # noqa: E402
from gpu_engine.footprint import Room, unlimited  # noqa: E402
from gpu_engine.generators import generate  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402
from gpu_engine.trials import Changes  # noqa: E402
from gpu_engine.types import INFINITE  # noqa: E402
from tests.congruence import check_forks, check_sequence  # noqa: E402
from tests.random_networks import random_edges, random_terminals  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

FAMILIES = [
    ("genrmf-long", {"a": 8}),
    ("genrmf-wide", {"a": 16}),
    ("rlg-long", {"rows": 40}),
    ("rlg-wide", {"rows": 60}),
    ("ac", {"n_vertices": 200}),
    ("rmat", {"scale": 11}),
    ("grid", {"rows": 60, "columns": 60}),
    ("vision", {"rows": 60, "columns": 60}),
    ("road", {"rows": 40, "columns": 40, "terminals": 20}),
]


SHALLOW_AND_DEEP = ("rmat", "ac", "vision", "grid", "road")


class OnHost(CudaEngine):
    """Its forks take no memory of the device."""

    def fork(self, state: FlowState, room: Room = unlimited, *, on_host: bool = True) -> Fork:
        return super().fork(state, room, on_host=True)


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_update_sequences_agree_with_the_judge(first: int) -> None:
    pytest.importorskip("ortools")
    for seed in range(first, first + 50):
        check_sequence(CudaEngine, seed, steps=6)


@pytest.mark.parametrize(("family", "parameters"), FAMILIES)
def test_families_agree_with_the_cpu_engine_through_updates(family: str, parameters: dict[str, int]) -> None:
    edges = generate(family, seed=3, **parameters)
    terminals = Terminals.of([edges.source], [edges.sink])
    engines = [CpuEngine(Network(edges)), CudaEngine(Network(edges))]
    states = [engine.open(terminals) for engine in engines]
    rng = np.random.default_rng(3)
    finite = np.flatnonzero(edges.capacity < 1 << 60)
    for step in range(30):
        values = [engine.solve(state).value for engine, state in zip(engines, states, strict=True)]
        assert values[0] == values[1], f"step {step}"
        certificate = engines[1].certificate(states[1])
        assert certificate.valid, f"step {step}: {certificate.failures}"
        assert certificate.value == values[1]
        rows = rng.choice(finite, int(rng.choice([1, 10, max(1, len(finite) // 100)])), replace=False)
        capacity = (edges.capacity[rows] * rng.uniform(0, 2, len(rows))).astype(np.int64)
        for engine in engines:
            engine.update(rows, capacity)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("family", "parameters"), [each for each in FAMILIES if each[0] in SHALLOW_AND_DEEP])
def test_sixty_repairs_on_the_labels_of_the_one_before(family: str, parameters: dict[str, int], wide: bool) -> None:
    """Of edges that carry flow, so that most have something to move; where paths are short few need a search."""
    edges = generate(family, seed=5, **parameters)
    if wide:
        edges = replace(edges, capacity=np.where(edges.capacity == INFINITE, INFINITE, edges.capacity << 24))
    terminals = Terminals.of([edges.source], [edges.sink])
    engine, judge = CudaEngine(Network(edges)), CpuEngine(Network(edges))
    state, judged = engine.open(terminals), judge.open(terminals)
    engine.solve(state)
    judge.solve(judged)
    rng, capacity = np.random.default_rng(4), edges.capacity.copy()
    carrying = np.flatnonzero((judge.flow(judged, acyclic=False) != 0) & (capacity != INFINITE))
    repaired = searched = 0
    for size in [1, 3, 30] * 20:
        rows = np.sort(rng.choice(carrying, min(size, len(carrying)), replace=False))
        new = (capacity[rows] * rng.random(len(rows)) * 2).astype(np.int64)
        engine.update(rows, new)
        judge.update(rows, new)
        report = engine.solve(state)
        assert report.value == judge.solve(judged).value
        proven = engine.certificate(state)
        assert proven.valid, proven.failures
        repaired += report.counters.get("rounds", 0) > 0
        searched += report.counters.get("levels", 0) > 0
    assert repaired > 10
    if family in ("rmat", "ac"):
        assert searched < repaired


@pytest.mark.parametrize("side", [64, 200])
def test_the_same_grid_ten_times(side: int) -> None:
    """Terminal-link grids are where racy codes go wrong."""
    edges = generate("vision", seed=7, rows=side, columns=side)
    engine = CudaEngine(Network(edges))
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    values = set()
    for _ in range(10):
        values.add(engine.solve(state, cold=True).value)
        assert engine.certificate(state).valid
    assert len(values) == 1


@pytest.mark.parametrize("first", range(0, 200, 50))
@pytest.mark.parametrize("make_engine", [CudaEngine, OnHost])
def test_overlays_on_forks_agree_with_the_judge(make_engine: type[CudaEngine], first: int) -> None:
    pytest.importorskip("ortools")
    for seed in range(first, first + 50):
        check_forks(make_engine, seed, overlays=6)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_changes_tried_on_a_fork_come_to_what_overlays_come_to(first: int) -> None:
    for seed in range(first, first + 50):
        rng = np.random.default_rng(seed)
        edges = random_edges(rng)
        engine = CudaEngine(Network(edges))
        finite = np.flatnonzero(edges.capacity != INFINITE)
        try:
            state = engine.open(random_terminals(rng, edges.n_vertices))
        except Unbounded:
            continue
        engine.solve(state)
        fork = engine.fork(state)
        changes = [(rows, rng.integers(0, 30, len(rows))) for rows in finite[:, None]]
        (trials,) = fork.trials(1)
        tried = trials.run(Changes.of(changes), Control())
        for i in np.flatnonzero(tried.done):
            overlay = fork.overlay(*changes[i])
            assert fork.engine.solve(overlay).value == tried.value[i], (seed, i)
            assert fork.engine.certificate(overlay, complete=False).valid, (seed, i)


def test_forks_of_a_large_state_side_by_side_and_the_state_itself() -> None:
    """Four forks are tried in threads of their own while the graph is updated; each sees what it was made from."""
    edges = generate("rmat", seed=3, scale=14)
    engine, judge = CudaEngine(Network(edges)), CpuEngine(Network(edges))
    terminals = Terminals.of([edges.source], [edges.sink])
    state, judged = engine.open(terminals), judge.open(terminals)
    engine.solve(state)
    rng = np.random.default_rng(3)
    finite = np.flatnonzero(edges.capacity != INFINITE)
    batches = []
    for _ in range(12):
        rows = rng.choice(finite, 2000, replace=False)
        batches.append((rows, rng.integers(0, 2 * edges.capacity[rows] + 1)))
    wanted = []
    for rows, capacity in batches:
        judge.update(rows, capacity)
        wanted.append(judge.solve(judged).value)
        judge.update(rows, edges.capacity[rows])

    def tried(fork: Fork) -> list[int]:
        values = []
        for rows, capacity in batches:
            overlay = fork.overlay(rows, capacity)
            values.append(fork.engine.solve(overlay).value)
            assert fork.engine.certificate(overlay).valid
        return values

    forks = [engine.fork(state) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        running = [threads.submit(tried, fork) for fork in forks]
        for rows, capacity in batches:
            engine.update(rows, capacity)
            engine.solve(state)
            assert engine.certificate(state).valid
        assert [each.result() for each in running] == [wanted] * 4


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_bottlenecks_are_those_of_the_cpu_engine(first: int) -> None:
    for seed in range(first, first + 50):
        rng = np.random.default_rng(seed)
        edges = random_edges(rng)
        terminals = random_terminals(rng, edges.n_vertices)
        found = []
        for engine in (CpuEngine(Network(edges)), CudaEngine(Network(edges))):
            try:
                state = engine.open(terminals)
            except Unbounded:
                break
            engine.solve(state)
            found.append([column.tolist() for column in engine.bottlenecks(state).columns])
        assert len(found) != 1, seed
        assert found[:1] == found[1:], seed
