"""Attacks by much honest work: large graphs, long solves, callers who come back, jobs that are cancelled."""

import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np

from benchmarks import beside, retries
from gpu_engine import formats
from gpu_engine.generators import grid
from gpu_engine.networks.edgelist import EdgeList
from tests.attacks.house import Attack, House
from tests.attacks.wire import Answer, send

ARROW: Final = "application/vnd.apache.arrow.stream"
CALLERS: Final = 64
LARGE: Final = 2
STORM: Final = 8
"""Threads that start jobs and cancel them."""
WRITTEN_S: Final = 120.0
LONG_BYTES: Final = 1 << 20
"""A job answers with more only when it has its result."""


def run(house: House, seconds: float, named_side: int, folder: Path) -> None:
    here = beside.Service(house.service.url)
    here.load("one", EdgeList(2, np.array([0], np.int32), np.array([1], np.int32), np.array([1])))
    with house.attack("nothing but a 1-edge graph") as attack, stepping(here, attack):
        time.sleep(seconds)
    retrying(house, seconds)
    large = grid(rows=beside.SIDE, columns=beside.SIDE, seed=1)
    for number in range(LARGE):
        here.load(f"large-{number}", large)
    with house.attack(f"{LARGE} large cold solves beside a 1-edge graph") as attack:
        found = beside.beside_solves(here, LARGE, seconds)
        attack.row |= found | {"one_edge_ms": found["longest_ms"]}
    cancelling(house, seconds)
    for number in range(LARGE):
        here.http.delete(f"/v1/graphs/large-{number}").raise_for_status()
    if named_side:
        named(house, here, named_side, folder / "named.arrow")


@contextmanager
def stepping(here: beside.Service, attack: Attack) -> Iterator[None]:
    """Patch and ask the 1-edge graph all the while: the longest wait for both is `one_edge_ms`."""
    over, waits, failed = threading.Event(), [0.0], list[Exception]()

    def step() -> None:
        try:
            waits.extend(beside.waits_ms(here.step, lambda: not over.is_set(), 0.0))
        except (httpx.HTTPError, AssertionError) as error:
            failed.append(error)

    thread = threading.Thread(target=step)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        attack.row |= {"one_edge_ms": round(max(waits), 1), "one_edge_requests": 2 * len(waits)}
        attack.broken += [f"the 1-edge graph: {error}" for error in failed]


def retrying(house: House, seconds: float) -> None:
    """Goodput is what is left of the updates a second that a few callers get."""
    url = httpx.URL(house.service.url)
    retries.load(house.service.url)
    retries.measure(url, retries.FEW, 2, "at once")  # warm
    for manner in retries.MANNERS:
        best = 0.0
        for callers in (retries.FEW, CALLERS):
            with house.attack(f"{callers} callers of one graph who come back {manner}") as attack:
                found = retries.measure(url, callers, seconds, manner)
                for outcome, count in found["outcomes"].items():
                    attack.row["outcomes"] = dict(found["outcomes"])
                    if outcome not in ("200", "rate_limited"):
                        attack.broken.append(f"{count} x {outcome}")
                best = max(best, found["per_s"])
                attack.row |= {"per_s": round(found["per_s"], 1), "goodput": round(found["per_s"] / best, 2)}
                attack.row |= {name: found[name] for name in ("p50_ms", "p99_ms") if name in found}


