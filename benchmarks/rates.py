"""How many requests a second a service answers, by API processes and workers, driven by wrk.

    python -m benchmarks.rates --wrk /usr/bin/wrk --processes 1x1,1x4,4x4
    python -m benchmarks.rates --wrk /usr/bin/wrk --gpus 1,2,4 --out benchmarks/results/rates-gpus.json

A service is started for each pair of API processes and workers, with small road networks, so that the engine's own work
is little; with ``--gpus``, for each number of GPUs, with R-MAT networks of two million edges, one of which is moved to
and fro in the end while all of them change. wrk (https://github.com/wg/wrk) keeps its connections busy for some seconds
with each kind of request; its threads, the service's processes and Redis share the machine. An answer other than 200
counts as refused. At the end the value of each graph is compared with a cold solve in this process at the capacities
that the service then has.
"""

import argparse
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import headrace
import numpy as np

from benchmarks.answers import check
from benchmarks.cold import open_engine
from benchmarks.results import Results, Row
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import INFINITE

GRAPHS: Final = 16
CLIENTS: Final = 64
WRK_THREADS: Final = 4
PAGE: Final = 100_000

SCRIPT: Final = """
local graphs, edges, size, seed = %(graphs)d, %(edges)d, %(size)d, 0
local headers = {["Content-Type"] = "application/json"}
function setup(thread) seed = seed + 1; thread:set("seed", seed) end
function init(args) math.randomseed(seed) end
function request()
  local path = "/v1/graphs/g" .. math.random(0, graphs - 1)
  if size == 0 then return wrk.format("POST", path .. "/max-flow", headers, "{}") end
  local first, stride, rows, set = math.random(0, edges - 1), math.random(1, math.floor((edges - 1) / size)), {}, {}
  for i = 1, size do rows[i] = (first + i * stride) %% edges; set[i] = math.random(1, 100) end
  local body = '{"edges":[' .. table.concat(rows, ",") .. '],"set":[' .. table.concat(set, ",") .. ']}'
  return wrk.format("PATCH", path .. "/capacities", headers, body)
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\\n{"requests": %%d, "wall_s": %%.3f, "p50_ms": %%.3f, "p90_ms": %%.3f, "p99_ms": %%.3f, ' ..
    '"refused": %%d, "broken": %%d}\\n', summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3,
    latency:percentile(90) / 1e3, latency:percentile(99) / 1e3, e.status, e.connect + e.read + e.write + e.timeout))
end
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of request: a batch of so many edges, or with 0 the value, of so many graphs by so many callers."""

    name: str
    clients: int
    graphs: int
    size: int


ALONE: Final = (
    Kind("max-flow, unchanged", 1, 1, 0),
    Kind("PATCH 1 edge", 1, 1, 1),
    Kind("PATCH 100 edges", 1, 1, 100),
)
TOGETHER: Final = (
    Kind("max-flow, unchanged", CLIENTS, GRAPHS, 0),
    Kind("PATCH 1 edge", CLIENTS, GRAPHS, 1),
    Kind("PATCH 100 edges", CLIENTS, GRAPHS, 100),
    Kind("PATCH 1 edge", CLIENTS, 1, 1),
)
MOVING: Final = Kind("PATCH 1 edge, a graph is moved", CLIENTS, GRAPHS, 1)


def measured(wrk: Path, url: str, kind: Kind, n_edges: int, seconds: float) -> Row:
    """What wrk has to say of one kind of request."""
    script = SCRIPT % {"graphs": kind.graphs, "edges": n_edges, "size": kind.size}
    threads = min(WRK_THREADS, kind.clients)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "requests.lua"
        file.write_text(script)
        command = [str(wrk), f"-t{threads}", f"-c{kind.clients}", f"-d{seconds:g}s", "--timeout", "30s"]
        done = subprocess.run([*command, "-s", str(file), url], capture_output=True, text=True, check=True)
    row: Row = json.loads(done.stdout.strip().splitlines()[-1])
    row["per_s"] = round((row["requests"] - row["refused"]) / row.pop("wall_s"), 1)
    return {"request": kind.name, "clients": kind.clients, "graphs": kind.graphs} | row


def run(wrk: Path, apis: int, workers: int, seconds: float, engine: str) -> Iterator[Row]:
    """The rows of one service."""
    settings = {"HEADRACE_API_PROCESSES": str(apis), "HEADRACE_WORKERS": str(workers), "HEADRACE_ENGINE": engine}
    networks = [generate("road", seed=seed, rows=20, columns=20, terminals=8) for seed in range(GRAPHS)]
    n_edges = min(int(np.argmax(edges.capacity == INFINITE)) for edges in networks)  # those of the terminals are last
    with headrace.local(settings=settings) as service:
        graphs = [put(service, f"g{number}", edges) for number, edges in enumerate(networks)]
        for kind in ALONE + TOGETHER:
            measured(wrk, service.url, kind, n_edges, min(1.0, seconds))
            row = measured(wrk, service.url, kind, n_edges, seconds)
            yield {"api_processes": apis, "workers": workers, "engine": engine} | row
        for graph, edges in zip(graphs, networks, strict=True):
            compare(graph, edges)


