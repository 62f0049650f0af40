"""Requests, answers, waits and retries of the client. The transport is a mock here: no service is involved."""

import asyncio
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import headrace
import httpx
import pytest
from headrace import AsyncClient, Client, Retry

GRAPH = {
    "name": "city",
    "version": 1,
    "n_vertices": 4,
    "n_edges": 4,
    "n_arcs": 8,
    "decimals": 1,
    "bytes": 1234,
    "created_at": "2026-01-31T12:00:00Z",
    "updated_at": "2026-01-31T12:00:00Z",
    "engine": "cpu",
    "worker": "cpu-0",
    "source": 0,
    "sink": 3,
    "flow_states": 0,
    "of_a_newer_service": True,
}
CERTIFICATE = {"valid": True, "value": 5.5, "flow_across_cut": 5.5}
FLOW = """{"graph": "city", "version": 2, "value": 5.5, "mode": "warm", "engine": "cpu", "reason": null,
 "certificate": {"valid": true, "value": 5.5, "flow_across_cut": 5.5},
 "counters": {"pushes": 12}, "timings_ms": {"solve": 0.4, "total": 1},
 "cut": {"value": 5.5, "edges": ["a"], "pays": [1.5], "sources": ["w"], "source_pays": [4], "sinks": [],
 "sink_pays": [], "source_side": [0], "sink_side": [1, 2], "unique": true},
 "paths": {"source": ["w", "x"], "sink": ["t", "t"], "amount": [4, 0.5], "offsets": [0, 2, 3], "edges": ["a", "b", "c"],
 "of": 3, "rest": 1},
 "terminals": {"sources": ["w", "x"], "supplied": [4, 1.5], "sinks": ["t"], "delivered": [5.5]},
 "flow": {"edges": ["a", "b"], "amount": [4, 1.5]}}"""
PATCH = {
    "version": 2,
    "applied": 1,
    "skipped": 0,
    "unchanged": 0,
    "flow_states": [
        {
            "sources": [0],
            "sinks": [3],
            "old_value": 6,
            "value": 5.5,
            "mode": "warm",
            "certificate": CERTIFICATE,
        }
    ],
    "timings_ms": {"log": 0.2},
}
Handler = Callable[[httpx.Request], httpx.Response]


