"""The change feed and webhooks by the Python client, synchronous and asynchronous, and by the shell."""

import asyncio
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from headrace import (
    AsyncClient,
    AsyncGraph,
    Client,
    Event,
    InvalidSignature,
    Retry,
    TooLarge,
    UnknownWatch,
    UnknownWebhook,
    verify_webhook,
)
from typer.testing import CliRunner

from service.cli.main import app
from tests.receiver import Receiver, receiving
from tests.serving import Service, eventually
from tests.shared_services import WEBHOOKS, Services

EDGES = [("s", "u"), ("s", "v"), ("u", "v"), ("u", "t"), ("v", "t")]
CITY = {
    "tail": [tail for tail, _ in EDGES],
    "head": [head for _, head in EDGES],
    "capacity": [4, 3, 2, 2, 4],
    "edge_ids": list("abcde"),
    "vertex_labels": list("suvt"),
}


@pytest.fixture(scope="module")
def service(services: Services) -> Iterator[Service]:
    with services.lent(WEBHOOKS) as service:
        yield service


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url) as client:
        yield client


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def test_watches_and_events(client: Client) -> None:
    g = client.put_graph("sync", **CITY)
    watch = g.watch("main", "s", "t", on="value")
    assert (watch.name, watch.value, watch.version, watch.error) == ("main", 6, 1, None)
    assert g.watches() == (watch,)
    with g.events() as events:
        g.patch(edges=["a"], set=1)
        first, second = next(events), next(events)
    assert (first.type, second.type, second.data["value"]) == ("version", "value.changed", 4)
    with g.events(after=first.id) as events:
        assert next(events) == second
    with g.events(after="nothing like it") as events:
        assert next(events) == Event(None, "reset", {"graph": "sync"})
    g.unwatch("main")
    with pytest.raises(UnknownWatch):
        g.unwatch("main")
    with pytest.raises(TypeError, match="no option 'supplies'"):
        g.watch("w", "s", "t", supplies=[1])  # type: ignore[call-arg]
    for n in range(16):
        g.watch(f"w{n}", "s", "t", supply={"s": n})
    with pytest.raises(TooLarge):
        g.watch("w16", "s", "t")


def test_watches_and_events_asynchronously(service: Service) -> None:
    async def run() -> None:
        async with AsyncClient(service.url) as client:
            g = await client.put_graph("async", **CITY)
            assert (await g.watch("main", "s", "t")).value == 6
            async with await g.events() as events:
                await g.patch(edges=["a"], set=1)
                types = [(await anext(events)).type for _ in range(3)]
            assert types == ["version", "value.changed", "cut.changed"]
            assert [watch.value for watch in await g.watches()] == [4]
            await g.unwatch("main")
            hook = await client.put_webhook("async", "https://example.com/", "async", "version")
            assert hook.secret is not None
            assert [one.id for one in await client.webhooks()] == ["async"]
            assert await client.rotate_webhook("async") != hook.secret
            assert await client.deliveries("async") == ()
            await client.delete_webhook("async")

    asyncio.run(run())


def test_who_gives_up_waiting_loses_no_event_and_no_connection(service: Service) -> None:
    """A loop of `asyncio.wait_for(anext(events), ...)` asked anew each time, and gave up after half a minute."""

    async def run() -> None:
        retry = Retry(attempts=1)  # so that a connection that is lost is the last one
        async with AsyncClient(service.url, retry=retry) as client:
            g = await client.put_graph("patient", **CITY)
            events, seen, in_vain = await g.events(), list[Any](), 0
            while len(seen) < 3:
                if in_vain % 5 == 0:
                    await g.patch(edges=["a"], add=1)
                try:
                    seen.append((await asyncio.wait_for(anext(events), 0.02)).data["version"])
                except TimeoutError:
                    in_vain += 1
            assert seen == [2, 3, 4]
            waiting = asyncio.create_task(anext(events, None))
            await asyncio.sleep(0.05)
            await events.close()
            assert await waiting is None
            assert [event async for event in events] == []
            following = asyncio.create_task(follow(g))
            await asyncio.sleep(0.05)
            following.cancel()
            await asyncio.wait({following})
            del following
            async with asyncio.timeout(10):
                while len(asyncio.all_tasks()) > 1:  # nobody has closed these events, and nobody has them any more
                    await asyncio.sleep(0.01)

    asyncio.run(run())


def test_events_take_no_connection_from_calls(service: Service) -> None:
    """A client has a hundred of these: who followed so many graphs waited three minutes with each call, in vain."""

    async def run() -> None:
        async with AsyncClient(service.url) as client, AsyncExitStack() as followed:
            g = await client.put_graph("followed", **CITY)
            for _ in range(110):
                await followed.enter_async_context(await g.events())
            assert (await g.max_flow("s", "t", timeout_s=20)).value == 6

    asyncio.run(run())


