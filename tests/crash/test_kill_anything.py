"""PATCHes while worker, API and Redis are killed at random moments: none is lost, none applied twice."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.terminals import Terminals
from tests.oracle import maximum_flow
from tests.serving import PATIENCE_S, Service, serving

pytestmark = pytest.mark.crash

PATCHES = 120
KILLS = 6
SEED = 18
"""It draws each of the three twice."""

N, M = 60, 300


def random_city(rng: np.random.Generator) -> EdgeList:
    tail, head = rng.integers(0, N, (2, M)).astype(np.int32)
    return EdgeList(N, tail, head, rng.integers(1, 100, M), source=0, sink=N - 1)


class Killer:
    """SIGKILL to a random child at a random moment of some PATCHes; noted in `kills`."""

    def __init__(self, service: Service, seed: int) -> None:
        self._service, self._random = service, random.Random(seed)
        self._doomed = set(self._random.sample(range(PATCHES), KILLS))
        self.kills: list[str] = []

    @contextmanager
    def during(self, i: int) -> Iterator[None]:
        if i not in self._doomed:
            yield
            return
        timer = threading.Timer(self._random.uniform(0, 0.015), self._kill)
        timer.start()
        yield
        timer.join()

    def _kill(self) -> None:
        with suppress(ProcessLookupError, FileNotFoundError):
            role, pid = self._random.choice(sorted(self._service.children().items()))
            os.kill(pid, signal.SIGKILL)
            self.kills.append(role)


def insist(service: Service, body: dict[str, Any], key: str) -> dict[str, Any]:
    """One PATCH, repeated under the same key until it is acknowledged."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with suppress(httpx.TransportError):
            headers = {"Idempotency-Key": key, "Prefer": "wait=20"}
            answer = service.http.patch("/v1/graphs/city/capacities", json=body, headers=headers)
            if answer.status_code == 200:
                done: dict[str, Any] = answer.json()
                return done
            assert answer.status_code in (202, 429, 503), answer.text
        assert time.monotonic() < deadline, "a PATCH was never acknowledged"
        time.sleep(0.02)


def test_every_acknowledged_patch_survives(tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    edges = random_city(rng)
    capacity = edges.capacity.copy()
    columns = {"n_vertices": N, "source": 0, "sink": N - 1} | {
        name: getattr(edges, name).tolist() for name in ("tail", "head", "capacity")
    }
    with serving(tmp_path) as service:
        assert service.http.put("/v1/graphs/city", json=columns).status_code == 201
        assert service.http.post("/v1/graphs/city/max-flow").status_code == 200
        versions = []
        killer = Killer(service, SEED)
        for i in range(PATCHES):
            rows = rng.choice(M, 5, replace=False)
            change = rng.integers(1, 20, 5)  # adding twice would show
            with killer.during(i):
                batch = {"edges": rows.tolist(), "add": change.tolist()}
                versions.append(insist(service, batch, f"patch-{i}")["version"])
            capacity[rows] += change
        service.wait_ready()
        print(f"seed {SEED}: killed {killer.kills}")
        assert len(killer.kills) >= KILLS // 2
        assert versions == list(range(2, PATCHES + 2))
        now = service.http.get("/v1/graphs/city/capacities").json()
        assert now["version"] == PATCHES + 1
        assert now["capacity"] == capacity.tolist()
        answer = service.http.post("/v1/graphs/city/max-flow").json()
        assert answer["value"] == maximum_flow(edges, capacity, Terminals.of([0], [N - 1]))
        assert answer["certificate"]["valid"]
