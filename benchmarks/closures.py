"""``python -m benchmarks.closures``: single closures of a real network through a service, beside cold solves of each.

`cold_ms` is what one closure takes when it is solved from zero and proven on one core, the median of some, times how
many there are. `call_ms` is a whole call over HTTP with everything in it, the best of some: of what-if with a scenario
for each of a thousand edges drawn at random, and of closure studies of every edge. `cpu_ms` is the CPU time of client
and service together for such a call, the mean of some, which depends less on what else the machine does. The values of
both are compared.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import numpy as np

from benchmarks.answers import check, check_certificate
from benchmarks.cpu import ticks_ms
from benchmarks.results import Results, Row
from benchmarks.serve import service
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.formats import Limits, read
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals

ROADS = Path(__file__).parents[1] / "examples" / "osm-heidelberg.npz"
SEED = 7
WARM_UP = 3
STUDIES = 3
"""A study is long enough to be measured in so many calls."""
TIMEOUT_S = 600.0


def cold(rows: list[int], count: int) -> tuple[dict[int, int], Row]:
    """The values of the first closures, each solved from zero and proven; wall and CPU milliseconds of all, as their
    median times their number."""
    edges = read(ROADS.read_bytes(), "application/x-npz", Limits())
    network = Network(edges)
    engine = CpuEngine(network)
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    engine.solve(state)
    engine.certificate(state)
    values, wall_ms, thread_ms = {}, [], []
    for row in rows[:count]:
        at, before = np.array([row]), network.capacity[[row]]
        engine.update(at, np.zeros(1, np.int64))
        began, cpu_began = time.perf_counter(), time.thread_time()
        values[row] = engine.solve(state, cold=True).value
        proof = engine.certificate(state)
        wall_ms.append(1e3 * (time.perf_counter() - began))
        thread_ms.append(1e3 * (time.thread_time() - cpu_began))
        check_certificate(proof, values[row])
        engine.update(at, before)
    return values, {"cold_ms": median(wall_ms) * len(rows), "cold_cpu_ms": median(thread_ms) * len(rows)}


def timed(ask: Callable[[], Any], repeats: int) -> tuple[Any, Row]:
    """The answer, the best wall time of some calls, and the mean of their CPU time."""
    wall_ms, cpu_before = [], ticks_ms()
    for _ in range(repeats):
        began = time.perf_counter()
        answer = ask()
        wall_ms.append(1e3 * (time.perf_counter() - began))
    return answer, {"call_ms": min(wall_ms), "cpu_ms": (ticks_ms() - cpu_before) / repeats}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.closures", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cold", type=int, default=100, help="closures that are solved from zero")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = Results("closures", {"size": "cpu", "repeats": options.repeats, "cold": options.cold}, options.out)
    with np.load(ROADS) as roads:
        n_edges = len(roads["src"])
    rows = np.random.default_rng(SEED).choice(n_edges, 1000, replace=False).tolist()
    values, solved = cold(rows, options.cold)
    scenarios = [{"batch": [{"edges": [row], "op": "close"}]} for row in rows]
    with service() as url, httpx.Client(base_url=url, timeout=TIMEOUT_S) as http:
        put = {"Content-Type": "application/x-npz"}
        http.put("/v1/graphs/roads", content=ROADS.read_bytes(), headers=put).raise_for_status()
        http.post("/v1/graphs/roads/max-flow", json={}).raise_for_status()

        def post(question: str, body: Row) -> Any:
            wait = {"Prefer": "wait=300"}
            return http.post(f"/v1/graphs/roads/{question}", json=body, headers=wait).raise_for_status().json()

        for _ in range(WARM_UP):  # each parser of bodies has read one
            post("what-if", {"scenarios": scenarios})
        answer, took = timed(lambda: post("what-if", {"scenarios": scenarios}), options.repeats)
        told = {rows[row["row"]]: row["value"] for row in answer["answers"] if row["certificate"]["valid"]}
        check(len(told) == len(rows), "rows without an answer")
        check(all(told[row] == value for row, value in values.items()), "a closure has two values")
        row: Row = {"instance": "osm-heidelberg", "question": "what-if", "closures": len(rows), **solved, **took}
        row |= {"speedup": row["cold_ms"] / row["call_ms"], "cpu_speedup": row["cold_cpu_ms"] / row["cpu_ms"]}
        results.extend([row])
        print(row)
        for top in (10, None):
            study, took = timed(partial(post, "closure-study", {"top": top}), min(options.repeats, STUDIES))
            check(study["candidates"] == n_edges, "edges are missing")
            if top is None:
                values_of = {row["row"]: row["value"] for row in study["answers"]}
                check(all(values_of[row] == value for row, value in told.items()), "a closure has two values")
            counted = {name: study[name] for name in ("solved", "skipped")}
            row = {"instance": "osm-heidelberg", "question": "closure-study", "top": top, "closures": n_edges}
            results.extend([row | counted | took])
            print(row | counted | took)


if __name__ == "__main__":
    main()
