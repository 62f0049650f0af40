"""`headrace serve` that is started again with fewer workers: those that are left have all graphs at once."""

from pathlib import Path

import pytest

from tests.serving import Service, eventually, serving

pytestmark = pytest.mark.crash

EDGES = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2, 4, 2], "source": 0, "sink": 3}
NAMES = [f"g{i}" for i in range(6)]
LEASE_S = "60"
"""Two leases are longer than anything is waited for."""


def workers(service: Service) -> dict[str, bool]:
    """Which workers are known, and whether each is ready."""
    return {worker["name"]: worker["ready"] for worker in service.http.get("/v1/workers").json()["workers"]}


def owners(service: Service) -> dict[str, str]:
    return {graph["name"]: graph["worker"] for graph in service.http.get("/v1/graphs").json()["graphs"]}


def value(service: Service, name: str) -> tuple[int, float] | None:
    answer = service.http.post(f"/v1/graphs/{name}/max-flow")
    return (answer.json()["version"], answer.json()["value"]) if answer.is_success else None


def test_graphs_of_workers_that_are_no_more_are_taken_at_once(tmp_path: Path) -> None:
    data, cpu = tmp_path / "data", {"HEADRACE_ENGINE": "cpu", "HEADRACE_LEASE_S": LEASE_S}
    with serving(data, environment=cpu | {"HEADRACE_WORKERS": "2"}) as service:
        eventually(lambda: workers(service) == {"cpu-0": True, "cpu-1": True})
        for name in NAMES:
            assert service.http.put(f"/v1/graphs/{name}", json=EDGES).status_code == 201
            answer = service.http.patch(f"/v1/graphs/{name}/capacities", json={"edges": [0], "set": [1]})
            assert answer.json()["version"] == 2
        assert set(owners(service).values()) == {"cpu-0", "cpu-1"}
    with serving(data, environment=cpu | {"HEADRACE_WORKERS": "1"}) as service:
        for name in NAMES:
            eventually(lambda name=name: value(service, name) == (2, 3))
        assert owners(service) == dict.fromkeys(NAMES, "cpu-0")
        eventually(lambda: workers(service) == {"cpu-0": True})
        assert 'headrace_worker_up{worker="cpu-1"}' not in service.http.get("/metrics").text
