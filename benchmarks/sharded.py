"""One network on one device and over several, each answer certified: ``python -m benchmarks.sharded --scale 24``.

Columns are drawn as by `benchmarks.scale`. The engine for one device, and the one over shards with one device and with
all, solve the same network in turn in one process.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import cupy
import numpy as np

from benchmarks.answers import check, check_certificate
from benchmarks.results import Results, Row
from benchmarks.scale import draw
from benchmarks.timing import repeat, timed
from gpu_engine import select
from gpu_engine.cuda.engine import CudaEngine
from gpu_engine.cuda.sharded.engine import ShardedEngine
from gpu_engine.devices import devices
from gpu_engine.engine import Engine
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals


def engines(network: Network) -> Sequence[tuple[str, Engine]]:
    """By name; each has its own copy of the network, which updates change."""
    all_devices = range(len(devices()))
    found: list[tuple[str, Engine]] = [("cuda", CudaEngine(network.fork()))]
    found += [(f"shards-{k}", ShardedEngine(network.fork(), all_devices[:k])) for k in sorted({1, len(all_devices)})]
    return found


def measure(name: str, engine: Engine, terminals: Terminals, runs: int) -> Row:
    """Open, solve cold, update and solve warm. The last answers are certified."""
    state, open_ms = timed(lambda: engine.open(terminals))
    first, first_ms = timed(lambda: engine.solve(state, cold=True))
    values, reports = {first.value}, []

    def once() -> float:
        report, elapsed_ms = timed(lambda: engine.solve(state, cold=True))
        values.add(report.value)
        reports.append(report)
        return elapsed_ms

    cold_ms = repeat(once, runs, 20)
    check_certificate(engine.certificate(state, complete=False), first.value)
    row: Row = {
        "engine": name,
        "open_ms": open_ms,
        "first_ms": first_ms,
        "cold_ms_median": median(cold_ms),
        "cold_ms": cold_ms,
        "values": sorted(values),
        "counters": dict(reports[-1].counters),
        "device_bytes": engine.device_nbytes,
    }
    rng = np.random.default_rng(1)
    for k in (100, engine.network.n_edges // 1000, engine.network.n_edges // 100):
        total_ms, modes, warm = [], [], []
        for _ in range(3):
            rows = np.unique(rng.integers(0, engine.network.n_edges, k))
            capacity = rng.integers(0, 201, len(rows))
            began = perf_counter()
            engine.update(rows, capacity)
            report = engine.solve(state)
            total_ms.append((perf_counter() - began) * 1e3)
            modes.append(str(report.mode))
            warm.append(report.value)
        row |= {f"warm_{k}_ms_median": median(total_ms), f"warm_{k}_modes": modes, f"warm_{k}_values": warm}
    proof, proof_ms = timed(lambda: engine.certificate(state, complete=name != "shards-1"))
    check_certificate(proof, report.value)
    row |= {"proof_ms": proof_ms}
    engine.close(state)
    return row


def compare(instance: str, edges: EdgeList, runs: int) -> list[Row]:
    """A row for each engine; all must have the same values."""
    assert edges.source is not None
    assert edges.sink is not None
    network, load_ms = timed(lambda: select.load_network(edges, "cuda"))
    counts = {"instance": instance, "n": network.n_vertices, "m": network.n_edges, "arcs": network.n_arcs}
    rows: list[Row] = []
    for name, engine in engines(network):
        rows.append(
            counts | {"load_ms": load_ms} | measure(name, engine, Terminals.of([edges.source], [edges.sink]), runs)
        )
        print(rows[-1], file=sys.stderr, flush=True)
        for device in range(len(devices())):
            with cupy.cuda.Device(device):
                cupy.get_default_memory_pool().free_all_blocks()
    answers = [[value for key, value in row.items() if key.endswith("values")] for row in rows]
    check(all(answer == answers[0] for answer in answers), answers)
    return rows


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.sharded", description=__doc__)
    options.add_argument("--scale", type=int, default=24, help="of R-MAT; 0: none")
    options.add_argument("--grid", type=int, default=0, help="a vision grid with sides so long; 0: none")
    options.add_argument("--acyclic", type=int, default=0, help="an acyclic dense network of so many vertices; 0: none")
    options.add_argument("--runs", type=int, default=10)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    select.prepare("cuda")
    names = devices()
    results = Results("sharded", {"devices": names, "edge_factor": 16, "seed": 1}, given.out)
    if given.grid:
        grid = generate("vision", seed=1, rows=given.grid, columns=given.grid)
        results.extend(compare(f"vision-{given.grid}", grid, given.runs))
    if given.acyclic:
        dense = generate("ac", seed=1, n_vertices=given.acyclic)
        results.extend(compare(f"ac-{given.acyclic}", dense, given.runs))
    if given.scale:
        results.extend(compare(f"rmat-{given.scale}", draw(given.scale, 16, 1), given.runs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
