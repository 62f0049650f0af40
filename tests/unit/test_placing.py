"""New graphs go where there is the most room, by what was placed as well as by what the workers have reported."""

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.footprint import Room, unlimited
from gpu_engine.formats import pack
from gpu_engine.generators import grid
from gpu_engine.networks.network import Network
from service.errors import ServiceError
from service.protocol import Kind, LoadArgs, Status
from service.queue.models import WorkerInfo, WorkerReport
from service.queue.placement import BYTES_PER_BYTE, FOR_A_DEVICE_BYTES, emptiest
from service.store.keys import Keys
from service.store.placed import SETTLED_S, Place, Settling, read_places, write_place
from tests.service_fixtures import PATIENCE_S, Caller, StartWorker
from tests.serving import eventually

LARGE = BYTES_PER_BYTE * FOR_A_DEVICE_BYTES


def info(name: str, **more: Any) -> WorkerInfo:
    fields = {"pid": 1, "ready": True, "engine": "cpu", "graphs": 0, "bytes": 0, "budget_bytes": 100 * LARGE}
    fields |= {"beat_at": 0.0, "alive": True, "heartbeat_age_s": 0.0, "waiting": 0}
    return WorkerInfo(name=name, **{**fields, **more})


def test_the_emptiest_worker_with_room_for_the_graph_gets_it() -> None:
    host, device = info("cpu-0"), info("gpu-0", bytes=10 * LARGE, device_budget_bytes=10 * LARGE)
    assert emptiest([host, device], LARGE - 1).name == "cpu-0"
    assert emptiest([host, device], LARGE).name == "gpu-0"
    device.device_bytes = 9 * LARGE + 1
    assert emptiest([host, device], LARGE).name == "cpu-0"  # the device is full
    assert emptiest([info("a", bytes=5), info("b", bytes=9, budget_bytes=1000 * LARGE)], 0).name == "b"
    assert emptiest([info("a", ready=False), info("b", bytes=9 * LARGE)], 0).name == "b"
    soon = info("a", ready=False, ready_soon=True)
    assert emptiest([soon, info("b", bytes=1)], 0).name == "a"
    assert emptiest([soon, info("b")], 0).name == "b"
    placed = {"g": Place("a", 2 * LARGE, time.time())}
    assert emptiest([info("a"), info("b", bytes=LARGE)], 0, placed).name == "b"
    assert emptiest([info("a"), info("b")], 0, {"g": Place("a", 0, time.time())}).name == "b"


def test_what_was_placed_while_a_clock_was_ahead_does_not_count_for_as_long(client: Any, keys: Keys) -> None:
    """It came to nothing, and its worker got no new graphs for a day."""
    now = time.time()
    for name, at in {"ahead": now + 86_400, "skewed": now + 2, "placed": now}.items():
        write_place(client, keys, name, Place("w0", 1, at), ())
    later = json.dumps({"worker": "w0", "n_bytes": 1, "at": now, "more": 2})
    client.hset(keys.placed, "later release", later)
    assert read_places(client.hgetall(keys.placed), keys).keys() == {"skewed", "placed", "later release"}
    Settling(client, keys, "w0").settle([])
    assert set(client.hkeys(keys.placed)) == {b"skewed", b"placed", b"later release"}


def workers_there(client: Any, keys: Keys, *names: str) -> None:
    """Workers that have just said that they hold nothing, and say nothing more."""
    for name in names:
        report = WorkerReport(name=name, pid=1, ready=True, engine="cpu", graphs=0, bytes=0, beat_at=time.time())
        client.hset(keys.workers, name, report.model_dump_json())
        client.set(keys.lease(name), "somebody")


async def _load_all(caller: Caller, names: list[str], n_bytes: int) -> None:
    """At once, by two API processes."""
    other = await Caller._open(caller, caller.dispatcher.settings)
    args = LoadArgs(blob="none", n_bytes=n_bytes)
    dispatchers = (caller.dispatcher, other)
    turns = [dispatchers[number % 2].submit(Kind.LOAD, name, args) for number, name in enumerate(names)]
    await asyncio.gather(*turns)
    await other.close()


