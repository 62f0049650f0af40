"""The end of a job that Redis has, and may still lose with its process, is told to nobody."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, Final, TypeAlias

import pytest

from service.errors import ServiceError
from service.protocol import Kind, MaxFlowArgs, Operation, PatchArgs, Reply, Status
from service.queue.dispatcher import Dispatcher
from service.queue.replies import LatestReplies
from service.settings import Settings
from service.store.durable import AsyncWritten, Written
from service.store.jobs.reading import Jobs
from service.store.jobs.record import SETTLED_S, is_unwritten
from service.store.keys import Keys
from service.store.watched import Read
from service.worker.process import Worker
from tests.service_fixtures import PATIENCE_S, Caller

ADD_1: Final = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])

Ask: TypeAlias = Callable[[Dispatcher, str], Awaitable[Any]]


async def wait(dispatcher: Dispatcher, job_id: str) -> Status:
    reply = await dispatcher.wait(job_id, PATIENCE_S)
    assert reply is not None
    return reply.status


async def at_once(dispatcher: Dispatcher, job_id: str) -> Status:
    reply = await dispatcher.wait(job_id, 0)
    assert reply is not None
    return reply.status


async def look(dispatcher: Dispatcher, job_id: str) -> Status:
    info = await dispatcher.job(job_id)
    assert info is not None
    return info.status


async def in_a_list(dispatcher: Dispatcher, job_id: str) -> Status:
    return next(job.status for job in (await dispatcher.jobs(10)).jobs if job.id == job_id)


async def follow(dispatcher: Dispatcher, job_id: str) -> Status:
    return Status([event async for event in dispatcher.events(job_id, None)][-1].data["status"])


WAYS: Final[dict[str, Ask]] = {
    "wait": wait,
    "at once": at_once,
    "job": look,
    "list": in_a_list,
    "events": follow,
}


class Server:
    """Says whether its buffer is empty as it is told here; all else is what the real one says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written = threading.Event()
        ask = AsyncWritten._ask

        async def told(written: AsyncWritten, *reads: Read) -> list[Any]:
            *answers, info, known = await ask(written, *reads)
            return [*answers, dict(info) | {"aof_buffer_length": int(not self.written.is_set())}, known]

        monkeypatch.setattr(AsyncWritten, "_ask", told)


@pytest.mark.parametrize("way", WAYS)
def test_whoever_asks_waits_for_the_file(
    caller: Caller, worker: Worker, settings: Settings, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Another API process than the one that has sent the update."""
    job_id = caller.submit(Kind.PATCH, "g", ADD_1)
    assert caller.run(wait(caller.dispatcher, job_id)) is Status.SUCCEEDED
    server, other = Server(monkeypatch), Caller(settings)

    async def asked() -> list[Any]:
        task = asyncio.ensure_future(WAYS[way](other.dispatcher, job_id))
        done, _ = await asyncio.wait({task}, timeout=0.3)
        server.written.set()
        return [bool(done), await task]

    assert other.run(asked()) == [False, Status.SUCCEEDED]
    other.close()


@pytest.mark.parametrize("way", [way for way in WAYS if way != "wait"])
def test_whoever_reads_of_any_end_waits_for_the_file(
    caller: Caller, worker: Worker, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A job is not over, and then in the queue again. Found by the fault bench: one that was cancelled. What ended long
    ago is read as it is."""
    graph = worker.graphs.residents.get("g")
    assert graph is not None
    graph.unwritten_at = -inf
    job_id = caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[0], sinks=[3], time_limit_s=1e-9))
    assert caller.run(wait(caller.dispatcher, job_id)) is Status.FAILED
    caller.dispatcher.replies.latest = LatestReplies()
    server = Server(monkeypatch)

    async def asked() -> list[Any]:
        task = asyncio.ensure_future(WAYS[way](caller.dispatcher, job_id))
        done, _ = await asyncio.wait({task}, timeout=0.3)
        server.written.set()
        return [bool(done), await task]

    assert caller.run(asked()) == [False, Status.FAILED]
    server.written.clear()
    client.hset(keys.job(job_id), "finished_at", time.time() - SETTLED_S - 1)
    of_others = way in ("events", "list")  # events are always asked for so, and other jobs of the list have just ended
    assert caller.run(asked()) == [not of_others, Status.FAILED]


def test_an_end_without_a_time_is_not_taken_for_an_old_one() -> None:
    assert is_unwritten({b"unwritten": b"1", b"finished_at": b"long ago"})
    assert is_unwritten({b"unwritten": b"1"})
    assert not is_unwritten({b"finished_at": b"long ago"})


