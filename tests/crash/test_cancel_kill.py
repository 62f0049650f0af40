"""kill -9 of a worker between a cancel that was accepted and the moment it would have been obeyed."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from gpu_engine.generators import grid
from gpu_engine.types import INFINITE
from tests.serving import eventually, serving

pytestmark = pytest.mark.crash

LATER = {"Prefer": "respond-async"}
BATCH = {"edges": [0], "add": [1]}
TERMINAL = {"succeeded", "failed", "cancelled"}


def test_cancelled_jobs_are_not_done_by_the_next_worker(tmp_path: Path) -> None:
    edges = grid(rows=300, columns=300, seed=3)
    columns: dict[str, Any] = {
        "n_vertices": edges.n_vertices,
        "tail": edges.tail.tolist(),
        "head": edges.head.tolist(),
        "capacity": ["inf" if units == INFINITE else units for units in edges.capacity.tolist()],
    }
    with serving(tmp_path) as service:
        http = service.http
        assert http.put("/v1/graphs/g", json=columns).status_code == 201
        questions = [{"sources": [v], "sinks": [edges.n_vertices - 3]} for v in range(4)]
        for question in questions:  # the graph is busy for a while
            http.post("/v1/graphs/g/max-flow", json=question, headers=LATER)
        jobs = [
            http.patch("/v1/graphs/g/capacities?solve=none", json=BATCH, headers=LATER).json()["id"] for _ in range(8)
        ]
        accepted = {job: http.delete(f"/v1/jobs/{job}").json()["cancelling"] for job in jobs[::2]}
        os.kill(service.children()["worker"], signal.SIGKILL)
        for job in jobs:
            eventually(lambda job=job: http.get(f"/v1/jobs/{job}").json()["status"] in TERMINAL)  # type: ignore[misc]  # of a default in a lambda
        found = {job: http.get(f"/v1/jobs/{job}").json() for job in jobs}
        for job in jobs:
            cancelled = accepted.get(job, False) or found[job]["status"] == "cancelled"
            assert found[job]["status"] == ("cancelled" if cancelled else "succeeded"), found[job]
            assert not found[job]["cancelling"]
        done = sum(job["status"] == "succeeded" for job in found.values())
        assert done >= 4
        page = http.get("/v1/graphs/g/capacities?limit=1").json()
        assert (page["version"], page["capacity"][0]) == (1 + done, columns["capacity"][0] + done)
