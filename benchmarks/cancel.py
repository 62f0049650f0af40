"""How soon work stops once it is cancelled: ``python -m benchmarks.cancel``, on graphs of millions of edges.

Each kind of work is cancelled at many random moments; counted from the raised flag to the end, which is an exception,
or the answer if that was as near. The kinds: cold solves of a deep network (genrmf, King & Rao's family) and of a wide
one (grid), warm ones after batches of all sizes, flows by edge, and the cut. One thread, this process alone.
"""

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.results import DIRECTORY, Results, Row
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import FlowState
from gpu_engine.errors import Cancelled
from gpu_engine.generators import genrmf, grid
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE

SEED = 7
BATCHES = (10, 1000, 100_000)
"""Edges changed before a warm solve."""


@dataclass(frozen=True)
class Work:
    """Something that takes a while and takes a Control; `prepare` is not timed."""

    name: str
    prepare: Callable[[], object]
    run: Callable[[Control], object]


def stop_ms(work: Work, after_s: float) -> float | None:
    """Milliseconds from the flag to the end; None if the work was over before it."""
    work.prepare()
    control, raised_at = Control(), [0.0]

    def cancel() -> None:
        raised_at[0] = time.perf_counter()
        control.cancel()

    timer = threading.Timer(after_s, cancel)
    timer.start()
    with suppress(Cancelled):
        work.run(control)
    ended = time.perf_counter()
    timer.cancel()
    return 1e3 * (ended - raised_at[0]) if raised_at[0] else None


def whole_s(work: Work) -> float:
    """How long it takes when nobody cancels it."""
    work.prepare()
    began = time.perf_counter()
    work.run(Control())
    return time.perf_counter() - began


def works(edges: EdgeList) -> Iterator[Work]:
    """All kinds of work on one network."""
    assert edges.source is not None
    assert edges.sink is not None
    network = Network(edges)
    engine, terminals = CpuEngine(network), Terminals.of([edges.source], [edges.sink])
    state = engine.open(terminals)
    random = np.random.default_rng(SEED)
    first = network.capacity.copy()
    finite = np.flatnonzero(first != INFINITE)

    def change(count: int) -> None:
        rows = np.unique(random.choice(finite, count))
        engine.update(rows, (first[rows] * random.uniform(0.0, 2.0, len(rows))).astype(np.int64))

    def settle() -> None:
        engine.solve(state)

    def nothing() -> None:
        pass

    yield Work("cold", nothing, lambda control: engine.solve(state, control, cold=True))
    for count in BATCHES:
        yield Work(f"warm {count}", lambda count=count: (settle(), change(count)), _solve(engine, state))
    yield Work("flow", settle, lambda control: engine.flow(state, control))
    yield Work("cut", settle, lambda control: engine.cut(state, control))


def _solve(engine: CpuEngine, state: FlowState) -> Callable[[Control], object]:
    return lambda control: engine.solve(state, control)


def measure(edges: EdgeList, name: str, moments: int) -> Iterator[Row]:
    random = np.random.default_rng(SEED)
    for work in works(edges):
        whole_s(work)  # compiles
        took_s = whole_s(work)
        found = [stop_ms(work, float(random.uniform(0, took_s))) for _ in range(moments)]
        times = [taken for taken in found if taken is not None]
        row: Row = {"network": name, "work": work.name, "n_edges": edges.n_edges, "whole_ms": round(1e3 * took_s, 2)}
        row["cancelled"] = len(times)
        yield row | {f"p{p}_ms": round(float(np.percentile(times, p)), 3) for p in (50, 99, 100) if times}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cancel", description=__doc__)
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--scale", type=int, default=1, help="side lengths grow with it; 1: 1 to 2 M edges, 2: 8 M")
    parser.add_argument("--out", type=Path, default=DIRECTORY / "cancel.json")
    options = parser.parse_args()
    k = options.scale
    results = Results("cancel", {"moments": options.moments, "scale": k}, options.out)
    networks = {"genrmf": genrmf(a=40 * k, b=120 * k, seed=1), "grid": grid(rows=700 * k, columns=700 * k, seed=1)}
    for name, edges in networks.items():
        for row in measure(edges, name, options.moments):
            results.extend([row])
            print(row, flush=True)


if __name__ == "__main__":
    main()
