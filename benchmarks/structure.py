"""Ten thousand edges inserted into, and deleted from, a resident graph of ten million arcs, on the CPU engine; and what
else was tried for it. `python -m benchmarks.structure`."""

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Control
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.links import build_csr
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import CapacityTable, Change
from service.worker.graph import Graph

VERTICES: Final = 1_000_000
EDGES: Final = 5_000_000
INSERTED: Final = 10_000
NEAR: Final = 200
"""Edges lead to vertices whose numbers are so near."""
BUCKET: Final = 32
"""Arcs of a bucket, as iG-kway has them."""


def instance(rng: np.random.Generator) -> EdgeList:
    tail = rng.integers(0, VERTICES, EDGES).astype(np.int32)
    head = ((tail + rng.integers(1, NEAR, EDGES)) % VERTICES).astype(np.int32)
    return EdgeList(VERTICES, tail, head, rng.integers(1, 100, EDGES))


def best_ms(work: Callable[[], Any], times: int = 3) -> tuple[float, float]:
    """Wall-clock and processor time of the fastest run."""
    walls, used = [], []
    for _ in range(times):
        began, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - began)
        used.append(time.process_time() - cpu)
    return round(1e3 * min(walls), 1), round(1e3 * min(used), 1)


@njit(cache=True, nogil=True)
def scan_rows(begin: NDArray[np.int64], end: NDArray[np.int64], head: NDArray[np.int32]) -> int:
    """All arcs, vertex by vertex, as searches do: the sum of their heads."""
    total = 0
    for v in range(len(begin)):
        for a in range(begin[v], end[v]):
            total += head[a]
    return total


@njit(cache=True, nogil=True)
def scan_buckets(first: NDArray[np.int64], after: NDArray[np.int64], head: NDArray[np.int32]) -> int:
    """The same over lists of buckets; a place without an arc is negative."""
    total = 0
    for v in range(len(first)):
        bucket = first[v]
        while bucket >= 0:
            for a in range(bucket * BUCKET, (bucket + 1) * BUCKET):
                if head[a] >= 0:
                    total += head[a]
            bucket = after[bucket]
    return total


def scans(network: Network) -> dict[str, tuple[float, float]]:
    """What one pass over all arcs takes in each layout."""
    offsets = network.row_offsets.astype(np.int64)
    degree = np.diff(offsets)
    begin = np.concatenate([[0], np.cumsum(degree + np.maximum(4, degree // 4))])[:-1]
    spare = np.empty(int(begin[-1] + 2 * degree[-1] + 8), np.int32)
    place = np.arange(network.n_arcs) - np.repeat(offsets[:-1] - begin, degree)
    spare[place] = network.head
    buckets = (degree + BUCKET - 1) // BUCKET
    first = np.concatenate([[0], np.cumsum(buckets)])[:-1]
    after = np.arange(1, int(buckets.sum()) + 1)
    after[(first + buckets - 1)[buckets > 0]] = -1
    listed = np.full(int(buckets.sum()) * BUCKET, -1, np.int32)
    listed[np.arange(network.n_arcs) - np.repeat(offsets[:-1] - first * BUCKET, degree)] = network.head
    first = np.where(buckets > 0, first, -1)
    layouts: dict[str, Callable[[], int]] = {
        "rows without a gap": lambda: scan_rows(offsets[:-1], offsets[1:], network.head),
        "rows with spare room": lambda: scan_rows(begin, begin + degree, spare),
        "bucket lists": lambda: scan_buckets(first, after, listed),
    }
    assert len({scan() for scan in layouts.values()}) == 1
    return {name: best_ms(scan, 5) for name, scan in layouts.items()}


def changed(rng: np.random.Generator, graph: Graph) -> tuple[Structure, Change]:
    """Half of the rows are insertions, half deletions."""
    network, k = graph.network, INSERTED // 2
    deleted = np.sort(rng.choice(network.live(np.arange(network.n_edges)), k, replace=False))
    tail, head = rng.integers(0, VERTICES, (2, k)).astype(np.int32)
    structure = Structure(0, None, tail, head, np.zeros(k, np.bool_), deleted=deleted)
    own = np.concatenate([np.zeros(k, np.int64), rng.integers(1, 100, k)])
    return structure, Change(np.concatenate([deleted, network.n_edges + np.arange(k)]), own, np.zeros(2 * k, np.bool_))


def main() -> None:
    rng = np.random.default_rng(1)
    edges = instance(rng)
    network = Network(edges)
    print("arcs", network.n_arcs)
    print("a pass over all arcs, ms wall and processor:", scans(network))
    print("all rows built anew:", best_ms(lambda: build_csr(VERTICES, edges.tail, edges.head), 2))
    tail, head = rng.integers(0, VERTICES, (2, INSERTED)).astype(np.int32)
    inserted = Structure(0, None, tail, head, np.zeros(INSERTED, np.bool_))
    print("new arcs merged into the rows:", best_ms(lambda: grow(network, inserted)))
    graph = Graph("g", "0" * 32, 1, 1, network, CpuEngine(network), CapacityTable(network))
    solved = graph.open(Terminals.of([0], [VERTICES // 2]))
    began = time.perf_counter()
    graph.solve(solved, Control(), lambda: None)
    print("cold solve and proof:", round(1e3 * (time.perf_counter() - began), 1))
    for _ in range(4):
        structure, change = changed(rng, graph)
        began, cpu = time.perf_counter(), time.process_time()
        graph.restructure(structure, change, lambda needed: None)
        applied, used = time.perf_counter() - began, time.process_time() - cpu
        began = time.perf_counter()
        answer = graph.solve(solved, Control(), lambda: None)
        ms = f"wall {1e3 * applied:.0f} processor {1e3 * used:.0f}"
        solve = f"solve {answer.solve_ms:.1f} {answer.report.mode.value}, proof {answer.certificate_ms:.1f}"
        print(f"{INSERTED} rows applied, one flow state: {ms}; {solve}")


if __name__ == "__main__":
    main()
