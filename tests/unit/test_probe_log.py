"""Machines ask probes all the time: the log gets those that fail, and not the same thing ten times a second."""

import asyncio
import threading
import time
from collections.abc import MutableMapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs

from service.api import middleware
from service.api.metrics import Metrics
from service.api.middleware import PROBE_TOLD_EVERY_S, Requests
from service.host import supervisor
from service.telemetry.probing import SUPERVISOR


class Service:
    """An application whose answers have the status that a test wants, on a clock that the test moves."""

    def __init__(self) -> None:
        self.status = 503
        self.now = 1000.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("", self.status)(scope, receive, send)


def test_what_goes_on_to_fail_is_told_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    clock = SimpleNamespace(monotonic=lambda: service.now, perf_counter=time.perf_counter)
    monkeypatch.setattr(middleware, "time", clock)
    transport = httpx.ASGITransport(Requests(service, Metrics(), access_log=True))

    async def told(path: str) -> int:
        """Lines in the log of three requests."""
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as http:
            with capture_logs() as lines:
                for _ in range(3):
                    await http.get(path)
        return sum(line.get("path") == path for line in lines)

    async def asked_by_the_supervisor() -> list[MutableMapping[str, Any]]:
        async with httpx.AsyncClient(transport=transport, headers={"User-Agent": SUPERVISOR}) as http:
            with capture_logs() as lines:
                await http.get("http://service/readyz")
        return lines

    async def probes() -> None:
        assert await asked_by_the_supervisor() == []
        assert (await told("/readyz"), await told("/readyz")) == (1, 0)
        assert await told("/health") == 1  # each path for itself
        service.now += PROBE_TOLD_EVERY_S
        assert (await told("/readyz"), await told("/readyz")) == (1, 0)  # it goes on
        service.status = 500
        assert await told("/readyz") == 1  # in another way
        service.status = 200
        assert await told("/readyz") == 0
        service.status = 500
        assert await told("/readyz") == 1  # again
        assert await told("/v1/graphs") == 3  # no probe

    asyncio.run(probes())


def test_headrace_serve_says_who_it_is_when_it_asks_whether_it_is_ready() -> None:
    """The log of a first start begins with nothing that looks like a failure."""
    agents = []

    class Starting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            agents.append(self.headers["User-Agent"])
            self.send_error(503)

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Starting) as server:
        threading.Thread(target=server.handle_request).start()
        assert not supervisor._is_ready(f"http://127.0.0.1:{server.server_port}")
    assert agents == [SUPERVISOR]
