"""``python -m tests.faults.recovery``: seconds from kill -9 to ready, and to the first right answer, for a graph of
a million arcs with updates in its log. Figures for people; nothing passes or fails by them."""

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from gpu_engine.formats import write_npz
from gpu_engine.generators import grid
from tests.serving import Service, eventually, serving

BATCHES = 50
ROWS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.recovery", description=__doc__)
    parser.add_argument("--side", type=int, default=500, help="rows and columns of the grid; 500 gives 1 M arcs")
    side = parser.parse_args().side
    edges = grid(rows=side, columns=side, seed=1)
    with tempfile.TemporaryDirectory(prefix="recovery-") as folder, serving(Path(folder)) as service:
        headers = {"Content-Type": "application/x-npz"}
        info = service.http.put("/v1/graphs/g", content=write_npz(edges), headers=headers).json()
        print(f"{info['n_vertices']} vertices, {info['n_arcs']} arcs")
        rng = np.random.default_rng(1)
        finite = np.flatnonzero(edges.capacity < 1 << 40)
        for _ in range(BATCHES):
            rows = rng.choice(finite, ROWS, replace=False)
            body = {"edges": rows.tolist(), "set": rng.integers(1, 1000, ROWS).tolist()}
            service.http.patch("/v1/graphs/g/capacities", params={"solve": "none"}, json=body).raise_for_status()
        first = service.http.post("/v1/graphs/g/max-flow").json()
        for role in ("worker", "redis", "api"):
            _recover(service, role, first)


def _recover(service: Service, role: str, first: dict[str, object]) -> None:
    old = service.children()[role]
    os.kill(old, signal.SIGKILL)
    began = time.monotonic()
    eventually(lambda: service.children().get(role, old) != old)
    eventually(lambda: _is_ready(service, role, old))
    ready_s = time.monotonic() - began
    eventually(lambda: service.http.get("/v1/graphs/g/capacities", params={"limit": 1}).status_code == 200)
    served_s = time.monotonic() - began
    answer = service.http.post("/v1/graphs/g/max-flow").json()
    assert (answer["version"], answer["value"]) == (first["version"], first["value"]), answer
    print(
        f"{role} killed: ready after {ready_s:.2f} s, graph at its version after {served_s:.2f} s, "
        f"max flow ({answer['mode']}) after {time.monotonic() - began:.2f} s"
    )


def _is_ready(service: Service, role: str, old: int) -> bool:
    """Ready, and not by the report of the one that was killed."""
    if service.http.get("/readyz").status_code != 200:
        return False
    answer: httpx.Response = service.http.get("/status")
    return role != "worker" or all(worker["pid"] != old for worker in answer.json()["workers"])


if __name__ == "__main__":
    main()
