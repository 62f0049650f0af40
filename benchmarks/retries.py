"""Callers who come back when they are refused: how many updates a second one graph still takes.

``python -m benchmarks.retries``: starts a service with a small graph and PATCHes one of its edges, from processes of
their own, with more and more callers who each send the next as soon as they are answered. Who is refused comes back at
once, after a tenth of a second, or as Retry-After says. Each round begins with a few callers, so that other things
that run on the machine are in what is compared as well: ``goodput`` is what a row has of the best of its round. Every
accepted update must have made a version of its own.
"""

import argparse
import asyncio
import multiprocessing
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import httpx
import numpy as np

from benchmarks.overload import Wire
from benchmarks.results import DIRECTORY, Results, Row
from benchmarks.serve import service
from gpu_engine import formats
from gpu_engine.generators import grid

SIDE = 100
FEW = 16
CALLERS = (64, 100, 256)
PATH = "/v1/graphs/small/capacities"
UPDATES = (b'{"edges": [0], "set": [5]}', b'{"edges": [0], "set": [6]}')

Pause: TypeAlias = Callable[[int], float]
"""Seconds until a refused caller comes back, from Retry-After."""

MANNERS: dict[str, Pause] = {
    "at once": lambda _: 0.0,
    "after 0.1 s": lambda _: random.uniform(0.05, 0.15),
    "as told": lambda retry_after_s: retry_after_s * random.uniform(1, 1.5),
}

Seen: TypeAlias = tuple[Counter[str], list[float], list[int]]
"""Outcomes, seconds of what was accepted, and versions."""


async def caller(wire: Wire, ends: float, pause: Pause, seen: Seen) -> None:
    outcomes, latencies, versions = seen
    sent = 0
    while (began := time.perf_counter()) < ends:
        try:
            status, retry_after_s, answer = await wire.send("PATCH", PATH, UPDATES[sent % 2])
        except (OSError, EOFError) as error:
            outcomes[type(error).__name__] += 1
            continue
        sent += 1
        if status == 200:
            outcomes["200"] += 1
            latencies.append(time.perf_counter() - began)
            versions.append(answer["version"])
        else:
            outcomes[str(answer.get("code", status))] += 1
            await asyncio.sleep(pause(retry_after_s))


def call(host: str, port: int, callers: int, seconds: float, manner: str) -> Seen:
    """All of it in this process."""
    seen: Seen = Counter(), [], []

    async def run() -> None:
        wire, ends = Wire(host, port), time.perf_counter() + seconds
        await asyncio.gather(*(caller(wire, ends, MANNERS[manner], seen) for _ in range(callers)))

    asyncio.run(run())
    return seen


def measure(url: httpx.URL, callers: int, seconds: float, manner: str) -> Row:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(abs, (0,))  # it is there
        outcomes, latencies, versions = pool.apply(call, (url.host, url.port or 80, callers, seconds, manner))
    if len(set(versions)) != len(versions):
        raise AssertionError("two updates were answered with one version")
    row: Row = {"callers": callers, "manner": manner, "per_s": len(latencies) / seconds, "outcomes": dict(outcomes)}
    for percent in (50, 99):
        if latencies:
            row[f"p{percent}_ms"] = round(1e3 * float(np.percentile(latencies, percent)), 1)
    return row


def load(url: str) -> None:
    body = formats.write_npz(grid(rows=SIDE, columns=SIDE, seed=1))
    headers = {"Content-Type": "application/x-npz"}
    httpx.put(f"{url}/v1/graphs/small", content=body, headers=headers, timeout=60).raise_for_status()
    question = {"sources": [0], "sinks": [SIDE * SIDE - 1]}
    httpx.post(f"{url}/v1/graphs/small/max-flow", json=question, timeout=60).raise_for_status()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retries", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8, help="of each row")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=DIRECTORY / "retries.json")
    options = parser.parse_args()
    results = Results("retries", {"side": SIDE, "seconds": options.seconds}, options.out)
    with service() as text:
        load(text)
        url = httpx.URL(text)
        measure(url, FEW, 2, "at once")  # warm
        for number in range(options.rounds):
            rows = [measure(url, FEW, options.seconds, "at once")]
            rows += [measure(url, callers, options.seconds, manner) for callers in CALLERS for manner in MANNERS]
            best = max(row["per_s"] for row in rows)
            results.extend([row | {"round": number, "goodput": row["per_s"] / best} for row in rows])
            for row in results.rows[-len(rows) :]:
                print(row)
    for callers, manner in {(row["callers"], row["manner"]): None for row in results.rows}:
        shares = [row["goodput"] for row in results.rows if (row["callers"], row["manner"]) == (callers, manner)]
        print(f"{callers} callers, {manner}: {statistics.median(shares):.2f} of the best")


if __name__ == "__main__":
    main()
