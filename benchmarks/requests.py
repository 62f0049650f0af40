"""What one request costs the service: commands and round trips of Redis, and time of the processor, layer by layer.

    python -m benchmarks.requests                      the tree this is run in
    python -m benchmarks.requests --beside ../before   and another checkout, in turns, with the ratio of each pair

A service is started for each tree. One thread sends prepared requests over keep-alive connections and reads answers by
their Content-Length, so that next to nothing of the machine goes to the client. Redis counts its own commands and
reads (`INFO stats`), the kernel the time of each process (`/proc/PID/task/*/schedstat`): both are divided by the
requests that were answered. Any status other than the expected one ends the run.
"""

import argparse
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeAlias

import httpx
import numpy as np
import redis

from benchmarks.answers import check
from benchmarks.results import Results, Row
from benchmarks.serve import START_LIMIT_S, STOP_LIMIT_S, wait_until_ready
from service.settings import Settings

GRAPHS: Final = 8
VERTICES: Final = 300
EDGES: Final = 1200
OURS: Final = ("REDIS_URL", "PYTHONPATH", "NUMBA_CACHE_DIR")
"""Variables that say where this tree has its things: the other has its own."""

KEPT: Final = 200
"""Prepared requests of one kind, sent in turn."""

Requests: TypeAlias = Callable[[int], bytes]
"""The request number so and so."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of request, over so many connections at a time."""

    name: str
    clients: int
    requests: Requests
    status: int = 200


@dataclass(frozen=True, slots=True)
class Served:
    """A service that runs, and the tree it runs from."""

    tree: Path
    process: "subprocess.Popen[bytes]"
    data: Path
    port: int

    def cpu_s(self) -> dict[str, float]:
        """Seconds of the processor that its processes have had so far, by role."""
        used: dict[str, float] = {}
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in children:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            role = "worker" if b"service.worker" in command else "api" if b"-m" in command else "redis"
            threads = Path(f"/proc/{pid}/task").iterdir()
            ns = sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)
            used[role] = used.get(role, 0.0) + ns / 1e9
        return used

    def redis_counts(self, client: redis.Redis) -> dict[str, int]:
        """What Redis has counted so far."""
        stats: dict[str, Any] = client.info("stats")  # type: ignore[assignment]
        commands: dict[str, Any] = client.info("commandstats")  # type: ignore[assignment]
        multi = commands.get("cmdstat_multi", {}).get("calls", 0)
        return {
            "redis_commands": stats["total_commands_processed"],
            "redis_reads": stats["total_reads_processed"],
            "redis_multi": multi,
        }


@contextmanager
def served(tree: Path) -> Iterator[Served]:
    """A fresh service of a tree, on a free port, which goes away with its data."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as data:
        environment = {name: value for name, value in os.environ.items() if name not in OURS}
        environment |= {"HEADRACE_PORT": str(port), "HEADRACE_DATA_DIR": data, "HEADRACE_HOST": "127.0.0.1"}
        environment["PYTHONPATH"] = f"{tree}:{tree / 'clients/python/src'}"
        command = [sys.executable, "-m", "service.cli", "serve"]
        with open(Path(data) / "serve.log", "wb") as log:
            child = subprocess.Popen(command, env=environment, cwd=tree, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_until_ready(f"http://127.0.0.1:{port}", child, Path(data) / "serve.log")
            yield Served(tree, child, Path(data), port)
        finally:
            child.terminate()
            child.wait(START_LIMIT_S + STOP_LIMIT_S)


def prepared(method: str, path: str, body: object = None, *headers: str) -> bytes:
    """The bytes of a request."""
    content = b"" if body is None else json.dumps(body).encode()
    said = ["Host: localhost", "Content-Type: application/json", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *said, "", ""]).encode() + content


def kinds(seed: int) -> list[Kind]:
    """What is asked, of small graphs: the engine's own work is next to nothing."""
    rng = np.random.default_rng(seed)

    def patches(size: int) -> Requests:
        bodies = [
            {"edges": rng.choice(EDGES, size, False).tolist(), "set": rng.integers(1, 100, size).tolist()}
            for _ in range(KEPT)
        ]
        ready = [prepared("PATCH", "/v1/graphs/g0/capacities", body) for body in bodies]
        return lambda i: ready[i % KEPT]

    asks = [prepared("POST", f"/v1/graphs/g{i}/max-flow", {}) for i in range(GRAPHS)]
    shows, job = (
        prepared("GET", "/v1/graphs/g0"),
        prepared("POST", "/v1/graphs/g0/max-flow", {}, "Prefer: respond-async"),
    )
    return [
        Kind("max-flow, unchanged", 1, lambda i: asks[0]),
        Kind("max-flow, unchanged", 8, lambda i: asks[0]),
        Kind(f"max-flow, unchanged, {GRAPHS} graphs", 32, lambda i: asks[i % GRAPHS]),
        Kind("PATCH 1 edge", 1, patches(1)),
        Kind("PATCH 1 edge", 8, patches(1)),
        Kind("PATCH 100 edges", 8, patches(100)),
        Kind("GET graph", 8, lambda i: shows),
        Kind("max-flow as a job", 4, lambda i: job, 202),
    ]


