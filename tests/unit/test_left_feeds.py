"""Feeds of deleted graphs: each takes 4 KiB, so they are of so many names at most."""

from typing import Any

import pytest
import redis

from service.protocol import DeleteArgs, Kind
from service.store.feed import left
from service.store.feed.left import LeftFeeds
from service.store.feed.writing import Feeds
from service.store.hooks.record import Webhook
from service.store.keys import Keys
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker

MOST, AT_ONCE = 5, 3


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left.LeftFeeds.__init__, "__defaults__", (MOST, AT_ONCE))


def feeds(client: Any, keys: Keys) -> set[str]:
    prefix = keys.feed("")
    return {key.decode().removeprefix(prefix) for key in client.scan_iter(match=f"{prefix}*")}


def test_graphs_that_come_and_go_leave_the_feeds_of_a_few(
    few: None, caller: Caller, start_worker: StartWorker, client: Any, keys: Keys
) -> None:
    start_worker()
    caller.wait_ready()
    for i in range(20):
        caller.load(f"g{i}", diamond().edges)
        caller.ask(Kind.DELETE, f"g{i}", DeleteArgs())
        assert len(feeds(client, keys)) < MOST + AT_ONCE
    assert {"g19", "g18", "g17", "g16", "g15"} <= feeds(client, keys)
    assert client.zcard(keys.left_feeds) < MOST + AT_ONCE


def test_which_graphs_nobody_has_deleted(client: Any, keys: Keys) -> None:
    """The last that their feeds say decides; a feed that is not there says something as long as none was dropped."""
    feeds, writer, other = LeftFeeds(client, keys, 2, 1), Feeds(client, keys, 100), "e" * 32
    graphs = dict.fromkeys(["there", "deleted", "replaced", "of another kind", "without a feed"], "f" * 32)
    with client.pipeline() as pipe:
        for name in ("there", "deleted", "replaced"):
            writer.loaded(pipe, name, graphs[name])
        writer.deleted(pipe, graphs["deleted"], 1, name="deleted")
        writer.loaded(pipe, "replaced", other)
        pipe.set(keys.feed("of another kind"), "text")
        pipe.execute()
    assert feeds.of_no_deletion(graphs) == {"there", "without a feed"}
    with client.pipeline() as pipe:
        writer.deleted(pipe, other, 1, name="replaced")
        pipe.execute()
    assert feeds.of_no_deletion(graphs) == {"there"}
    assert feeds.of_no_deletion({}) == set()


def test_what_is_there_read_or_watched_is_kept(few: None, client: Any, keys: Keys) -> None:
    """A graph that was loaded again, by whichever release, a webhook's, and one with watches for the next load."""
    writer = Feeds(client, keys, 100)
    hook = Webhook(id="w", url="https://example.com", graphs=["read"], types=["version"], secret="", created_at=0.0)
    client.hset(keys.webhooks, "w", hook.model_dump_json())
    names = ["loaded", "read", "watched", *(f"g{i}" for i in range(20))]
    for name in names:
        with client.pipeline() as pipe:
            if name == "watched":
                pipe.hset(keys.watches(name), "w", "{}")
            writer.deleted(pipe, "f" * 32, 1, name=name)
            if name == "loaded":
                pipe.persist(keys.feed(name))
            pipe.execute()
        writer.keep_few()
    left = feeds(client, keys)
    assert {"loaded", "read", "watched"} <= left
    assert len(left) < 3 + MOST + AT_ONCE
    assert client.exists(keys.watches("watched"))


def test_a_graph_that_is_loaded_at_this_moment_keeps_its_feed(
    client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, few = Feeds(client, keys, 100), LeftFeeds(client, keys, 0, 1)
    with client.pipeline() as pipe:
        writer.deleted(pipe, "f" * 32, 1, name="g")
        pipe.execute()
    look = left.watched

    def looked(*asked: Any) -> list[Any]:
        found = look(*asked)
        with redis.Redis(connection_pool=client.connection_pool) as other, other.pipeline() as pipe:
            writer.loaded(pipe, "g", "e" * 32)
            pipe.execute()
        return found

    monkeypatch.setattr(left, "watched", looked)
    few.keep_few()
    assert client.xlen(keys.feed("g")) == 2
    assert client.ttl(keys.feed("g")) == -1
