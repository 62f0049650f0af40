"""Ten times what the service can do: what is accepted stays about as fast as ever, the rest is told to come back.

``python -m benchmarks.overload``: starts a service, measures its capacity with a few callers in a closed loop, then
offers 0.5, 1, 2 and 10 times that at random moments (Poisson), and half of it again; each question is a cold solve
between terminals that are not kept. A second, small graph is asked now and then: it must not suffer. Latencies count
from the planned moment of sending, so that a load generator that falls behind hides nothing. Answers are checked
against the first of their kind.
"""

import argparse
import asyncio
import json
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

SIDE = 480
SEED = 5
PAIRS = 256
CALLERS = 8
NEIGHBOUR_EVERY_S = 0.25


class Wire:
    """As little HTTP as it takes, on kept connections: the machine's time is for the service."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, path: str, body: bytes) -> tuple[int, int, Any]:
        return await self.send("POST", path, body)

    async def send(self, method: str, path: str, body: bytes) -> tuple[int, int, Any]:
        """Status, Retry-After (0 if there is none) and the JSON answered."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        while True:
            kept = bool(self._idle)
            pair = self._idle.pop() if kept else await asyncio.open_connection(self._host, self._port)
            reader, writer = pair
            try:
                writer.write(request)
                answer = (await reader.readuntil(b"\r\n\r\n")).lower()
                break
            except (OSError, EOFError):
                writer.close()
                if not kept:  # one that was kept may have been closed for its idleness
                    raise
        content = await reader.readexactly(_number(answer, b"content-length"))
        if b"connection: close" in answer:
            writer.close()
        else:
            self._idle.append(pair)
        return int(answer.split(None, 2)[1]), _number(answer, b"retry-after"), json.loads(content)


def _number(head: bytes, name: bytes) -> int:
    _, found, rest = head.partition(b"\r\n" + name + b":")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0


class Load:
    """Questions to one service, and what became of them."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._random = random.Random(SEED)
        self._values: dict[int, Any] = {}
        self.server_ms: list[float] = []
        """From the queue to the answer, as the service has it."""

    async def ask(self) -> str:
        """One cold solve: "200", or the code of its refusal."""
        pair = self._random.randrange(PAIRS)
        body = json.dumps({"sources": [pair], "sinks": [SIDE * SIDE - 1 - pair * 7]}).encode()
        try:
            status, retry_after_s, answer = await self._wire.post("/v1/graphs/big/max-flow", body)
        except (OSError, EOFError) as error:
            return type(error).__name__
        if status == 200:
            self.server_ms.append(answer["timings_ms"]["total"])
            if self._values.setdefault(pair, answer["value"]) != answer["value"] or not answer["certificate"]["valid"]:
                return "wrong"
            return "200"
        if status == 429 and retry_after_s < 1:
            return "429 without Retry-After"
        return str(answer.get("code", status))

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
                status, _, _ = await self._wire.post("/v1/graphs/small/max-flow", b'{"sources": [0], "sinks": [15]}')
                neighbour.append(time.perf_counter() - sent)
                seen[f"neighbour {status}"] += 1
                await asyncio.sleep(NEIGHBOUR_EVERY_S)

        self.server_ms.clear()
        asked_beside = asyncio.create_task(neighbours())
        tasks = []
        due = began
        while (due := due + self._random.expovariate(rate)) < began + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.create_task(one(due)))
        await asyncio.gather(*tasks, asked_beside)
        row = {"load": f"{times:g}x", "offered_per_s": len(tasks) / seconds, "per_s": len(latencies) / seconds}
        row |= _row(seen, latencies, neighbour)
        return row | {"server_p50_ms": float(np.median(self.server_ms))}


def _row(seen: Counter[str], latencies: list[float], neighbour: list[float]) -> Row:
    row: Row = {"outcomes": dict(seen)}
    for name, values in (("", latencies), ("neighbour_", neighbour)):
        for percent in (50, 95, 99):
            if values:
                row[f"{name}p{percent}_ms"] = round(1e3 * float(np.percentile(values, percent)), 2)
    return row


def load_graphs(url: str) -> None:
    for name, side in (("big", SIDE), ("small", 4)):
        body = formats.write_npz(grid(rows=side, columns=side, seed=SEED))
        headers = {"Content-Type": "application/x-npz"}
        httpx.put(f"{url}/v1/graphs/{name}", content=body, headers=headers, timeout=60).raise_for_status()


async def measure(url: str, seconds: float, results: Results) -> None:
    address = httpx.URL(url)
    load = Load(Wire(address.host, address.port or 80))
    await load.capacity(2)  # warm
    row = await load.capacity(seconds)
    results.extend([row])
    for times in (0.5, 1, 2, 10, 0.5):  # no pause: it must be as before at once
        results.extend([await load.offer(times, times * row["per_s"], seconds)])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each load")
    parser.add_argument("--out", type=Path, default=DIRECTORY / "overload.json")
    options = parser.parse_args()
    results = Results("overload", {"side": SIDE, "seconds": options.seconds}, options.out)
    with service() as url:
        load_graphs(url)
        asyncio.run(measure(url, options.seconds, results))
        httpx.get(f"{url}/readyz").raise_for_status()  # nothing died
    for row in results.rows:
        print(row)
    by_load = {row["load"]: row for row in reversed(results.rows)}
    for name in ("p50_ms", "p95_ms", "p99_ms"):
        print(f"{name}: 10x over 0.5x = {by_load['10x'][name] / by_load['0.5x'][name]:.2f}")


if __name__ == "__main__":
    main()
