"""A receiver of webhooks for tests: an HTTP server on this machine, which answers what it is told to."""

import http.server
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpcore


@dataclass
class Received:
    """One POST."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event


@dataclass
class Receiver:
    """What has come, and what is answered: the next of `answers`, and 204 when there is none."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    location: str = ""
    """Where a redirect leads to."""

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.received]


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.received.append(Received(self.path, headers, body))
            self.send_response(receiver.answers.pop(0) if receiver.answers else 204)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Network(httpcore.AsyncNetworkBackend, httpcore.AsyncNetworkStream):
    """Connections to a receiver that answers with pieces, whatever it is sent; it says what became of them."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = b""
        self.connected: list[str] = []
        self.proven: list[str] = []
        """The names that TLS was to prove."""
        self.sent = b""
        self.bytes_read = self.most_at_once = 0

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> "Network":
        self.connected.append(f"{host}:{port}")
        return self

    async def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: Any = None) -> "Network":
        self.proven.append(str(server_hostname))
        return self

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._rest = self._rest or next(self._pieces, b"")
        data, self._rest = self._rest[:max_bytes], self._rest[max_bytes:]
        self.bytes_read += len(data)
        self.most_at_once = max(self.most_at_once, len(data))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.sent += buffer

    async def aclose(self) -> None:
        return

    def get_extra_info(self, info: str) -> None:
        return None
