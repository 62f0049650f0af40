"""Callers who ask for much and read little: what they may hold is bounded, in bytes and in time."""

import asyncio
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from prometheus_client import CollectorRegistry, Gauge

from service.api.http import protocol as http_protocol
from service.api.http.connections import Connections, ServerConfig
from service.api.http.protocol import BoundedProtocol
from service.api.replies import sending
from service.api.replies.sending import PIECE_BYTES, Sending
from tests.prober import probing
from tests.serving import PATIENCE_S, eventually, serving

Address = tuple[str, int]
MIB = 1 << 20
LIMIT_BYTES = 64 * MIB
READERS = 100


def asking(address: Address, path: str, method: str = "GET", room_bytes: int = 4096) -> socket.socket:
    """A connection that has asked, with so much room for the answer."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room_bytes)
    connection.settimeout(60)
    connection.connect(address)
    connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def read_all(connection: socket.socket) -> tuple[int, int]:
    """Status, and bytes of the body that came."""
    text = b""
    while b"\r\n\r\n" not in text:
        text += connection.recv(65536)
    head, _, body = text.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head.lower())
    assert found is not None
    n_bytes = len(body)
    while n_bytes < int(found[1]):
        piece = connection.recv(MIB)
        if not piece:
            break
        n_bytes += len(piece)
    return int(head.split()[1]), n_bytes


def taken(connection: socket.socket) -> int:
    """Bytes that still come, until the other side ends or resets the connection."""
    n_bytes = 0
    try:
        while piece := connection.recv(MIB):
            n_bytes += len(piece)
    except ConnectionResetError:
        pass
    return n_bytes


def resident_bytes(pid: int) -> int:
    return 1024 * int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0])


class App:
    """Answers with as many bytes as the path says, in chunks under `/chunks/`."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        """The paths of answers that were handed over or given up."""
        self.long = bytes(300 * MIB)
        """Made before, which takes a while."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        *kind, count = scope["path"].strip("/").split("/")
        headers = [] if kind else [(b"content-length", count.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self.long[: int(count)]})
        self.ended.append(scope["path"])


@contextmanager
def server(
    limit_bytes: int = LIMIT_BYTES, connections: Connections | None = None
) -> Iterator[tuple[Address, App, Sending]]:
    app = App()
    gauge = Gauge("held", "Held.", registry=CollectorRegistry())
    pieces = Sending(app, limit_bytes, gauge)

    async def with_state(scope: Any, receive: Any, send: Any) -> None:
        scope.setdefault("state", {})
        await pieces(scope, receive, send)

    options = {"lifespan": "off", "log_config": None, "timeout_graceful_shutdown": 1}
    running = uvicorn.Server(ServerConfig(with_state, connections or Connections(), http=BoundedProtocol, **options))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname(), app, pieces
        finally:
            running.should_exit = True
            thread.join()


@pytest.mark.parametrize("path", [f"/{20 * MIB}", f"/chunks/{20 * MIB}"])
def test_a_reader_who_takes_nothing_is_given_up(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "WRITE_TIMEOUT_S", 0.5)
    with server() as (address, app, pieces), asking(address, path) as reader:
        eventually(lambda: app.ended == [path])
        assert pieces._held_bytes == 0
        assert taken(reader) < 2 * MIB


