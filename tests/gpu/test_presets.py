"""Every published system as a preset, on a device: right answers, and nothing left for the default drain."""

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from functools import partial  # noqa: E402

from gpu_engine.control import Control  # noqa: E402
from gpu_engine.cpu.engine import CpuEngine  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.cuda.presets.engine import PresetEngine  # noqa: E402
from gpu_engine.cuda.presets.schedules import PRESETS  # noqa: E402
from gpu_engine.engine import SolveReport  # noqa: E402
from gpu_engine.errors import Cancelled  # noqa: E402
from gpu_engine.generators import generate  # noqa: E402
from gpu_engine.matching import maximum_matching  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402
from gpu_engine.types import INFINITE  # noqa: E402
from tests.congruence import check_sequence  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
    pytest.mark.parametrize("preset", PRESETS),
]

FAMILIES = [
    ("genrmf-long", {"a": 4}),
    ("genrmf-wide", {"a": 6}),
    ("rlg-long", {"rows": 12}),
    ("rlg-wide", {"rows": 16}),
    ("ac", {"n_vertices": 60}),
    ("rmat", {"scale": 9}),
    ("grid", {"rows": 24, "columns": 24}),
    ("vision", {"rows": 24, "columns": 24}),
    ("road", {"rows": 20, "columns": 20, "terminals": 8}),
]


def check_work(report: SolveReport, preset: str) -> None:
    """The preset did it all itself."""
    assert report.engine == f"cuda:{preset}"
    assert report.counters.get("left_pushes", 0) == 0


@pytest.mark.parametrize(("family", "parameters"), FAMILIES)
def test_families_cold_and_through_updates(family: str, parameters: dict[str, int], preset: str) -> None:
    edges = generate(family, seed=5, **parameters)
    terminals = Terminals.of([edges.source], [edges.sink])
    judge, engine = CpuEngine(Network(edges)), PresetEngine(Network(edges), preset)
    expected, state = judge.open(terminals), engine.open(terminals)
    rng = np.random.default_rng(5)
    finite = np.flatnonzero(edges.capacity != INFINITE)
    for step in range(11):
        value, report = judge.solve(expected).value, engine.solve(state)
        certificate = engine.certificate(state)
        assert certificate.valid, f"step {step}: {certificate.failures}"
        assert report.value == certificate.value == value, f"step {step}"
        check_work(report, preset)
        if step == 0 and value:
            assert report.counters["pushes"] > 0
        rows = rng.choice(finite, int(rng.choice([1, 10, max(1, len(finite) // 20)])), replace=False)
        capacity = (edges.capacity[rows] * rng.uniform(0, 2, len(rows))).astype(np.int64)
        judge.update(rows, capacity)
        engine.update(rows, capacity)


def test_random_networks_agree_with_the_judge(preset: str) -> None:
    """Capped terminals, parallel, undirected, infinite and self-loop edges, residuals of both widths."""
    pytest.importorskip("ortools")
    for seed in range(40):
        check_sequence(partial(PresetEngine, preset=preset), seed, steps=4)


@pytest.mark.parametrize("largest", [100, 1 << 31])
def test_the_same_grid_five_times(largest: int, preset: str) -> None:
    """Terminal-link grids are where racy codes go wrong; the larger capacities need int64 residuals."""
    edges = generate("vision", seed=7, rows=40, columns=40)
    edges.capacity[:] = edges.capacity * max(1, largest // int(edges.capacity.max()))
    engine = PresetEngine(Network(edges), preset)
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    reports = [engine.solve(state, cold=True) for _ in range(5)]
    assert engine.certificate(state).valid
    assert len({report.value for report in reports}) == 1
    for report in reports:
        check_work(report, preset)


def test_bipartite_matching(preset: str) -> None:
    rng = np.random.default_rng(3)
    left, right = rng.integers(0, 200, 700).astype(np.int32), rng.integers(0, 150, 700).astype(np.int32)
    matching = maximum_matching(200, 150, left, right, partial(PresetEngine, preset=preset))
    assert matching.failures(left, right) == []
    assert matching.size == maximum_matching(200, 150, left, right).size


class Impatient(Control):
    """Is cancelled from the given look on."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.left = looks

    @property
    def cancelled(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("looks", [0, 1, 7])
def test_cancelled_solves_can_be_solved_again(looks: int, preset: str) -> None:
    """Cold and warm, in the middle of a schedule; a copied layout is written back."""
    edges = generate("grid", seed=1, rows=20, columns=20)
    judge, engine = CpuEngine(Network(edges)), PresetEngine(Network(edges), preset)
    terminals = Terminals.of([edges.source], [edges.sink])
    expected, state = judge.open(terminals), engine.open(terminals)
    finite = np.flatnonzero(edges.capacity != INFINITE)
    for factor in (2, 1, 3):
        with pytest.raises(Cancelled):
            engine.solve(state, Impatient(looks))
        assert engine.solve(state).value == judge.solve(expected).value
        assert engine.certificate(state).valid
        capacity = np.where(finite % 3 == 0, edges.capacity[finite] // factor, 2 * edges.capacity[finite])
        judge.update(finite, capacity)
        engine.update(finite, capacity)
