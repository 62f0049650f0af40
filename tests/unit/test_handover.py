"""A worker that is told to stop leaves nothing half done: what it ran and what waited is run by the next one."""

import time
from contextlib import suppress

import pytest

from gpu_engine.generators import grid
from gpu_engine.networks.edgelist import EdgeList
from service.errors import ServiceError
from service.protocol import CapacitiesArgs, Kind, MaxFlowArgs, Operation, PatchArgs
from service.settings import Settings
from tests.service_fixtures import Caller, StartWorker, result
from tests.serving import eventually
from tests.unit.test_queue import wait_released

ADD = PatchArgs(batch=[Operation(op="add", edges=[5], amounts=["1"])], solve="none")


def network() -> EdgeList:
    """Some tenths of a second for each solve."""
    return grid(rows=500, columns=500, seed=3)


@pytest.mark.parametrize("successor", ["w0", "w1"])
def test_the_next_worker_finishes_what_was_begun(
    caller: Caller, start_worker: StartWorker, settings: Settings, successor: str
) -> None:
    """Its own name: at once. Another: once the lease has been over for a while."""
    first = start_worker()
    caller.wait_ready()
    edges = network()
    caller.load("g", edges)
    before = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs(offset=5, limit=1))["capacity"][0]
    solves = [caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[v], sinks=[edges.n_vertices - 3])) for v in (0, 1)]
    patches = [caller.submit(Kind.PATCH, "g", ADD) for _ in range(3)]
    time.sleep(0.05)  # the first is at work
    first.stop()
    wait_released(settings)
    start_worker(successor)
    for job_id in (*solves, *patches):
        reply = caller.run(caller.dispatcher.wait(job_id, 60))
        assert reply is not None
        result(reply)
    eventually(lambda: is_answered(caller))  # all may have ended before the stop: then the graph comes with the lease
    page = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs(offset=5, limit=1))
    assert (page["version"], page["capacity"][0]) == (4, before + 3)


def is_answered(caller: Caller) -> bool:
    with suppress(ServiceError):  # its worker is away
        return bool(caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs(offset=5, limit=1)))
    return False
