"""Ten thousand edges inserted into, and deleted from, a resident graph of ten million arcs, on the CPU engine, with
what else was tried for it, or on the CUDA engine. `python -m benchmarks.structure [--device]`."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.machine import describe
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.links import build_csr
from gpu_engine.networks.network import Network
from gpu_engine.networks.restructure import Limits, resolve
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.select import open_engine
from gpu_engine.text.texts import Texts
from service.worker.graph import Graph
from service.worker.structure import Columns

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


def batch(rng: np.random.Generator, network: Network) -> list[Columns]:
    """Half of the rows are insertions, half deletions, as a request has them."""
    k = INSERTED // 2
    deleted = np.sort(rng.choice(network.live(np.arange(network.n_edges)), k, replace=False))
    tail, head = rng.integers(0, VERTICES, (2, k))
    amounts = Texts.of([str(amount) for amount in rng.integers(1, 100, k)])
    return [Columns("delete", edges=deleted), Columns("insert", tail=tail, head=head, capacity=amounts)]


def resident(network: Network, choice: str, rng: np.random.Generator, times: int) -> list[dict[str, Any]]:
    """Batches applied to a graph with one flow state, on this engine, and the state repaired and proven."""
    graph = Graph("g", "0" * 32, 1, 1, network, open_engine(network, choice), CapacityTable(network))
    solved = graph.open(Terminals.of([0], [VERTICES // 2]))
    began = time.perf_counter()
    graph.solve(solved, Control(), lambda: None)
    rows: list[dict[str, Any]] = [{"cold solve and proof": round(1e3 * (time.perf_counter() - began), 1)}]
    for _ in range(times):
        operations = batch(rng, graph.network)
        began, cpu = time.perf_counter(), time.process_time()
        found = resolve(graph.table, graph.costs, operations, Limits(1 << 31, 1 << 31))
        checked = time.perf_counter() - began
        graph.restructure(found.structure, found.change, lambda needed: None)
        applied, used = time.perf_counter() - began, time.process_time() - cpu
        answer = graph.solve(solved, Control(), lambda: None)
        rows.append(
            {
                "checked": round(1e3 * checked, 2),
                "checked and applied": round(1e3 * applied, 2),
                "processor": round(1e3 * used, 2),
                "solve": round(answer.solve_ms, 2),
                "mode": answer.report.mode.value,
                "proof": round(answer.certificate_ms, 2),
            }
        )
        began = time.perf_counter()
        if len(rows) % 4 == 0:
            graph.network.rows  # noqa: B018  # as a cut or a flow does
            rows[-1]["the rows read on the host afterwards"] = round(1e3 * (time.perf_counter() - began), 1)
    fresh = CpuEngine(Network(graph.network.edge_list()))
    assert answer.report.value == fresh.solve(fresh.open(solved.terminals)).value
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", action="store_true", help="on the CUDA engine, and nothing else")
    parser.add_argument("--out", type=Path, help="a file of results in JSON")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    edges = instance(rng)
    network = Network(edges)
    print("arcs", network.n_arcs)
    if not arguments.device:
        print("a pass over all arcs, ms wall and processor:", scans(network))
        print("all rows built anew:", best_ms(lambda: build_csr(VERTICES, edges.tail, edges.head), 2))
        tail, head = rng.integers(0, VERTICES, (2, INSERTED)).astype(np.int32)
        inserted = Structure(0, None, tail, head, np.zeros(INSERTED, np.bool_))
        print("edges inserted, rows pending:", best_ms(lambda: grow(network, inserted)))
        print("new arcs merged into the rows:", best_ms(lambda: grow(network, inserted).place))
    found = resident(network, "cuda" if arguments.device else "cpu", rng, 12 if arguments.device else 4)
    for row in found:
        print(row)
    if arguments.out:
        arguments.out.write_text(json.dumps({"machine": describe(), "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
