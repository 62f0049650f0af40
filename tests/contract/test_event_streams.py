"""Server-sent events through dropped connections: real Redis, worker and uvicorn; the solver waits for the test."""

import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import httpx
import pytest
import uvicorn

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Engine, FlowState, SolveReport
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Room, unlimited
from gpu_engine.networks.network import Network
from service.api.app import create_app
from service.api.guards import access
from service.api.replies import streams
from service.settings import Settings
from service.store.api_keys import ApiKeys, Scope
from service.store.connection import connect
from service.store.keys import Keys
from service.worker.process import Worker
from tests.heartbeats import forked
from tests.serving import PATIENCE_S, eventually


class PatientEngine(CpuEngine):
    """Counts pushes until `may_end` is set, then solves."""

    may_end: threading.Event

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        control = control or Control()
        while not self.may_end.wait(0.02):
            control.slots[Control.PUSHES] += 1
            if control.cancelled:
                raise Cancelled("cancelled")
        return super().solve(state, control, cold=cold)


@dataclass
class Running:
    http: httpx.Client
    may_end: threading.Event
    api_keys: ApiKeys

    def slow_job(self) -> str:
        """The path of a job that runs until `may_end`."""
        self.may_end.clear()
        headers = {"Prefer": "respond-async"}
        location: str = self.http.post("/v1/graphs/g/max-flow", headers=headers).headers["location"]
        eventually(lambda: self.http.get(location).json()["status"] == "running")
        return location


@pytest.fixture(scope="module")
def shared(redis_url: str) -> Iterator[Running]:
    with running_with(redis_url) as running:
        yield running


@pytest.fixture
def running(shared: Running) -> Iterator[Running]:
    yield shared
    shared.may_end.set()


@pytest.fixture
def guarded(redis_url: str) -> Iterator[Running]:
    """A service of the test's own, which may get API keys."""
    with running_with(redis_url) as running:
        yield running


@contextmanager
def running_with(redis_url: str) -> Iterator[Running]:
    with forked(), _running(redis_url) as running:
        yield running


@contextmanager
def _running(redis_url: str) -> Iterator[Running]:
    settings = Settings(redis_url=redis_url, redis_prefix=f"test-{uuid.uuid4().hex}:", lease_s=2)
    may_end = threading.Event()
    may_end.set()

    def open_engine(network: Network, room: Room = unlimited) -> Engine:
        engine = PatientEngine(network, room)
        engine.may_end = may_end
        return engine

    worker = Worker(settings, "w0", open_engine)
    server = uvicorn.Server(uvicorn.Config(create_app(settings), log_config=None, access_log=False))
    listener = socket.create_server(("127.0.0.1", 0))
    threads = [
        threading.Thread(target=worker.run),
        threading.Thread(target=server.run, kwargs={"sockets": [listener]}),
    ]
    for thread in threads:
        thread.start()
    try:
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with httpx.Client(base_url=base_url, verify=False, trust_env=False, timeout=PATIENCE_S) as http:
            eventually(lambda: http.get("/readyz").status_code == 200)
            graph = {"tail": [0, 1], "head": [1, 2], "capacity": [3, 2], "source": 0, "sink": 2}
            assert http.put("/v1/graphs/g", json=graph).status_code == 201
            with closing(connect(settings)) as client:
                yield Running(http, may_end, ApiKeys(client, Keys(settings.redis_prefix)))
    finally:
        may_end.set()
        server.should_exit = True
        worker.stop()
        for thread in threads:
            thread.join(PATIENCE_S)
        listener.close()


@dataclass
class Event:
    id: str
    name: str
    data: str


def events(response: httpx.Response) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "event" in fields:
            yield Event(fields["id"], fields["event"], fields["data"])
            fields = {}


def follow(running: Running, job: str, last: str | None, count: int | None = None) -> list[Event]:
    """Up to `count` events after `last`; then the connection is closed in the middle of the stream."""
    headers = {} if last is None else {"Last-Event-ID": last}
    found = []
    with running.http.stream("GET", f"{job}/events", headers=headers) as response:
        assert response.status_code == 200, response.read()
        for event in events(response):
            found.append(event)
            if len(found) == count:
                break
    return found


def test_a_dropped_stream_goes_on_where_it_was(running: Running) -> None:
    job = running.slow_job()
    first = follow(running, job, None, count=2)
    time.sleep(0.6)  # progress that nobody hears
    second = follow(running, job, first[-1].id, count=4)
    running.may_end.set()
    third = follow(running, job, second[-1].id)
    heard = [*first, *second, *third]
    assert [event.name for event in heard] == ["progress"] * (len(heard) - 1) + ["done"]
    assert heard == follow(running, job, None)  # none missed, none twice
    pushes = [int(event.data.split('"pushes":')[1].split(",")[0]) for event in heard[:-1]]
    assert pushes == sorted(pushes)


def end_seen(running: Running, job: str, last: str) -> bool:
    """Whether an EventSource that comes back after this event is told to come no more."""
    with running.http.stream("GET", f"{job}/events", headers={"Last-Event-ID": last}) as response:
        if response.status_code == 204:
            assert response.read() == b""
            return True
        assert response.status_code == 200
        return False


