"""Latency over HTTP on loopback, against the REST contract (docs/api.md) with plain httpx.

One keep-alive connection for each client, each client on a thread; a time is from sending a prepared request until
its body has been read. Every answer is checked (status, certificate, version), and after each kind of request the
value is compared with a cold solve of the engine in this process at the same capacities.
A PATCH sets random edges with a finite capacity to a mixed change (`batches`) of what they were at first; clients
that run side by side patch different edges, so that the capacities at the end are known.
"""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

import httpx
import numpy as np

from benchmarks.answers import check
from benchmarks.batches import Change, new_capacities
from benchmarks.cold import describe, open_engine
from benchmarks.instances import Instance
from benchmarks.results import Row
from benchmarks.timing import timed
from gpu_engine.formats.arrow import write_arrow
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import INFINITE

GRAPH = "/v1/graphs/benchmark"
CLIENTS = 8
JSON_EDGES = 100_000
ARROW = "application/vnd.apache.arrow.stream"
TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Load:
    """How many requests of each kind, the first ``warm_up`` of each client not counted."""

    requests: int = 200
    warm_up: int = 10
    updates: int = 100
    """Edges of the large PATCH."""
    seed: int = 1


Send: TypeAlias = Callable[[httpx.Client, int], float]
"""Send one request of client number so and so, check the answer, return milliseconds."""


def measure(instance: Instance, edges: EdgeList, url: str, load: Load) -> list[Row]:
    """Load the network, then one row for each kind of request. Raises `WrongAnswer` for a wrong answer."""
    target = Target(edges, load)
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
        loaded_ms = target.put(client)
    kinds: list[tuple[str, int, Send]] = [
        ("max-flow, unchanged", 1, target.query),
        (f"PATCH {load.updates} edges", 1, target.patch(load.updates)),
        ("PATCH 1 edge", 1, target.patch(1)),
        ("max-flow, unchanged", CLIENTS, target.query),
        ("PATCH 1 edge", CLIENTS, target.patch(1)),
    ]
    rows = []
    for name, clients, send in kinds:
        times_ms, wall_s = run(url, send, clients, load)
        with httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
            target.compare(client)
        p50, p90, p99 = np.percentile(times_ms, [50, 90, 99]).tolist()
        row = {"request": name, "clients": clients, "requests": len(times_ms), "load_ms": loaded_ms}
        row |= {"p50_ms": p50, "p90_ms": p90, "p99_ms": p99, "per_s": len(times_ms) / wall_s}
        rows.append(describe(instance, edges) | row)
    return rows


def run(url: str, send: Send, clients: int, load: Load) -> tuple[list[float], float]:
    """All times of all clients in milliseconds, and the seconds it took from the first to the last."""

    def one(number: int) -> tuple[list[float], float, float]:
        with httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
            for _ in range(load.warm_up):
                send(client, number)
            began = perf_counter()
            times = [send(client, number) for _ in range(-(-load.requests // clients))]
            return times, began, perf_counter()

    with ThreadPoolExecutor(clients) as pool:
        times, began, ended = zip(*pool.map(one, range(clients)), strict=True)
    return [ms for client_times in times for ms in client_times], max(ended) - min(began)


class Target:
    """The graph under load, and its capacities as they must be."""

    def __init__(self, edges: EdgeList, load: Load) -> None:
        self.edges = edges
        self.capacity = edges.capacity.copy()
        self.finite = np.flatnonzero(edges.capacity != INFINITE)
        self.seed = load.seed
        self.engine, self.state = open_engine(edges)

    def put(self, client: httpx.Client) -> float:
        """Load the graph and solve it once; milliseconds until it is loaded. JSON, or an Arrow stream if large."""
        if self.edges.n_edges > JSON_EDGES:
            content, headers = write_arrow(self.edges), {"Content-Type": ARROW}
            response, elapsed_ms = timed(lambda: client.put(GRAPH, content=content, headers=headers))
            check(response.status_code == 201, response.text[:500])
            self.compare(client)
            return elapsed_ms
        column = self.capacity.tolist()
        body = {
            "n_vertices": self.edges.n_vertices,
            "tail": self.edges.tail.tolist(),
            "head": self.edges.head.tolist(),
            "capacity": ["inf" if c == INFINITE else c for c in column],
            "undirected": np.asarray(self.edges.undirected).tolist(),
            "source": self.edges.source,
            "sink": self.edges.sink,
        }
        _, elapsed_ms = request(client, "PUT", GRAPH, body)
        self.compare(client)
        return elapsed_ms

    def query(self, client: httpx.Client, number: int) -> float:
        """Ask for the value again."""
        answer, elapsed_ms = request(client, "POST", f"{GRAPH}/max-flow", {})
        check(answer["certificate"]["valid"] and answer["mode"] == "unchanged", answer)
        return elapsed_ms

    def ask(self, client: httpx.Client) -> float:
        """Ask for the value while others change the graph."""
        answer, elapsed_ms = request(client, "POST", f"{GRAPH}/max-flow", {})
        check(answer["certificate"]["valid"], answer)
        return elapsed_ms

    def patch(self, size: int) -> Send:
        """A sender of batches of ``size`` edges; client ``i`` uses every n-th finite edge from the i-th."""
        rngs = [np.random.default_rng([self.seed, size, number]) for number in range(CLIENTS)]

        def send(client: httpx.Client, number: int) -> float:
            rng = rngs[number]
            own = self.finite[number::CLIENTS]
            rows = rng.choice(own, min(size, len(own)), replace=False)
            capacity = new_capacities(rng, Change.MIXED, self.edges.capacity[rows])
            body = {"edges": rows.tolist(), "set": capacity.tolist()}
            answer, elapsed_ms = request(client, "PATCH", f"{GRAPH}/capacities", body)
            self.capacity[rows] = capacity
            (state,) = answer["flow_states"]
            check(answer["applied"] + answer["unchanged"] == len(rows) and state["certificate"]["valid"], answer)
            return elapsed_ms

        return send

    def compare(self, client: httpx.Client) -> None:
        """The service's value against a cold solve here, at the capacities sent so far."""
        self.engine.update(np.arange(self.edges.n_edges), self.capacity)
        value = self.engine.solve(self.state, cold=True).value
        answer, _ = request(client, "POST", f"{GRAPH}/max-flow", {})
        check(answer["certificate"]["valid"] and answer["value"] == value, f"{answer}, but a cold solve says {value}")


def request(client: httpx.Client, method: str, path: str, body: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """The JSON answer and the milliseconds from sending to the last byte; raises `WrongAnswer` unless 200 or 201."""
    prepared = client.build_request(
        method, path, content=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    began = perf_counter()
    response = client.send(prepared)
    while response.status_code == 429:  # told to come again: that is part of the latency
        time.sleep(float(response.headers["Retry-After"]))
        response = client.send(prepared)
    elapsed_ms = (perf_counter() - began) * 1e3
    check(response.status_code in (200, 201), f"{method} {path}: {response.status_code} {response.text[:500]}")
    answer: dict[str, Any] = response.json()
    return answer, elapsed_ms
