"""A command that was delivered over and over is given up, not run for ever."""

import threading
from typing import Any

import pytest
import redis

from service.protocol import Kind, MaxFlowArgs, Operation, PatchArgs
from service.settings import Settings
from service.store.applied import Fenced
from service.store.connection import connect
from service.store.jobs.transitions import GROUP
from service.store.keys import Keys
from service.store.log import Log
from service.worker.running import tries
from service.worker.running.tries import MAX_ATTEMPTS
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, result
from tests.unit.test_queue import wait_released

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])


def left_by_a_worker(caller: Caller, start_worker: StartWorker, settings: Settings, lease_ms: int) -> tuple[Any, Keys]:
    """A worker that has loaded g is gone, and a process that does nothing has its name for so long."""
    first = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    first.stop()
    client, keys = connect(settings), Keys(settings.redis_prefix)
    wait_released(settings)
    client.set(keys.lease("w0"), "a process that dies", px=lease_ms)
    return client, keys


def test_a_command_that_takes_its_worker_down_fails_in_the_end(
    caller: Caller, start_worker: StartWorker, settings: Settings
) -> None:
    """Read by a process of the worker's name that died each time, as its job has noted; the next one is told."""
    client, keys = left_by_a_worker(caller, start_worker, settings, 5000)
    jobs = [caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs()) for _ in range(2)]
    assert client.xreadgroup(GROUP, "w0", {keys.commands("w0"): ">"}, count=10)
    client.hset(keys.job(jobs[0]), "attempts", MAX_ATTEMPTS)
    client.delete(keys.lease("w0"))
    client.close()
    start_worker()
    killer, other = (caller.run(caller.dispatcher.wait(job_id, 60)) for job_id in jobs)
    assert killer is not None
    assert killer.problem is not None
    assert f"tried {MAX_ATTEMPTS} times" in killer.problem.detail
    assert other is not None
    assert other.problem is None


def test_an_answer_that_was_lost_is_no_attempt(
    caller: Caller, start_worker: StartWorker, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker was given the command and did not hear of it: its process goes on, and has not begun it yet."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    read, lost, reading = worker._redis.xreadgroup, [], threading.Event()

    def lose(*args: Any, **more: Any) -> Any:
        reading.set()
        answer = read(*args, **more)
        if answer and answer[0][1] and len(lost) < MAX_ATTEMPTS + 2:
            lost.append(answer)
            raise redis.ConnectionError("cut just before the answer")
        return answer

    monkeypatch.setattr(worker._redis, "xreadgroup", lose)
    assert reading.wait(60)
    job_id = caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs())
    reply = caller.run(caller.dispatcher.wait(job_id, 60))
    assert reply is not None
    assert reply.problem is None
    assert len(lost) == MAX_ATTEMPTS + 2
    client, keys = connect(settings), Keys(settings.redis_prefix)
    assert not client.hexists(keys.job(job_id), "attempts")
    client.close()


def test_what_is_tried_again_where_it_stands_is_one_attempt(
    caller: Caller, start_worker: StartWorker, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that died has left it behind; the next one loses its connection three times in the commit."""
    client, keys = left_by_a_worker(caller, start_worker, settings, 5000)
    job_id = caller.submit(Kind.PATCH, "g", ADD_1)
    assert client.xreadgroup(GROUP, "w0", {keys.commands("w0"): ">"}, count=10)
    client.delete(keys.lease("w0"))
    append, lost = Log.append, []

    def lose(log: Log, *args: Any) -> None:
        if len(lost) < 3:
            lost.append(args)
            raise redis.ConnectionError("cut just now")
        append(log, *args)

    monkeypatch.setattr(Log, "append", lose)
    start_worker()
    reply = caller.run(caller.dispatcher.wait(job_id, 60))
    assert reply is not None
    assert result(reply)["version"] == 2
    assert client.hget(keys.job(job_id), "attempts") == b"1"
    client.close()


def test_only_what_a_worker_had_begun_counts_when_it_is_taken_over(
    caller: Caller, start_worker: StartWorker, settings: Settings
) -> None:
    client, keys = left_by_a_worker(caller, start_worker, settings, 1500)
    jobs = [caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs()) for _ in range(3)]
    assert client.xreadgroup(GROUP, "w0", {keys.commands("w0"): ">"}, count=1)
    start_worker("w1")
    for job_id in jobs:
        reply = caller.run(caller.dispatcher.wait(job_id, 60))
        assert reply is not None
        assert reply.problem is None
    assert [client.hget(keys.job(job_id), "attempts") for job_id in jobs] == [b"1", None, None]
    client.close()


@pytest.mark.usefixtures("by_itself")
def test_a_command_that_always_loses_its_race_is_sent_back(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a code that says to try again, never as an error of ours; what waits behind it has its turn."""
    monkeypatch.setattr(tries, "MAX_SETBACKS", 3)
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)

    def fenced(*_: object) -> None:
        raise Fenced("somebody else")

    monkeypatch.setattr(Log, "append", fenced)
    reply = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    assert reply.problem is not None
    assert reply.problem.code == "worker_unavailable"
    monkeypatch.undo()
    assert result(caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest"))["version"] == 2
