"""Nothing is acknowledged before Redis has handed it to the kernel."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import pytest
import redis

from gpu_engine.formats import pack
from service.errors import ServiceError
from service.protocol import Command, EmptyArgs, Kind, LoadArgs, Operation, PatchArgs, Problem
from service.settings import Settings
from service.store.connection import connect
from service.store.durable import TOLD, TOLD_BEFORE_7, AsyncWritten, Restarted, Written
from service.store.keys import Keys
from service.store.watched import Read
from service.worker.running.endings import Endings
from service.worker.running.task import Task
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])
PATIENCE_S = 60.0
KEYS = Keys("test-written:")


Info: TypeAlias = Callable[[], dict[str, Any]]


class Told(Written):
    """Is told what `info` says."""

    def __init__(self, info: Info, timeout_s: float = PATIENCE_S) -> None:
        super().__init__(cast(redis.Redis, None), KEYS, timeout_s)
        self._info = info

    def _ask(self, *reads: Read) -> list[Any]:
        assert reads[0] in (TOLD, TOLD_BEFORE_7)
        return [self._info(), None]


class Busy:
    """Plays a server whose append-only file waits for an fsync: INFO says so, `left` times more."""

    def __init__(self, left: float) -> None:
        self.left = left
        self.asked = 0

    def info(self) -> dict[str, Any]:
        self.asked += 1
        return {"aof_buffer_length": 4096 if self.asked <= self.left else 0, "run_id": "1"}


def test_it_waits_until_the_buffer_is_written() -> None:
    server = Busy(3)
    Told(server.info).wait("1")
    assert server.asked == 4


def test_an_event_loop_waits_as_well() -> None:
    server = Busy(3)

    class AsyncTold(AsyncWritten):
        async def _ask(self, *reads: Read) -> list[Any]:
            return [server.info(), None]

    client: Any = None
    asyncio.run(AsyncTold(client, KEYS).wait("1"))
    assert server.asked == 4
    server.left = float("inf")
    with pytest.raises(redis.TimeoutError, match="append-only file"):
        asyncio.run(AsyncTold(client, KEYS, timeout_s=0.01).wait("1"))


def test_what_is_read_is_read_before_the_look_at_the_buffer() -> None:
    """Else what comes between the two would be told of while it is in the buffer."""
    asked: list[tuple[Read, ...]] = []

    class AsyncTold(AsyncWritten):
        async def _ask(self, *reads: Read) -> list[Any]:
            asked.append(reads)
            return ["an answer", {"aof_buffer_length": int(len(asked) < 3)}, None]

    client: Any = None
    assert asyncio.run(AsyncTold(client, KEYS).settled(("GET", "x"))) == ["an answer"]
    assert asked == [(("GET", "x"), TOLD, ("GET", KEYS.rewritten))] * 3


@pytest.mark.parametrize("what", ["a job", "a cancel"])
def test_what_was_accepted_is_written_first(caller: Caller, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Found by seed 3267 of the fault bench: a job that was answered with 202 was gone with Redis' buffer."""
    written = threading.Event()

    async def told(*_: Any) -> list[Any]:
        return [{"aof_buffer_length": int(not written.is_set()), "run_id": "1"}, None]

    caller.run(caller.dispatcher.client.hset(caller.dispatcher.keys.owners, "g", "w0"))
    caller.run(caller.dispatcher.client.set(caller.dispatcher.keys.lease("w0"), "x"))
    job_id = caller.submit(Kind.PATCH, "g", ADD_1)
    monkeypatch.setattr(AsyncWritten, "_ask", told)
    ask = caller.dispatcher.until_job_written(job_id) if what == "a job" else caller.dispatcher.cancel(job_id)

    async def both() -> list[bool]:
        asked = asyncio.ensure_future(ask)
        done, _ = await asyncio.wait({asked}, timeout=0.3)
        written.set()
        await asked
        return [asked in done, asked.done()]

    assert caller.run(both()) == [False, True]


def test_it_does_not_wait_for_ever() -> None:
    with pytest.raises(redis.TimeoutError, match="append-only file"):
        Told(Busy(float("inf")).info, timeout_s=0.01).wait("1")


def test_servers_that_do_not_tell_are_taken_as_they_are(settings: Settings) -> None:
    def refuse() -> dict[str, Any]:
        raise redis.exceptions.NoPermissionError

    silent = Told(refuse)
    silent.wait(silent.run())
    client = connect(settings)
    written = Written(client, KEYS)
    written.wait(written.run())
    client.close()


def test_a_server_that_names_one_section_at_a_time_is_asked_for_all() -> None:
    class Old(Told):
        def _ask(self, *reads: Read) -> list[Any]:
            if reads[0] == TOLD:
                raise redis.ResponseError("syntax error")
            return super()._ask(*reads)

    written = Old(lambda: {"run_id": "1"})
    assert written.run() == "1"
    written.wait("1")


