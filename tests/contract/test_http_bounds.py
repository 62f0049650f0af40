"""What never becomes a request: heads too long, too slow, or no HTTP at all."""

import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import structlog
import uvicorn

from service.api.app import create_app
from service.api.bodies import receive as bodies
from service.api.guards.shields import SCRAPES
from service.api.http import protocol as http_protocol
from service.api.http import refusing
from service.api.http.protocol import MAX_HEAD_BYTES, MAX_HEADERS
from service.api.http.server import config
from service.settings import Settings

Address = tuple[str, int]


LIVEZ = b"GET /livez HTTP/1.1\r\nHost: h\r\n"


@pytest.fixture(scope="module")
def address(redis_url: str) -> Iterator[Address]:
    """The server as `service.api.http.server` configures it; nothing here gets as far as Redis."""
    server = uvicorn.Server(config(Settings(redis_url=redis_url, redis_prefix="bounds:", max_requests=2)))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()
    server.should_exit = True
    thread.join()
    listener.close()


def exchange(address: Address, *pieces: bytes) -> tuple[bytes, bytes]:
    """Status line and body of what comes back until the server closes."""
    with socket.create_connection(address, timeout=30) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.02)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it had enough
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.partition(b"\r\n")[0], body


@pytest.mark.parametrize(
    "pieces",
    [
        [b"GET /livez HTTP/1.1\r\nHost: h\r\nX: " + MAX_HEAD_BYTES * b"x" + b"\r\n\r\n"],
        [b"GET /livez HTTP/1.1\r\nHost: h\r\nX: ", *(40 * [4096 * b"x"])],
        [b"GET /" + 40_000 * b"x", 40_000 * b"x", 100 * b"y"],
        [LIVEZ, *(20 * [b"".join(b"A%d: %s\r\n" % (n, 100 * b"v") for n in range(60))])],
        [LIVEZ + b"Connection: close\r\n" + MAX_HEADERS * b"A: b\r\n" + b"\r\n"],
        [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
        [b"GET nonsense\r\n\r\n"],
        [b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"],
        [b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ],
    ids=[
        *("header", "endless header", "endless url", "endless headers", "one header too many"),
        *("tls", "nonsense", "two lengths", "smuggling"),
    ],
)
def test_a_bad_head_is_refused(address: Address, pieces: list[bytes]) -> None:
    status, body = exchange(address, *pieces)
    assert status.startswith(b"HTTP/1.1 400 ")
    if body:
        problem = json.loads(body)
        assert (problem["code"], problem["status"]) == ("invalid_request", 400)


def test_large_heads_within_the_bound_are_served(address: Address) -> None:
    head = LIVEZ + b"Connection: close\r\nX: " + (MAX_HEAD_BYTES - 1000) * b"x" + b"\r\n\r\n"
    assert exchange(address, head[:30_000], head[30_000:])[0].startswith(b"HTTP/1.1 200 ")
    head = LIVEZ + b"Connection: close\r\n" + (MAX_HEADERS - 2) * b"A: b\r\n" + b"\r\n"
    assert exchange(address, head)[0].startswith(b"HTTP/1.1 200 ")


def test_a_slow_head_is_cut_off(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 0.3)
    assert exchange(address, b"GET /livez HT") == (b"", b"")
    assert exchange(address) == (b"", b"")


def test_a_slow_body_is_cut_off(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that stops, and one that drips: each byte earns it a thousandth of a second."""
    monkeypatch.setattr(bodies, "GRACE_S", 0.3)
    head = b"POST /v1/graphs/x/max-flow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n"
    for pieces in ([head + b"{"], [head, *(400 * [b"{"])]):
        status, body = exchange(address, *pieces)
        assert status.startswith(b"HTTP/1.1 400 ")
        assert json.loads(body)["code"] == "invalid_request"


def test_too_many_requests_are_shed_while_probes_pass(address: Address) -> None:
    body = b"PATCH /v1/graphs/x/capacities HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    open_ones = []
    for _ in range(2):  # each waits for its body
        connection = socket.create_connection(address, timeout=30)
        connection.sendall(body + b"Content-Length: 9\r\n\r\n{")
        open_ones.append(connection)
    time.sleep(0.2)
    status, content = exchange(address, b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status.startswith(b"HTTP/1.1 429 ")
    assert json.loads(content)["code"] == "rate_limited"
    assert exchange(address, LIVEZ + b"Connection: close\r\n\r\n")[0].startswith(b"HTTP/1.1 200 ")
    for _ in range(SCRAPES + 1):
        scrape = exchange(address, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert scrape[0].startswith(b"HTTP/1.1 200 "), "Prometheus would take the process for dead"
    assert b'status="429"' in scrape[1]
    for connection in open_ones:
        connection.close()


def test_the_log_gets_a_line_a_second(
    address: Address, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusing, "TOLD_EVERY_S", 0.0)
    exchange(address, b"GET nonsense\r\n\r\n")
    monkeypatch.setattr(refusing, "TOLD_EVERY_S", 3600.0)
    caplog.clear()
    for _ in range(20):
        assert b"400" in exchange(address, b"GET nonsense\r\n\r\n")[0]
    assert caplog.messages == []
    monkeypatch.setattr(refusing, "TOLD_EVERY_S", 0.0)
    exchange(address, b"GET nonsense\r\n\r\n")
    told = "refused: this is no request of HTTP/1.1: invalid characters in url (20 more since the line before)"
    assert caplog.messages == [told]


def test_another_server_is_warned_of() -> None:
    """A plain uvicorn has none of these bounds, and does not end while an event stream is open."""
    with structlog.testing.capture_logs() as said:
        app = create_app()
    assert ("another_server", "warning") in [(line["event"], line["log_level"]) for line in said]
    assert "python -m service.api --host HOST --port PORT" in said[0]["detail"]
    assert app.openapi()["info"]["title"] == "Headrace"
