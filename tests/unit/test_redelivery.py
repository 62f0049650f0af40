"""Commands delivered again, refused by a full Redis, or lost with its last second."""

import asyncio
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
import redis.asyncio
import uvloop

from gpu_engine.formats import pack
from service.errors import ServiceError
from service.protocol import (
    CapacitiesArgs,
    Command,
    EmptyArgs,
    Kind,
    LoadArgs,
    MaxFlowArgs,
    Message,
    Operation,
    PatchArgs,
    Status,
)
from service.queue.replies import LatestReplies
from service.settings import Settings
from service.store.connection import connect, connect_async
from service.store.keys import Keys
from service.worker.copies import Copies
from service.worker.running.progress import Progress
from service.worker.running.task import Task
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
            (result,) = self.client.hmget(self.keys.job(job_id), "result")
            self.client.set(self.keys.outcome(job_id), result)
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
    worker.graphs.residents.drop("g")
    first = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    assert first.problem is not None
    assert first.problem.code == "worker_unavailable"
    redelivery.client.rename("aside", base)
    again = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    assert json.loads(again.result_json or "")["version"] == 2


def test_a_key_is_kept_as_long_as_its_answer(
    caller: Caller, start_worker: StartWorker, redelivery: Redelivery, settings: Settings
) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    first = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    kept_s, answer_s = (
        redelivery.client.ttl(key) for key in (redelivery.keys.idempotency("g", "key"), redelivery.keys.job(first.id))
    )
    assert settings.job_ttl_s - 60 < kept_s <= answer_s <= settings.job_ttl_s


