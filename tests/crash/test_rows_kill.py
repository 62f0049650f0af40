"""kill -9 of a process while somebody reads rows that are being made."""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from headrace import Cancelled, Client, Scenario

from gpu_engine.generators import grid
from gpu_engine.types import INFINITE
from tests.serving import Service, eventually, serving

pytestmark = pytest.mark.crash

LINES = {"Accept": "application/x-ndjson"}
ROWS = 20_000
"""More than are made in the time of a test: each is a flow or a cut by edge."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for both tests: each waits for the process that it kills."""
    edges = grid(rows=100, columns=100, seed=3)
    columns: dict[str, Any] = {
        "n_vertices": edges.n_vertices,
        "tail": edges.tail.tolist(),
        "head": edges.head.tolist(),
        "capacity": ["inf" if units == INFINITE else units for units in edges.capacity.tolist()],
        "source": edges.n_vertices - 2,
        "sink": edges.n_vertices - 1,
    }
    with serving(tmp_path_factory.mktemp("service")) as service:
        assert service.http.put("/v1/graphs/g", json=columns).status_code == 201
        yield service


def test_lines_of_a_worker_that_is_gone_end_with_an_error(service: Service) -> None:
    http, body = service.http, {"scenarios": [{}] * ROWS, "fields": ["flow"]}
    with http.stream("POST", "/v1/graphs/g/what-if", json=body, headers=LINES) as response:
        assert response.status_code == 200
        job = response.headers["content-location"].removesuffix("/result")
        lines = response.iter_lines()
        head, *found = [json.loads(next(lines)) for _ in range(3)]
        os.kill(service.children()["worker"], signal.SIGKILL)
        found += map(json.loads, lines)
    *rows, last = found
    assert [row["row"] for row in rows] == list(range(len(rows)))
    assert {row["value"] for row in rows} == {head["base"]["value"]}
    assert (last["error"]["code"], last["error"]["status"]) == ("worker_unavailable", 503)
    with http.stream("GET", f"{job}/result", headers=LINES | {"Prefer": "wait=300"}) as response:
        assert response.status_code == 200
        lines = response.iter_lines()
        again = [json.loads(next(lines)) for _ in range(3)]
        assert (again[0]["version"], [row["row"] for row in again[1:]]) == (1, [0, 1])
        assert http.delete(job).json()["cancelling"]
        *_, last = map(json.loads, lines)
    assert last["error"]["code"] == "cancelled"


def test_the_client_goes_on_when_the_api_process_is_gone(service: Service) -> None:
    service.wait_ready()
    with Client(service.url) as client:
        stream = client.graph("g").what_if([Scenario()] * ROWS, fields=["cut"], stream=True)
        found = [next(stream) for _ in range(3)]
        api = service.children()["api"]
        os.kill(api, signal.SIGKILL)
        eventually(lambda: service.children().get("api", api) != api)
        until = len(found) + 100  # more than were on their way
        found += (next(stream) for _ in range(until - len(found)))
        assert [row.row for row in found] == list(range(until))
        stream.cancel()
        with pytest.raises(Cancelled):
            for _ in stream:
                pass
