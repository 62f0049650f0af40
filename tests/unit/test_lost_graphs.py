"""Graphs that Redis does not know any more are told of by the worker that has them in memory."""

from structlog.testing import capture_logs

from service.protocol import DeleteArgs, Kind, MoveArgs
from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker


def test_a_redis_that_was_emptied_is_told_of(settings: Settings, caller: Caller, start_worker: StartWorker) -> None:
    """At the second look, once for each graph; what is loaded afterwards is none of it."""
    worker = start_worker("w0")
    caller.wait_ready()
    for name in ("a", "b"):
        caller.load(name, diamond().edges)
    with connect(settings) as client, capture_logs() as logs:
        keys = Keys(settings.redis_prefix)
        for about in (keys.names, keys.owners):
            client.delete(about)
        worker.graphs.look_after()
        assert not worker.graphs.counters.get("graphs_lost"), "they may be deleted just now"
        for _ in range(2):
            worker.graphs.look_after()
    told = [(line["graph"], line["version"]) for line in logs if line["event"] == "graph_lost"]
    assert sorted(told) == [("a", 1), ("b", 1)]
    assert worker.graphs.counters["graphs_lost"] == 2
    assert not worker.graphs.residents.all()
    caller.load("c", diamond().edges)
    for _ in range(3):
        worker.graphs.look_after()
    assert worker.graphs.counters["graphs_lost"] == 2


def test_what_was_deleted_or_moved_is_not_lost(caller: Caller, start_worker: StartWorker) -> None:
    workers = [start_worker(name) for name in ("w0", "w1")]
    caller.wait_ready()
    for name in ("a", "b"):
        caller.load(name, diamond().edges)
    caller.reply(Kind.MOVE, "a", MoveArgs(to="w1"))
    caller.reply(Kind.MOVE, "a", MoveArgs(to="w0"))
    caller.reply(Kind.DELETE, "b", DeleteArgs())
    for worker in workers:
        for _ in range(3):
            worker.graphs.look_after()
        assert not worker.graphs.counters.get("graphs_lost")
