"""After `prepare` nothing is compiled any more: the first load and the first update of a fresh process are fast."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.cuda.module import device_available  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not device_available(), reason="no CUDA device")]

PROGRAM = """
import cupy
import numpy as np
from gpu_engine.cuda.engine import CudaEngine
from gpu_engine.generators import generate
from gpu_engine.select import load_network, prepare
from gpu_engine.networks.terminals import Terminals

prepare("cuda")

def refuse(*arguments, **named):
    raise AssertionError(f"compiled after the start: {arguments[0][:200]}")

cupy.cuda.compiler.compile_using_nvrtc = refuse
for family, parameters in (("rmat", {"scale": 18}), ("grid", {"rows": 40, "columns": 40}), ("road", {})):
    edges = generate(family, seed=2, **parameters)
    for largest in (0, 1 << 40):
        capacity = edges.capacity.copy()
        capacity[0] = max(capacity[0], largest)
        edges = type(edges)(edges.n_vertices, edges.tail, edges.head, capacity, edges.undirected)
        engine = CudaEngine(load_network(edges, "cuda"))
        terminals = Terminals.of([0], [edges.n_vertices - 1])
        state = engine.open(terminals)
        engine.solve(state)
        rows = np.flatnonzero(edges.capacity < 1 << 62)
        for k in (1, 100, min(len(rows), 20_000)):
            for lower in (True, False):
                engine.update(rows[:k], np.zeros(k, np.int64) if lower else edges.capacity[rows[:k]])
                engine.solve(state)
                assert engine.certificate(state).valid
        fork = engine.fork(state)
        fork.trials(2)
        for k in (1, 100, min(len(rows), 20_000)):
            for caps in (None, Terminals.of([0], [edges.n_vertices - 1], [k]), Terminals.of([1], [2])):
                overlay = fork.overlay(rows[:k], edges.capacity[rows[:k]] // 2, caps)
                fork.engine.solve(overlay)
                assert fork.engine.certificate(overlay).valid
            fork.overlay(rows[:k], edges.capacity[rows[:k]])
        fork.drop()
        engine.cut(state), engine.flow(state)
        engine.close(engine.restore(terminals, engine.export(state)))
print("nothing compiled")
"""


def test_a_fresh_process_compiles_nothing_after_its_start(tmp_path: Path) -> None:
    environment = os.environ | {"CUPY_CACHE_DIR": str(tmp_path / "kernels")}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert "nothing compiled" in ended.stdout
