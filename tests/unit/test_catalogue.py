"""A graph that is replaced between two looks is there all the same.

Found by seed 7510 of the fault bench: a PATCH was told 404 while its graph was being replaced.
"""

import asyncio
from typing import Any

import pytest
import redis

from service.store.catalogue import Registry
from service.store.graphs import Catalogue
from service.store.keys import Keys
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker


@pytest.fixture
def replace(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> Any:
    """There is a graph g; to call this puts another one in its place."""
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)

    def act() -> None:
        old = client.hget(keys.names, "g").decode()
        client.rename(keys.graph(old), keys.graph(f"{old}+"))
        client.hset(keys.names, "g", f"{old}+")

    return act


@pytest.mark.parametrize("times", [1, 3])
def test_a_graph_is_found_while_it_is_replaced(
    caller: Caller, replace: Any, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    client: Any = caller.dispatcher.client
    read, left = client.hgetall, times

    async def hgetall(key: str) -> Any:
        nonlocal left
        if ":graph:" in key and left:
            left -= 1
            replace()
        return await read(key)

    monkeypatch.setattr(client, "hgetall", hgetall)
    info = caller.run(Catalogue(client, caller.dispatcher.keys).get("g"))
    assert info is not None
    assert info.name == "g"


def test_all_graphs_are_listed_while_one_is_replaced(
    caller: Caller, replace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.load("h", diamond().edges)
    client: Any = caller.dispatcher.client
    make = client.pipeline

    def pipeline(**options: Any) -> Any:
        replace()
        return make(**options)

    monkeypatch.setattr(client, "pipeline", pipeline)
    listed = caller.run(Catalogue(client, caller.dispatcher.keys).page(lambda _: True))
    assert [info.name for info in listed.graphs] == ["g", "h"]


def test_a_graph_that_is_gone_is_gone(caller: Caller, client: Any, keys: Keys, replace: Any) -> None:
    client.unlink(keys.graph(client.hget(keys.names, "g").decode()))
    catalogue = Catalogue(caller.dispatcher.client, keys)
    assert caller.run(catalogue.get("g")) is None
    assert caller.run(catalogue.get("h")) is None
    assert caller.run(catalogue.page(lambda _: True)).graphs == []


def test_graphs_come_in_pages(
    caller: Caller, client: Any, keys: Keys, replace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some are read at a time. Those whose names are not for the caller count for nothing."""
    monkeypatch.setattr("service.store.graphs.READ_AT_ONCE", 2)
    row = client.hgetall(keys.graph(client.hget(keys.names, "g").decode()))
    for number in range(7):
        client.hset(keys.names, f"n{number}", f"id-{number}")
        client.hset(keys.graph(f"id-{number}"), mapping=row)
    catalogue = Catalogue(caller.dispatcher.client, keys)
    found, after = [], ""
    while True:
        page = caller.run(catalogue.page(lambda name: name not in ("g", "h"), after, limit=3))
        assert page.total == 7
        found.append([info.name for info in page.graphs])
        if page.next is None:
            break
        after = page.next
    assert found == [["n0", "n1", "n2"], ["n3", "n4", "n5"], ["n6"]]
    whole = caller.run(catalogue.page(lambda name: name.startswith("n"), limit=7))
    assert (len(whole.graphs), whole.next) == (7, None)


def test_many_who_list_graphs_share_their_names_and_nobody_misses_one(
    caller: Caller, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen lists of 20,000 graphs kept all others waiting for a second, each time."""
    asked: Any = caller.dispatcher.client
    catalogue = Catalogue(asked, keys)
    read, looks = asked.hkeys, 0

    async def hkeys(key: str) -> Any:
        nonlocal looks
        looks += 1
        names = await read(key)
        if looks == 1:
            raise redis.ConnectionError
        await asyncio.sleep(0.05)  # what comes now is not among these names
        client.hset(keys.names, f"g{looks}", "id")
        return names

    async def totals(n: int) -> list[Any]:
        pages = [asyncio.create_task(catalogue.page(bool)) for _ in range(n)]
        await asyncio.sleep(0.1)
        late = asyncio.create_task(catalogue.page(bool))
        return await asyncio.gather(*pages, late, return_exceptions=True)

    monkeypatch.setattr(asked, "hkeys", hkeys)
    failed, *found = caller.run(totals(16))
    assert isinstance(failed, redis.ConnectionError)
    assert [page.total for page in found] == [0] * 15 + [1]
    assert looks == 3


@pytest.mark.parametrize("guess", [None, "another", "its id"])
def test_a_worker_finds_it_too(
    client: Any, keys: Keys, replace: Any, monkeypatch: pytest.MonkeyPatch, guess: str | None
) -> None:
    make, left = client.pipeline, 2
    registry = Registry(client, keys)
    if guess == "its id":
        guess = client.hget(keys.names, "g").decode()

    def pipeline(**options: Any) -> Any:
        nonlocal left
        assert options.get("transaction", True), "what is read must be of one moment"
        if left:
            left -= 1
            replace()
        return make(**options)

    monkeypatch.setattr(client, "pipeline", pipeline)
    found = registry.find("g", guess)
    assert found.held is not None
    assert found.graph_id == found.held.graph_id == client.hget(keys.names, "g").decode()
