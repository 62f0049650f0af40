"""A real service whose worker may use very little memory."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.serving import eventually, serving

BUDGET = 123_000
N_VERTICES, N_EDGES = 300, 1200


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    environment = {"HEADRACE_MEMORY_BUDGET_BYTES": str(BUDGET)}
    with serving(tmp_path_factory.mktemp("service"), environment=environment) as service:
        yield service.http


def ring(steps: int) -> dict[str, Any]:
    """300 vertices; each has an edge to each of the next ones."""
    tail = [v for v in range(N_VERTICES) for _ in range(steps)]
    head = [(v + step) % N_VERTICES for v in range(N_VERTICES) for step in range(1, steps + 1)]
    return {"n_vertices": N_VERTICES, "tail": tail, "head": head, "capacity": [1] * len(tail), "source": 0, "sink": 150}


def worker(http: httpx.Client) -> dict[str, Any]:
    (only,) = http.get("/status").json()["workers"]
    found: dict[str, Any] = only
    return found


def test_a_graph_over_the_budget_is_refused_with_numbers(http: httpx.Client) -> None:
    response = http.put("/v1/graphs/large", json=ring(20))
    problem = response.json()
    assert (response.status_code, problem["code"]) == (507, "out_of_memory")
    assert "more bytes of host memory are needed" in problem["detail"]
    assert f"of {BUDGET} are in use" in problem["detail"]
    assert http.get("/v1/graphs/large").status_code == 404
    assert http.get("/readyz").status_code == 200


def test_the_estimate_says_so_before(http: httpx.Client) -> None:
    for steps, fits in ((4, True), (20, False)):
        said = http.post("/v1/graphs:estimate", json={"n_vertices": N_VERTICES, "n_edges": steps * N_VERTICES}).json()
        assert (said["host"]["fits"], said["device"]["fits"]) == (fits, False)


def test_graphs_give_way_to_each_other_and_lose_nothing(http: httpx.Client) -> None:
    for name in ("a", "b", "c"):
        loaded = http.put(f"/v1/graphs/{name}", json=ring(4)).json()
        said = http.post("/v1/graphs:estimate", json={"n_vertices": N_VERTICES, "n_edges": N_EDGES}).json()
        assert loaded["bytes"] == pytest.approx(said["host"]["bytes"], rel=0.05)
        assert http.patch(f"/v1/graphs/{name}/capacities", json={"edges": [0], "set": [0]}).status_code == 200
    for name in ("a", "b", "c"):
        answer = http.post(f"/v1/graphs/{name}/max-flow").json()
        assert (answer["version"], answer["value"]) == (2, 3)
    eventually(lambda: worker(http)["counters"].get("graphs_spilled", 0) > 0)
    about = worker(http)
    assert 0 < about["bytes"] <= about["budget_bytes"] == BUDGET
    assert (about["device_bytes"], about["device_budget_bytes"]) == (0, 0)
    text = http.get("/metrics").text
    assert f'headrace_worker_budget_bytes{{worker="cpu-0"}} {BUDGET:.1f}' in text
    assert 'headrace_worker_device_bytes{worker="cpu-0"} 0.0' in text
    page = http.get("/status", headers={"Accept": "text/html"}).text
    assert "of 120.1 KiB</td>" in page
