"""Nothing is acknowledged before Redis has handed it to the kernel."""

import asyncio
import threading
import time
from typing import Any

import pytest
import redis

from gpu_engine.formats import pack
from service.protocol import Command, EmptyArgs, Kind, LoadArgs, Operation, PatchArgs, Problem
from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from service.store.written import wait_written, wait_written_async
from service.worker.running.endings import Endings
from service.worker.running.task import Task
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])
PATIENCE_S = 60.0
KEYS = Keys("test-written:")


class Busy:
    """Plays a server whose append-only file waits for an fsync: INFO says so, `left` times more."""

    def __init__(self, left: float) -> None:
        self.left = left
        self.asked = 0

    def info(self, section: str) -> dict[str, Any]:
        assert section == "persistence"
        self.asked += 1
        return {"aof_buffer_length": 4096 if self.asked <= self.left else 0}


def test_it_waits_until_the_buffer_is_written() -> None:
    server: Any = Busy(3)
    wait_written(server, KEYS)
    assert server.asked == 4


def test_an_event_loop_waits_as_well() -> None:
    server = Busy(3)

    class AsyncBusy:
        async def info(self, section: str) -> dict[str, Any]:
            return server.info(section)

    client: Any = AsyncBusy()
    asyncio.run(wait_written_async(client, KEYS))
    assert server.asked == 4
    server.left = float("inf")
    with pytest.raises(redis.TimeoutError, match="append-only file"):
        asyncio.run(wait_written_async(client, KEYS, timeout_s=0.01))


@pytest.mark.parametrize("what", ["a job", "a cancel"])
def test_what_was_accepted_is_written_first(caller: Caller, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Found by seed 3267 of the fault bench: a job that was answered with 202 was gone with Redis' buffer."""
    written = threading.Event()

    async def info(section: str) -> dict[str, Any]:
        return {"aof_buffer_length": int(section == "persistence" and not written.is_set())}

    caller.run(caller.dispatcher.client.hset(caller.dispatcher.keys.owners, "g", "w0"))
    caller.run(caller.dispatcher.client.set(caller.dispatcher.keys.lease("w0"), "x"))
    job_id = caller.submit(Kind.PATCH, "g", ADD_1)
    monkeypatch.setattr(caller.dispatcher.client, "info", info)
    ask = caller.dispatcher.until_written() if what == "a job" else caller.dispatcher.cancel(job_id)

    async def both() -> list[bool]:
        asked = asyncio.ensure_future(ask)
        done, _ = await asyncio.wait({asked}, timeout=0.3)
        written.set()
        await asked
        return [asked in done, asked.done()]

    assert caller.run(both()) == [False, True]


def test_it_does_not_wait_for_ever() -> None:
    server: Any = Busy(float("inf"))
    with pytest.raises(redis.TimeoutError, match="append-only file"):
        wait_written(server, KEYS, timeout_s=0.01)


def test_servers_that_do_not_tell_are_taken_as_they_are(settings: Settings) -> None:
    class Silent:
        def info(self, section: str) -> dict[str, Any]:
            raise redis.exceptions.NoPermissionError

    server: Any = Silent()
    wait_written(server, KEYS)
    client = connect(settings)
    wait_written(client, KEYS)
    client.close()


def test_every_commit_waits_for_it(caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is told that Redis has not written yet: the commit is there, and nobody has an answer."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    written, asked = threading.Event(), threading.Event()

    ask = worker._redis.info

    def info(section: str) -> dict[str, Any]:
        if section != "persistence":
            return dict(ask(section))
        asked.set()
        return {"aof_buffer_length": int(not written.is_set())}

    monkeypatch.setattr(worker._redis, "info", info)
    blob = caller.run(caller.dispatcher.blobs.put(pack(diamond().edges)))
    for kind, args in (
        (Kind.PATCH, ADD_1),
        (Kind.SNAPSHOT, EmptyArgs()),
        (Kind.LOAD, LoadArgs(blob=blob)),
        (Kind.DELETE, EmptyArgs()),
    ):
        written.clear()
        asked.clear()
        job_id = caller.submit(kind, "g", args)
        while not asked.wait(0.01):
            assert caller.run(caller.dispatcher.wait(job_id, 0.01)) is None, kind
        assert caller.run(caller.dispatcher.wait(job_id, 0.1)) is None, kind
        written.set()
        reply = caller.run(caller.dispatcher.wait(job_id, PATIENCE_S))
        assert reply is not None
        assert reply.problem is None, reply


def test_an_answer_given_again_waits_as_well(
    caller: Caller, start_worker: StartWorker, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a command that another worker has committed just before it died."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    asked_at: list[float] = []

    ask = worker._redis.info

    def info(section: str) -> dict[str, Any]:
        if section != "persistence":
            return dict(ask(section))
        asked_at.append(time.monotonic())
        return {"aof_buffer_length": int(len(asked_at) < 3)}

    monkeypatch.setattr(worker._redis, "info", info)
    client, keys = connect(settings), Keys(settings.redis_prefix)
    monkeypatch.setattr(worker._consumer, "_handler", None)  # it must not be run
    client.set(keys.lease("w1"), "somebody")
    client.hset(keys.owners, "g", "w1")
    job_id = caller.submit(Kind.PATCH, "g", ADD_1)
    client.set(keys.outcome(job_id), '{"version":2}')
    ((_, fields),) = client.xrange(keys.commands("w1"))  # type: ignore[misc,union-attr]
    client.xadd(keys.commands("w0"), fields)  # type: ignore[arg-type]
    client.close()
    reply = caller.run(caller.dispatcher.wait(job_id, PATIENCE_S))
    assert reply is not None
    assert reply.result_json == '{"version":2}'
    assert len(asked_at) == 3


def test_an_answer_given_in_place_of_a_refusal_waits_as_well(settings: Settings) -> None:
    """A command that failed here has been committed by another worker meanwhile, just now."""
    client, keys = connect(settings), Keys(settings.redis_prefix)
    command = Command(id="job", kind=Kind.PATCH, graph="g", args={}, reply_to="api", created_at=time.time())
    client.hset(keys.job("job"), "status", "running")
    client.set(keys.outcome("job"), '{"version":2}')
    ask, told = client.info, []

    def info(section: str) -> dict[str, Any]:
        assert section == "persistence"
        assert not client.exists(keys.replies("api"))
        told.append(ask(section))
        return {"aof_buffer_length": int(len(told) < 3)}

    client.info = info  # type: ignore[method-assign,assignment]
    task = Task(b"1-0", command, redelivered=False)
    Endings(client, keys, "w0", settings).refuse(task, Problem(code="engine_error", detail="it failed here"))
    assert len(told) == 3
    ((_, reply),) = client.xrange(keys.replies("api"))  # type: ignore[misc,union-attr]
    assert reply[b"result"] == b'{"version":2}'
    client.close()