@pytest.mark.parametrize("n_bytes", [0, 10**6])
def test_graphs_that_are_loaded_at_once_are_spread(caller: Caller, client: Any, keys: Keys, n_bytes: int) -> None:
    """By two API processes, while no worker has said anything new."""
    workers_there(client, keys, "w0", "w1", "w2")
    names = [f"g{number}" for number in range(6)]
    caller.run(_load_all(caller, names, n_bytes))
    owners = [owner.decode() for owner in client.hgetall(keys.owners).values()]
    assert sorted(owners) == ["w0", "w0", "w1", "w1", "w2", "w2"]


def test_a_worker_that_is_drained_gets_no_new_graph(caller: Caller, client: Any, keys: Keys) -> None:
    workers_there(client, keys, "w0", "w1")
    client.hset(keys.draining, "w0", time.time())
    for name in ("a", "b"):
        caller.submit(Kind.LOAD, name, LoadArgs(blob="none"))
    assert set(client.hgetall(keys.owners).values()) == {b"w1"}
    client.hset(keys.draining, "w1", time.time())
    with pytest.raises(ServiceError, match="no worker is there"):
        caller.submit(Kind.LOAD, "c", LoadArgs(blob="none"))


def test_what_a_worker_reports_is_not_counted_twice(
    caller: Caller, start_worker: StartWorker, client: Any, keys: Keys
) -> None:
    worker = start_worker()
    caller.wait_ready()
    blob = caller.run(caller.dispatcher.blobs.put(pack(grid(rows=5, columns=5, seed=1))))
    caller.ask(Kind.LOAD, "g", LoadArgs(blob=blob, n_bytes=1000))
    old = json.dumps({"worker": "w0", "n_bytes": 1, "at": time.time() - 2 * SETTLED_S})
    new = json.dumps({"worker": "w0", "n_bytes": 1, "at": time.time()})
    client.hset(keys.placed, mapping={"came to nothing": old, "waits": old, "is on its way": new})
    client.hset(keys.owners, "waits", "w0")
    settling = Settling(client, keys, worker.name)
    settling.settle(["g"])
    assert set(client.hkeys(keys.placed)) == {b"waits", b"is on its way"}
    Settling(client, keys, "w1").settle(["waits"])
    assert client.hlen(keys.placed) == 2


def test_a_worker_that_begins_with_nothing_is_ready_soon(caller: Caller, start_worker: StartWorker) -> None:
    """It is given graphs beside those that are ready; one that has graphs to restore is not."""
    gate = threading.Event()

    def open_engine(network: Network, *, room: Room = unlimited) -> CpuEngine:
        assert gate.wait(PATIENCE_S)
        return CpuEngine(network, room)

    def reports() -> list[WorkerInfo]:
        return caller.run(caller.dispatcher.watch.workers())

    worker = start_worker(open_engine=open_engine)
    eventually(lambda: bool(reports()))
    assert [(each.ready, each.ready_soon) for each in reports()] == [(False, True)]
    blob = caller.run(caller.dispatcher.blobs.put(pack(grid(rows=3, columns=3, seed=1))))
    job = caller.submit(Kind.LOAD, "g", LoadArgs(blob=blob))
    gate.set()
    reply = caller.run(caller.dispatcher.wait(job, PATIENCE_S))
    assert reply is not None
    assert reply.status is Status.SUCCEEDED
    eventually(lambda: [(each.ready, each.ready_soon) for each in reports()] == [(True, False)])
    worker.stop()
    eventually(lambda: not reports()[0].alive)
    gate.clear()
    try:
        start_worker(open_engine=open_engine)
        eventually(lambda: reports()[0].alive and not reports()[0].ready)
        assert not reports()[0].ready_soon
    finally:
        gate.set()
