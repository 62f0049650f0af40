"""Which connections a client asks on: those of its process and of its event loop, and none once it is closed. One that
was given up is closed or asked on again."""

import asyncio
import gc
import multiprocessing
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from headrace import (
    AsyncClient,
    Client,
    ClientClosed,
    ConnectionFailed,
    HeadraceError,
    InvalidInput,
    Retry,
    UnexpectedAnswer,
)
from headrace._exchange import Deadline

from tests.unit.test_sdk_client import GRAPH, job

ANSWER = b'{"graphs": [], "next": null}'


class Counting(ThreadingHTTPServer):
    """A service without graphs that counts its connections."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Empty)
        self.begun = self.ended = 0
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # the caller has gone


class Empty(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        assert isinstance(self.server, Counting)
        self.server.begun += 1

    def finish(self) -> None:
        super().finish()
        assert isinstance(self.server, Counting)
        self.server.ended += 1

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def counting() -> Iterator[Counting]:
    server = Counting()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_fork_asks_on_connections_of_its_own(counting: Counting) -> None:
    """On one that it shares with its parent each of them would read answers of the other."""
    with Client(counting.url) as client:
        assert client.graphs() == client.graphs() == ()
        assert counting.begun == 1
        child = multiprocessing.get_context("fork").Process(target=client.graphs)
        child.start()
        child.join(30)
        assert (child.exitcode, counting.begun) == (0, 2)
        assert client.graphs() == ()
        assert counting.begun == 2  # the connection of the parent is as it was


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # nobody closes what a loop that has ended leaves open
def test_an_async_client_is_good_for_one_event_loop_after_the_other(counting: Counting) -> None:
    client = AsyncClient(counting.url)

    async def ask(*, last: bool) -> int:
        assert await client.graphs() == await client.graphs() == ()
        if last:
            await client.close()
        return counting.begun

    assert [asyncio.run(ask(last=last)) for last in (False, True)] == [1, 2]
    gc.collect()


async def ask_on(client: AsyncClient) -> None:
    while True:
        await client.graphs()


async def read_on(client: AsyncClient) -> None:
    """As events and rows are read."""
    while True:
        async with client._caller.streamed("/v1/graphs", Deadline(), {}) as response:
            async for _ in response.aiter_bytes():
                break


@pytest.mark.parametrize("ask", [ask_on, read_on])
def test_no_connection_is_lost_with_a_caller_who_gives_up(
    counting: Counting, ask: Callable[[AsyncClient], Coroutine[Any, Any, None]]
) -> None:
    """At whichever of its steps; a client has a hundred connections."""

    async def give_up(client: AsyncClient) -> None:
        for turns in range(200):
            asking = asyncio.create_task(ask(client))
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
            assert asking.cancelled()
        async with asyncio.timeout(5):
            while counting.begun - counting.ended > 1:
                await asyncio.sleep(0.01)

    async def session() -> None:
        async with AsyncClient(counting.url) as client:
            await give_up(client)

    asyncio.run(session())


class Late(Exception):
    """As a signal raises one, or the time limit of a task queue."""


def test_connections_that_were_interrupted_are_not_asked_on_again() -> None:
    """One that was lost in the midst is neither free nor closed. Refusals and lost connections leave all in order."""
    answers = [Late(), httpx.ReadError("lost"), httpx.Response(404), httpx.Response(200, json=GRAPH), Late()]

    def answer(_: httpx.Request) -> httpx.Response:
        given = answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    with Client("http://service", retry=Retry(attempts=1), transport=httpx.MockTransport(answer)) as client:
        pools = client._caller._pools
        first = pools.own()
        with pytest.raises(Late):
            client.graph("city")
        second = pools.own()
        for kind in (ConnectionFailed, UnexpectedAnswer):
            with pytest.raises(kind):
                client.graph("city")
        graph = client.graph("city")
        assert first is not second is pools.own()
        streams = client._caller._streams
        third = streams.own()
        with pytest.raises(Late):
            graph.events()
        assert streams.own() is not third


def test_events_that_are_not_read_to_their_end_leave_connections_in_order() -> None:
    told = httpx.Response(200, text="event: version\ndata: {}\nid: 8\n\n")
    answers = [httpx.Response(200, json=GRAPH), told]
    with Client("http://service", transport=httpx.MockTransport(lambda _: answers.pop(0))) as client:
        pools = client._caller._streams
        first = pools.own()
        for event in client.graph("city").events():
            assert event.id == "8"
            break
        gc.collect()
        assert pools.own() is first


class Slow(httpx.AsyncByteStream):
    """The events of a job, with a pause before each."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for name in (b"progress", b"done"):
            await asyncio.sleep(0.1)
            yield b"event: " + name + b"\ndata: {}\n\n"


def test_who_gives_up_waiting_for_the_events_of_a_job_has_not_seen_its_end() -> None:
    """A generator that is interrupted is over, and a job whose events are over seems to be."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=Slow()) if request.url.path.endswith("/events") else job("running")

    async def follow() -> list[str]:
        seen = list[str]()
        async with AsyncClient("http://service", transport=httpx.MockTransport(answer)) as client:
            events = (await client.job("j1")).events()
            while True:
                try:
                    seen.append((await asyncio.wait_for(anext(events), 0.03)).name)
                except TimeoutError:
                    seen.append("in vain")
                except StopAsyncIteration:
                    return seen

    seen = asyncio.run(follow())
    assert [name for name in seen if name != "in vain"] == ["progress", "done"]
    assert seen[0] == "in vain"


@pytest.mark.parametrize(
    ("proxy", "kind", "said"),
    [
        ("http://u:secret@127.0.0.1:9", ConnectionFailed, "example by the proxy http://127.0.0.1:9 of the environment"),
        ("127.0.0.1:9", ConnectionFailed, "example by the proxy http://127.0.0.1:9 of the environment"),
        ("gopher://127.0.0.1:9", InvalidInput, "a proxy of the environment .* Unknown scheme"),
    ],
)
def test_a_proxy_that_is_not_there_is_named(
    proxy: str, kind: type[HeadraceError], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy)
    once = Retry(attempts=1)
    with pytest.raises(kind, match=said) as raised, Client("http://headrace.example", retry=once) as client:
        client.graphs()
    assert "secret" not in str(raised.value)
    with pytest.raises(ConnectionFailed, match="9: is it running"), Client("http://127.0.0.1:9", retry=once) as client:
        client.graphs()


def test_connections_do_not_go_to_other_processes() -> None:
    answer = httpx.MockTransport(lambda _: httpx.Response(200, json=GRAPH))
    with Client("http://service", transport=answer) as client:
        for sent in (client, client.graph("city")):
            with pytest.raises(TypeError, match="cannot be pickled: open a client there"):
                pickle.dumps(sent)


def test_a_closed_client_says_so(counting: Counting) -> None:
    client = Client(counting.url)
    client.close()
    client.close()
    with pytest.raises(ClientClosed, match="the client is closed") as refused:
        client.ready()
    assert isinstance(refused.value, HeadraceError)

    async def ask() -> None:
        other = AsyncClient(counting.url)
        await other.close()
        await other.close()
        with pytest.raises(ClientClosed, match="the client is closed"):
            await other.ready()

    asyncio.run(ask())
    assert counting.begun == 0
