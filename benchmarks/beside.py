"""Short work beside long work: how long a graph of one edge waits for a worker that solves large graphs.

``python -m benchmarks.beside``: a service with one worker and its two slots for long work; no large graph, then two,
then six of them, each with cold solves in its line all the time. Meanwhile the small graph is patched and asked, one
request after the other; a wait is from sending to the answer. The last row has no long solve but an answer of
millions of rows with names, for which `/readyz` and the small graph are asked as well: the heartbeat must go on.
"""

import argparse
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np

from benchmarks.results import DIRECTORY, Results, Row
from benchmarks.serve import service
from gpu_engine import formats
from gpu_engine.generators import grid
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.text.texts import Texts

SIDE = 600
NAMED_SIDE = 2000
LARGE = (0, 2, 6)
PAUSE_S = 0.02
QUEUED = 4
"""Cold solves in the line of each large graph."""


class Service:
    """A client of the service. Raises what httpx raises for a refusal."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=600, trust_env=False)

    def load(self, name: str, edges: EdgeList, form: str = "x-npz") -> None:
        body = formats.write_npz(edges) if form == "x-npz" else formats.write_arrow(edges)
        media = {"Content-Type": f"application/{form}"}
        self.http.put(f"/v1/graphs/{name}", content=body, headers=media).raise_for_status()

    def ask(self, name: str, source: int, sink: int, **more: object) -> httpx.Response:
        body = {"sources": [source], "sinks": [sink], **more}
        return self.http.post(f"/v1/graphs/{name}/max-flow", json=body).raise_for_status()

    def start(self, name: str, source: int, sink: int) -> str:
        body, later = {"sources": [source], "sinks": [sink]}, {"Prefer": "respond-async"}
        answer = self.http.post(f"/v1/graphs/{name}/max-flow", json=body, headers=later).raise_for_status()
        return str(answer.headers["location"])

    def status_of(self, job_id: str) -> str:
        """Without its result, which may be long."""
        jobs = self.http.get("/v1/jobs", params={"limit": 1000}).json()["jobs"]
        return str(next(job["status"] for job in jobs if job["id"] == job_id))

    def step(self, amount: int) -> None:
        """One update of the small graph, and one question."""
        self.http.patch("/v1/graphs/one/capacities", json={"edges": [0], "set": [amount]}).raise_for_status()
        if self.ask("one", 0, 1).json()["value"] != amount:
            raise AssertionError("the small graph has another flow")


def waits_ms(asked: Callable[[int], object], busy: Callable[[], bool], at_least_s: float) -> list[float]:
    """Of requests one after the other, while ``busy``."""
    ends, waits = time.perf_counter() + at_least_s, []
    while time.perf_counter() < ends or busy():
        began = time.perf_counter()
        asked(1 + len(waits) % 1000)
        waits.append(1e3 * (time.perf_counter() - began))
        time.sleep(PAUSE_S)
    return waits


def described(waits: list[float], name: str = "") -> Row:
    row: Row = {f"{name}p{percent}_ms": round(float(np.percentile(waits, percent)), 1) for percent in (50, 99)}
    return row | {f"{name}longest_ms": round(max(waits), 1), f"{name}requests": len(waits)}


def beside_solves(here: Service, count: int, seconds: float) -> Row:
    """The small graph while ``count`` large ones have cold solves waiting all the time."""
    done, solved = threading.Event(), [0]

    def keep_busy(number: int) -> None:
        source, jobs = 0, [here.start(f"large-{number}", v, SIDE * SIDE - 1 - v) for v in range(QUEUED)]
        while not done.is_set():
            status = here.http.get(jobs[0], headers={"Prefer": "wait=1"}).json()["status"]
            if status == "succeeded":
                solved[0] += 1
                source += 1
                jobs = [*jobs[1:], here.start(f"large-{number}", source + QUEUED, SIDE * SIDE - 1 - source)]
        for job in jobs:
            here.http.delete(job)

    threads = [threading.Thread(target=keep_busy, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        waits = waits_ms(here.step, lambda: count > 0 and solved[0] < count, seconds)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    return {"beside": f"{count} large graphs", "solved": solved[0]} | described(waits)


def beside_answer(here: Service, edges: EdgeList) -> Row:
    """The small graph and the probe while the flow of every named edge is written."""
    took_s: list[float] = []

    def answer() -> None:
        began = time.perf_counter()
        later = {"Prefer": "respond-async"}
        body = {"sources": [0], "sinks": [edges.n_vertices - 1], "fields": ["flow"], "flow": {"zeros": True}}
        job = here.http.post("/v1/graphs/named/max-flow", json=body, headers=later).raise_for_status()
        job_id = job.headers["location"].rpartition("/")[2]
        while (status := here.status_of(job_id)) not in ("succeeded", "failed"):
            time.sleep(0.05)
        if status != "succeeded":
            raise AssertionError("the answer was not written")
        took_s.append(time.perf_counter() - began)

    here.ask("named", 0, edges.n_vertices - 1)
    thread = threading.Thread(target=answer)
    thread.start()
    probes: list[float] = []

    def step(amount: int) -> None:
        began = time.perf_counter()
        here.http.get("/readyz").raise_for_status()
        probes.append(1e3 * (time.perf_counter() - began))
        here.http.patch("/v1/graphs/one/capacities", json={"edges": [0], "set": [amount]}).raise_for_status()

    waits = waits_ms(step, thread.is_alive, 0.0)
    thread.join()
    row: Row = {"beside": f"an answer of {edges.n_edges} rows", "answer_s": round(took_s[0], 2)}
    return row | described(waits) | described(probes, "readyz_")


def named_edges(side: int) -> EdgeList:
    """A grid whose edges have names of eight digits."""
    edges = grid(rows=side, columns=side, seed=1)
    digits = np.arange(edges.n_edges)[:, None] // 10 ** np.arange(7, -1, -1) % 10 + ord("0")
    texts = Texts(digits.astype(np.uint8).ravel(), np.arange(0, 8 * edges.n_edges + 1, 8))
    return replace(edges, edge_ids=texts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beside", description=__doc__)
    parser.add_argument("--seconds", type=float, default=15, help="of each row, at least")
    parser.add_argument(
        "--named-side", type=int, default=NAMED_SIDE, help="of the grid with named edges; 0: leave it out"
    )
    parser.add_argument("--out", type=Path, default=DIRECTORY / "beside.json")
    options = parser.parse_args()
    results = Results("beside", {"side": SIDE, "seconds": options.seconds}, options.out)
    with service() as url:
        here = Service(url)
        one = EdgeList(2, np.array([0], np.int32), np.array([1], np.int32), np.array([1]))
        here.load("one", one)
        large = grid(rows=SIDE, columns=SIDE, seed=1)
        for number in range(max(LARGE)):
            here.load(f"large-{number}", large)
        for count in LARGE:
            results.extend([beside_solves(here, count, options.seconds)])
            print(results.rows[-1])
        for number in range(max(LARGE)):
            here.http.delete(f"/v1/graphs/large-{number}").raise_for_status()
        edges = named_edges(options.named_side)
        here.load("named", edges, "vnd.apache.arrow.stream")
        results.extend([beside_answer(here, edges)])
        print(results.rows[-1])


if __name__ == "__main__":
    main()