@pytest.mark.parametrize("n_bytes", [PIECE_BYTES // 3, PIECE_BYTES, 3 * MIB])
def test_what_is_closed_is_not_kept_for_a_reader_who_takes_nothing(
    n_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that ends with its answers, while the end of them has not been taken."""
    monkeypatch.setattr(http_protocol, "WRITE_TIMEOUT_S", 0.5)
    connections = Connections()
    with server(connections=connections) as (address, app, _), asking(address, f"/{n_bytes}") as reader:
        for _ in range(20):
            reader.sendall(f"GET /{n_bytes} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        reader.sendall(b"GET /1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        eventually(lambda: bool(app.ended))
        eventually(lambda: not connections.taken)
        assert taken(reader) < 2 * MIB


def test_a_reader_who_takes_his_time_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """He takes a piece within the time for it, but the whole only in many times that."""
    monkeypatch.setattr(http_protocol, "WRITE_TIMEOUT_S", 1.0)
    n_bytes, got = 3 * MIB, 0
    with server() as (address, _, _), asking(address, f"/{n_bytes}", room_bytes=65536) as reader:
        began = time.monotonic()
        while got < n_bytes:
            got += len(reader.recv(64 * 1024))
            time.sleep(0.04)
        assert time.monotonic() - began > 2


def test_a_fast_reader_does_not_hold_up_the_others() -> None:
    with server() as (address, _, _):
        ended = threading.Event()

        def read() -> None:
            with httpx.Client(base_url=f"http://{address[0]}:{address[1]}", trust_env=False) as http:
                assert len(http.get(f"/{300 * MIB}").content) == 300 * MIB
            ended.set()

        thread = threading.Thread(target=read)
        thread.start()
        with probing(address, "/1") as probes:
            assert ended.wait(60)
        thread.join()
    print(f"beside a fast reader at worst {1e3 * probes.worst_s:.1f} ms")
    assert probes.failed == 0
    assert probes.worst_s < 1


def test_slow_readers_give_way_and_fast_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has taken nothing for longest goes first. An answer that finds no room is refused, unless it tells of a
    change that was made."""
    monkeypatch.setattr(sending, "SLOW_S", 1.0)
    with server(10 * MIB) as (address, _, pieces), ExitStack() as stack:

        def ask(path: str, method: str = "GET") -> socket.socket:
            return stack.enter_context(asking(address, path, method, room_bytes=65536))

        still, steady = ask(f"/{4 * MIB}"), ask(f"/{4 * MIB}")
        eventually(lambda: pieces._held_bytes == 8 * MIB)
        assert read_all(ask(f"/{4 * MIB}"))[0] == 429  # both have only begun
        assert read_all(ask(f"/{PIECE_BYTES}")) == (200, PIECE_BYTES)
        assert read_all(ask(f"/{4 * MIB}", "PATCH")) == (200, 4 * MIB)
        taken_bytes, until = 0, time.monotonic() + 1.5
        while time.monotonic() < until:
            taken_bytes += len(steady.recv(64 * 1024))
            time.sleep(0.05)
        assert read_all(ask(f"/{4 * MIB}")) == (200, 4 * MIB)
        assert taken(still) < 2 * MIB
        while taken_bytes < 4 * MIB:
            taken_bytes += len(steady.recv(MIB))
        eventually(lambda: pieces._held_bytes == 0)


def test_one_answer_alone_may_be_longer_than_the_limit() -> None:
    with server(MIB) as (address, _, _), asking(address, f"/{3 * MIB}") as reader:
        assert read_all(reader) == (200, 3 * MIB)


def test_who_waits_for_more_of_an_answer_is_no_slow_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is sent as it is made: it is counted, and its reader has taken what there is."""
    monkeypatch.setattr(sending, "SLOW_S", 0.0)
    started: list[int] = []
    cut_off: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = []
        if scope["path"] == "/grows":
            scope["state"]["held_bytes"] = MIB
        else:
            headers.append((b"content-length", str(MIB).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"1\n", "more_body": True})
        if scope["path"] == "/grows":
            assert pieces._held_bytes == MIB
            await pieces(asked("/other"), receive, sent)
        await send({"type": "http.response.body", "body": b"2\n"})

    def asked(path: str) -> dict[str, Any]:
        abort = {"headrace": {"abort": lambda: cut_off.append(path)}}
        return {"type": "http", "method": "GET", "path": path, "state": {}, "extensions": abort}

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            started.append(message["status"])

    pieces = Sending(app, MIB, Gauge("grows", "Held.", registry=CollectorRegistry()))
    asyncio.run(pieces(asked("/grows"), lambda: None, sent))  # type: ignore[arg-type] # nothing is received
    assert (started, cut_off, pieces._held_bytes) == ([200, 429], [], 0)


def test_readers_who_never_read_hold_a_bounded_part_of_the_memory(tmp_path: Path) -> None:
    """It was a GiB for 100 of them, for as long as they liked, and /livez took 3.7 s."""
    n_edges = 100_000
    columns = {"tail": [0] * n_edges, "head": [1] * n_edges, "capacity": [123_456_789] * n_edges}
    ids = {"edge_ids": [f"{number:060}" for number in range(n_edges)]}  # so that no kernel's buffer takes the answer
    with (
        serving(tmp_path, environment={"HEADRACE_MAX_SENDING_BYTES": str(LIMIT_BYTES)}) as service,
        ExitStack() as stack,
    ):
        http = service.http
        assert http.put("/v1/graphs/g", json=columns | ids).status_code == 201
        whole = {"sources": [0], "sinks": [1], "fields": ["flow"]}
        asked = http.post("/v1/graphs/g/max-flow", json=whole, headers={"Prefer": "respond-async"})
        job = asked.headers["location"]
        eventually(lambda: http.get(job).json()["status"] == "succeeded")
        answer_bytes = len(http.get(job).content)
        assert READERS * answer_bytes > 3 * LIMIT_BYTES
        address = (http.base_url.host, http.base_url.port or 80)
        api = service.children()["api"]
        before = resident_bytes(api)
        worst = before
        with probing(address) as probes:
            for _ in range(READERS):
                stack.enter_context(asking(address, job))
                worst = max(worst, resident_bytes(api))
            grew_at = time.monotonic()
            while time.monotonic() - grew_at < 3:
                time.sleep(0.1)
                if resident_bytes(api) > worst + MIB:
                    worst, grew_at = resident_bytes(api), time.monotonic()
            began = time.monotonic()
            eventually(lambda: http.get(job).status_code == 200)
            waited_s = time.monotonic() - began
        held = re.findall(r"^headrace_http_sending_bytes ([0-9.e+]+)", http.get("/metrics").text, re.M)
        print(
            f"{READERS} readers of {answer_bytes / MIB:.1f} MiB: {(worst - before) / MIB:.0f} MiB more, "
            f"/livez at worst {1e3 * probes.worst_s:.1f} ms, a fast reader waited {waited_s:.1f} s, held {held}"
        )
        assert float(held[0]) <= LIMIT_BYTES
        assert worst - before < LIMIT_BYTES + 200 * MIB  # and what is made ready and then refused
        assert waited_s < PATIENCE_S / 3
        assert probes.failed == 0
        assert probes.worst_s < 2
