"""``python -m tests.faults.restarts --out FILE``: the first answers after the worker of 20 graphs was killed.

Each graph had three flow states. After a kill -9 the worker starts again and restores its graphs; then each question is
asked once more: at once, or after some seconds in which nobody asked. A row for each has the modes of the answers and
their times at the caller; values must be those of before.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.results import Results, Row
from gpu_engine.formats import write_npz
from gpu_engine.generators import grid
from tests.serving import Service, eventually, serving

GRAPHS: Final = 20
STATES: Final = 3
SIDE: Final = 200
PAUSES_S: Final = (0.0, 5.0, 20.0)


def load(service: Service) -> None:
    for number in range(GRAPHS):
        content = write_npz(grid(rows=SIDE, columns=SIDE, seed=number))
        headers = {"Content-Type": "application/x-npz"}
        service.http.put(f"/v1/graphs/g{number}", content=content, headers=headers).raise_for_status()


def ask(service: Service, graph: int, state: int) -> tuple[Any, str, float]:
    """Value, mode and seconds."""
    body = {"sources": [SIDE * state], "sinks": [SIDE * (SIDE - state) - 1]}
    began = time.perf_counter()
    answer = service.http.post(f"/v1/graphs/g{graph}/max-flow", json=body).raise_for_status().json()
    took_s = time.perf_counter() - began
    assert answer["certificate"]["valid"]
    return answer["value"], answer["mode"], took_s


def _is_ready_again(service: Service, killed: int) -> bool:
    workers = service.http.get("/status").json()["workers"]
    return any(worker["ready"] and worker["pid"] != killed for worker in workers)


def after_kill(service: Service, pause_s: float, values: dict[tuple[int, int], Any]) -> Row:
    killed = service.children()["worker"]
    os.kill(killed, signal.SIGKILL)
    began = time.monotonic()
    eventually(lambda: _is_ready_again(service, killed))
    ready_s = time.monotonic() - began
    time.sleep(pause_s)
    modes: Counter[str] = Counter()
    times_s: list[float] = []
    for state in range(STATES):
        for graph in range(GRAPHS):
            value, mode, took_s = ask(service, graph, state)
            assert value == values[graph, state]
            modes[mode] += 1
            times_s.append(took_s)
    p50_ms, p90_ms, worst_ms = (round(1e3 * float(np.percentile(times_s, percent)), 2) for percent in (50, 90, 100))
    row: Row = {"pause_s": pause_s, "ready_s": round(ready_s, 2), "modes": dict(modes)}
    return row | {"p50_ms": p50_ms, "p90_ms": p90_ms, "worst_ms": worst_ms}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.restarts", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results = Results("restarts", {"graphs": GRAPHS, "states": STATES, "side": SIDE}, options.out)
    with tempfile.TemporaryDirectory(prefix="restarts-") as name:
        folder = Path(name)
        with serving(folder / "data", folder / "log") as service:
            service.wait_ready()
            load(service)
            values = {}
            for state in range(STATES):
                for graph in range(GRAPHS):
                    values[graph, state] = ask(service, graph, state)[0]
            time.sleep(3)  # a heartbeat
            for pause_s in PAUSES_S:
                results.extend([after_kill(service, pause_s, values)])
                print(results.rows[-1], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
