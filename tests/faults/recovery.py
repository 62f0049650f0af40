"""``python -m tests.faults.recovery``: seconds from kill -9 to ready, and to the first right answer, for a graph of
a million arcs with updates in its log. Figures for people; nothing passes or fails by them."""

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.results import DIRECTORY, Results, Row
from gpu_engine.formats import write_npz
from gpu_engine.generators import grid
from tests.serving import Service, eventually, serving

BATCHES = 50
ROWS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.recovery", description=__doc__)
    parser.add_argument("--side", type=int, default=500, help="rows and columns of the grid; 500 gives 1 M arcs")
    parser.add_argument("--rounds", type=int, default=5, help="how often each process is killed")
    parser.add_argument("--out", type=Path, default=DIRECTORY / "recovery.json")
    options = parser.parse_args()
    side = options.side
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
        results = Results("recovery", {"n_arcs": info["n_arcs"], "batches": BATCHES, "rows": ROWS}, options.out)
        for _ in range(options.rounds):
            results.extend([_recover(service, role, first) for role in ("worker", "redis", "api")])


def _recover(service: Service, role: str, first: dict[str, object]) -> Row:
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
    solved_s = time.monotonic() - began
    print(
        f"{role} killed: ready after {ready_s:.2f} s, graph at its version after {served_s:.2f} s, "
        f"max flow ({answer['mode']}) after {solved_s:.2f} s",
        flush=True,
    )
    times = {"ready_s": ready_s, "served_s": served_s, "solved_s": solved_s}
    return {"killed": role, "mode": answer["mode"]} | {name: round(value, 3) for name, value in times.items()}


def _is_ready(service: Service, role: str, old: int) -> bool:
    """Ready, and not by the report of the one that was killed."""
    if service.http.get("/readyz").status_code != 200:
        return False
    workers = service.http.get("/status").json()["workers"]
    return role != "worker" or all(worker["ready"] and worker["pid"] != old for worker in workers)


if __name__ == "__main__":
    main()