class Script:
    """Answers one request after the other, and keeps what was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, attempts: int = 3, longest_s: float = 5, patience_s: float = 30) -> Client:
        retry = Retry(attempts=attempts, base_s=0.001, longest_s=longest_s, patience_s=patience_s)
        return Client("http://service", retry=retry, transport=httpx.MockTransport(self))


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    body = {"title": "x", "status": status, "code": code, "detail": "why", "rows": [17]}
    return httpx.Response(status, json=body, headers={"X-Request-Id": "r1"} | headers)


def job(status: str, **fields: Any) -> httpx.Response:
    return httpx.Response(200, json={"id": "j1", "kind": "max-flow", "graph": "city", "status": status, **fields})


def accepted() -> httpx.Response:
    return httpx.Response(202, json={"id": "j1"}, headers={"Location": "/v1/jobs/j1"})


def ok(body: Any = GRAPH) -> httpx.Response:
    return httpx.Response(200, text=body) if isinstance(body, str) else httpx.Response(200, json=body)


def test_put_graph_and_solve() -> None:
    script = Script(ok(), ok(FLOW))
    with script.client() as client:
        graph = client.put_graph("a.b", tail=[0], head=[1], capacity=[0.5])
        result = graph.max_flow(0, [2, 3], supply=7, demand=[1, 2.5], fields=("value", "paths"), zeros=True, top=2)
    put, solve = script.requests
    assert (put.method, put.url.raw_path) == ("PUT", b"/v1/graphs/a.b")
    assert put.headers["Prefer"] == "wait=30"
    assert put.headers["Content-Length"] == str(len(put.content))
    assert json.loads(solve.content) == {
        "sources": [0],
        "sinks": [2, 3],
        "supply": [7],
        "demand": [1, 2.5],
        "fields": ["value", "paths"],
        "flow": {"zeros": True},
        "paths": {"top": 2},
    }
    assert graph.info.created_at.year == 2026
    assert (result.value, str(result.value), result.mode) == (5.5, "5.5", "warm")
    assert result.certificate.valid
    assert result.cut is not None
    assert result.cut.edges == ("a",)
    assert sum((*result.cut.pays, *result.cut.source_pays, *result.cut.sink_pays)) == result.cut.value
    assert (result.cut.sources, result.cut.sinks) == (("w",), ())
    assert result.terminals is not None
    assert str(result.terminals.supplied[1]) == "1.5"
    assert result.terminals.delivered == (5.5,)
    assert result.paths is not None
    assert list(result.paths) == [
        headrace.Path("w", "t", 4, ("a", "b")),
        headrace.Path("x", "t", Decimal("0.5"), ("c",)),
    ]
    assert (result.paths[-1], result.paths[:1]) == (result.paths[1], [result.paths[0]])
    assert (result.paths.of, result.paths.rest) == (3, 1)
    assert result.flow is not None
    assert list(map(str, result.flow.amount)) == ["4", "1.5"]
    for part, old, new in ((result.cut, "capacity", "value"), (result.flow, "flow", "amount")):
        with pytest.raises(AttributeError, match=f"what was '{old}' is called '{new}'"):
            getattr(part, old)
        assert not hasattr(part, "volume")
    assert result.timings_ms == {"solve": 0.4, "total": 1.0}


def test_updates() -> None:
    script = Script(ok(), *(ok(PATCH) for _ in range(4)))
    with script.client() as client:
        city = client.graph("city")
        patched = city.patch(edges=[1, 2], scale=0.5, rounding="down", if_version=1, solve="none")
        city.close([3])
        city.patch_endpoints(tail=["A"], head=["B"], add=[-2])
        city.apply([headrace.Update(edges=[1], set=4), headrace.Update(edges=[2], op="reopen")], on_missing="skip")
    bodies = [json.loads(request.content) for request in script.requests[1:]]
    assert bodies == [
        {"edges": [1, 2], "scale": [0.5, 0.5], "rounding": "down"},
        {"edges": [3], "op": "close"},
        {"tail": ["A"], "head": ["B"], "add": [-2]},
        {"batch": [{"edges": [1], "set": [4]}, {"edges": [2], "op": "reopen"}], "on_missing": "skip"},
    ]
    assert script.requests[1].headers["If-Match"] == '"1"'
    assert script.requests[1].url.params["solve"] == "none"
    state = patched.flow_states[0]
    assert (state.old_value, state.value, state.mode) == (6, 5.5, "warm")


def test_a_202_is_held_until_the_job_ends() -> None:
    script = Script(accepted(), job("running"), job("succeeded", result=json.loads(FLOW)))
    script.answers.insert(0, ok())
    with script.client() as client:
        result = client.graph("city").max_flow()
    assert result.value == 5.5
    assert [request.headers.get("Prefer") for request in script.requests] == [None, *["wait=30"] * 3]
    assert script.requests[-1].url.path == "/v1/jobs/j1"


def test_wait_false_gives_a_job() -> None:
    refused = {"code": "unbounded", "detail": "why", "rows": [0, 3]}
    script = Script(ok(), accepted(), job("queued"), job("running", progress={"pushes": 9}))
    script.answers += [job("running", cancelling=True), job("failed", error=refused), job("cancelled")]
    with script.client() as client:
        work = client.graph("city").max_flow(0, 3, wait=False)
        assert work.refresh().status == "running"
        assert work.progress == {"pushes": 9}
        assert work.cancel()
        with pytest.raises(headrace.Unbounded) as unbounded:
            work.wait()
        with pytest.raises(headrace.Cancelled):
            work.wait()
    assert unbounded.value.rows == [0, 3]
    assert [r.method for r in script.requests[-3:]] == ["DELETE", "GET", "GET"]


def test_a_wait_ends_at_its_deadline_and_names_the_job() -> None:
    script = Script(ok(), accepted(), *(job("running") for _ in range(50)))
    with script.client() as client, pytest.raises(headrace.WaitTimeout) as timeout:
        client.graph("city").max_flow(timeout_s=0.2)
    assert timeout.value.job_id == "j1"
    assert isinstance(timeout.value, TimeoutError)
    assert script.requests[1].headers["Prefer"] == "wait=1"


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("cut off"),
        problem(503, "worker_unavailable"),
        problem(429, "rate_limited", **{"Retry-After": "0.01"}),
        problem(429, "rate_limited", **{"Retry-After": "nan"}),
        httpx.Response(503, html="<h1>503 Service Unavailable</h1>"),  # as HAProxy says while all API processes restart
        httpx.Response(502, text="Bad Gateway"),
    ],
)
def test_retries_repeat_the_same_key_and_body(trouble: httpx.Response | Exception) -> None:
    script = Script(ok(), trouble, trouble, ok(PATCH))
    with script.client() as client:
        client.graph("city").patch(edges=[1], set=[2])
    patches = script.requests[1:]
    assert len(patches) == 3
    assert len({request.headers["Idempotency-Key"] for request in patches}) == 1
    assert {request.content for request in patches} == {b'{"edges":[1],"set":[2]}'}


def test_a_service_that_has_lost_its_files_is_asked_once() -> None:
    """Only whoever runs it can mend that: the body of a change was sent again and again for half a minute."""
    script = Script(ok(), problem(503, "data_gone"), ok(PATCH))
    with script.client() as client:
        city = client.graph("city")
        with pytest.raises(headrace.DataGone):
            city.patch(edges=[1], set=[2])
    assert len(script.requests) == 2


def test_retries_are_bounded() -> None:
    script = Script(*(httpx.ConnectError("refused") for _ in range(9)))
    with script.client() as client, pytest.raises(headrace.ConnectionFailed, match=r"is it running\? \(refused\)"):
        client.status()
    assert len(script.requests) == 3


class Clock:
    """A time of its own, in which pauses alone pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        monkeypatch.setattr("headrace._exchange.time.monotonic", lambda: self.now_s)
        monkeypatch.setattr("headrace._caller.time.sleep", self.pass_)

    def pass_(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.mark.parametrize("gone", [httpx.ConnectError("refused"), httpx.Response(502, text="nobody is there")])
def test_a_service_that_is_restarted_is_waited_for_as_long_as_is_said(
    monkeypatch: pytest.MonkeyPatch, gone: httpx.Response | Exception
) -> None:
    """A client that has never been answered soon says that the URL may be wrong."""
    clock = Clock(monkeypatch)
    script = Script(*(gone for _ in range(99)))
    once = httpx.MockTransport(script)
    for retry, first_s, later_s in (
        (Retry(), 3.0, 30.0),
        (Retry(restart_s=90, first_s=7), 7.0, 90.0),
        (Retry(restart_s=1), 1, 1),
    ):
        with Client("http://service", retry=retry, transport=once) as client:
            began_s = clock.now_s
            with pytest.raises(headrace.TransportError):
                client.status()
            assert clock.now_s - began_s == pytest.approx(first_s)
            script.answers.insert(0, ok())
            client.graph("city")
            began_s = clock.now_s
            with pytest.raises(headrace.TransportError):
                client.status()
            assert clock.now_s - began_s == pytest.approx(later_s)
    assert 10 < len(script.requests) < 99


def test_a_service_that_answers_and_is_restarted_within_the_first_call_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found by review: the first call of a client took it for one that might have a wrong URL to its very end."""
    clock, gone = Clock(monkeypatch), [httpx.ConnectError("refused")] * 99
    accepted = httpx.Response(202, headers={"Location": "/v1/jobs/j1"}, json={"id": "j1"})
    busy = problem(503, "worker_unavailable", **{"Retry-After": "1"})
    for answer in (accepted, busy):
        script = Script(answer, *gone)
        with Client("http://service", transport=httpx.MockTransport(script)) as client:
            began_s = clock.now_s
            with pytest.raises(headrace.ConnectionFailed):
                client.put_graph("city", tail=[0], head=[1], capacity=[1])
        assert 30 <= clock.now_s - began_s < 32


def test_a_service_that_was_busy_for_long_before_it_is_restarted_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by review: the time for the restart began with the first of its answers that it is busy, and was over."""
    clock = Clock(monkeypatch)
    busy = [problem(429, "rate_limited", **{"Retry-After": "10"})] * 5
    script = Script(*busy, *[httpx.ConnectError("refused")] * 3, ok())
    with Client("http://service", transport=httpx.MockTransport(script)) as client:
        began_s = clock.now_s
        client.graph("city")
    assert clock.now_s - began_s > 50


def test_a_retry_after_beyond_patience_is_raised_at_once() -> None:
    script = Script(problem(503, "worker_unavailable", **{"Retry-After": "60"}))
    with script.client() as client, pytest.raises(headrace.WorkerUnavailable) as error:
        client.status()
    assert error.value.retry_after_s == 60


def test_a_busy_service_is_asked_again_until_patience_ends() -> None:
    """As often as it takes, when it says, and not all callers at the same moment."""
    retry = Retry(attempts=2, base_s=0.001, longest_s=5)
    pauses = [retry.pause_s(failures, 20.0, left_s=50.0) for failures in range(1, 100)]
    assert all(pause is not None and 20.0 <= pause <= 30.0 for pause in pauses)
    assert len(set(pauses)) > 90
    assert retry.pause_s(1, 2.0, left_s=2.0) == 2.0
    assert retry.pause_s(1, 2.0, left_s=1.5) is None
    assert retry.pause_s(2, None) is None
    assert retry.pause_s(1, None, left_s=0.0) is None
    busy = problem(429, "rate_limited", **{"Retry-After": "0"})
    script = Script(*(busy for _ in range(20)), ok())
    with script.client(attempts=2) as client:
        client.graph("city")
    assert len(script.requests) == 21


def test_a_deadline_ends_before_patience() -> None:
    script = Script(ok(), problem(429, "rate_limited", **{"Retry-After": "3"}))
    with script.client() as client, pytest.raises(headrace.RateLimited):
        client.graph("city").max_flow(timeout_s=2)
    assert len(script.requests) == 2


def test_two_calls_have_two_keys() -> None:
    script = Script(ok(), ok(PATCH), ok(PATCH))
    with script.client() as client:
        city = client.graph("city")
        city.close([1])
        city.close([1])
    assert len({request.headers["Idempotency-Key"] for request in script.requests[1:]}) == 2


def test_a_refusal_keeps_all_it_says() -> None:
    script = Script(problem(422, "unknown_edge"))
    with script.client() as client, pytest.raises(headrace.UnknownEdge) as error:
        client.graph("city")
    refusal = error.value
    assert (refusal.code, refusal.status, refusal.detail, refusal.rows, refusal.request_id) == (
        "unknown_edge",
        422,
        "why",
        [17],
        "r1",
    )
    assert str(refusal) == "unknown_edge: why (rows [17])"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx.Response(200, html="<html>"), r"no JSON, but a page \(text/html\): .* answer at http://service\?"),
        (httpx.Response(200, json={"name": "city"}), "cannot read: .* is the service of the same release"),
        (httpx.Response(200, json=[]), "cannot read"),
        (httpx.Response(200, content=100_000 * b"["), "a body that is no JSON"),
        (httpx.Response(200, content=b"1e" + 30 * b"9"), "a body that is no JSON"),
        (httpx.Response(502, content=100_000 * b"["), "status 502 .* does a proxy or another program answer at"),
        (httpx.Response(502, text="Bad Gateway"), "status 502 .* does a proxy or another program answer at"),
        (httpx.Response(404, json=["no such page"]), "status 404 .* does a proxy or another program answer at"),
        (httpx.Response(301, headers={"Location": "/elsewhere"}), "it leads to http://service/elsewhere,"),
        (httpx.Response(302, headers={"Location": "mailto:ops"}), "a redirect to what is no address"),
        (httpx.Response(308, headers={"Location": "https://u:p@new:8443/v1?k=1"}), "it leads to https://new:8443/v1,"),
    ],
)
def test_an_answer_of_something_else(answer: httpx.Response, said: str) -> None:
    with Script(*[answer] * 3).client() as client, pytest.raises(headrace.UnexpectedAnswer, match=said):
        client.graph("city")


