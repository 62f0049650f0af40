"""What there is no room for is refused before it costs anything, as well formed as any answer."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
import structlog

from service.api.guards import refusals
from service.api.guards.admission import TIMES_KNOWN
from service.api.guards.refusals import AT_ONCE, HELD_S, Pace
from service.api.guards.shields import HEADERS
from service.protocol import Kind, Status
from service.settings import Settings
from service.store.api_keys import Scope
from tests.contract.conftest import running
from tests.contract.fakes import Api
from tests.contract.test_access import forget, make_key
from tests.contract.test_codes import check_problem

PATCH = {"edges": [0], "set": [1]}
EDGE = {"tail": [0], "head": [1], "capacity": [1]}
QUEUED = [
    ("PATCH", "/v1/graphs/city/capacities"),
    ("GET", "/v1/graphs/city/capacities"),
    ("POST", "/v1/graphs/city/max-flow"),
    ("POST", "/v1/graphs/city/min-cut"),
    ("POST", "/v1/graphs/city/matching"),
    ("POST", "/v1/graphs/city/min-cost-flow"),
    ("PATCH", "/v1/graphs/city/costs"),
]


@pytest.fixture(scope="module")
def one_at_a_time() -> Iterator[Api]:
    """A server whose graphs have room for one command, and whose keys for two."""
    with running(Settings(graph_queue_limit=1, key_queue_limit=2)) as api:
        yield api


@pytest.fixture
def full(one_at_a_time: Api) -> Iterator[Api]:
    """`city` is full."""
    api = one_at_a_time
    api.fakes.reset()
    api.fakes.dispatcher.answer = lambda _: Status.RUNNING
    assert api.http.post("/v1/graphs/city/max-flow", headers={"Prefer": "respond-async"}).status_code == 202
    yield api
    for leave in api.fakes.dispatcher.unfinished:
        leave()
    api.fakes.dispatcher.unfinished.clear()
    api.fakes.api_keys.keys.clear()
    forget(api)


@pytest.mark.parametrize(("method", "path"), QUEUED)
def test_a_full_graph_is_refused_before_anything_is_read(full: Api, method: str, path: str) -> None:
    """Not even that the body is none."""
    sent = {} if method == "GET" else {"content": b"{", "headers": {"Content-Type": "application/json"}}
    response = full.http.request(method, path, **sent)  # type: ignore[arg-type]  # headers or content
    check_problem(response, "rate_limited")
    assert response.headers["retry-after"] in ("1", "2")
    assert {name: response.headers[name] for name in HEADERS} == HEADERS
    assert len(response.headers["x-request-id"]) == 32
    assert response.json()["request_id"] == response.headers["x-request-id"]
    assert len(full.fakes.dispatcher.sent) == 1


def test_it_has_the_caller_s_request_id_if_that_is_one(full: Api) -> None:
    for asked, same in (("mine-1", True), ("x" * 129, False), ("a b", False)):
        response = full.http.patch("/v1/graphs/city/capacities", json=PATCH, headers={"X-Request-Id": asked})
        assert (response.headers["x-request-id"] == asked) is same
        assert response.json()["request_id"] == response.headers["x-request-id"]


def test_jobs_are_refused_as_well_and_other_graphs_are_not(full: Api) -> None:
    patient = {"Prefer": "respond-async"}
    check_problem(full.http.post("/v1/graphs/city/max-flow", headers=patient), "rate_limited")
    assert full.http.post("/v1/graphs/town/max-flow", headers=patient).status_code == 202
    assert full.http.get("/v1/graphs/city").status_code == 200
    assert full.http.get("/livez").status_code == 200


def test_a_load_and_a_delete_do_not_stand_in_line() -> None:
    with running(Settings(graph_queue_limit=100, graph_queue_short=1, queue_target_s=0.0)) as api:
        api.fakes.dispatcher.answer = lambda sent: {"version": 1} if sent.kind is Kind.MAX_FLOW else Status.RUNNING
        for _ in range(2 * TIMES_KNOWN):
            assert api.http.post("/v1/graphs/city/max-flow").status_code == 200
        now = {"Prefer": "wait=1"}
        for _ in range(3):
            assert api.http.put("/v1/graphs/city", json=EDGE, headers=now).status_code == 202
            assert api.http.delete("/v1/graphs/city", headers=now).status_code == 202
        check_problem(api.http.post("/v1/graphs/city/max-flow"), "rate_limited")


def test_who_may_not_call_is_told_so_and_not_that_the_graph_is_full(full: Api) -> None:
    make_key(full)
    path = "/v1/graphs/city/capacities"
    check_problem(full.http.patch(path, json=PATCH), "unauthorised")
    wrong = {"Authorization": "Bearer hr_0123456789ab_" + 43 * "x"}
    check_problem(full.http.patch(path, json=PATCH, headers=wrong), "unauthorised")
    check_problem(full.http.patch(path, json=PATCH, headers=make_key(full, Scope.READ)), "forbidden")
    check_problem(full.http.patch(path, json=PATCH, headers=make_key(full, prefix="town")), "forbidden")
    check_problem(full.http.patch(path, json=PATCH, headers=make_key(full, Scope.UPDATE)), "rate_limited")


def test_who_may_not_call_does_not_cut_the_line() -> None:
    """A full line is cut when one more comes who may ask for this graph, and by nobody else."""
    with running(Settings(graph_queue_limit=8, graph_queue_short=8)) as api:
        api.fakes.dispatcher.answer = lambda _: Status.RUNNING
        good, path = make_key(api), "/v1/graphs/city/max-flow"
        for _ in range(8):
            assert api.http.post(path, headers=good | {"Prefer": "respond-async"}).status_code == 202
        assert api.fakes.admission is not None
        lane = api.fakes.admission._lane("city")
        strangers: list[dict[str, str]] = [
            {},
            {"X-API-Key": "hr_0123456789ab_" + 43 * "x"},
            make_key(api, prefix="town"),
        ]
        assert [api.http.post(path, headers=headers).status_code for headers in strangers] == [401, 401, 403]
        assert lane.crowded_since is None
        check_problem(api.http.post(path, headers=good), "rate_limited")
        assert lane.crowded_since is not None


def test_a_full_key_is_refused_early_and_others_are_not(full: Api) -> None:
    key, other, patient = make_key(full), make_key(full), {"Prefer": "respond-async"}
    for graph in ("a", "b"):
        assert full.http.post(f"/v1/graphs/{graph}/max-flow", headers=key | patient).status_code == 202
    response = full.http.patch("/v1/graphs/c/capacities", content=b"{", headers=key)
    check_problem(response, "rate_limited")
    assert "of this API key" in response.json()["detail"]
    assert full.http.post("/v1/graphs/c/max-flow", headers=other | patient).status_code == 202


@pytest.mark.parametrize(("length", "kept"), [(24, True), (200_000, False)])
def test_a_connection_is_kept_unless_a_long_body_is_on_its_way(full: Api, length: int, kept: bool) -> None:
    with socket.create_connection(full.address, timeout=30) as connection:
        head = f"PATCH /v1/graphs/city/capacities HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
        connection.sendall(head.encode() + b"x" * 24)
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 429 ")
        assert (b"connection: close" not in answer) is kept
        if kept:
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_storm_of_refusals_is_slowed_down(full: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers that ask again at once get so many answers a second, whatever they do; probes are answered meanwhile."""
    monkeypatch.setattr(refusals, "PER_S", 20.0)
    answers, ends = [0], time.monotonic() + 3

    def ask() -> None:
        with httpx.Client(base_url=str(full.http.base_url), trust_env=False, timeout=30) as http:
            while time.monotonic() < ends:
                assert http.patch("/v1/graphs/city/capacities", json=PATCH).status_code == 429
                answers[0] += 1

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    probes = 0
    while time.monotonic() < ends:
        assert full.http.get("/livez").status_code == 200
        probes += 1
    for thread in threads:
        thread.join()
    assert answers[0] <= AT_ONCE + 20 * (3 + HELD_S) + len(threads)
    assert probes > 3