def test_the_empty_buffer_of_a_server_that_was_started_since_says_nothing() -> None:
    """Found by a history on a busy disk: a job was answered with 202, whose record was gone with the server before."""
    written = Told(Busy(0).info)
    with pytest.raises(Restarted, match="started again"):
        written.wait("0")
    assert written.run() == "1"
    written.wait("1")


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_job_is_looked_for_in_a_server_that_was_started_since(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, is_lost: bool
) -> None:
    """It is said to be accepted if the server came back with it, and not if that has lost it."""
    client, keys = caller.dispatcher.client, caller.dispatcher.keys
    caller.run(client.hset(keys.owners, "g", "w0"))
    caller.run(client.set(keys.lease("w0"), "x"))
    job_id = caller.submit(Kind.PATCH, "g", ADD_1)
    runs: list[str] = ["first"]

    async def told(*_: Any) -> list[Any]:
        if len(runs) == 2 and is_lost:
            await client.unlink(keys.job(job_id))
        runs.append("then")
        return [{"run_id": runs[-2]}, None]

    monkeypatch.setattr(AsyncWritten, "_ask", told)
    if is_lost:
        with pytest.raises(ServiceError) as caught:
            caller.run(caller.dispatcher.until_job_written(job_id))
        assert caught.value.code == "worker_unavailable"
    else:
        caller.run(caller.dispatcher.until_job_written(job_id))
    assert len(runs) == (3 if is_lost else 4)


def test_a_cancel_is_repeated_in_a_server_that_was_started_since(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server came back with the job, and without the cancel."""
    client, keys = caller.dispatcher.client, caller.dispatcher.keys
    caller.run(client.hset(keys.owners, "g", "w0"))
    caller.run(client.set(keys.lease("w0"), "x"))
    job_id = caller.submit(Kind.PATCH, "g", ADD_1)
    runs = iter(["first", "then"])

    async def told(*_: Any) -> list[Any]:
        run = next(runs, "then")
        if run == "then":
            monkeypatch.undo()
            await client.unlink(keys.outcome(job_id))
        return [{"run_id": run}, None]

    monkeypatch.setattr(AsyncWritten, "_ask", told)
    job = caller.run(caller.dispatcher.cancel(job_id))
    assert job is not None
    assert job.cancelling
    assert caller.run(client.exists(keys.outcome(job_id))) == 1


@pytest.mark.usefixtures("by_itself")
def test_an_update_whose_server_was_started_again_is_looked_for(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis is another one when the commit is waited for: the commit is there, and is answered once."""
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    ask, runs = Written._ask, iter(["one", "two"])

    def told(self: Written, *reads: Read) -> list[Any]:
        info, known = ask(self, *reads)
        return [dict(info) | {"run_id": next(runs, "two")}, known]

    monkeypatch.setattr(Written, "_ask", told)
    reply = caller.run(caller.dispatcher.wait(caller.submit(Kind.PATCH, "g", ADD_1), PATIENCE_S))
    assert reply is not None
    assert json.loads(reply.result_json or "")["version"] == 2
    assert next(runs, None) is None


def test_every_commit_waits_for_it(caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is told that Redis has not written yet: the commit is there, and nobody has an answer."""
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    written, asked, ask = threading.Event(), threading.Event(), AsyncWritten._ask

    def told(*_: Any) -> list[Any]:
        asked.set()
        return [{"aof_buffer_length": int(not written.is_set()), "run_id": "1"}, None]

    async def told_to_api(self: AsyncWritten, *reads: Read) -> list[Any]:
        return [*(await ask(self, *reads))[:-2], *told()]

    monkeypatch.setattr(Written, "_ask", told)
    monkeypatch.setattr(AsyncWritten, "_ask", told_to_api)
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

    def told(*_: Any) -> list[Any]:
        asked_at.append(time.monotonic())
        return [{"aof_buffer_length": int(len(asked_at) < 3), "run_id": "1"}, None]

    monkeypatch.setattr(Written, "_ask", told)
    client, keys = connect(settings), Keys(settings.redis_prefix)
    monkeypatch.setattr(worker._consumer._tries, "_handler", None)  # it must not be run
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


def test_an_answer_given_in_place_of_a_refusal_waits_as_well(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that failed here has been committed by another worker meanwhile, just now."""
    client, keys = connect(settings), Keys(settings.redis_prefix)
    command = Command(id="job", kind=Kind.PATCH, graph="g", args={}, reply_to="api", created_at=time.time())
    client.hset(keys.job("job"), "status", "running")
    client.set(keys.outcome("job"), '{"version":2}')
    asked = []

    def told(*_: Any) -> list[Any]:
        assert not client.exists(keys.replies("api"))
        asked.append(True)
        return [{"aof_buffer_length": int(len(asked) < 4), "run_id": "1"}, None]

    monkeypatch.setattr(Written, "_ask", told)
    task = Task(b"1-0", command, redelivered=False)
    Endings(client, keys, "w0", settings, Written(client, keys)).refuse(
        task, Problem(code="engine_error", detail="it failed here")
    )
    assert len(asked) == 4  # the first is which run it is
    ((_, reply),) = client.xrange(keys.replies("api"))  # type: ignore[misc,union-attr]
    assert reply[b"result"] == b'{"version":2}'
    client.close()