def test_readiness_is_a_question() -> None:
    script = Script(httpx.ConnectError("refused"), problem(503, "worker_unavailable"), ok({}), ok({}))
    with script.client() as client:
        assert not client.ready()
        client.wait_ready(5)
        assert client.ready()
    assert len(script.requests) == 4


def test_wait_ready_ends() -> None:
    script = Script(*(httpx.ConnectError("refused") for _ in range(99)))
    with script.client() as client, pytest.raises(headrace.WaitTimeout):
        client.wait_ready(0.1)


def test_events_and_progress() -> None:
    finished = {"id": "j1", "kind": "max-flow", "graph": "city", "status": "succeeded"}
    stream = (
        ': keep-alive\n\nid: 1\nevent: progress\ndata: {"pushes": 10}\n\n'
        f"id: 2\nevent: done\ndata: {json.dumps(finished)}\n\n"
    )
    script = Script(ok(), accepted(), job("running"), httpx.Response(200, text=stream))
    script.answers.append(job("succeeded", result=json.loads(FLOW)))
    with script.client() as client:
        assert client.graph("city").max_flow(progress=True).value == 5.5
    assert script.requests[3].url.path == "/v1/jobs/j1/events"

    script = Script(job("running"), httpx.Response(200, text=stream), httpx.Response(200, text=": cut off\n"))
    with script.client() as client:
        work = client.job("j1")
        events = list(work.events())
        with pytest.raises(headrace.ConnectionFailed):
            list(work.events())
    assert [(event.id, event.name) for event in events] == [("1", "progress"), ("2", "done")]
    assert events[0].data == {"pushes": 10}


