"""Long results: sent piece by piece, checked on the way, and never in memory as a whole."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Literal

import httpx
import pytest
import redis

from service.errors import ServiceError
from service.protocol import Problem, Reply, Status
from service.settings import Settings
from service.store.blobs import RESULT_CHUNK_BYTES, Blobs
from service.store.connection import connect
from service.store.keys import Keys
from tests.contract.fakes import Api, Stored
from tests.contract.test_bombs import Memory
from tests.contract.test_codes import check_problem
from tests.serving import Service, eventually, serving

TEXT = b'{"graph":"city","version":3,"value":"' + 400 * b"x" + b'"}'


@pytest.fixture
def stored(api: Api) -> Api:
    api.fakes.blobs.stored["long"] = TEXT
    api.fakes.dispatcher.answer = lambda _: Stored("long", version=3)
    return api


def test_a_long_answer_is_passed_on_as_it_was_written(stored: Api) -> None:
    response = stored.http.post("/v1/graphs/city/max-flow")
    assert (response.status_code, response.content) == (200, TEXT)
    assert response.headers["content-length"] == str(len(TEXT))
    assert (response.headers["etag"], response.headers["content-type"]) == ('"3"', "application/json")


def test_a_long_answer_of_the_release_before_has_no_etag(stored: Api) -> None:
    """Its worker said nothing beside it, and the result itself is not read here."""
    stored.fakes.dispatcher.answer = lambda _: Stored("long")
    response = stored.http.post("/v1/graphs/city/max-flow")
    assert (response.status_code, response.content) == (200, TEXT)
    assert "etag" not in response.headers


def test_a_job_has_its_long_result(stored: Api) -> None:
    location = stored.http.post("/v1/graphs/city/max-flow", headers={"Prefer": "respond-async"}).headers["location"]
    response = stored.http.get(location)
    assert (response.json()["result"], response.json()["status"]) == (json.loads(TEXT), "succeeded")
    assert response.headers["content-length"] == str(len(response.content))


def test_a_result_that_is_gone_is_said_to_be(stored: Api) -> None:
    location = stored.http.post("/v1/graphs/city/max-flow", headers={"Prefer": "respond-async"}).headers["location"]
    stored.fakes.blobs.stored.clear()
    check_problem(stored.http.post("/v1/graphs/city/max-flow"), "unknown_job")
    job = stored.http.get(location).json()
    assert (job["result"], job["error"]["code"]) == (None, "unknown_job")


@pytest.mark.parametrize("lost", ["jobs", "ends of jobs"])
def test_a_result_that_redis_lost_may_be_asked_for_again(stored: Api, lost: Literal["jobs", "ends of jobs"]) -> None:
    """Found by seeds 20040 and 50150 of the fault bench: the caller waits for an answer that Redis then loses."""
    stored.fakes.blobs.stored.clear()
    stored.fakes.dispatcher.lost = lost
    response = stored.http.post("/v1/graphs/city/max-flow")
    check_problem(response, "worker_unavailable")
    assert response.headers["retry-after"]


def test_an_answer_that_is_not_what_was_written_is_broken_off(stored: Api) -> None:
    stored.fakes.blobs.stored["long"] = 30 * b"1234567890" + b"BROKEN...."
    with pytest.raises(httpx.RemoteProtocolError):
        stored.http.post("/v1/graphs/city/max-flow")
    stored.fakes.blobs.stored["long"] = b"BROKEN...."
    check_problem(stored.http.post("/v1/graphs/city/max-flow"), "unknown_job")


FILE = b"PK" + bytes(range(256))


@pytest.mark.parametrize("path", ["max-flow", "min-cut", "matching"])
def test_a_file_is_passed_on_as_it_was_written(api: Api, path: str) -> None:
    api.fakes.blobs.stored["file"] = FILE
    api.fakes.dispatcher.answer = lambda sent: Stored(
        "file", version=3, media_type=f"application/x-{sent.args.encoding}"
    )
    accept = {"Accept": "application/x-npz, application/json;q=0.5"}
    response = api.http.post(f"/v1/graphs/city/{path}", headers=accept)
    assert (response.status_code, response.content) == (200, FILE)
    said = [response.headers[name] for name in ("content-type", "etag", "vary", "content-length")]
    assert said == ["application/x-npz", '"3"', "Accept", str(len(FILE))]


def test_a_job_says_what_its_file_is_and_gives_it(api: Api) -> None:
    api.fakes.blobs.stored["file"] = FILE
    api.fakes.dispatcher.answer = lambda _: Stored("file", version=3, media_type="application/x-npz")
    accept = {"Accept": "application/x-npz", "Prefer": "respond-async"}
    location = api.http.post("/v1/graphs/city/max-flow", headers=accept).headers["location"]
    job = api.http.get(location).json()
    assert (job["status"], job["result"]) == ("succeeded", {"media_type": "application/x-npz"})
    for accepted in ("application/x-npz", "*/*", "application/*;q=0.1"):
        response = api.http.get(f"{location}/result", headers={"Accept": accepted})
        assert (response.content, response.headers["content-type"]) == (FILE, "application/x-npz")
    refused = api.http.get(f"{location}/result", headers={"Accept": "application/json"})
    assert "application/x-npz" in check_problem(refused, "not_acceptable")["detail"]
    api.fakes.blobs.stored.clear()
    check_problem(api.http.get(f"{location}/result"), "unknown_job")


def test_the_result_of_a_job_is_what_the_waiting_call_answers(stored: Api) -> None:
    def result_of(answer: Any) -> httpx.Response:
        stored.fakes.dispatcher.answer = lambda _: answer
        started = stored.http.post("/v1/graphs/city/max-flow", headers={"Prefer": "respond-async"})
        return stored.http.get(started.headers["location"] + "/result")

    long, short = result_of(Stored("long", version=3)), result_of({"version": 4})
    assert [(answer.content, answer.headers["etag"]) for answer in (long, short)] == [
        (TEXT, '"3"'),
        (b'{"version": 4}', '"4"'),
    ]
    check_problem(result_of(Problem(code="unbounded", detail="why")), "unbounded")
    running = result_of(Status.RUNNING)
    assert (running.status_code, running.headers["location"]) == (202, f"/v1/jobs/{running.json()['id']}")
    check_problem(stored.http.get("/v1/jobs/nobody/result"), "unknown_job")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Settings]]:
    folder = tmp_path_factory.mktemp("results")
    with serving(folder / "data", folder / "log", {"HEADRACE_ACCESS_LOG": "false"}) as service:
        service.wait_ready()
        yield service, Settings(data_dir=folder / "data", redis_url=None)


@pytest.fixture
def client(service: tuple[Service, Settings]) -> Iterator[redis.Redis]:
    client = connect(service[1])
    yield client
    client.close()


def finished(client: redis.Redis, settings: Settings, job_id: str, result: bytes) -> str:
    """A job with this result, as a worker leaves it; the key of the blob."""
    keys = Keys(settings.redis_prefix)
    blob = Blobs(client, keys).write([result], 60, chunk_bytes=RESULT_CHUNK_BYTES)[0]
    reply = Reply(id=job_id, status=Status.SUCCEEDED).model_dump_json()
    fields = {"kind": "max-flow", "graph": "g", "worker": "w", "created_at": 1.0, "status": "succeeded"}
    client.hset(keys.job(job_id), mapping=fields | {"reply": reply, "result_blob": blob})
    return keys.blob(blob)


def test_what_redis_has_lost_is_not_passed_on(service: tuple[Service, Settings], client: redis.Redis) -> None:
    """A bit turned in the last piece, and a piece in the middle that has gone."""
    (running, settings), result = service, b'"' + 3 * RESULT_CHUNK_BYTES * b"x" + b'"'
    key = finished(client, settings, "long", result)
    assert running.http.get("/v1/jobs/long").json()["result"] == json.loads(result)
    client.hset(key, "3", b'y"')
    with pytest.raises(httpx.RemoteProtocolError):
        running.http.get("/v1/jobs/long")
    client.hset(key, "3", b'x"')
    client.hdel(key, "2")
    with pytest.raises(httpx.RemoteProtocolError):
        running.http.get("/v1/jobs/long")
    client.unlink(key)
    assert running.http.get("/v1/jobs/long").json()["error"]["code"] == "unknown_job"


SENDING = "headrace_http_sending_bytes "
READERS = 60
READER_BYTES = 2 << 20
"""Three pieces, and what the socket takes before it says that it is full."""


def test_readers_that_never_read_hold_little(service: tuple[Service, Settings], client: redis.Redis) -> None:
    running, settings = service
    finished(client, settings, "huge", b'"' + (32 << 20) * b"x" + b'"')
    host, port = running.http.base_url.host, running.http.base_url.port
    assert port is not None
    memory = Memory(running.children()["api"])
    with ExitStack() as open_ones:
        for _ in range(READERS):
            reader = open_ones.enter_context(socket.create_connection((host, port), timeout=30))
            reader.sendall(b"GET /v1/jobs/huge HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(20):
            time.sleep(0.1)
            assert running.http.get("/livez").status_code == 200
        assert 0 < metric(running, SENDING) <= READERS * 3 * RESULT_CHUNK_BYTES
        assert memory.extra_bytes() < READERS * READER_BYTES
    eventually(lambda: metric(running, SENDING) == 0)


def metric(service: Service, name: str) -> float:
    lines = service.http.get("/metrics").text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(name))


def test_a_job_is_not_accepted_before_redis_has_written_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a kill of Redis in that moment would lose it, and its address would lead nowhere."""

    async def not_written(job_id: str) -> None:
        raise ServiceError("worker_unavailable", "Redis has not written", retry_after_s=1)

    monkeypatch.setattr(api.fakes.dispatcher, "until_job_written", not_written)
    check_problem(api.http.post("/v1/graphs/city/max-flow", headers={"Prefer": "respond-async"}), "worker_unavailable")
