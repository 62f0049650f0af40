"""What watches tell, when it could not be told at once, and what bounds it."""

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
import redis

from gpu_engine.generators import grid
from service.models.watches import WatchBody
from service.protocol import DeleteArgs, Kind, Operation, PatchArgs, UnwatchArgs, WatchArgs
from service.store.applied import Fenced
from service.store.feed import record, writing
from service.store.feed.reading import Placed
from service.store.feed.record import CutSeen, Event, Seen
from service.store.feed.writing import Feed, Feeds
from service.store.graphs import Catalogue
from service.store.keys import Keys, generation_of
from service.worker import watch_events
from service.worker.process import Worker
from tests.service_fixtures import Caller, StartWorker, code_of
from tests.serving import eventually

EDGES = grid(rows=6, columns=6, seed=3)
ENDS: dict[str, Any] = {"sources": [0], "sinks": [35]}


def test_a_watch_is_written_without_a_warning() -> None:
    """Which would stand in the log, where each line is JSON."""
    written = WatchBody(sources=["s"], on=["cut", "value"]).args("w").model_dump_json()
    assert WatchArgs.model_validate_json(written).on == ("value", "cut")


def told(caller: Caller, name: str = "g") -> list[Event]:
    return [event for _, event in caller.run(caller.dispatcher.feed.after(name, "0-0", 10_000))]


def versions(caller: Caller, kind: str = record.VERSION, name: str = "g") -> list[int]:
    return [int(event.id.split("-")[1]) for event in told(caller, name) if event.type == kind]


def watch(caller: Caller, watch: str = "w", **others: Any) -> dict[str, Any]:
    return caller.ask(Kind.WATCH, "g", WatchArgs(watch=watch, **(ENDS | others)))


@pytest.fixture
def watched(caller: Caller, start_worker: StartWorker) -> Worker:
    """A worker with a graph g, which has a watch w."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", EDGES)
    watch(caller)
    return worker


def out_of_0(worker: Worker) -> list[int]:
    """The edges that leave the source."""
    graph = worker.graphs.residents.get("g")
    assert graph is not None
    return [int(edge) for edge in np.flatnonzero(EDGES.tail == 0)]


def failing_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis goes away just as the next version is to be told."""
    tell, failed = Feeds.tell, threading.Event()

    def fail(self: Feeds, *args: Any, **others: Any) -> None:
        if failed.is_set():
            return tell(self, *args, **others)
        failed.set()
        raise redis.ConnectionError("away")

    monkeypatch.setattr(Feeds, "tell", fail)


def test_what_was_not_told_is_told_before_the_next_version(
    caller: Caller, watched: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched.graphs._watcher, "look_after", lambda graph: None)
    failing_once(monkeypatch)
    edges = out_of_0(watched)
    caller.set("g", edges, ["1"] * len(edges))
    assert versions(caller, record.VALUE_CHANGED) == []
    caller.set("g", edges, ["2"] * len(edges))
    assert versions(caller, record.VALUE_CHANGED) == [2, 3]
    assert versions(caller) == [1, 2, 3]
    order = [event.id.split("-", 1)[1] for event in told(caller)]
    assert order == ["1-version", "2-version", "2-w-value", "2-w-cut", "3-version", "3-w-value"]