def test_a_key_whose_answer_is_forgotten_is_not_used_again(
    caller: Caller, start_worker: StartWorker, redelivery: Redelivery
) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    first = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    redelivery.client.delete(redelivery.keys.job(first.id))
    caller.dispatcher.replies.latest = LatestReplies()
    assert code_of(lambda: caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")) == "idempotency_conflict"


def test_a_load_that_was_cancelled_while_it_waited_leaves_nothing_of_its_name(
    caller: Caller, start_worker: StartWorker, redelivery: Redelivery
) -> None:
    """Else names without a graph would add up, and each start would try to restore them."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    client, keys = redelivery.client, redelivery.keys
    go_on = threading.Event()
    worker._defer("new", go_on.wait, 0.0)  # type: ignore[arg-type]
    blob = caller.run(caller.dispatcher.blobs.put(pack(diamond().edges)))
    job_id = caller.submit(Kind.LOAD, "new", LoadArgs(blob=blob))
    caller.run(caller.dispatcher.cancel(job_id))
    go_on.set()
    reply = caller.run(caller.dispatcher.wait(job_id, 30))
    assert reply is not None
    assert reply.status is Status.CANCELLED
    assert set(client.hgetall(keys.owners)) == {b"g"}
    assert not client.exists(keys.claim("new"))
    missing = caller.submit(Kind.LOAD, "new", LoadArgs(blob="none"))
    assert caller.run(caller.dispatcher.wait(missing, 30)) is not None
    assert set(client.hgetall(keys.owners)) == {b"g"}
    caller.load("new", diamond().edges)
    missing = caller.submit(Kind.LOAD, "new", LoadArgs(blob="none"))
    assert caller.run(caller.dispatcher.wait(missing, 30)) is not None
    assert caller.value("new") == 5


def test_a_graph_that_another_took_over_is_forgotten(
    caller: Caller, start_worker: StartWorker, redelivery: Redelivery
) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    caller.load("h", diamond().edges)
    redelivery.client.hset(redelivery.keys.owners, "g", "w1")
    eventually(lambda: [graph.name for graph in worker.graphs.residents.all()] == ["h"])


def command_of(caller: Caller, args: Message, key: str | None = None) -> Command:
    """A PATCH of g, as the dispatcher queues it."""
    return Command(
        id=uuid.uuid4().hex,
        kind=Kind.PATCH,
        graph="g",
        args=args.model_dump(mode="json"),
        reply_to=caller.dispatcher.id,
        idempotency_key=key,
        body_digest=key and "digest",
        created_at=time.time(),
    )


def test_what_was_refused_stays_refused(caller: Caller, start_worker: StartWorker, redelivery: Redelivery) -> None:
    """Found by seed 427: an answer from Redis was cut, and the client queued a command again that had been refused."""
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    command = command_of(caller, ADD_1.model_copy(update={"if_match": 2}))
    caller.run(caller.dispatcher._send(command))
    assert code_of(lambda: caller.run(caller.dispatcher.wait(command.id, 20))) == "version_conflict"
    caller.ask(Kind.PATCH, "g", ADD_1)
    redelivery.client.xadd(redelivery.keys.commands("w0"), {"command": command.model_dump_json()})
    eventually(lambda: not redelivery.client.xlen(redelivery.keys.commands("w0")))
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())["version"] == 2
    assert code_of(lambda: caller.run(caller.dispatcher.wait(command.id, 20))) == "version_conflict"
    assert redelivery.client.ttl(redelivery.keys.job(command.id)) <= redelivery.settings.job_ttl_s
    assert not redelivery.client.zcard(redelivery.keys.waiting("w0"))


def test_a_key_set_free_is_not_taken_again_for_the_work_that_failed(
    caller: Caller, start_worker: StartWorker, redelivery: Redelivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to its queueing was lost, and the command has failed, for now, before it is queued again."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    base = redelivery.client.hget(redelivery.keys.graph(worker.graphs.residents.all()[0].graph_id), "base").decode()
    redelivery.client.rename(redelivery.keys.blob(base), "aside")
    worker.graphs.residents.drop("g")
    command = command_of(caller, ADD_1, "key")
    execute, lost = redis.asyncio.client.Pipeline.execute, []

    async def lose_the_answer(pipe: Any, *args: Any) -> Any:
        answer = await execute(pipe, *args)
        if not lost:
            lost.append(answer)
            while not redelivery.client.hexists(redelivery.keys.job(command.id), "reply"):
                await asyncio.sleep(0.01)
            raise redis.WatchError
        return answer

    monkeypatch.setattr(redis.asyncio.client.Pipeline, "execute", lose_the_answer)
    caller.run(caller.dispatcher._send(command))
    assert code_of(lambda: caller.run(caller.dispatcher.wait(command.id, 20))) == "worker_unavailable"
    redelivery.client.rename("aside", redelivery.keys.blob(base))
    again = caller.reply(Kind.PATCH, "g", ADD_1, "key", command.body_digest)
    assert again.id != command.id
    assert json.loads(again.result_json or "")["version"] == 2


def test_a_job_that_redis_lost_does_not_seem_to_run(caller: Caller, redelivery: Redelivery) -> None:
    progress = Progress(redelivery.client, redelivery.keys, redelivery.settings)
    command = command_of(caller, ADD_1)
    task = Task(b"1-0", command, redelivered=False, started_at=time.time())
    progress.report(task)
    assert not redelivery.client.exists(redelivery.keys.job(command.id), redelivery.keys.events(command.id))
    redelivery.client.hset(redelivery.keys.job(command.id), "status", "queued")
    progress.report(task)
    assert redelivery.client.hget(redelivery.keys.job(command.id), "status") == b"running"


def test_a_job_that_ended_elsewhere_does_not_seem_to_run(caller: Caller, redelivery: Redelivery) -> None:
    """Found by seed 34: a worker that had been paused said so of a PATCH that another had done; it was done again."""
    progress = Progress(redelivery.client, redelivery.keys, redelivery.settings)
    command = command_of(caller, ADD_1)
    redelivery.client.hset(redelivery.keys.job(command.id), "status", "succeeded")
    task = Task(b"1-0", command, redelivered=False, started_at=time.time())
    progress.report(task)
    assert redelivery.client.hget(redelivery.keys.job(command.id), "status") == b"succeeded"
    assert not redelivery.client.exists(redelivery.keys.events(command.id))
    assert task.control.cancelled


@pytest.mark.parametrize("lost", [False, True])
def test_who_follows_a_job_is_not_left_waiting(caller: Caller, redelivery: Redelivery, lost: bool) -> None:
    """Redis lost the stream of events that the follower had made, with the job or without."""
    redelivery.client.hset(redelivery.keys.job("j"), "status", "running")

    async def follow() -> list[str]:
        return [event.event async for event in caller.dispatcher.events("j", None)]

    async def lose() -> None:
        while not redelivery.client.delete(redelivery.keys.events("j")):
            await asyncio.sleep(0.01)
        redelivery.client.hset(redelivery.keys.job("j"), "status", "succeeded")
        if lost:
            redelivery.client.delete(redelivery.keys.job("j"))

    async def both() -> list[str]:
        return (await asyncio.gather(asyncio.wait_for(follow(), 20), lose()))[0]

    if lost:
        with pytest.raises(ServiceError, match="lost the command"):
            caller.run(both())
    else:
        assert caller.run(both()) == ["done"]


def test_a_graph_is_restored_to_what_redis_kept(
    caller: Caller, start_worker: StartWorker, redelivery: Redelivery
) -> None:
    """Found by seed 723: a snapshot lay ahead of the catalogue, whose end was lost."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    caller.ask(Kind.PATCH, "g", ADD_1)
    kept = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())
    caller.ask(Kind.PATCH, "g", ADD_1)
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    graph_id = worker.graphs.residents.all()[0].graph_id
    redelivery.client.delete(redelivery.keys.log(graph_id))
    redelivery.client.hset(redelivery.keys.graph(graph_id), "version", 1)
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())["version"] == 1
    assert caller.ask(Kind.PATCH, "g", ADD_1)["version"] == 2
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs()) == kept


