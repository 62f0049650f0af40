"""Waiting, jobs and their events: what is answered when work takes its time, or its caller has gone."""

import json
import re
import socket
import time
from typing import Any

import pytest

from service.protocol import Problem, Status
from tests.contract.bodies import EDGES, JSON
from tests.contract.fakes import Api


def never(_: object) -> Status:
    return Status.RUNNING


@pytest.mark.parametrize(
    ("prefer", "waited_s", "applied"),
    [
        (None, 5, None),
        ("wait=2", 2, "wait=2"),
        ("wait=1000", 60, "wait=60"),
        ('Wait="3"; x=y', 3, "wait=3"),
        ("handling=strict, wait=4", 4, "wait=4"),
        ("handling=5s", 5, None),
        ("wait=" + "9" * 100, 60, "wait=60"),
        ("respond-async", None, "respond-async"),
        ("respond-async, wait=5", 5, "respond-async, wait=5"),
        ("wait=0", None, "wait=0"),
    ],
)
def test_waiting(api: Api, prefer: str | None, waited_s: float | None, applied: str | None) -> None:
    api.fakes.dispatcher.answer = never
    response = api.http.post("/v1/graphs/city/max-flow", headers={"Prefer": prefer} if prefer else {})
    assert response.status_code == 202
    assert response.headers["location"] == "/v1/jobs/job-0" == response.json()["location"]
    assert response.json()["id"] == "job-0"
    assert response.headers.get("preference-applied") == applied
    assert sum(api.fakes.dispatcher.waited_s) == (waited_s or 0)
    for leave in api.fakes.dispatcher.unfinished:  # so that the next one need not stand in line
        leave()


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_load_and_delete_may_take_longer(api: Api, method: str) -> None:
    api.fakes.dispatcher.answer = never
    content = json.dumps(EDGES).encode() if method == "PUT" else b""
    headers = JSON | {"Prefer": "respond-async"}
    assert api.http.request(method, "/v1/graphs/city", content=content, headers=headers).status_code == 202


def test_jobs(api: Api) -> None:
    outcomes: list[Any] = [{"version": 7, "value": 6}, Problem(code="timeout", detail="late"), Status.RUNNING]
    api.fakes.dispatcher.answer = lambda _: outcomes.pop(0)
    for _ in range(3):
        api.http.post("/v1/graphs/city/max-flow", headers={"Prefer": "respond-async"})
    assert [job["id"] for job in api.http.get("/v1/jobs").json()["jobs"]] == ["job-2", "job-1", "job-0"]
    assert len(api.http.get("/v1/jobs?limit=1").json()["jobs"]) == 1
    done, failed, running = (api.http.get(f"/v1/jobs/job-{number}").json() for number in range(3))
    assert (done["status"], done["result"], done["error"]) == ("succeeded", {"version": 7, "value": 6}, None)
    assert (failed["status"], failed["result"]) == ("failed", None)
    assert (failed["error"]["code"], failed["error"]["status"]) == ("timeout", 504)
    assert (running["status"], running["kind"], running["graph"]) == ("running", "max-flow", "city")
    assert api.http.delete("/v1/jobs/job-2").json()["status"] == "cancelled"
    assert api.http.delete("/v1/jobs/job-0").json()["status"] == "succeeded"


def test_a_job_can_be_held(api: Api) -> None:
    api.fakes.dispatcher.answer = never
    api.http.post("/v1/graphs/city/max-flow", headers={"Prefer": "respond-async"})
    assert api.http.get("/v1/jobs/job-0").headers.get("preference-applied") is None
    held = api.http.get("/v1/jobs/job-0", headers={"Prefer": "wait=3"})
    assert (held.status_code, held.headers["preference-applied"]) == (200, "wait=3")
    assert sum(api.fakes.dispatcher.waited_s) == 3


def test_events(api: Api) -> None:
    api.http.post("/v1/graphs/city/max-flow")
    with api.http.stream("GET", "/v1/jobs/job-0/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        text = response.read().decode()
    assert re.findall(r"event: (\w+)", text) == ["progress", "progress", "done"]
    assert re.findall(r"id: (.*)", text) == ["1-0", "2-0", "3-0"]
    assert 'data: {"pushes":1}' in text.replace(": 1", ":1")
    resumed = api.http.get("/v1/jobs/job-0/events", headers={"Last-Event-ID": "2-0"}).text
    assert re.findall(r"id: (.*)", resumed) == ["3-0"]
    assert api.http.get("/v1/jobs/job-0/events", headers={"Last-Event-ID": "3-0"}).status_code == 204
    odd = api.http.get("/v1/jobs/job-0/events", headers={"Last-Event-ID": "$; FLUSHALL"}).text
    assert re.findall(r"id: (.*)", odd) == ["1-0", "2-0", "3-0"]


def test_a_caller_that_goes_away_leaves_its_job(api: Api) -> None:
    head = b"POST /v1/graphs/city/max-flow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    with socket.create_connection(api.address, timeout=10) as connection:
        connection.sendall(head)
    deadline = time.monotonic() + 10
    while not api.fakes.dispatcher.sent and time.monotonic() < deadline:
        time.sleep(0.01)
    assert api.http.get("/v1/jobs/job-0").json()["status"] == "succeeded"


def test_a_caller_that_goes_away_in_its_own_body(api: Api) -> None:
    head = (
        b"PUT /v1/graphs/city HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 100\r\n\r\ntail"
    )
    with socket.create_connection(api.address, timeout=10) as connection:
        connection.sendall(head)
    deadline = time.monotonic() + 10
    counted = 'headrace_http_request_seconds_count{method="PUT",route="/v1/graphs/{name}",status="499"} 1'
    while counted not in api.http.get("/metrics").text:
        assert time.monotonic() < deadline
    assert not api.fakes.dispatcher.sent
