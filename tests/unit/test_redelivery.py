"""Commands delivered again, refused by a full Redis, or lost with its last second."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from service.protocol import CapacitiesArgs, EmptyArgs, Kind, LoadArgs, MaxFlowArgs, Message, Operation, PatchArgs
from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, code_of
from tests.serving import eventually

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])


class Redelivery:
    """Puts a command that has ended into the stream once more, as a paused worker or a repeated write does."""

    def __init__(self, settings: Settings, caller: Caller) -> None:
        self.settings = settings
        self.client: Any = connect(settings)
        self.keys = Keys(settings.redis_prefix)
        self._caller = caller

    def again(self, job_id: str, kind: Kind, args: Message, *, ended: bool) -> None:
        """`ended` False: the worker that committed it has not got so far as to say so."""
        command = {"id": job_id, "kind": kind.value, "graph": "g", "args": args.model_dump(mode="json")}
        command |= {"reply_to": self._caller.dispatcher.id, "created_at": time.time()}
        if not ended:
            self.client.hset(self.keys.job(job_id), "status", "running")
            self.client.hdel(self.keys.job(job_id), "reply")
        self.client.xadd(self.keys.commands("w0"), {"command": json.dumps(command)})


@pytest.fixture
def redelivery(settings: Settings, caller: Caller) -> Iterator[Redelivery]:
    redelivery = Redelivery(settings, caller)
    yield redelivery
    redelivery.client.close()


@pytest.mark.parametrize("ended", [True, False])
def test_a_new_graph_of_the_name_is_left_alone(
    caller: Caller, start_worker: StartWorker, redelivery: Redelivery, ended: bool
) -> None:
    """Found by seed 22 of the fault histories: a worker was paused, its commands moved, the graph loaded anew."""
    start_worker()
    caller.wait_ready()
    blob = caller.load("g", diamond().edges) and redelivery.client.hget(redelivery.keys.names, "g").decode()
    patch = caller.reply(Kind.PATCH, "g", ADD_1).id
    delete = caller.reply(Kind.DELETE, "g", EmptyArgs()).id
    caller.load("g", diamond().edges)
    before = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())
    redelivery.again(blob, Kind.LOAD, LoadArgs(blob="gone"), ended=ended)
    redelivery.again(patch, Kind.PATCH, ADD_1, ended=ended)
    redelivery.again(delete, Kind.DELETE, EmptyArgs(), ended=ended)
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs()) == before
    for job_id in (blob, patch, delete):
        job = caller.run(caller.dispatcher.job(job_id))
        assert job is not None
        assert job.status == "succeeded"
    if not ended:
        again = caller.run(caller.dispatcher.job(patch))
        assert json.loads(again.result_json or "")["version"] == 2  # type: ignore[union-attr]


@contextmanager
def full(settings: Settings) -> Iterator[None]:
    """Set by the server's own administrator: the service's user may not."""
    admin = redis.Redis.from_url(settings.redis_location.replace("headrace@", ""))
    admin.config_set("maxmemory", "1mb")
    try:
        yield
    finally:
        admin.config_set("maxmemory", "0")
        admin.close()


def test_a_full_redis_is_one_that_is_away(caller: Caller, start_worker: StartWorker, redelivery: Redelivery) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    with full(redelivery.settings):
        assert code_of(lambda: caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")) == "worker_unavailable"
        assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())) == "worker_unavailable"
    reply = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    assert json.loads(reply.result_json or "")["version"] == 2


def test_a_worker_outlives_a_full_redis(caller: Caller, start_worker: StartWorker, redelivery: Redelivery) -> None:
    """The command waits, and whoever follows it hears of its progress afterwards."""
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    with full(redelivery.settings):
        time.sleep(0.6)  # long enough for a report of progress to be refused
    assert caller.value("g") == 5


def test_a_command_that_redis_lost_is_said_to_be(caller: Caller, redelivery: Redelivery, settings: Settings) -> None:
    """The connection held, or was made again unseen; the second that held the command is gone."""
    redelivery.client.hset(redelivery.keys.owners, "g", "w0")
    redelivery.client.set(redelivery.keys.lease("w0"), "somebody")
    job_id = caller.submit(Kind.DELETE, "g", EmptyArgs())
    redelivery.client.delete(redelivery.keys.job(job_id), redelivery.keys.commands("w0"))
    reply = caller.run(caller.dispatcher.wait(job_id, 20))
    assert reply is not None
    assert reply.problem is not None
    assert reply.problem.code == "worker_unavailable"


def test_a_key_whose_work_could_not_be_done_is_free_again(
    caller: Caller, start_worker: StartWorker, redelivery: Redelivery
) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    graph_id = redelivery.client.hget(redelivery.keys.names, "g").decode()
    base = redelivery.keys.blob(redelivery.client.hget(redelivery.keys.graph(graph_id), "base").decode())
    redelivery.client.rename(base, "aside")
    worker.graphs._drop("g")
    first = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    assert first.problem is not None
    assert first.problem.code == "worker_unavailable"
    redelivery.client.rename("aside", base)
    again = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    assert json.loads(again.result_json or "")["version"] == 2


def test_a_key_whose_answer_is_forgotten_is_not_used_again(
    caller: Caller, start_worker: StartWorker, redelivery: Redelivery
) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    first = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    redelivery.client.delete(redelivery.keys.job(first.id))
    caller.dispatcher._done.clear()
    assert code_of(lambda: caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")) == "idempotency_conflict"


def test_a_graph_that_another_took_over_is_forgotten(
    caller: Caller, start_worker: StartWorker, redelivery: Redelivery
) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    caller.load("h", diamond().edges)
    redelivery.client.hset(redelivery.keys.owners, "g", "w1")
    eventually(lambda: [graph.name for graph in worker.graphs.resident] == ["h"])