def test_events_outlast_any_number_of_quiet_connections() -> None:
    """A balancer ends each after a while, though nothing happens; one that never lasts is given up."""
    quiet = httpx.Response(200, text=": from here on\nid: 7\n\n: nothing happens\n\n")
    told = httpx.Response(200, text='event: version\ndata: {"version": 2}\nid: 8\n\n')
    script = Script(ok(), *[quiet] * 9, told)
    with script.client() as client, client.graph("city").events() as events:
        assert next(events).id == "8"
    assert [request.headers.get("Last-Event-ID") for request in script.requests[1:]] == [None, *["7"] * 9]
    script = Script(ok(), *[httpx.Response(200, text=": from here on\nid: 7\n\n")] * 9)
    broken = pytest.raises(headrace.ConnectionFailed, match="broke off")
    with script.client() as client, client.graph("city").events() as events, broken:
        next(events)
    assert len(script.requests) == 1 + 3


def test_upload_progress_sends_the_same_bytes() -> None:
    stream = 'id: 1\nevent: progress\ndata: {"phase": "reading", "fraction": 0.5}\n\nid: 2\nevent: done\ndata: {}\n\n'
    script = Script(ok(), accepted(), job("running", kind="load"), httpx.Response(200, text=stream))
    script.answers.append(job("succeeded", kind="load", result=GRAPH))
    with script.client() as client:
        for progress in (False, True):
            client.put_graph("city", tail=["A"], head=["B"], capacity=[1], progress=progress)
    plain, watched = script.requests[:2]
    assert watched.headers["Prefer"] == "respond-async"
    assert plain.content == watched.content
    assert "Transfer-Encoding" not in watched.headers


