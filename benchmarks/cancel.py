"""How soon a running solve stops: ``python -m benchmarks.cancel``, on a graph of about a million arcs.

Each of many cold solves is cancelled at another moment; counted from the raised flag to the exception. Shape: one
genrmf network of 40 x 40 x 120 (King & Rao's family), one thread, this process alone.
"""

import argparse
import threading
import time
from pathlib import Path

import numpy as np

from benchmarks.results import DIRECTORY, Results
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled
from gpu_engine.generators import genrmf
from gpu_engine.network import Network
from gpu_engine.terminals import Terminals


def stop_ms(engine: CpuEngine, terminals: Terminals, after_s: float) -> float | None:
    """Milliseconds from the flag to the end; None if the solve was over before it."""
    state, control = engine.open(terminals), Control()
    raised_at = 0.0

    def cancel() -> None:
        nonlocal raised_at
        raised_at = time.perf_counter()
        control.cancel()

    timer = threading.Timer(after_s, cancel)
    timer.start()
    try:
        engine.solve(state, control, cold=True)
        return None
    except Cancelled:
        return 1e3 * (time.perf_counter() - raised_at)
    finally:
        timer.cancel()
        engine.close(state)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cancel", description=__doc__)
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--out", type=Path, default=DIRECTORY / "cancel.json")
    options = parser.parse_args()
    edges = genrmf(a=40, b=120, seed=1)
    assert edges.source is not None
    assert edges.sink is not None
    engine, terminals = CpuEngine(Network(edges)), Terminals.of([edges.source], [edges.sink])
    for _ in range(2):  # the first compiles
        began = time.perf_counter()
        engine.solve(engine.open(terminals), cold=True)
        whole_s = time.perf_counter() - began
    found = (stop_ms(engine, terminals, whole_s * k / options.moments) for k in range(1, options.moments))
    times = [taken for taken in found if taken is not None]
    row = {"n_edges": edges.n_edges, "whole_ms": 1e3 * whole_s, "cancelled": len(times)}
    row |= {f"p{p}_ms": round(float(np.percentile(times, p)), 3) for p in (50, 99, 100)}
    Results("cancel", {"moments": options.moments}, options.out).extend([row])
    print(row)


if __name__ == "__main__":
    main()