def test_a_worker_starts_while_redis_comes_and_goes(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by seeds 548, 650 and 799: Redis went away between the lease and the list of graphs."""
    owned, failures = Copies.owned, [redis.ConnectionError(), redis.ResponseError("MISCONF"), redis.TimeoutError()]

    def fail_first(copies: Copies) -> list[str]:
        if failures:
            raise failures.pop()
        return owned(copies)

    monkeypatch.setattr(Copies, "owned", fail_first)
    start_worker()
    caller.wait_ready()
    assert not failures


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("settled_s", [0, 0.01], ids=["closing", "closed"])
def test_a_connection_closed_before_it_is_written_to(
    settings: Settings, new_loop: Callable[[], asyncio.AbstractEventLoop], settled_s: float
) -> None:
    """Each loop has an error of its own for it, in 3.13 a TypeError, and each was answered with 500."""
    written: list[object] = []

    async def ask() -> bool:
        client = connect_async(settings)
        connection = await client.connection_pool.get_connection()
        connection._writer.transport.abort()
        if settled_s:
            await asyncio.sleep(settled_s)
        connection._writer.writelines = written.append
        with pytest.raises(redis.ConnectionError):
            await connection.send_command("PING")
        assert not connection.is_connected
        await client.connection_pool.release(connection)
        answer = await client.ping()
        await client.aclose()
        return bool(answer)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(ask())
    assert not written


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("error", [RuntimeError("the handler is closed"), ConnectionResetError("Connection lost")])
def test_a_connection_that_closes_while_it_is_written_to(
    settings: Settings, new_loop: Callable[[], asyncio.AbstractEventLoop], error: Exception
) -> None:
    """On 3.11 the loop turns once between the last look at the connection and the write."""

    def close_and_fail(_: object) -> None:
        connections[0]._writer.transport.abort()
        raise error

    connections: list[Any] = []

    async def ask() -> bool:
        client = connect_async(settings)
        connections.append(await client.connection_pool.get_connection())
        connections[0]._writer.writelines = close_and_fail
        with pytest.raises(redis.ConnectionError):
            await connections[0].send_command("PING")
        await client.connection_pool.release(connections[0])
        answer = await client.ping()
        await client.aclose()
        return bool(answer)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(ask())


def test_an_error_of_our_own_is_not_taken_for_a_closed_connection(settings: Settings) -> None:
    async def ask() -> None:
        client = connect_async(settings)
        connection = await client.connection_pool.get_connection()
        with pytest.raises(TypeError):
            await connection.send_packed_command([1])
        await client.connection_pool.release(connection)
        await client.aclose()

    with asyncio.Runner() as runner:
        runner.run(ask())
