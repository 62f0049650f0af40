"""Answers without an end: a client gives them up, and goes on with its next call. These ones end after all, so that a
client that does not give them up fails the test."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from headrace import AsyncClient, Client, ConnectionFailed, HeadraceError, Retry, UnexpectedAnswer, _metered

ANSWER = b'{"graphs": [], "next": null}'
ONCE = Retry(attempts=1)
PATIENCE_S = 60.0
MEMORY_BYTES = 1 << 20

Said = Iterator[tuple[float, bytes]]
"""Pauses, and what is sent after them."""


def dripping() -> Said:
    yield from ((0.05, b" ") for _ in range(200))
    yield 0, ANSWER


def endless() -> Said:
    yield from ((0, bytes(64 << 10)) for _ in range(1000))


def slow() -> Said:
    yield from ((0.1, b" " * 1024) for _ in range(20))
    yield 0, ANSWER


@contextmanager
def serving(said: Callable[[], Said]) -> Iterator[str]:
    """A server whose first answer is this one; all others are whole."""
    answers: list[Callable[[], Said]] = [said]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            with suppress(OSError):  # the client has given it up
                for pause_s, piece in answers.pop()() if answers else iter([(0.0, ANSWER)]):
                    time.sleep(pause_s)
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def twice(url: str) -> list[Any]:
    """What two calls come to, one after the other."""
    found: list[Any] = []
    with Client(url, timeout_s=0.5, retry=ONCE) as client:
        for _ in range(2):
            try:
                found.append(client.graphs())
            except HeadraceError as error:
                found.append(error)
    return found


def twice_async(url: str) -> list[Any]:
    async def ask() -> list[Any]:
        found: list[Any] = []
        async with AsyncClient(url, timeout_s=0.5, retry=ONCE) as client:
            for _ in range(2):
                try:
                    found.append(await client.graphs())
                except HeadraceError as error:
                    found.append(error)
        return found

    return asyncio.run(asyncio.wait_for(ask(), PATIENCE_S))


@pytest.mark.parametrize("ask", [twice, twice_async])
def test_an_answer_that_drips_is_given_up(ask: Callable[[str], list[Any]]) -> None:
    with serving(dripping) as url:
        first, then = ask(url)
    assert isinstance(first, ConnectionFailed)
    assert "did not answer in time" in str(first)
    assert not isinstance(then, HeadraceError)


@pytest.mark.parametrize("ask", [twice, twice_async])
def test_an_answer_that_no_memory_could_hold_is_given_up(
    ask: Callable[[str], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_metered, "MOST_BYTES", MEMORY_BYTES)
    with serving(endless) as url:
        first, then = ask(url)
    assert isinstance(first, UnexpectedAnswer)
    assert "memory" in str(first)
    assert not isinstance(then, HeadraceError)


@pytest.mark.parametrize("ask", [twice, twice_async])
def test_an_answer_that_takes_longer_than_the_service_may_be_silent_is_read(ask: Callable[[str], list[Any]]) -> None:
    with serving(slow) as url:
        first, then = ask(url)
    assert first == then
    assert not isinstance(first, HeadraceError)