def load(service: Served, seed: int) -> None:
    """The graphs, each asked once."""
    rng = np.random.default_rng(seed)
    with httpx.Client(base_url=f"http://127.0.0.1:{service.port}", timeout=60) as client:
        for number in range(GRAPHS):
            ends = rng.integers(0, VERTICES, (2, EDGES)).tolist()
            columns = {"tail": ends[0], "head": ends[1], "capacity": rng.integers(1, 100, EDGES).tolist()}
            body = {"n_vertices": VERTICES, **columns, "source": 0, "sink": VERTICES - 1}
            answer = client.put(f"/v1/graphs/g{number}", json=body)
            check(answer.status_code == 201, answer.text)
            check(client.post(f"/v1/graphs/g{number}/max-flow").json()["certificate"]["valid"], "not proven")


def sent(port: int, kind: Kind, seconds: float) -> tuple[list[float], float]:
    """Milliseconds of each request that was sent within so many seconds, and how long that took to the last answer."""
    times_ms: list[float] = []
    with ExitStack() as stack:
        poll = stack.enter_context(select.epoll())
        open_since: dict[int, tuple[socket.socket, float]] = {}
        began, number = time.perf_counter(), 0
        for _ in range(kind.clients):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            poll.register(connection.fileno(), select.EPOLLIN)
            connection.sendall(kind.requests(number))
            open_since[connection.fileno()], number = (connection, time.perf_counter()), number + 1
        while open_since:
            for descriptor, _ in poll.poll():
                connection, since = open_since.pop(descriptor)
                status, body = read_answer(connection)
                check(status == kind.status, f"{status} {body[:500]!r}")
                now = time.perf_counter()
                times_ms.append((now - since) * 1e3)
                if now - began < seconds:
                    connection.sendall(kind.requests(number))
                    open_since[descriptor], number = (connection, now), number + 1
        return times_ms, time.perf_counter() - began


def read_answer(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body of an answer that says how long it is."""
    text = b""
    while b"\r\n\r\n" not in text:
        piece = connection.recv(65536)
        check(bool(piece), "the connection was closed")
        text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return int(head.split()[1]), body


def measure(service: Served, client: redis.Redis, kind: Kind, seconds: float) -> Row:
    """One window of one kind of request."""
    cpu, counts = service.cpu_s(), service.redis_counts(client)
    times_ms, wall_s = sent(service.port, kind, seconds)
    n = len(times_ms)
    after_cpu, after = service.cpu_s(), service.redis_counts(client)
    row: Row = {"per_s": n / wall_s, "p50_ms": float(np.median(times_ms))}
    row |= {f"{role}_cpu_ms": 1e3 * (after_cpu[role] - cpu[role]) / n for role in sorted(cpu)}
    return row | {name: (after[name] - counts[name]) / n for name in counts}


def run(trees: list[Path], rounds: int, seconds: float, seed: int) -> Iterator[list[Row]]:
    """The rows of each kind of request: the median of all rounds for each tree, and of the ratios to the last tree."""
    with ExitStack() as stack:
        services = [stack.enter_context(served(tree)) for tree in trees]
        clients = []
        for service in services:
            settings = Settings(data_dir=service.data, redis_url=None)
            clients.append(stack.enter_context(redis.Redis.from_url(settings.redis_location, protocol=2)))
            load(service, seed)
        for kind in kinds(seed):
            found: list[list[Row]] = [[] for _ in trees]
            for service in services:
                sent(service.port, kind, min(0.5, seconds))
            for round_ in range(rounds):
                for place in range(len(trees)) if round_ % 2 == 0 else reversed(range(len(trees))):
                    found[place].append(measure(services[place], clients[place], kind, seconds))
            rows = []
            for place, windows in enumerate(found):
                row: Row = {"request": kind.name, "clients": kind.clients, "tree": "before" if place else "this"}
                row |= {name: round(median(window[name] for window in windows), 3) for name in windows[0]}
                if len(trees) > 1 and not place:
                    ratios = [this["per_s"] / before["per_s"] for this, before in zip(*found, strict=True)]
                    row["times_before"] = round(median(ratios), 2)
                rows.append(row)
            yield rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.requests", description=__doc__)
    parser.add_argument("--beside", type=Path, help="another checkout to measure in turns")
    parser.add_argument("--rounds", type=int, default=5, help="windows of each kind and tree")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a window")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="the JSON file; benchmarks/results/requests.json if absent")
    options = parser.parse_args()
    trees = [Path.cwd(), *([options.beside.absolute()] if options.beside else [])]
    out = options.out or Path(__file__).parent / "results" / "requests.json"
    results = Results("requests", {name: getattr(options, name) for name in ("rounds", "seconds", "seed")}, out)
    for rows in run(trees, options.rounds, options.seconds, options.seed):
        results.extend(rows)
        for row in rows:
            print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
