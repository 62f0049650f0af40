"""One very large R-MAT network on a device, from columns to certificate: ``python -m benchmarks.scale --scale 24``.

The edges are drawn on the device (the generator of `gpu_engine` would take minutes), so the network is another one
than `generate("rmat", ...)` gives for the same seed. Everything else is what a service would do.
"""

import argparse
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import cupy
import numpy as np

from benchmarks.answers import check_certificate
from benchmarks.results import Results, Row
from benchmarks.timing import repeat, timed
from gpu_engine import select
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.terminals import Terminals

QUADRANTS = (0.57, 0.19, 0.19)


def draw(scale: int, edge_factor: int, seed: int, max_capacity: int = 100) -> EdgeList:
    """R-MAT as in `gpu_engine.generators.rmat`, the two vertices of highest degree as source and sink."""
    rng = cupy.random.default_rng(seed)
    a, b, c = QUADRANTS
    n, m = 1 << scale, edge_factor << scale
    tail, head = cupy.zeros(m, np.int64), cupy.zeros(m, np.int64)
    for _ in range(scale):
        at = rng.random(m, dtype=np.float32)
        down = at >= a + b
        tail = 2 * tail + down
        head = 2 * head + (((at >= a) & ~down) | (at >= a + b + c))
    name = cupy.argsort(rng.random(n))
    key = cupy.unique(name[tail] << scale | name[head])
    tail, head = key >> scale, key & (n - 1)
    kept = tail != head
    tail, head = tail[kept], head[kept]
    degree = cupy.bincount(tail, minlength=n) + cupy.bincount(head, minlength=n)
    source, sink = cupy.argsort(degree)[:-3:-1].get().tolist()
    capacity = rng.integers(1, max_capacity + 1, len(tail)).astype(np.int64)
    edges = EdgeList(
        n_vertices=n,
        tail=tail.astype(np.int32).get(),
        head=head.astype(np.int32).get(),
        capacity=capacity.get(),
        source=source,
        sink=sink,
    )
    del tail, head, capacity, key, kept, at, down, degree
    cupy.get_default_memory_pool().free_all_blocks()
    return edges


def measure(edges: EdgeList, runs: int) -> Row:
    """Load, solve cold, update and solve warm; every answer certified."""
    assert edges.source is not None
    assert edges.sink is not None
    network, load_ms = timed(lambda: select.load_network(edges, "cuda"))
    engine, upload_ms = timed(lambda: select.open_engine(network, "cuda"))
    state, open_ms = timed(lambda: engine.open(Terminals.of([edges.source], [edges.sink])))
    values = set()

    def once() -> float:
        report, elapsed_ms = timed(lambda: engine.solve(state, cold=True))
        check_certificate(engine.certificate(state), report.value)
        values.add(report.value)
        return elapsed_ms

    cold_ms = repeat(once, runs, 60)
    row: Row = {
        "n": network.n_vertices,
        "m": network.n_edges,
        "arcs": network.n_arcs,
        "load_ms": load_ms,
        "upload_ms": upload_ms,
        "open_ms": open_ms,
        "cold_ms_median": median(cold_ms),
        "cold_runs": len(cold_ms),
        "values": sorted(values),
        "engine_bytes_per_arc": (engine.device_nbytes or engine.nbytes) / network.n_arcs,
    }
    rng = np.random.default_rng(1)
    for k in (1, 100, network.n_edges // 1000, network.n_edges // 100):
        total_ms = []
        for _ in range(10):
            rows = np.unique(rng.integers(0, network.n_edges, k))
            capacity = rng.integers(0, 201, len(rows))
            began = perf_counter()
            engine.update(rows, capacity)
            report = engine.solve(state)
            total_ms.append((perf_counter() - began) * 1e3)
            check_certificate(engine.certificate(state), report.value)
        row[f"warm_{k}_ms_median"] = median(total_ms)
    return row


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    options.add_argument("--scale", type=int, default=24)
    options.add_argument("--edge-factor", type=int, default=16)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--runs", type=int, default=10)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    select.prepare("cuda")
    edges, draw_ms = timed(lambda: draw(given.scale, given.edge_factor, given.seed))
    settings = {"size": f"rmat-{given.scale}", "edge_factor": given.edge_factor, "seed": given.seed}
    results = Results("scale", settings, given.out)
    row = {"instance": f"rmat-{given.scale}", "draw_ms": draw_ms} | measure(edges, given.runs)
    results.extend([row])
    print(row, file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
