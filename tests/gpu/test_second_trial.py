"""A device that won its trial, and takes long over other terminals."""

from collections.abc import Iterator
from itertools import chain, repeat

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.cpu.engine import CpuEngine  # noqa: E402
from gpu_engine.cuda.engine import CudaEngine  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.engine import Engine, SolveReport  # noqa: E402
from gpu_engine.generators import generate  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402
from gpu_engine.trial import AT_LEAST_MS, TrialEngine  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]


class Failing(CpuEngine):
    def solve(self, *_: object, **__: object) -> SolveReport:  # type: ignore[override]
        raise RuntimeError("it loses the first trial")


def test_the_device_stops_by_itself_and_the_host_takes_over() -> None:
    """Two chains side by side, which take it a minute; a core takes some milliseconds."""
    edges = generate("chains", seed=1)
    network = Network(edges)
    hosts: Iterator[type[Engine]] = chain([Failing], repeat(CpuEngine))
    engine = TrialEngine(network, lambda network: next(hosts)(network), CudaEngine)
    near = engine.open(Terminals.of([0], [2]))
    assert engine.solve(near).engine == engine.name == "cuda"
    far = engine.open(Terminals.of([edges.source], [edges.sink]))
    report = engine.solve(far)
    assert report.engine == engine.name == "cpu"
    assert report.timings_ms["solve"] < AT_LEAST_MS
    for state in (far, near):
        wanted = CpuEngine(Network(edges))
        value = wanted.solve(wanted.open(state.terminals)).value
        assert engine.solve(state).value == value
        assert engine.certificate(state).valid
        assert engine.certificate(state).value == value
    engine.update(np.arange(10), np.full(10, 7))
    assert engine.solve(far).engine == "cpu"
    assert engine.certificate(far).valid