def cancelling(house: House, seconds: float) -> None:
    """PATCHes and cold solves are started and cancelled at once. As many versions come as PATCHes succeed."""
    before = house.service.http.get("/v1/graphs/small").json()["version"]
    later = {"Prefer": "respond-async", "Content-Type": "application/json"}
    ends = time.monotonic() + seconds
    with house.attack(f"{STORM} callers who cancel what they start") as attack, ThreadPoolExecutor(STORM) as pool:

        def storm(number: int) -> list[tuple[str, str, bool]]:
            """Kind, job and whether the cancel was in time."""
            started, turn = [], number
            while time.monotonic() < ends:
                turn += 1
                patches = turn % 2 == 0
                path = "/v1/graphs/small/capacities" if patches else f"/v1/graphs/large-{number % LARGE}/max-flow"
                body = f'{{"edges": [0], "set": [{turn}]}}' if patches else f'{{"sources": [{turn}], "sinks": [99999]}}'
                asked = send(attack.address, "PATCH" if patches else "POST", path, body.encode(), later)
                attack.count(asked.status, asked.said)
                if asked.status != 202:
                    continue
                job = asked.headers["location"]
                cancelled = send(attack.address, "DELETE", job)
                attack.count(cancelled.status, cancelled.said)
                started.append(("patch" if patches else "solve", job, bool(cancelled.json().get("cancelling"))))
            return started

        jobs = [job for found in pool.map(storm, range(STORM)) for job in found]
        ended = Counter(_ended(attack, *job) for job in jobs)
        attack.row |= {"jobs": len(jobs), "ended": {" ".join(what): count for what, count in ended.items()}}
        after = house.service.http.get("/v1/graphs/small").json()["version"]
        assert after - before == ended["patch", "succeeded"], f"{after - before} versions of {dict(ended)}"


def _ended(attack: Attack, kind: str, job: str, in_time: bool) -> tuple[str, str]:
    found: Any = send(attack.address, "GET", job, headers={"Prefer": "wait=15"}).json()
    status = str(found["status"])
    if status not in ("cancelled", "succeeded") or (kind == "patch" and in_time and status != "cancelled"):
        attack.broken.append(f"a {kind} ended as {status}, its cancel was {'in time' if in_time else 'late'}")
    return kind, status


def named(house: House, here: beside.Service, side: int, file: Path) -> None:
    """Millions of edges with names are sent and their flows asked for."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        n_vertices, n_edges = pool.apply(write_named, (side, str(file)))
    with (
        house.attack(f"upload of {n_edges:,} named edges") as attack,
        stepping(here, attack),
        file.open("rb") as body,
        httpx.Client(timeout=300, trust_env=False) as http,
    ):
        headers = {"Content-Type": ARROW, "Prefer": "respond-async"}
        url = f"{house.service.url}/v1/graphs/named"
        sent = http.put(url, content=iter(lambda: body.read(1 << 20), b""), headers=headers)
        attack.count(sent.status_code, str(sent.status_code))
        attack.row["sent_bytes"] = file.stat().st_size
        finish(attack, sent.headers["location"])
    with house.attack(f"cold solve of {n_edges:,} edges") as attack, stepping(here, attack):
        job = here.start("named", 0, n_vertices - 1)
        finish(attack, job)
    with house.attack(f"flow answer of {n_edges:,} named edges") as attack, stepping(here, attack):
        body_of = {"sources": [0], "sinks": [n_vertices - 1], "fields": ["flow"], "flow": {"zeros": True}}
        later = {"Prefer": "respond-async"}
        asked = here.http.post("/v1/graphs/named/max-flow", json=body_of, headers=later).raise_for_status()
        found = finish(attack, asked.headers["location"])
        attack.count(found.status, found.said)
        attack.row["answer_mib"] = round(len(found.content) / 2**20, 1)
    here.http.delete("/v1/graphs/named").raise_for_status()


def finish(attack: Attack, location: str) -> Answer:
    """Wait for the end of a job; the answer with its result."""
    ends, status = time.monotonic() + WRITTEN_S, "queued"
    while status in ("queued", "running"):
        assert time.monotonic() < ends, f"a job is {status}"
        answer = send(attack.address, "GET", location, headers={"Prefer": "wait=1"})
        assert answer.status == 200, answer.said
        status = "succeeded" if len(answer.content) > LONG_BYTES else str(answer.json()["status"])
    assert status == "succeeded", f"a job is {status}"
    return answer


def write_named(side: int, file: str) -> tuple[int, int]:
    """In a process of its own, whose memory goes with it."""
    edges = beside.named_edges(side)
    Path(file).write_bytes(formats.write_arrow(edges))
    return edges.n_vertices, edges.n_edges
