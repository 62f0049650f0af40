"""Ten times what the service can do: what is accepted stays as fast as at capacity, the rest is told to come back.

``python -m benchmarks.overload``: starts a service, measures its capacity with a few callers in a closed loop, then
offers 0.5, 1 and 10 times that at random moments (Poisson), each question a cold solve between fresh terminals. A
second, small graph is asked now and then: it must not suffer. Latencies count from the planned moment of sending,
so that a load generator that falls behind hides nothing. Answers are checked against the first of their kind.
"""

import argparse
import asyncio
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.results import DIRECTORY, Results, Row
from benchmarks.serve import service
from gpu_engine import formats
from gpu_engine.generators import grid

SIDE = 160
SEED = 5
PAIRS = 64
CALLERS = 8
NEIGHBOUR_EVERY_S = 0.25


class Load:
    """Questions to one service, and what became of them."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._random = random.Random(SEED)
        self._values: dict[int, Any] = {}

    async def load(self) -> None:
        for name, side in (("big", SIDE), ("small", 4)):
            body = formats.write_npz(grid(rows=side, columns=side, seed=SEED))
            response = await self._http.put(
                f"/v1/graphs/{name}", content=body, headers={"Content-Type": "application/x-npz"}
            )
            response.raise_for_status()

    async def ask(self) -> str:
        """One cold solve: "200", or the code of its refusal."""
        pair = self._random.randrange(PAIRS)
        body = {"sources": [pair], "sinks": [SIDE * SIDE - 1 - pair * 7]}
        try:
            response = await self._http.post("/v1/graphs/big/max-flow", json=body)
        except httpx.TransportError as error:
            return type(error).__name__
        answer = response.json()
        if response.status_code == 200:
            if self._values.setdefault(pair, answer["value"]) != answer["value"] or not answer["certificate"]["valid"]:
                return "wrong"
            return "200"
        if response.status_code == 429 and int(response.headers["retry-after"]) < 1:
            return "429 without Retry-After"
        return str(answer.get("code", response.status_code))

    async def capacity(self, seconds: float) -> Row:
        """Answers a second with a few callers that ask again as soon as they are answered."""
        ends = time.perf_counter() + seconds
        latencies: list[float] = []
        seen: Counter[str] = Counter()

        async def caller() -> None:
            while (began := time.perf_counter()) < ends:
                outcome = await self.ask()
                seen[outcome] += 1
                if outcome == "200":
                    latencies.append(time.perf_counter() - began)

        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        return {"load": f"{CALLERS} callers", "per_s": len(latencies) / seconds} | _row(seen, latencies, [])

    async def offer(self, times: float, rate: float, seconds: float) -> Row:
        """An open loop: `rate` questions a second, whatever becomes of them."""
        latencies: list[float] = []
        neighbour: list[float] = []
        seen: Counter[str] = Counter()
        began = time.perf_counter()

        async def one(due: float) -> None:
            outcome = await self.ask()
            seen[outcome] += 1
            if outcome == "200":
                latencies.append(time.perf_counter() - due)

        async def neighbours() -> None:
            while (sent := time.perf_counter()) < began + seconds:
                response = await self._http.post("/v1/graphs/small/max-flow", json={"sources": [0], "sinks": [15]})
                neighbour.append(time.perf_counter() - sent)
                seen[f"neighbour {response.status_code}"] += 1
                await asyncio.sleep(NEIGHBOUR_EVERY_S)

        asked_beside = asyncio.create_task(neighbours())
        tasks = []
        due = began
        while (due := due + self._random.expovariate(rate)) < began + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.create_task(one(due)))
        await asyncio.gather(*tasks, asked_beside)
        row = {"load": f"{times:g}x", "offered_per_s": len(tasks) / seconds, "per_s": len(latencies) / seconds}
        return row | _row(seen, latencies, neighbour)


def _row(seen: Counter[str], latencies: list[float], neighbour: list[float]) -> Row:
    row: Row = {"outcomes": dict(seen)}
    for name, values in (("", latencies), ("neighbour_", neighbour)):
        for percent in (50, 95, 99):
            if values:
                row[f"{name}p{percent}_ms"] = round(1e3 * float(np.percentile(values, percent)), 2)
    return row


async def measure(url: str, seconds: float, results: Results) -> None:
    limits = httpx.Limits(max_connections=2000, max_keepalive_connections=200)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60, trust_env=False) as http:
        load = Load(http)
        await load.load()
        await load.capacity(2)  # warm
        row = await load.capacity(seconds)
        results.extend([row])
        for times in (0.5, 1, 10):
            results.extend([await load.offer(times, times * row["per_s"], seconds)])
            await asyncio.sleep(1)
        (await http.get("/readyz")).raise_for_status()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each load")
    parser.add_argument("--out", type=Path, default=DIRECTORY / "overload.json")
    options = parser.parse_args()
    results = Results("overload", {"side": SIDE, "seconds": options.seconds}, options.out)
    with service() as url:
        asyncio.run(measure(url, options.seconds, results))
    for row in results.rows:
        print(row)
    by_load = {row["load"]: row for row in results.rows}
    for name in ("p50_ms", "p99_ms"):
        print(f"{name}: 10x over 1x = {by_load['10x'][name] / by_load['1x'][name]:.2f}")


if __name__ == "__main__":
    main()