def test_an_event_source_that_has_seen_the_end_is_told_to_come_no_more(running: Running) -> None:
    """By the HTML standard it comes back after every end of a stream, until it is answered 204."""
    job = running.slow_job()
    first = follow(running, job, None, count=1)[0]
    assert not end_seen(running, job, first.id)  # it runs on
    running.may_end.set()
    heard = follow(running, job, None)
    assert heard[-1].name == "done"
    assert end_seen(running, job, heard[-1].id)
    assert not end_seen(running, job, heard[-2].id)  # the end is still to be told
    assert not end_seen(running, job, "99999999999999999999-0")
    assert follow(running, job, heard[-2].id) == heard[-1:]


def test_so_is_one_that_came_when_all_was_over(running: Running) -> None:
    """Nobody listened while it ran, nor was its progress told: its end stands in no stream."""
    job = running.http.post("/v1/graphs/g/max-flow", headers={"Prefer": "respond-async"}).headers["location"]
    eventually(lambda: running.http.get(job).json()["status"] == "succeeded")
    done = follow(running, job, None)[-1]
    assert done.name == "done"
    assert end_seen(running, job, done.id)


@pytest.mark.parametrize(
    "last", ["99999999999999-7", "99999999999999999999", "18446744073709551615-18446744073709551615"]
)
def test_an_id_that_never_was_hides_nothing(running: Running, last: str) -> None:
    job = running.slow_job()
    threading.Timer(0.5, running.may_end.set).start()
    heard = follow(running, job, last)
    assert [event.name for event in heard][-1] == "done"
    assert len(heard) > 1


def test_a_cancelled_job_ends_its_streams(running: Running) -> None:
    job = running.slow_job()
    heard: list[Event] = []
    listener = threading.Thread(target=lambda: heard.extend(follow(running, job, None)))
    listener.start()
    eventually(lambda: bool(running.http.delete(job).json()["status"]))
    listener.join(PATIENCE_S)
    assert (heard[-1].name, '"cancelled"' in heard[-1].data) == ("done", True)


def test_many_listeners_leave_room_for_all_else(running: Running) -> None:
    """Found by hand: from a hundred on, the process said that Redis was away. Each listener waits in Redis."""
    location = running.slow_job()
    url = running.http.base_url
    listeners = []
    for _ in range(150):
        listener = socket.create_connection((url.host, url.port or 80), timeout=30)
        listener.sendall(f"GET {location}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        listeners.append(listener)
    assert {listener.recv(12) for listener in listeners} == {b"HTTP/1.1 200"}
    assert running.http.get("/status").status_code == 200
    assert running.http.get(location).json()["status"] == "running"
    running.may_end.set()
    for listener in listeners:
        text = b""
        while b"event: done" not in text:
            piece = listener.recv(65536)
            assert piece, text
            text += piece
        listener.close()


@pytest.mark.parametrize("quiet", [True, False])
def test_a_stream_ends_with_its_key(guarded: Running, quiet: bool) -> None:
    """Whether events come or not; and so does one that was opened before there were keys. Others go on."""
    job = guarded.slow_job()
    if quiet:  # it waits for the other
        job = guarded.http.post("/v1/graphs/g/max-flow", headers={"Prefer": "respond-async"}).headers["location"]
    heard: dict[str, list[str]] = {"nobody": [], "revoked": [], "good": []}
    ended: dict[str, float] = {}

    def listen(name: str, headers: dict[str, str]) -> None:
        with guarded.http.stream("GET", f"{job}/events", headers=headers) as response:
            assert response.status_code == 200
            begun.release()
            heard[name] = [event.name for event in events(response)]
        ended[name] = time.monotonic()

    begun = threading.Semaphore(0)
    listeners = [threading.Thread(target=listen, args=("nobody", {}))]
    listeners[0].start()
    assert begun.acquire(timeout=PATIENCE_S)
    made = {name: guarded.api_keys.create(name, Scope.READ) for name in ("revoked", "good")}
    made_at = time.monotonic()
    for name, (_, token) in made.items():
        listeners.append(threading.Thread(target=listen, args=(name, {"X-API-Key": token})))
        listeners[-1].start()
        assert begun.acquire(timeout=PATIENCE_S)
    time.sleep(access.FRESH_S + 2 * streams.CHECK_S)
    assert ended.keys() == {"nobody"}
    assert ended["nobody"] - made_at < 5
    revoked_at = time.monotonic()
    guarded.api_keys.revoke(made["revoked"][0].id)
    listeners[1].join(PATIENCE_S)
    assert ended["revoked"] - revoked_at < 5
    print(f"ended {ended['nobody'] - made_at:.1f} s and {ended['revoked'] - revoked_at:.1f} s later")
    time.sleep(0.5)
    assert ended.keys() == {"nobody", "revoked"}
    guarded.may_end.set()
    listeners[2].join(PATIENCE_S)
    assert heard["good"][-1] == "done"
    assert "done" not in heard["nobody"] + heard["revoked"]


def test_who_waits_for_a_job_gets_it_with_a_good_key_only(guarded: Running) -> None:
    job = guarded.slow_job()
    (_, good), (revoked, token) = (guarded.api_keys.create("x", Scope.READ) for _ in range(2))
    answers: dict[str, int] = {}

    def wait(token: str) -> None:
        headers = {"Prefer": "wait=60", "X-API-Key": token}
        answers[token] = guarded.http.get(job, headers=headers).status_code

    waiting = [threading.Thread(target=wait, args=(token,)) for token in (good, token)]
    for thread in waiting:
        thread.start()
    time.sleep(0.5)
    guarded.api_keys.revoke(revoked.id)
    time.sleep(access.FRESH_S)
    assert answers == {}
    guarded.may_end.set()
    for thread in waiting:
        thread.join(PATIENCE_S)
    assert answers == {good: 200, token: 401}