def test_progress_without_its_extra_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the graph is there all the same."""
    monkeypatch.setitem(sys.modules, "rich", None)
    script = Script(accepted(), job("running"), httpx.Response(200, text=""), job("succeeded", result=GRAPH))
    with script.client() as client, pytest.warns(UserWarning, match=r"pip install \"headrace\[progress\]\""):
        assert client.put_graph("city", tail=["A"], head=["B"], capacity=[1], progress=True).info.version == 1


def test_the_async_client_does_the_same() -> None:
    script = Script(accepted(), job("running"), httpx.ReadError("reset"), job("succeeded", result=GRAPH))
    script.answers += [httpx.ReadError("reset"), ok(PATCH), accepted(), job("running")]
    script.answers += [job("succeeded", result=json.loads(FLOW)), problem(404, "unknown_graph")]

    async def session() -> None:
        retry = Retry(attempts=2, base_s=0.001)
        async with AsyncClient("http://service", retry=retry, transport=httpx.MockTransport(script)) as client:
            city = await client.put_graph("city", tail=["A"], head=["B"], capacity=[1], progress=True)
            assert (await city.patch(edges=[1], set=[2])).version == 2
            assert (await city.max_flow()).value == 5.5
            with pytest.raises(headrace.UnknownGraph):
                await client.graph("town")

    asyncio.run(session())


@pytest.mark.parametrize(
    ("sync", "asynchronous"),
    [(Client, AsyncClient), (headrace.Graph, headrace.AsyncGraph), (headrace.Job, headrace.AsyncJob)],
)
def test_sync_and_async_offer_the_same(sync: type, asynchronous: type) -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }

    assert methods(sync) == methods(asynchronous)


def test_a_probe_is_impatient() -> None:
    script = Script(httpx.ReadTimeout("silent"), ok({}), ok({}))
    with script.client() as client:
        assert not client.ready()
        assert client.ready()
        client.wait_ready(0.5)
    timeouts = [request.extensions["timeout"]["read"] for request in script.requests]
    assert timeouts[0] == 5
    assert timeouts[2] <= 0.5


class Broken(httpx.SyncByteStream):
    """A body that ends before it should."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"the first half and more of what"
        raise httpx.RemoteProtocolError("peer closed connection")