def run_on_gpus(wrk: Path, gpus: int, apis: int, seconds: float, scale: int, clients: int) -> Iterator[Row]:
    """The rows of a service with so many GPUs. Few clients leave many workers without groups of updates to one graph,
    which cost less each."""
    networks = [generate("rmat", seed=seed, scale=scale) for seed in range(GRAPHS)]
    n_edges = min(edges.n_edges for edges in networks)
    where: Row = {"gpus": gpus, "api_processes": apis, "engine": "cuda", "n_edges": n_edges}
    settings = {"HEADRACE_API_PROCESSES": str(apis), "HEADRACE_GPUS": str(gpus)}
    with headrace.local(settings=settings) as service:
        graphs = [put(service, f"g{number}", edges) for number, edges in enumerate(networks)]
        for kind in (replace(kind, clients=clients) for kind in TOGETHER if kind.size and kind.graphs == GRAPHS):
            measured(wrk, service.url, kind, n_edges, min(1.0, seconds))
            yield where | measured(wrk, service.url, kind, n_edges, seconds)
        if gpus > 1:
            workers = [worker["name"] for worker in service.workers()]
            moving = replace(MOVING, clients=clients)
            yield where | moved(partial(measured, wrk, service.url, moving, n_edges, seconds), graphs[0], workers)
        for graph, edges in zip(graphs, networks, strict=True):
            compare(graph, edges)


def moved(load: Callable[[], Row], graph: headrace.Graph, workers: Sequence[str]) -> Row:
    """How long a graph answers nobody while it is moved from worker to worker, and what the load says of that."""
    pauses: list[float] = []
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load)
        while not loading.done():
            for worker in workers:
                pause_ms = graph.move(worker).pause_ms
                pauses += [] if pause_ms is None else [pause_ms]
        row = loading.result()
    return row | {"moves": len(pauses), "pause_ms_median": median(pauses), "pause_ms_longest": max(pauses)}


def put(service: headrace.Client, name: str, edges: EdgeList) -> headrace.Graph:
    """Load one network, and solve it once."""
    graph = service.put_graph(
        name,
        n_vertices=edges.n_vertices,
        tail=edges.tail,
        head=edges.head,
        capacity=np.where(edges.capacity == INFINITE, np.inf, edges.capacity),
        undirected=np.asarray(edges.undirected, dtype=np.bool_),
        source=edges.source,
        sink=edges.sink,
    )
    graph.max_flow()
    return graph


def compare(graph: headrace.Graph, edges: EdgeList) -> None:
    """The value against a cold solve here, at the capacities that the service has."""
    pages = [graph.capacities(offset=at, limit=PAGE).capacity for at in range(0, edges.n_edges, PAGE)]
    capacity = np.concatenate([np.asarray(page, dtype=np.float64) for page in pages])
    shown = np.where(np.isinf(capacity), INFINITE, np.nan_to_num(capacity, posinf=0).astype(np.int64))
    engine, state = open_engine(edges)
    engine.update(np.arange(edges.n_edges), shown)
    value, said = engine.solve(state, cold=True).value, graph.max_flow()
    check(said.value == value and said.certificate.valid, f"{said}, but a cold solve says {value}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rates", description=__doc__)
    parser.add_argument("--wrk", type=Path, default=Path("wrk"))
    parser.add_argument("--processes", default="1x1,4x4", help="pairs of API processes and workers")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each window")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--gpus", default="", help="numbers of GPUs, instead of --processes")
    parser.add_argument("--clients", type=int, default=CLIENTS, help="with --gpus")
    parser.add_argument("--apis", type=int, default=8, help="API processes with --gpus; a local service has one")
    parser.add_argument("--scale", type=int, default=17, help="of the R-MAT networks")
    parser.add_argument("--out", type=Path, help="the JSON file; benchmarks/results/rates.json if absent")
    options = parser.parse_args()
    out = options.out or Path(__file__).parent / "results" / "rates.json"
    results = Results("rates", {"seconds": options.seconds, "cores": len(os.sched_getaffinity(0))}, out)
    for row in rows(options):
        results.extend([row])
        print(json.dumps(row), flush=True)
    return 0


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """What was asked for, service after service."""
    if options.gpus:
        for gpus in map(int, options.gpus.split(",")):
            yield from run_on_gpus(options.wrk, gpus, options.apis, options.seconds, options.scale, options.clients)
        return
    for pair in options.processes.split(","):
        apis, workers = map(int, pair.split("x"))
        yield from run(options.wrk, apis, workers, options.seconds, options.engine)


if __name__ == "__main__":
    raise SystemExit(main())
