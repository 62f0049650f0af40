"""Flows by edge that are read from the few links of a device state that carry them."""

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.checks.flows import prove_flow  # noqa: E402
from gpu_engine.cuda import transfer  # noqa: E402
from gpu_engine.cuda.engine import CudaEngine  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.generators import generate  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402
from tests.congruence import check_sequence  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]


@pytest.mark.parametrize("first", range(20_000, 20_200, 50))
def test_flows_of_any_number_of_links_agree_with_the_judge(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ortools")
    monkeypatch.setattr(transfer, "FEW", 1)
    monkeypatch.setattr(transfer, "is_dense", lambda *_: True)
    for seed in range(first, first + 50):
        check_sequence(CudaEngine, seed, steps=4)


@pytest.mark.parametrize("unit", [1, 1 << 33])
def test_few_links_are_read_without_a_copy_of_the_state(unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow and wide residuals, before and after updates that leave excess behind."""
    edges = generate("rmat", seed=1, scale=13)
    edges.capacity[:] = np.maximum(edges.capacity, 1) * unit
    monkeypatch.setattr(transfer, "residual_on_host", lambda *_: pytest.fail("all residuals were copied"))
    engine, rng = CudaEngine(Network(edges)), np.random.default_rng(1)
    for _ in range(6):
        ends = rng.choice(edges.n_vertices, 2, replace=False).astype(np.int32)
        state = engine.open(Terminals.of(ends[:1], ends[1:]))
        for acyclic in (True, False, True):
            value = engine.solve(state).value
            flow = engine.flow(state, acyclic=acyclic)
            proof = prove_flow(engine.network, state.terminals, flow, acyclic=acyclic)
            assert proof.failures == ()
            assert proof.value == value
            used = np.flatnonzero(flow)
            rows = np.unique(np.concatenate((used[:3], rng.choice(edges.n_edges, 20, replace=False))))
            engine.update(rows, rng.integers(0, 9, len(rows)) * unit)
        engine.close(state)