def test_a_file_that_breaks_off_is_begun_anew(tmp_path: Path) -> None:
    whole = httpx.Response(200, content=b"all", headers={"ETag": '"7"'})
    script = Script(httpx.Response(200, json=GRAPH), httpx.Response(200, stream=Broken()), problem(503, "x"), whole)
    with script.client(attempts=4) as client:
        assert client.graph("city").export(tmp_path / "city.npz") == 7
    assert (tmp_path / "city.npz").read_bytes() == b"all"
    asked = script.requests[-1]
    assert (asked.url.path, asked.url.params["format"]) == ("/v1/graphs/city/export", "npz")
    assert asked.headers["prefer"] == "wait=300"


@pytest.mark.parametrize("answer", [problem(404, "unknown_graph"), httpx.Response(200, stream=Broken())])
def test_a_file_that_does_not_come_leaves_nothing(tmp_path: Path, answer: httpx.Response) -> None:
    (tmp_path / "city.max").write_bytes(b"as it was")
    script = Script(httpx.Response(200, json=GRAPH), answer)
    with script.client(attempts=1) as client, pytest.raises(headrace.HeadraceError):
        client.graph("city").export(tmp_path / "city.max")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("city.max", b"as it was")]


@pytest.mark.parametrize("name", ["city.csv", "city", "city.npz.gz"])
def test_a_file_of_no_known_kind_is_not_asked_for(tmp_path: Path, name: str) -> None:
    script = Script(httpx.Response(200, json=GRAPH))
    with script.client() as client, pytest.raises(headrace.InvalidInput, match="the suffix must be one of"):
        client.graph("city").export(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_copy(tmp_path: Path) -> None:
    script = Script(httpx.Response(200, json=GRAPH), httpx.Response(201, json=GRAPH | {"name": "city-2"}))
    with script.client() as client:
        assert client.graph("city").copy("city-2").name == "city-2"
    asked = script.requests[-1]
    assert (asked.method, asked.url.path, json.loads(asked.content)) == (
        "POST",
        "/v1/graphs/city:copy",
        {"to": "city-2"},
    )
    assert asked.headers["idempotency-key"]