def test_what_was_not_told_is_told_without_a_command(
    caller: Caller, watched: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_once(monkeypatch)
    edges = out_of_0(watched)
    caller.set("g", edges, ["1"] * len(edges))
    eventually(lambda: versions(caller, record.VALUE_CHANGED) == [2])


def test_a_watch_that_comes_back_with_an_older_redis_is_told_of_each_version(
    caller: Caller, watched: Worker, client: Any, keys: Keys
) -> None:
    """Found by the fault bench: its end was among the last bytes, which Redis had lost with its machine."""
    kept = {key: client.hgetall(key) for key in (keys.watches("g"), keys.told("g"))}
    caller.ask(Kind.UNWATCH, "g", UnwatchArgs(watch="w"))
    edges = out_of_0(watched)
    for key, fields in kept.items():
        client.hset(key, mapping=fields)
    watched._redis.connection_pool.disconnect()
    for amount in ("1", "2", "3"):
        caller.set("g", edges, [amount] * len(edges))
    eventually(lambda: versions(caller, record.VALUE_CHANGED) == [2, 3, 4])


def test_what_was_not_told_is_told_after_a_restart(
    caller: Caller, watched: Worker, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched.graphs._watcher, "look_after", lambda graph: None)
    failing_once(monkeypatch)
    edges = out_of_0(watched)
    caller.set("g", edges, ["1"] * len(edges))
    watched.stop()
    start_worker("w0")
    eventually(lambda: versions(caller, record.VALUE_CHANGED) == [2])


def test_a_worker_that_lost_its_graph_tells_nothing(caller: Caller, watched: Worker, client: Any, keys: Keys) -> None:
    graph = watched.graphs.residents.get("g")
    assert graph is not None
    assert graph.feed is not None
    feeds, before = Feeds(client, keys, 100), told(caller)
    stale = Feed(dict(graph.feed.watches), dict(graph.feed.seen), "00000000-1")
    event = Event("x-2-w-value", record.VALUE_CHANGED, "{}")
    for epoch, version, feed in ((graph.epoch - 1, 1, graph.feed), (graph.epoch, 2, graph.feed)):
        with pytest.raises(Fenced):
            feeds.tell("g", graph.graph_id, epoch, version, feed, {}, [event])
    client.hset(keys.graph(graph.graph_id), "version", 2)
    with pytest.raises(Fenced):
        feeds.tell("g", graph.graph_id, graph.epoch, 2, stale, {}, [event])
    feeds.tell("g", graph.graph_id, graph.epoch, 2, graph.feed, {}, [event])
    feeds.tell("g", graph.graph_id, graph.epoch, 2, graph.feed, {}, [event])  # its answer was lost
    assert told(caller) == [*before, event]


def test_a_redis_that_comes_back_older_stands_in_no_way(
    caller: Caller, watched: Worker, client: Any, keys: Keys
) -> None:
    """It may have kept an update, and lost that the update was told. Found by a fault history of seed 7023."""
    edges, before = out_of_0(watched), client.hgetall(keys.told("g"))
    kept = client.xlen(keys.feed("g")) + 1
    caller.set("g", edges, ["1"] * len(edges))
    client.xdel(keys.feed("g"), *[entry for entry, _ in client.xrange(keys.feed("g"))][kept:])
    client.delete(keys.told("g"))
    client.hset(keys.told("g"), mapping=before)
    assert versions(caller, record.VALUE_CHANGED) == []
    watched._redis.connection_pool.disconnect()
    caller.set("g", edges, ["2"] * len(edges))
    caller.set("g", edges, ["3"] * len(edges))
    eventually(lambda: versions(caller, record.VALUE_CHANGED) == [2, 3, 4])
    watch(caller)
    client.hset(keys.told("g"), mapping=before)
    watch(caller, "late")
    caller.ask(Kind.UNWATCH, "g", UnwatchArgs(watch="late"))
    assert client.hget(keys.told("g"), "at").endswith(b"-4")


@pytest.mark.parametrize("failing", ["put", "drop"])
def test_a_watch_is_known_of_whose_answer_was_lost(
    caller: Caller, watched: Worker, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    do, failed = getattr(Feeds, failing), threading.Event()

    def fail(self: Feeds, *args: Any) -> None:
        do(self, *args)
        if not failed.is_set():
            failed.set()
            raise redis.ConnectionError("the answer is lost")

    monkeypatch.setattr(Feeds, failing, fail)
    if failing == "put":
        watch(caller, "late")
    else:
        caller.ask(Kind.UNWATCH, "g", UnwatchArgs(watch="w"))
    edges = out_of_0(watched)
    caller.set("g", edges, ["1"] * len(edges))
    changed = [event.id.split("-")[2] for event in told(caller) if event.type == record.VALUE_CHANGED]
    assert changed == (["late", "w"] if failing == "put" else [])


def test_the_history_has_a_bound(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> None:
    start_worker(event_history=100)
    caller.wait_ready()
    caller.load("g", EDGES)
    first = told(caller)[0].id
    for amount in range(300):
        caller.set("g", [0], [str(amount)])
    assert 100 <= len(told(caller)) <= 250  # Redis drops whole nodes of a hundred
    reader = caller.dispatcher.feed
    assert caller.run(reader.place("g", first)) == Placed("0-0", reset=True)
    last = told(caller)[-1].id
    assert caller.run(reader.place("g", last)).event_id == caller.run(reader.place("g", None)).event_id == last


def test_a_reader_who_is_too_slow_is_told_so(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_worker(event_history=100)
    caller.wait_ready()
    caller.load("g", EDGES)

    async def read() -> list[str]:
        events = caller.dispatcher.feed.follow("g", "0-0")
        types = [(await anext(events)).type]
        for amount in range(350):
            batch = [Operation(op="set", edges=[0], amounts=[str(amount)])]
            await caller.dispatcher.submit(Kind.PATCH, "g", PatchArgs(batch=batch))
        while (await Catalogue(caller.dispatcher.client, caller.dispatcher.keys).page(bool)).graphs[0].version < 351:
            await asyncio.sleep(0.05)
        return [*types, (await anext(events)).type, (await anext(events)).type]

    assert caller.run(read()) == ["version", "reset", "version"]


def test_the_memory_of_a_feed_has_a_bound(
    caller: Caller, watched: Worker, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "FEED_BYTES", 20_000)
    edges = out_of_0(watched)
    for amount in range(60):
        caller.set("g", edges, [str(amount % 2)] * len(edges))
    assert client.memory_usage(keys.feed("g")) < 40_000
    assert versions(caller)[-1] == 61


def test_long_lists_are_cut(caller: Caller, watched: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = out_of_0(watched)
    monkeypatch.setattr(watch_events, "IDS_TOLD", 1)
    caller.set("g", edges, ["1"] * len(edges))
    monkeypatch.setattr(watch_events, "IDS_TOLD", 100)
    monkeypatch.setattr(watch_events, "TEXT_TOLD", 1)
    caller.set("g", edges, ["1000000"] * len(edges))
    first, second = (event.data for event in told(caller) if event.type == record.CUT_CHANGED)
    assert '"truncated":true' in first
    assert '"truncated":true' in second


def test_a_large_cut_is_told_without_its_edges(
    caller: Caller, watched: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "MAX_CUT_KEPT", 1)
    edges = out_of_0(watched)
    caller.set("g", edges, ["1"] * len(edges))
    (data,) = (event.data for event in told(caller) if event.type == record.CUT_CHANGED)
    assert '"cut_added":[],"cut_removed":[],"truncated":true' in data


@pytest.mark.parametrize("rows", [[], [3], [5, 1, 9], list(range(70_000))])
def test_a_cut_is_packed_and_unpacked(rows: list[int]) -> None:
    cut = CutSeen.of(np.array(rows, np.int64))
    seen = Seen("6", None, cut)
    fields = {
        key.encode(): value if isinstance(value, bytes) else value.encode() for key, value in seen.fields("w").items()
    }
    again = Seen.of_fields("w", fields)
    assert again == seen
    assert again is not None
    assert again.cut is not None
    if len(rows) > record.MAX_CUT_KEPT or not rows:
        assert again.cut.rows is None or not len(again.cut.rows)
    else:
        assert again.cut.rows is not None
        assert again.cut.rows.tolist() == sorted(rows)


def test_commands_that_come_again(caller: Caller, watched: Worker) -> None:
    assert caller.reply(Kind.UNWATCH, "g", UnwatchArgs(watch="w")).problem is None
    assert code_of(lambda: caller.reply(Kind.UNWATCH, "g", UnwatchArgs(watch="w"))) == "unknown_watch"
    assert code_of(lambda: caller.reply(Kind.WATCH, "none", WatchArgs(watch="w"))) == "unknown_graph"


def test_a_deleted_graph_leaves_what_expires(caller: Caller, watched: Worker, client: Any, keys: Keys) -> None:
    own = [keys.feed("g"), keys.watches("g"), keys.told("g")]
    assert [client.ttl(key) for key in own] == [-1, -1, -1]
    caller.ask(Kind.DELETE, "g", DeleteArgs())
    assert all(0 < client.ttl(key) <= writing.ORPHANED_TTL_S for key in own)
    caller.load("g", EDGES)
    assert [client.ttl(key) for key in own] == [-1, -1, -1]
    generation = generation_of(client.hget(keys.names, "g").decode())
    assert told(caller)[-2].id == f"{generation}-1-version"
    assert told(caller)[-1].id == f"{generation}-1-w-cut"  # its value is what it was; the cut is told whole