async def follow(g: AsyncGraph) -> None:
    async for _ in await g.events():
        pass


def test_events_end_for_a_thread_that_waits_for_them(client: Client) -> None:
    """To close them woke nobody, and who was not waiting asked for them anew."""
    g = client.put_graph("ended", **CITY)
    events, seen = g.events(), list[Any]()
    reader = threading.Thread(target=lambda: seen.extend(events))
    reader.start()
    g.patch(edges=["a"], set=1)
    eventually(lambda: events.last_id is not None and events.last_id.endswith("-2-version"))
    events.close()
    reader.join(10)
    assert not reader.is_alive()
    assert [event.data["version"] for event in seen] == [2]
    assert list(events) == []


def test_events_go_on_through_a_restart_of_the_api(service: Service, client: Client) -> None:
    g = client.put_graph("g", **CITY)
    with g.events() as events:
        g.patch(edges=["a"], set=1)
        assert next(events).data["version"] == 2
        os.kill(service.children()["api"], signal.SIGKILL)
        client.wait_ready()
        g.patch(edges=["a"], set=2)
        assert next(events).data["version"] == 3


def test_a_receiver_verifies(client: Client, receiver: Receiver) -> None:
    g = client.put_graph("hooked", **CITY)
    hook = client.put_webhook("pager", receiver.url, ["hooked"])
    assert hook.secret is not None
    g.patch(edges=["a"], set=1)
    eventually(lambda: len(receiver.received) == 1)
    one = receiver.received[0]
    event = verify_webhook(one.headers, one.body, hook.secret)
    assert (event.id, event.type, event.data["version"]) == (one.id, "version", 2)
    assert verify_webhook(one.headers, one.body.decode(), ["whsec_b3RoZXI=", hook.secret]) == event
    now = int(one.headers["webhook-timestamp"])
    for headers, body, secret, moment in (
        (one.headers, one.body + b" ", hook.secret, now),
        (one.headers, one.body, "whsec_b3RoZXI=", now),
        (one.headers, one.body, "whsec_", now),
        (one.headers, one.body, hook.secret, now + 301),
        (one.headers, one.body, hook.secret, now - 301),
        ({**one.headers, "webhook-id": "x"}, one.body, hook.secret, now),
        ({**one.headers, "webhook-id": "\udcff"}, one.body, hook.secret, now),
        (one.headers, "\ud800", hook.secret, now),
        ({**one.headers, "webhook-timestamp": "x"}, one.body, hook.secret, now),
        ({**one.headers, "webhook-signature": "v1,"}, one.body, hook.secret, now),
        ({"webhook-id": "x"}, one.body, hook.secret, now),
    ):
        with pytest.raises(InvalidSignature):
            verify_webhook(headers, body, secret, now=moment)
    client.delete_webhook("pager")
    with pytest.raises(UnknownWebhook):
        client.redeliver("pager", one.id)


@pytest.mark.usefixtures("beside_examples")
def test_the_program_of_the_page(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADRACE_URL", service.url)
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    (program,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.S) if ".watch(" in block)
    exec(program, {})
    assert capsys.readouterr().out.splitlines() == ["version 2 None None", "value.changed 2 6000 4200"]


def test_the_shell(service: Service, client: Client, receiver: Receiver) -> None:
    def run(*words: str) -> str:
        ran = CliRunner().invoke(app, [*words, "--url", service.url])
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    client.put_graph("shell", **CITY)
    told = json.loads(run("watch", "shell", "main", "--source", "s", "--sink", "t", "--json"))
    assert (told["watch"], told["value"]) == ("main", 6)
    client.graph("shell").patch(edges=["a"], set=1)
    lines = run("events", "shell", "--after", "0", "--count", "4", "--json").splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["version", "version", "value.changed", "cut.changed"]
    assert "value.changed" in run("events", "shell", "--after", "0", "--count", "3")
    assert "main" in run("watch", "shell")
    run("watch", "shell", "main", "--remove")
    assert client.graph("shell").watches() == ()
    secret = json.loads(run("webhooks", "put", "pager", receiver.url, "--graph", "shell", "--json"))["secret"]
    assert secret.startswith("whsec_")
    assert "pager" in run("webhooks", "list")
    assert run("webhooks", "rotate", "pager").startswith("whsec_")
    assert "deliver" in run("webhooks", "deliveries", "pager", "--dead")
    receiver.answers[:] = [500]
    client.graph("shell").patch(edges=["a"], set=2)
    eventually(lambda: "500" in run("webhooks", "deliveries", "pager"))
    titles, failed = run("webhooks", "deliveries", "pager").splitlines()
    assert re.split("  +", titles) == ["DELIVERY", "TYPE", "TRIES", "NEXT TRY", "ERROR"]
    assert re.fullmatch(r"\S+-version +version +1 +20\S+Z +answered 500", failed)
    run("webhooks", "delete", "pager")
    assert client.webhooks() == ()