def test_refusals_are_counted_one_by_one_and_told_together(full: Api) -> None:
    def counted() -> float:
        wanted = 'headrace_http_request_seconds_count{method="PATCH",route="/v1/graphs/{name}/capacities",status="429"}'
        lines = full.http.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(wanted))

    before = counted()
    with structlog.testing.capture_logs() as lines:
        for _ in range(5):
            full.http.patch("/v1/graphs/city/capacities", json=PATCH)
        time.sleep(1.5)
    told = [line for line in lines if line["event"] == "refused"]
    assert sum(line["requests"] for line in told) >= 5
    assert len(told) <= 2
    assert {line["graph"] for line in told} == {"city"}
    assert counted() == before + 5


def test_what_is_held_back_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PER_S", 1.0), ("AT_ONCE", 0), ("HELD_S", 30.0), ("HELD", 3)):
        monkeypatch.setattr(refusals, name, value)

    async def keep() -> int:
        pace = Pace()
        turns = [asyncio.create_task(pace.keep()) for _ in range(10)]
        await asyncio.sleep(0.01)
        held = sum(not turn.done() for turn in turns)
        for turn in turns:
            turn.cancel()
        await asyncio.gather(*turns, return_exceptions=True)
        assert pace._held == 0
        return held

    assert asyncio.run(keep()) == 3
