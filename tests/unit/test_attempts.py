"""A command that was delivered over and over is given up, not run for ever."""

from service.protocol import Kind, MaxFlowArgs
from service.queue.consumer import GROUP, MAX_ATTEMPTS
from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker
from tests.unit.test_queue import wait_released


def test_a_command_that_takes_its_worker_down_fails_in_the_end(
    caller: Caller, start_worker: StartWorker, settings: Settings
) -> None:
    """Read by a process of the worker's name that died each time, as its job has noted; the next one is told."""
    first = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    first.stop()
    client, keys = connect(settings), Keys(settings.redis_prefix)
    wait_released(settings)
    client.set(keys.lease("w0"), "a process that dies", px=5000)
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
