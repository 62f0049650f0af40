"""Receivers of webhooks that answer with what never ends, or with no answer at all."""

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Collection, Iterator
from typing import Any

import httpcore
import pytest

from service.webhooks import posting
from service.webhooks.metered import MAX_HEAD_BYTES, READ_BYTES
from service.webhooks.posting import Outcome, Poster
from service.webhooks.targets import Names
from tests.receiver import Network

OK = b"HTTP/1.1 200 OK\r\n"
ENDLESS = {
    "1xx": [b"HTTP/1.1 103 Early Hints\r\n\r\n"],
    "1xx with headers": [b"HTTP/1.1 100 \r\n" + 50 * b"a: b\r\n" + b"\r\n"],
    "headers": [OK, b"name: value\r\n"],
    "one header": [OK + b"name: ", 1000 * b"x"],
    "a status line": [b"HTTP/1.1 200 ", 1000 * b"x"],
    "folded lines": [OK + b"name: x\r\n", b" x\r\n"],
    "nothing that is HTTP": [b"\0"],
}


def post(
    network: Network,
    url: str = "https://127.0.0.1/hook",
    trusted: Collection[str] = ("127.0.0.1",),
    names: Names | None = None,
) -> Outcome:
    async def run() -> Outcome:
        poster = Poster(trusted, names=names, network=network)
        try:
            return await poster.post(url, "{}", {})
        finally:
            await poster.close()

    return asyncio.run(run())


@pytest.mark.parametrize("answer", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_head_is_given_up_by_its_bytes(answer: list[bytes]) -> None:
    network = Network(itertools.chain(answer, itertools.repeat(100 * answer[-1])))
    outcome = post(network)
    assert outcome.answer is None
    assert "RemoteProtocolError" in str(outcome.error)
    assert network.bytes_read <= MAX_HEAD_BYTES + READ_BYTES
    assert network.most_at_once <= READ_BYTES


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzzz\r\n", Outcome(200)),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n" + 1000 * b"f" + b"\r\n", Outcome(200)),
        (OK + b"Content-Length: 5\r\n\r\ntoo long", Outcome(200)),
        (OK + b"Content-Length: 99999999999999999999\r\n\r\n", Outcome(200)),
        (5 * b"HTTP/1.1 100 \r\n\r\n" + OK + b"\r\n", Outcome(200)),
        (b"HTTP/1.1 302 \r\nLocation: http://[::1\r\n\r\n", Outcome(302, "answered 302")),
        (b"HTTP/1.1 307 \r\nLocation: http://a:99999999/\xff\r\n\r\n", Outcome(307, "answered 307")),
        (b"HTTP/1.1 999 \r\n\r\n", Outcome(999, "answered 999")),
    ],
)
def test_the_head_is_all_that_counts(answer: bytes, outcome: Outcome) -> None:
    network = Network([answer])
    assert post(network) == outcome
    assert len(network.connected) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP",
        b"HTTP/1.1 101 \r\nUpgrade: other\r\n\r\nrest",
        OK,
        OK + b"Content-Length: x\r\n\r\n",
        OK + b": x\r\n\r\n",
        b"HTTP/3 200\r\n\r\n",
        b"HTTP/1.1 -1 \r\n\r\n",
    ],
)
def test_what_is_no_answer_is_an_error(answer: bytes) -> None:
    outcome = post(Network([answer]))
    assert (outcome.answer, outcome.arrived) == (None, False)
    assert "ProtocolError" in str(outcome.error)


@pytest.fixture(params=[b"H", b"HTTP/1.1 100 \r\n\r\n"], ids=["bytes", "1xx"])
def dripping(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that sends a piece of a head now and then; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                try:
                    while True:
                        connection.sendall(request.param)
                        time.sleep(0.01)
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join()


class _Listed(Names):
    """Names that stand for certain addresses."""

    def __init__(self, *addresses: str) -> None:
        super().__init__()
        self._addresses = addresses

    async def resolve(self, host: str, port: int) -> list[str]:
        return [*self._addresses]


class _Away(Network):
    """Connects to one address alone: the others refuse, or never answer."""

    def __init__(self, there: str, *, silent: bool) -> None:
        super().__init__([OK + b"\r\n"])
        self.tried: list[str] = []
        self._there = there
        self._silent = silent

    async def connect_tcp(self, host: str, port: int, *more: Any, **options: Any) -> Network:
        self.tried.append(host)
        if host == self._there:
            return await super().connect_tcp(host, port, *more, **options)
        if self._silent and more[0] is not None:  # a time to connect in
            raise httpcore.ConnectTimeout
        raise httpcore.ConnectError


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize(
    ("addresses", "tried"),
    [
        (["::1", "127.0.0.1"], ["::1", "127.0.0.1"]),  # IPv6 leads nowhere
        (["::1", "::2", "::3", "127.0.0.1", "127.0.0.2"], ["::1", "127.0.0.1"]),
        (["127.0.0.2", "127.0.0.1"], ["127.0.0.2", "127.0.0.1"]),
        (["127.0.0.1", "127.0.0.2"], ["127.0.0.1"]),
        (["127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.1"], ["127.0.0.2", "127.0.0.3", "127.0.0.4"]),
    ],
)
def test_a_further_address_is_tried_where_one_takes_no_connection(
    addresses: list[str], tried: list[str], silent: bool
) -> None:
    network = _Away("127.0.0.1", silent=silent)
    outcome = post(network, "https://hooks/", {"hooks"}, _Listed(*addresses))
    assert network.tried == tried
    assert outcome.arrived == (tried[-1] == "127.0.0.1")
    assert outcome.arrived or str(outcome.error).startswith("ConnectError")


def test_a_head_that_drips_is_given_up_in_time(dripping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "TRY_S", 0.2)

    async def run() -> Outcome:
        poster = Poster({"127.0.0.1"})
        try:
            async with asyncio.timeout(5):
                return await poster.post(dripping, "{}", {})
        finally:
            await poster.close()

    assert asyncio.run(run()) == Outcome(error="no answer within 0.2 s")
