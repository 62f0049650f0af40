"""Requests that follow one another on a connection before the answers came: each gets its own, in order."""

import json
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import uvicorn

from gpu_engine.cpu.engine import CpuEngine
from service.api.http import protocol as http_protocol
from service.api.http.server import config
from service.settings import Settings
from service.worker.process import Worker
from tests.serving import PATIENCE_S, eventually

Address = tuple[str, int]
GRAPH = {"tail": [0, 1], "head": [1, 2], "capacity": [3, 2], "source": 0, "sink": 2}
FOLLOWERS = {
    "partial": b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ",
    "broken": b"\x16\x03\x01\x02 this is no HTTP\r\n\r\n",
    "too long": b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + 80_000 * b"x" + b"\r\n\r\n",
}


@pytest.fixture(scope="module")
def service(redis_url: str) -> Iterator[tuple[Address, httpx.Client]]:
    """The server as `service.api.http.server` configures it, a worker, and a graph."""
    settings = Settings(redis_url=redis_url, redis_prefix=f"test-{uuid.uuid4().hex}:", lease_s=60)
    worker = Worker(settings, "w0", CpuEngine)
    server = uvicorn.Server(config(settings))
    listener = socket.create_server(("127.0.0.1", 0))
    threads = [
        threading.Thread(target=worker.run),
        threading.Thread(target=server.run, kwargs={"sockets": [listener]}),
    ]
    for thread in threads:
        thread.start()
    address = listener.getsockname()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{address[1]}", trust_env=False, timeout=PATIENCE_S) as http:
            eventually(lambda: http.get("/readyz").status_code == 200)
            assert http.put("/v1/graphs/g", json=GRAPH).status_code == 201
            yield address, http
    finally:
        server.should_exit = True
        worker.stop()
        for thread in threads:
            thread.join(PATIENCE_S)
        listener.close()


def request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def patch(amount: int, *, padding: int = 0) -> bytes:
    """One change of capacity in a body as large as wanted."""
    body = json.dumps({"edges": [0], "set": [amount]}).encode()
    return request("PATCH", "/v1/graphs/g/capacities", body + padding * b" ")


def chunked(method: str, path: str, *chunks: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    return head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + body


class Answers:
    """What a connection answers, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")

    def next(self) -> tuple[int, bytes] | None:
        """Status and body; None at the end."""
        try:
            status = self._file.readline()
            if not status:
                return None
            headers = {}
            while line := self._file.readline().strip():
                name, _, value = line.partition(b": ")
                headers[name.lower()] = value
            return int(status.split()[1]), self._file.read(int(headers[b"content-length"]))
        except ConnectionResetError:
            return None


def exchange(address: Address, *pieces: bytes, pause_s: float = 0.02) -> list[tuple[int, Any]]:
    """Status and body of each answer until the server closes."""
    with socket.create_connection(address, timeout=60) as connection:
        answers = Answers(connection)
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause_s)
        return [(status, json.loads(body)) for status, body in iter(answers.next, None)]


@pytest.mark.parametrize("follower", FOLLOWERS)
@pytest.mark.parametrize("padding", [0, 900_000])
def test_what_follows_a_request_cannot_take_its_answer(
    service: tuple[Address, httpx.Client], follower: str, padding: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PATCH is committed and says so; only then is the broken request behind it refused, and the connection ends."""
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 1.0)
    address, http = service
    before = http.get("/v1/graphs/g").json()["version"]
    (first, patched), *rest = exchange(address, patch(5, padding=padding) + FOLLOWERS[follower])
    assert (first, patched["version"]) == (200, before + 1)
    assert [(status, problem["code"]) for status, problem in rest] == (
        [] if follower == "partial" else [(400, "invalid_request")]
    )


def test_a_refusal_comes_behind_the_answer_before_it(service: tuple[Address, httpx.Client]) -> None:
    """Also behind one without a body, whose head is held for a moment."""
    with socket.create_connection(service[0], timeout=60) as connection, connection.makefile("rb") as answers:
        connection.sendall(request("HEAD", "/livez") + FOLLOWERS["broken"])
        assert re.findall(rb"HTTP/1.1 (\d+)", answers.read()) == [b"200", b"400"]


def test_requests_are_answered_one_after_the_other(service: tuple[Address, httpx.Client]) -> None:
    """However the bytes are cut: at once, in pairs, one by one; with bodies of both kinds, and empty lines between."""
    address, http = service
    before = http.get("/v1/graphs/g").json()["version"]
    body = json.dumps({"edges": [0], "set": [4]}).encode()
    parts = [
        patch(7),
        b"\r\n",
        chunked("PATCH", "/v1/graphs/g/capacities", body[:5], body[5:]),
        chunked("PATCH", "/v1/graphs/g/capacities", body + b"\r\n\r\n", b"\r\n\r\n"),
        request("GET", "/v1/graphs/none"),
        patch(9, padding=100_000),
        request("GET", "/v1/graphs/g", b"", "Connection: close"),
    ]
    whole = b"".join(parts)
    cuts: list[Callable[[], list[bytes]]] = [
        lambda: [whole],
        lambda: parts,
        lambda: [whole[:1], *(whole[i : i + 2] for i in range(1, 700, 2)), whole[701:]],
        lambda: [whole[i : i + 1009] for i in range(0, len(whole), 1009)],
    ]
    for count, cut in enumerate(cuts, 1):
        answers = exchange(address, *cut(), pause_s=0.0005)
        assert [status for status, _ in answers] == [200, 200, 200, 404, 200, 200]
        assert answers[-1][1]["version"] == before + 4 * count
