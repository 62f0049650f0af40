"""A device that won its trial, and takes long over other terminals."""

from collections.abc import Iterator
from itertools import chain, repeat

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.auto import AutoEngine  # noqa: E402
from gpu_engine.cpu.engine import CpuEngine  # noqa: E402
from gpu_engine.cuda.engine import CudaEngine  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.engine import Engine, SolveReport  # noqa: E402
from gpu_engine.generators import generate  # noqa: E402
from gpu_engine.networks.edgelist import EdgeList  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]


class Failing(CpuEngine):
    def solve(self, *_: object, **__: object) -> SolveReport:  # type: ignore[override]
        raise RuntimeError("it loses the first trial")


def solved_on_a_core(edges: EdgeList, terminals: Terminals) -> int:
    engine = CpuEngine(Network(edges))
    return engine.solve(engine.open(terminals)).value


def test_the_device_stops_by_itself_and_the_host_takes_over() -> None:
    """Two chains side by side, which take it a minute; a core takes some milliseconds."""
    edges = generate("chains", seed=1)
    near, far = Terminals.of([0], [2]), Terminals.of([edges.source], [edges.sink])
    wanted = [solved_on_a_core(edges, terminals) for terminals in (near, far)]  # which compiles the solver as well
    hosts: Iterator[type[Engine]] = chain([Failing], repeat(CpuEngine))
    engine = AutoEngine(Network(edges), lambda network: next(hosts)(network), CudaEngine)
    states = [engine.open(near), engine.open(far)]
    assert engine.solve(states[0]).engine == engine.name == "cuda"
    assert engine.solve(states[1]).engine == engine.name == "cpu"
    assert [engine.solve(state).value for state in states] == wanted
    assert all(engine.certificate(state).valid for state in states)
    engine.update(np.arange(10), np.full(10, 7))
    assert engine.solve(states[1]).engine == "cpu"
    assert engine.certificate(states[1]).valid
