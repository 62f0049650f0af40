"""``python -m benchmarks.image``: a minimum cut of an image through the Python client, in npz and in JSON, in turns.

Each call is a cold solve: the image is loaded again before it. `transfer_ms` is what it takes to fetch the same answer
once more as bytes, without any solve; `ratio` is the whole call over solve and transfer together, and `ratio_of_work`
over all work of the worker (solve, proof, cut, its place in the queue) and transfer. `cpu_ms` is the CPU time of client
and service together during the call, which depends less on what else the machine does.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import httpx
import numpy as np
from headrace import Client, Graph, Grid
from headrace import _calls as calls

from benchmarks.cpu import cpu_ms
from benchmarks.results import Results, Row
from benchmarks.serve import service

TIMEOUT_S = 300.0


def image(side: int) -> Grid:
    """A bright disc in noise: unary terms by how bright a pixel is, links of one weight."""
    rng = np.random.default_rng(1)
    y, x = np.indices((side, side)) - side / 2
    bright = np.clip(90 + 80 * (x * x + y * y < (side / 3) ** 2) + rng.normal(0, 40, (side, side)), 0, 255).astype(int)
    return Grid(bright, 255 - bright, 60)


def call_once(client: Client, grid: Grid, form: str) -> tuple[Row, int]:
    """One cold call; the number of pixels on the source side."""
    graph: Graph = client.put_graph("picture", grid)
    call = calls.solve("min-cut", "picture", None, None, {})
    if form == "json":
        call = replace(call, headers={})
    cpu_before = cpu_ms()
    began = time.perf_counter()
    answer = client._caller.command(call, None)
    cut = answer.cut
    assert cut is not None
    inside = int(grid.mask(answer).sum()) if form == "npz" else len(cut.source_side) - 1
    call_ms = 1e3 * (time.perf_counter() - began)
    cpu = cpu_ms() - cpu_before
    assert answer.mode == "cold"
    assert answer.certificate.valid
    assert sum(cut.pays) == answer.value
    row = {"call_ms": call_ms, "cpu_ms": cpu, **{f"{name}_ms": ms for name, ms in answer.timings_ms.items()}}
    graph.delete()
    return row, inside


def transfer(url: str, client: Client, grid: Grid, form: str) -> tuple[float, int]:
    """Milliseconds to fetch an answer that is there, the best of five, and its bytes."""
    client.put_graph("picture", grid)
    accept = {"Accept": "application/x-npz" if form == "npz" else "application/json"}
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as http:
        started = http.post("/v1/graphs/picture/min-cut", headers=accept | {"Prefer": "respond-async"})
        result = started.headers["location"] + "/result"
        n_bytes = len(http.get(result, headers={"Prefer": "wait=300"}).content)
        times = []
        for _ in range(5):
            began = time.perf_counter()
            assert len(http.get(result).content) == n_bytes
            times.append(1e3 * (time.perf_counter() - began))
    return min(times), n_bytes


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.image", description=__doc__)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    settings: Row = {"side": options.side, "repeats": options.repeats, "size": options.side}
    results = Results("image", settings, options.out)
    grid = image(options.side)
    rows: dict[str, list[Row]] = {"npz": [], "json": []}
    with service() as url, Client(url, timeout_s=TIMEOUT_S) as client:
        sides = set()
        for _ in range(options.repeats):
            for form, found in rows.items():
                row, inside = call_once(client, grid, form)
                found.append(row)
                sides.add(inside)
        assert len(sides) == 1, "the forms differ in their cuts"
        for form, found in rows.items():
            whole = {name: median(row[name] for row in found) for name in found[0]}
            transfer_ms, n_bytes = transfer(url, client, grid, form)
            row = {"instance": f"image-{options.side}", "form": form, **whole, "answer_bytes": n_bytes}
            row["transfer_ms"] = transfer_ms
            row["ratio"] = whole["call_ms"] / (whole["solve_ms"] + transfer_ms)
            row["ratio_of_work"] = whole["call_ms"] / (whole["total_ms"] + transfer_ms)
            results.extend([row])
            print({name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()})


if __name__ == "__main__":
    main()
