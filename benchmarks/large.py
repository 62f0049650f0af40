"""A network of more arcs than one device or a `Network` holds, cold and warm: ``python -m benchmarks.large``.

R-MAT edges are drawn on a device, a part at a time, and become rows in shards there: no column of them is ever on the
host. Every answer is certified on the devices.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import cupy
import numpy as np

from benchmarks.answers import check, check_certificate
from benchmarks.results import Results, Row
from benchmarks.scale import QUADRANTS
from benchmarks.timing import timed
from gpu_engine.control import Control
from gpu_engine.cuda.sharded.build import build
from gpu_engine.cuda.sharded.certify import certify
from gpu_engine.cuda.sharded.launch import ChangedEdges, Shards
from gpu_engine.cuda.sharded.places import Places
from gpu_engine.cuda.sharded.solving import settle, start_from_zero
from gpu_engine.cuda.sharded.state import Columns, ShardedFlowState
from gpu_engine.cuda.sharded.topology import Topology
from gpu_engine.devices import devices
from gpu_engine.networks.free import uncapped_roles
from gpu_engine.networks.terminals import Terminals

PART: Final = 1 << 26
"""Edges that are drawn together."""


def parts(scale: int, n_edges: int, seed: int) -> Iterator[tuple[Any, Any, Any]]:
    """R-MAT edges with capacities of 1 to 100, between vertices whose names are shuffled; some are parallel."""
    rng = cupy.random.default_rng(seed)
    a, b, c = QUADRANTS
    name = cupy.argsort(rng.random(1 << scale)).astype(np.int32)
    for begin in range(0, n_edges, PART):
        m = min(PART, n_edges - begin)
        tail, head = cupy.zeros(m, np.int32), cupy.zeros(m, np.int32)
        for _ in range(scale):
            at = rng.random(m, dtype=np.float32)
            down = at >= a + b
            tail = 2 * tail + down
            head = 2 * head + (((at >= a) & ~down) | (at >= a + b + c))
        columns = name[tail], name[head], rng.integers(1, 101, m).astype(np.int32)
        cupy.cuda.Device().synchronize()
        yield columns


def two_hubs(topology: Topology) -> Terminals:
    """The two vertices with the longest rows."""
    found = []
    for shard, place in enumerate(topology.places.all):
        with place.on():
            length = cupy.diff(topology.row_offsets[shard])
            longest = cupy.argsort(length)[:-3:-1]
            begin = int(topology.first_vertex[shard])
            found += list(zip(length[longest].get().tolist(), (longest.get() + begin).tolist(), strict=True))
    (_, source), (_, sink) = sorted(found)[:-3:-1]
    return Terminals.of([source], [sink])


def some_edges(topology: Topology, k: int, rng: np.random.Generator) -> ChangedEdges:
    """About k arcs with capacity, with new ones from 0 to 200."""
    arcs, change = [], []
    for shard, place in enumerate(topology.places.all):
        at = np.unique(rng.integers(0, topology.arcs(shard), k // len(topology.places)))
        with place.on():
            capacity = topology.capacity[shard][cupy.asarray(at)].get()
        at, capacity = at[capacity > 0], capacity[capacity > 0]
        arcs.append(topology.first_arc[shard] + at)
        change.append(rng.integers(0, 201, len(at)) - capacity)
    all_arcs, all_change = (np.concatenate(x).astype(np.int64) for x in (arcs, change))
    return ChangedEdges(topology, all_arcs, all_change, np.zeros(len(all_arcs), np.bool_))


def measure(scale: int, n_edges: int, shards: int, runs: int) -> Row:
    """Build, solve cold, change capacities and solve warm; all certified."""
    n, each = 1 << scale, [shard % len(devices()) for shard in range(shards)]
    places = Places(each)
    (topology, arcs), build_ms = timed(lambda: build(n, parts(scale, n_edges, 1), places))
    print("built", topology.first_arc.tolist(), build_ms, file=sys.stderr, flush=True)
    terminals = two_hubs(topology)
    role = uncapped_roles(n, terminals)
    state = ShardedFlowState(terminals=terminals, role=role, columns=Columns.of(topology, arcs, role))
    assert state.columns is not None
    flow = Shards(topology, state.columns)
    flow.zero_flow(sum_pairs=True)
    places.wait()
    cold_ms, values = [], set()
    for _ in range(runs):
        began = perf_counter()
        start_from_zero(flow, terminals)
        work = settle(flow, Control(), [False], math.inf)
        state.value = state.reached(topology)
        cold_ms.append((perf_counter() - began) * 1e3)
        values.add(state.value)
    print("solved", cold_ms, values, work, file=sys.stderr, flush=True)
    proof, proof_ms = timed(lambda: certify(flow, terminals))
    check_certificate(proof, state.value)
    row: Row = {
        "instance": f"rmat-{scale}",
        "n": n,
        "drawn_edges": n_edges,
        "arcs": int(topology.first_arc[-1]),
        "shards": shards,
        "build_ms": build_ms,
        "cold_ms_median": median(cold_ms),
        "cold_ms": cold_ms,
        "values": sorted(values),
        "counters": work,
        "proof_ms": proof_ms,
        "device_bytes": topology.nbytes + state.columns.nbytes,
    }
    rng = np.random.default_rng(1)
    for k in (1000, 1_000_000):
        warm_ms = []
        for _ in range(3):
            edges = some_edges(topology, k, rng)
            began = perf_counter()
            result = flow.update(edges, first=True, repaired=True)
            sides = [True, False] if result["lacking"] else [False]
            if result["lacking"] or result["holding"]:
                settle(flow, Control(), sides, math.inf)
            state.value = state.reached(topology)
            warm_ms.append((perf_counter() - began) * 1e3)
            check_certificate(certify(flow, terminals), state.value)
        row[f"warm_{k}_ms_median"] = median(warm_ms)
    return row


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    options.add_argument("--scale", type=int, default=26)
    options.add_argument("--edges", type=int, default=1_150_000_000)
    options.add_argument(
        "--shards", type=int, nargs="+", default=[2], help="solved with so many shards, one after the other"
    )
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    results = Results("large", {"devices": devices(), "seed": 1}, given.out)
    for shards in given.shards:
        results.extend([measure(given.scale, given.edges, shards, given.runs)])
        print(results.rows[-1], file=sys.stderr)
        for device in range(len(devices())):
            with cupy.cuda.Device(device):
                cupy.get_default_memory_pool().free_all_blocks()
    values = [row["values"] for row in results.rows]
    check(all(value == values[0] for value in values), values)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
