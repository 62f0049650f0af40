"""Graphs that Redis does not know any more are told of by the worker that has them in memory."""

import threading
import time
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from service.protocol import DeleteArgs, Kind, MoveArgs
from service.store.keys import Keys
from service.store.ownership import Ownership
from service.worker.process import Worker
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker

RARELY_S = 300.0
"""A lease with which no heartbeat looks after the graphs while a test does."""


def with_graphs(caller: Caller, start_worker: StartWorker, *names: str) -> Worker:
    worker = start_worker("w0", lease_s=RARELY_S)
    caller.wait_ready()
    for name in names:
        caller.load(name, diamond().edges)
    return worker


def empty(client: Any, keys: Keys) -> None:
    client.delete(keys.names, keys.owners)


def n_lost(worker: Worker) -> int:
    return worker.graphs.counters.get("graphs_lost", 0)


def test_a_redis_that_was_emptied_is_told_of(
    client: Any, keys: Keys, caller: Caller, start_worker: StartWorker
) -> None:
    """At the second look, once for each graph; what is loaded afterwards is none of it."""
    worker = with_graphs(caller, start_worker, "a", "b")
    with capture_logs() as logs:
        empty(client, keys)
        worker.graphs.look_after()
        assert not n_lost(worker), "Redis may come back with them"
        for _ in range(2):
            worker.graphs.look_after()
    told = [(line["graph"], line["version"]) for line in logs if line["event"] == "graph_lost"]
    assert sorted(told) == [("a", 1), ("b", 1)]
    assert n_lost(worker) == 2
    assert not worker.graphs.residents.all()
    caller.load("c", diamond().edges)
    for _ in range(3):
        worker.graphs.look_after()
    assert n_lost(worker) == 2


def test_what_was_deleted_or_moved_is_not_lost(caller: Caller, start_worker: StartWorker) -> None:
    workers = [start_worker(name, lease_s=RARELY_S) for name in ("w0", "w1")]
    caller.wait_ready(2)
    for name in ("a", "b"):
        caller.load(name, diamond().edges)
    caller.reply(Kind.MOVE, "a", MoveArgs(to="w1"))
    caller.reply(Kind.MOVE, "a", MoveArgs(to="w0"))
    caller.reply(Kind.DELETE, "b", DeleteArgs())
    for worker in workers:
        for _ in range(3):
            worker.graphs.look_after()
        assert not n_lost(worker)


@pytest.mark.parametrize("loaded_again", [False, True])
def test_a_delete_after_a_takeover_is_no_loss(
    client: Any, keys: Keys, caller: Caller, start_worker: StartWorker, loaded_again: bool
) -> None:
    """A worker that was paused, as by SIGSTOP, still has the graph in memory, and has heard of nothing."""
    paused = with_graphs(caller, start_worker, "a")
    start_worker("w1", lease_s=RARELY_S)
    caller.wait_ready(2)
    assert Ownership(client, keys).take_over("a", "w1", "w0")
    if loaded_again:
        caller.load("a", diamond().edges)
    assert caller.reply(Kind.DELETE, "a", DeleteArgs()).problem is None
    assert paused.graphs.residents.get("a") is not None
    for _ in range(3):
        paused.graphs.look_after()
    assert not n_lost(paused)
    assert paused.graphs.residents.get("a") is None


@pytest.mark.parametrize("owner", ["w0", "w1"])
def test_a_name_that_is_given_again_hides_no_loss(
    client: Any, keys: Keys, caller: Caller, start_worker: StartWorker, owner: str
) -> None:
    worker = with_graphs(caller, start_worker, "a")
    empty(client, keys)
    worker.graphs.look_after()
    client.hset(keys.names, "a", "another")
    client.hset(keys.owners, "a", owner)
    for _ in range(2):
        worker.graphs.look_after()
    assert n_lost(worker) == 1


def test_what_was_there_again_is_missed_anew(
    client: Any, keys: Keys, caller: Caller, start_worker: StartWorker
) -> None:
    """Redis was away with its data, and has come back: that counts for no later look."""
    worker = with_graphs(caller, start_worker, "a")
    caller.set("a", [0], ["1"])
    names, owners = client.hgetall(keys.names), client.hgetall(keys.owners)
    for n_looks in (1, 2):
        empty(client, keys)
        for _ in range(n_looks):
            assert not n_lost(worker)
            worker.graphs.look_after()
        client.hset(keys.names, mapping=names)
        client.hset(keys.owners, mapping=owners)
        worker.graphs.look_after()
        caller.value("a")
    assert n_lost(worker) == 1


def test_a_load_that_was_not_answered_is_not_lost(
    client: Any, keys: Keys, caller: Caller, start_worker: StartWorker
) -> None:
    """Its caller sends it again. Nobody may be paged for what nobody was promised."""
    worker = with_graphs(caller, start_worker, "a")
    graph = worker.graphs.residents.get("a")
    assert graph is not None
    graph.unwritten_at = time.monotonic()
    empty(client, keys)
    worker.graphs.look_after()
    caller.load("a", diamond().edges)
    worker.graphs.look_after()
    assert not n_lost(worker)


def count_calls(monkeypatch: pytest.MonkeyPatch, of: type, name: str, asked: list[object]) -> None:
    """Note the calls of a method by this thread: the worker's own ask as well."""
    ask, here = getattr(of, name), threading.get_ident()

    def counted(*args: Any, **options: Any) -> Any:
        if threading.get_ident() == here:
            asked.append(args)
        return ask(*args, **options)

    monkeypatch.setattr(of, name, counted)


def test_a_look_takes_as_many_round_trips_for_many_graphs_as_for_a_few(
    client: Any, keys: Keys, caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand graphs that were lost or taken over, one by one, kept a heartbeat for longer than a lease."""
    worker = with_graphs(caller, start_worker, *(f"g{i}" for i in range(30)))
    asked: list[object] = []
    count_calls(monkeypatch, redis.Redis, "execute_command", asked)
    count_calls(monkeypatch, redis.client.Pipeline, "execute", asked)
    empty(client, keys)
    asked.clear()
    for _ in range(2):
        worker.graphs.look_after()
    assert n_lost(worker) == 30
    assert len(asked) < 10
