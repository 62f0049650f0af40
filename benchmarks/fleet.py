"""Many clients on many graphs: 64 clients on 16 graphs of their own seeds, each sending as soon as it has its answer.

Of five requests four PATCH 100 random edges and wait for the new value, one asks for the value alone. A client is
refused with 429 when a queue is full; it counts that and sends again after the time it is told.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
import numpy as np

from benchmarks.http import TIMEOUT_S, Load, Target
from benchmarks.instances import Instance
from benchmarks.results import Row

GRAPHS, CLIENTS = 16, 64
SECONDS = 20.0


@dataclass(slots=True)
class Heard:
    """What one client was told."""

    patch_ms: list[float] = field(default_factory=list)
    query_ms: list[float] = field(default_factory=list)
    refused: int = 0


def measure(instances: list[Instance], url: str, seconds: float = SECONDS) -> list[Row]:
    """One row for each kind of request. Every graph is compared with a cold solve at the end."""
    share = CLIENTS // len(instances)
    targets = []
    for i, instance in enumerate(instances):
        edges = instance.load()
        assert edges is not None
        targets.append(Target(edges, Load(seed=i), f"/v1/graphs/fleet-{i}", share))
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
        for target in targets:
            target.put(client)
    end = time.perf_counter() + seconds
    with ThreadPoolExecutor(CLIENTS) as pool:
        jobs = [pool.submit(drive, url, targets[i // share], i % share, end) for i in range(CLIENTS)]
        heard = [job.result() for job in jobs]
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
        for target in targets:
            target.compare(client)
    kinds = {"PATCH 100 edges": [h.patch_ms for h in heard], "max-flow": [h.query_ms for h in heard]}
    rows: list[Row] = []
    for name, lists in kinds.items():
        times = [ms for each in lists for ms in each]
        p50, p90, p99 = np.percentile(times, [50, 90, 99]).tolist()
        row: Row = {"instance": f"{len(instances)} x {instances[0].name}", "request": name, "clients": CLIENTS}
        row |= {"requests": len(times), "p50_ms": p50, "p90_ms": p90, "p99_ms": p99, "per_s": len(times) / seconds}
        rows.append(row | {"refused": sum(h.refused for h in heard), "graphs": len(instances)})
    return rows


def drive(url: str, target: Target, number: int, end: float) -> Heard:
    """One client until ``end``."""
    heard = Heard()
    patch = target.patch(100)
    turn = 0
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
        client.event_hooks["response"].append(lambda response: count_refusal(response, heard))
        while time.perf_counter() < end:
            turn += 1
            if turn % 5 == 0:
                heard.query_ms.append(target.ask(client))
            else:
                heard.patch_ms.append(patch(client, number))
    return heard


def count_refusal(response: httpx.Response, heard: Heard) -> None:
    if response.status_code == 429:
        heard.refused += 1