def test_an_update_that_redis_did_after_all_lose_is_done_again(
    caller: Caller, worker: Worker, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was started again with a file that has the command, and not its end: the reply that was read is none."""
    settled, seen = Jobs.settled, list[list[str]]()

    async def lost(self: Jobs, job_ids: list[str]) -> list[bytes | None]:
        seen.append(job_ids)
        return [b"queued"] if len(seen) == 1 else await settled(self, job_ids)

    monkeypatch.setattr(Jobs, "settled", lost)
    job_id = caller.submit(Kind.PATCH, "g", ADD_1)

    async def heard() -> bool:
        done, _ = await asyncio.wait({asyncio.ensure_future(wait(caller.dispatcher, job_id))}, timeout=0.5)
        return bool(done)

    assert not caller.run(heard())
    assert seen == [[job_id]]
    stream = keys.replies(caller.dispatcher.id)
    ((_, fields),) = [entry for entry in client.xrange(stream) if entry[1][b"id"] == job_id.encode()]
    client.xadd(stream, fields)  # the worker has done it again
    assert caller.run(wait(caller.dispatcher, job_id)) is Status.SUCCEEDED
    assert len(seen) == 2


def test_an_update_that_redis_lost_with_its_command_fails(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(self: Jobs, job_ids: list[str]) -> list[bytes | None]:
        return [None for _ in job_ids]

    monkeypatch.setattr(Jobs, "settled", lost)
    reply = caller.run(caller.dispatcher.wait(caller.submit(Kind.PATCH, "g", ADD_1), PATIENCE_S))
    assert isinstance(reply, Reply)
    assert reply.problem is not None
    assert reply.problem.code == "worker_unavailable"
    assert "send it again" in str(reply.problem.detail)


def test_an_api_process_of_the_release_before_hears_of_nothing_that_may_be_lost(
    caller: Caller, worker: Worker, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says of no command that it waits for the file itself, and tells of each end as soon as it reads it: of an
    update, and of an answer at the version that somebody else's update has made."""
    written, asked, ask = threading.Event(), threading.Event(), Written._ask

    def told(self: Written, *reads: Read) -> list[Any]:
        *answers, info, known = ask(self, *reads)
        asked.set()
        return [*answers, dict(info) | {"aof_buffer_length": int(not written.is_set())}, known]

    caller.ask(Kind.PATCH, "g", ADD_1)
    monkeypatch.setattr("service.worker.running.together.SHORT_S", 60)  # on a busy machine an update takes long
    monkeypatch.setattr(Written, "_ask", told)
    with monkeypatch.context() as before:
        before.setattr("service.store.jobs.transitions.SETTLES", "unknown")
        for kind, args in ((Kind.MAX_FLOW, MaxFlowArgs(sources=[0], sinks=[3])), (Kind.PATCH, ADD_1)):
            asked.clear()
            written.clear()
            job_id = caller.submit(kind, "g", args)
            assert asked.wait(20), kind
            time.sleep(0.1)
            assert not client.hexists(keys.job(job_id), "reply"), kind
            written.set()
            assert caller.run(wait(caller.dispatcher, job_id)) is Status.SUCCEEDED
            written.clear()
    assert caller.ask(Kind.PATCH, "g", ADD_1)["version"] == 4, "which says so, and waits by itself"


def test_a_key_of_another_kind_keeps_no_other_job_from_being_told(caller: Caller, client: Any, keys: Keys) -> None:
    """Somebody has written over the record of a job; the others are read in the same round trip."""
    client.set(keys.job("junk"), "junk")
    client.hset(keys.job("done"), mapping={"status": "succeeded"})
    jobs = Jobs(caller.dispatcher.client, keys)
    assert caller.run(jobs.settled(["done", "junk", "gone"])) == [b"succeeded", None, None]
    assert caller.run(jobs.rows(["done", "junk", "gone"])) == [{b"status": b"succeeded"}, {}, {}]


def test_who_follows_a_job_that_was_lost_is_told_so(
    caller: Caller, worker: Worker, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = caller.submit(Kind.PATCH, "g", ADD_1)
    caller.run(wait(caller.dispatcher, job_id))
    settled = AsyncWritten.settled

    async def lost(self: AsyncWritten, *reads: Read) -> list[Any]:
        client.delete(keys.job(job_id))
        return await settled(self, *reads)

    monkeypatch.setattr(AsyncWritten, "settled", lost)
    with pytest.raises(ServiceError, match="lost the command"):
        caller.run(follow(caller.dispatcher, job_id))
