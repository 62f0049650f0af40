"""HEAD answers what GET would, without the body, and without what is long to make."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from service.api.app import create_app
from service.api.guards.access import NEEDED, PAGES
from service.protocol import Kind, Status
from service.settings import Settings
from service.store.api_keys import Scope
from service.store.jobs.events import JobEvent
from tests.contract.conftest import running
from tests.contract.fakes import Api, Stored, filled
from tests.contract.test_access import make_key, no_keys_left

__all__ = ["no_keys_left"]

ASKED = {"capacities": Kind.CAPACITIES, "vertices": Kind.VERTICES, "export": Kind.EXPORT}
GETS = [filled(path) for method, path in (*NEEDED, *PAGES) if method == "GET" and not path.endswith("{file}")]
ALSO = ["/", "/docs", "/openapi.json", "/login", "/console/assets/graph.js", "/v1/nothing", "/v1/graphs/no%20name"]
LONG = b"[" + 400_000 * b" " + b"]"


@pytest.mark.parametrize("path", [*GETS, *ALSO])
def test_a_head_is_that_of_the_answer(api: Api, path: str) -> None:
    api.fakes.blobs.stored["file"] = LONG
    api.fakes.dispatcher.answer = lambda sent: {"version": 7, "blob": "file"}
    asked = api.http.head(path)
    assert asked.content == b""
    if path.endswith("/events"):
        return
    whole = api.http.get(path)
    assert asked.status_code == whole.status_code
    made = {"x-request-id", "date", "repr-digest"} | ({"content-length"} if path.rpartition("/")[2] in ASKED else set())
    said = [{name: value for name, value in answer.headers.items() if name not in made} for answer in (asked, whole)]
    if path not in ("/metrics", "/status"):
        assert said[0] == said[1]


@pytest.mark.parametrize("path", ["/livez", "/v1/graphs/city", "/v1/graphs/city/capacities", "/v1/jobs/x/events", "/"])
def test_nothing_follows_a_head(api: Api, path: str) -> None:
    head = f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n"
    with socket.create_connection(api.address) as connection:
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        said = b"".join(iter(lambda: connection.recv(65536), b""))
    first, _, rest = said.partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 ")
    assert b"chunked" not in first
    assert rest.startswith(b"HTTP/1.1 200 OK\r\n")


def test_no_worker_is_asked(api: Api) -> None:
    for path, kind in ASKED.items():
        before = api.http.head(f"/v1/graphs/city/{path}")
        assert (before.status_code, before.headers["etag"]) == (200, '"7"')
        assert not api.fakes.dispatcher.sent
        assert api.http.head(f"/v1/graphs/nowhere/{path}").status_code == 404
        assert api.http.head(f"/v1/graphs/city/{path}", headers={"Prefer": "respond-async"}).status_code == 400
        assert api.http.head(f"/v1/graphs/city/{path}", headers={"If-None-Match": '"7"'}).status_code == 304
        assert api.http.head(f"/v1/graphs/city/{path}", headers={"If-Match": '"6"'}).status_code == 412
        assert kind not in {sent.kind for sent in api.fakes.dispatcher.sent}
    npz = api.http.head("/v1/graphs/city/capacities", headers={"Accept": "application/x-npz"})
    assert [npz.headers[name] for name in ("etag", "content-type", "vary")] == [
        '"npz.7"',
        "application/x-npz",
        "Accept",
    ]
    past = api.http.head("/v1/graphs/city/export?version=3")
    assert (past.status_code, "etag" in past.headers) == (200, False), "it would have a digest in it"
    assert api.http.head("/v1/graphs/city/export?version=3", headers={"If-Match": '"7"'}).status_code == 412
    assert api.http.head("/v1/graphs/city/export?version=8").status_code == 409


def test_a_question_has_no_head(api: Api) -> None:
    """It would have to be solved. Nor has a change."""
    for path in (
        path for path, operations in create_app(Settings()).openapi()["paths"].items() if "get" not in operations
    ):
        refused = api.http.head(filled(path))
        assert refused.status_code == api.http.get(filled(path)).status_code, path
        assert (refused.status_code, "HEAD" in refused.headers["allow"]) == (405, False), path
    assert "GET, HEAD" in api.http.post("/v1/graphs/city", json={}).headers["allow"]
    assert not api.fakes.dispatcher.sent


def test_no_stream_goes_on_for_a_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it keep its place among those that run."""
    followed: Counter[str] = Counter()

    async def without_end(job_id: str, last_event_id: str | None) -> AsyncIterator[JobEvent]:
        followed[job_id] += 1
        try:
            await asyncio.Event().wait()
            yield JobEvent(id="1-0", event="done", data={})
        finally:
            followed[job_id] -= 1

    with running(Settings(max_event_streams=1)) as api:
        monkeypatch.setattr(api.fakes.dispatcher, "events", without_end)
        api.http.post("/v1/graphs/city/max-flow", json={})
        for _ in range(5):
            head = api.http.head("/v1/jobs/job-0/events")
            assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
            assert not followed.total()
        assert 'method="HEAD",route="/v1/jobs/{job_id}/events",status="200"' in api.http.get("/metrics").text


def test_a_long_result_is_not_read_for_a_head(api: Api) -> None:
    api.fakes.blobs.stored["long"] = LONG
    api.fakes.dispatcher.answer = lambda _: Stored("long", 7)
    assert api.http.post("/v1/graphs/city/max-flow", json={}).content == LONG
    head = api.http.head("/v1/jobs/job-0/result")
    assert (head.status_code, head.headers["etag"]) == (200, '"7"')
    job = api.http.head("/v1/jobs/job-0")
    assert int(job.headers["content-length"]) > len(LONG)
    for tag in ('"7"', "*"):
        held = api.http.get("/v1/jobs/job-0/result", headers={"If-None-Match": tag})
        assert (held.status_code, held.content, held.headers["etag"]) == (304, b"", '"7"')
    api.fakes.dispatcher.answer = lambda _: Status.RUNNING
    api.http.post("/v1/graphs/city/max-flow", json={}, headers={"Prefer": "respond-async"})
    running = api.http.head("/v1/jobs/job-1/result")
    assert (running.status_code, running.headers["location"]) == (202, "/v1/jobs/job-1")


def test_the_file_that_is_held_is_not_kept(api: Api) -> None:
    api.fakes.blobs.stored["file"] = LONG
    api.fakes.dispatcher.answer = lambda sent: {"version": 7, "blob": "file", "format": sent.args.format}
    held = api.http.get("/v1/graphs/city/export", headers={"If-None-Match": '"7"'})  # no version is known beforehand
    assert (held.status_code, held.content, held.headers["etag"]) == (304, b"", '"7"')
    assert api.fakes.blobs.deleted == ["file"]


@pytest.mark.parametrize("path", ["", "/capacities", "/vertices", "/export", "/snapshots/1", "/events"])
def test_nobody_learns_of_a_graph_that_the_key_is_not_for(api: Api, path: str) -> None:
    other = make_key(api, Scope.READ, "other")
    headers: list[dict[str, Any]] = [{"If-None-Match": tag} for tag in ("*", '"7"', '"8"', "junk")]
    for name in ("city", "nowhere"):
        for method in ("GET", "HEAD"):
            for condition in headers:
                known = api.http.request(method, f"/v1/graphs/{name}{path}", headers=other | condition)
                assert (known.status_code, "etag" in known.headers) == (403, False)
                unknown = api.http.request(method, f"/v1/graphs/{name}{path}", headers=condition)
                assert (unknown.status_code, "etag" in unknown.headers) == (401, False)
