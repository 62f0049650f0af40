"""Commands through a real Redis to a real worker and back."""

import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from gpu_engine.formats import pack
from gpu_engine.generators import grid
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.terminals import Terminals
from service.errors import ServiceError
from service.host.redis_server import find_server
from service.protocol import CapacitiesArgs, EmptyArgs, Kind, LoadArgs, MaxFlowArgs, Operation, PatchArgs, Status
from service.queue.models import WorkerReport
from service.settings import Settings
from service.store.connection import connect
from service.store.graphs import Catalogue
from service.store.keys import Keys
from service.store.primary import understood
from tests.graphs import diamond
from tests.oracle import maximum_flow
from tests.service_fixtures import Caller, StartWorker, code_of, result
from tests.serving import eventually

CLOSE_0 = PatchArgs(batch=[Operation(op="close", edges=[0])])
ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])


def labelled(capacity: list[int], decimals: int = 0) -> EdgeList:
    """Two paths, s-a-t and s-b-t."""
    tail, head = np.array([0, 0, 1, 2], np.int32), np.array([1, 2, 3, 3], np.int32)
    names: dict[str, Any] = {"vertex_labels": ["s", "a", "b", "t"], "edge_ids": ["sa", "sb", "at", "bt"]}
    return EdgeList(4, tail, head, np.array(capacity), decimals=decimals, source=0, sink=3, **names)


def test_load_patch_and_solve(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    loaded = caller.load("g", diamond().edges)
    assert (loaded["version"], loaded["n_edges"], loaded["worker"], loaded["source"]) == (1, 5, "w0", 0)
    first = caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(fields=frozenset({"value", "cut", "flow"})))
    assert (first["value"], first["mode"], first["version"]) == (5, "cold", 1)
    assert first["certificate"] == {"valid": True, "complete": True, "value": 5, "flow_across_cut": 5}
    assert sum(first["flow"]["amount"][:2]) == first["cut"]["value"] == 5
    assert caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())["mode"] == "unchanged"
    patched = caller.set("g", [0, 3], ["1", "9"])
    assert (patched["version"], patched["applied"]) == (2, 2)
    (state,) = patched["flow_states"]
    assert (state["sources"], state["old_value"], state["value"]) == ([0], 5, 3)
    assert caller.value("g") == 3


def test_amounts_are_exact_and_named_as_the_caller_does(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", labelled([3 * 10**17 + 1, 25 * 10**8, 4 * 10**17, 10**10], decimals=9))
    reply = caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs(fields=frozenset({"value", "cut", "flow"})))
    exact = json.loads(reply.result_json or "", parse_float=Decimal)
    assert exact["value"] == Decimal("300000002.500000001")
    assert dict(zip(exact["flow"]["edges"], exact["flow"]["amount"], strict=True))["sa"] == Decimal(
        "300000000.000000001"
    )
    assert (exact["cut"]["source_side"], exact["cut"]["edges"]) == (["s"], ["sa", "sb"])
    capped = {"sources": ["s"], "sinks": ["t"], "supply": ["0.5"], "demand": ["inf"]}
    assert caller.value("g", **capped) == 0.5
    caller.ask(Kind.PATCH, "g", PatchArgs(batch=[Operation(op="set", tail=["s"], head=["a"], amounts=["inf"])]))
    page = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs(limit=2))
    assert page == {
        "version": 2,
        "edge_ids": ["sa", "sb"],
        "tail": ["s", "s"],
        "head": ["a", "b"],
        "capacity": ["inf", 2.5],
        "closed": [False, False],
        "undirected": [False, False],
        "next": 2,
    }


def test_refusals(caller: Caller, start_worker: StartWorker) -> None:
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())) == "unknown_graph"
    assert code_of(lambda: caller.reply(Kind.LOAD, "g", LoadArgs(blob="x"))) == "worker_unavailable"
    start_worker()
    caller.wait_ready()
    assert code_of(lambda: caller.reply(Kind.LOAD, "g", LoadArgs(blob="x"))) == "worker_unavailable"
    assert code_of(lambda: caller.run(caller.dispatcher.wait("no such job", 1))) == "unknown_job"
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())) == "unknown_graph"
    caller.load("g", labelled([1, 1, 1, 1]))

    def patch(**more: Any) -> str:
        operation = {"op": "set", "edges": ["sa"], "amounts": ["1"]} | more.pop("operation", {})
        args = PatchArgs(batch=[Operation(**operation)], **more)
        return code_of(lambda: caller.reply(Kind.PATCH, "g", args))

    def solve(**more: Any) -> str:
        return code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs(**more)))

    assert patch(operation={"edges": ["nowhere"]}) == "unknown_edge"
    assert patch(operation={"amounts": ["0.5"]}) == "invalid_body"
    assert patch(operation={"amounts": [str(1 << 60)]}) == "capacity_overflow"
    assert patch(if_match=7) == "version_conflict"
    assert solve(min_version=2) == "version_unavailable"
    assert solve(sources=["s"], sinks=["s"]) == "source_is_sink"
    assert solve(sources=["nobody"]) == "unknown_vertex"
    assert solve(sources=["s"], supply=["-1"]) == "invalid_body"
    assert solve(supply=["1"]) == "invalid_body"
    caller.value("g")
    page = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())
    assert (page["version"], page["capacity"]) == (1, [1, 1, 1, 1])
    assert caller.value("g") == 2


def test_a_key_is_applied_once(caller: Caller, start_worker: StartWorker, settings: Settings) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    first = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    again = caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest")
    assert (again.id, again.result_json) == (first.id, first.result_json)
    assert code_of(lambda: caller.reply(Kind.PATCH, "g", ADD_1, "key", "other")) == "idempotency_conflict"
    caller.ask(Kind.PATCH, "g", ADD_1)
    # Once the API has forgotten the key, the graph's log still knows it.
    client = connect(settings)
    client.delete(Keys(settings.redis_prefix).idempotency("g", "key"))
    client.close()
    answer = result(caller.reply(Kind.PATCH, "g", ADD_1, "key", "digest"))
    assert (answer["version"], answer["applied"], answer["flow_states"]) == (2, 1, [])
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())["capacity"][0] == diamond().edges.capacity[0] + 2


def test_a_command_delivered_twice_runs_once(caller: Caller, start_worker: StartWorker, settings: Settings) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    client, keys = connect(settings), Keys(settings.redis_prefix)
    command = {
        "id": "twice",
        "kind": "patch",
        "graph": "g",
        "args": ADD_1.model_dump(mode="json"),
        "reply_to": caller.dispatcher.id,
        "created_at": time.time(),
    }
    client.hset(keys.job("twice"), "status", "queued")
    for _ in range(2):
        client.xadd(keys.commands("w0"), {"command": json.dumps(command)})
    client.close()
    assert caller.set("g", [1], ["2"])["version"] == 3


def test_delete_and_load_again(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    caller.ask(Kind.PATCH, "g", CLOSE_0)
    caller.load("g", labelled([1, 1, 1, 1]))
    assert caller.value("g") == 2
    caller.ask(Kind.DELETE, "g", EmptyArgs())
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())) == "unknown_graph"
    caller.load("g", diamond().edges)
    assert caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())["version"] == 1


@pytest.mark.parametrize("seed", [1, 2])
def test_restore_from_snapshot_and_log(
    caller: Caller, start_worker: StartWorker, settings: Settings, seed: int
) -> None:
    """Random updates with a snapshot every 7; a new worker, and one that finds the newest snapshot broken."""
    rng = np.random.default_rng(seed)
    edges = labelled(rng.integers(0, 50, 4).tolist())
    worker = start_worker(snapshot_every_updates=7)
    caller.wait_ready()
    caller.load("g", edges)
    capacity = edges.capacity.copy()
    closed = np.zeros(4, bool)
    for _ in range(25):
        row, amount = int(rng.integers(4)), int(rng.integers(50))
        name = ["sa", "sb", "at", "bt"][row]
        capacity[row], closed[row] = amount, rng.integers(2)
        flip = Operation(op="close" if closed[row] else "reopen", edges=[name])
        caller.ask(Kind.PATCH, "g", PatchArgs(batch=[Operation(op="set", edges=[name], amounts=[str(amount)]), flip]))
    client, keys = connect(settings), Keys(settings.redis_prefix)
    graph = worker.graphs.residents.get("g")
    assert graph is not None
    eventually(lambda: not graph.saving)  # they are written beside the updates
    listed = caller.run(_snapshots(caller, "g"))
    assert len(listed) == 2
    for broken in (False, True):
        worker.stop()
        if broken:
            client.hdel(keys.blob(listed[0].blob), "0")
        worker = start_worker("w0")
        page = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())
        assert (page["version"], page["capacity"], page["closed"]) == (26, capacity.tolist(), closed.tolist())
        effective = np.where(closed, 0, capacity)
        assert caller.value("g") == maximum_flow(edges, effective, Terminals.of([0], [3]))
        assert bool(worker.graphs.notes) is broken
    assert [s.version for s in caller.run(_snapshots(caller, "g"))] == [listed[1].version]
    assert caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())["version"] == 26
    client.close()


async def _snapshots(caller: Caller, name: str) -> list[Any]:
    dispatcher = caller.dispatcher
    return await Catalogue(dispatcher.client, dispatcher.keys).snapshots(name) or []


def test_cancel_and_time_limit(caller: Caller, start_worker: StartWorker) -> None:
    start_worker(threads=1)
    caller.wait_ready()
    caller.load("g", _hard())
    slow = MaxFlowArgs()
    running = caller.submit(Kind.MAX_FLOW, "g", slow)
    queued = caller.submit(Kind.MAX_FLOW, "g", slow)
    info = caller.run(caller.dispatcher.job(queued))
    assert info is not None
    assert (info.status, info.position) == (Status.QUEUED, 1)
    assert caller.run(caller.dispatcher.wait(queued, 0.05)) is None
    caller.run(caller.dispatcher.cancel(queued))
    assert code_of(lambda: caller.run(caller.dispatcher.wait(queued, 60))) == "cancelled"
    caller.run(caller.dispatcher.cancel(running))
    reply = caller.run(caller.dispatcher.wait(running, 60))
    assert reply is not None
    assert reply.status in (Status.CANCELLED, Status.SUCCEEDED)
    limited = MaxFlowArgs(sources=[0], sinks=[90_000], time_limit_s=0.001)
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", limited)) == "timeout"


def _hard() -> EdgeList:
    """About a second of solving: long enough to be cancelled, and to make others wait."""
    return grid(rows=1000, columns=1000, seed=3)


def test_events_of_a_job(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    job = caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs())

    async def follow() -> list[str]:
        return [event.event async for event in caller.dispatcher.events(job, None)]

    assert caller.run(follow())[-1] == "done"
    assert caller.run(follow())[-1] == "done"  # after the end as well
    info = caller.run(caller.dispatcher.job(job))
    assert info is not None
    assert (info.status, info.position) == (Status.SUCCEEDED, None)
    assert json.loads(info.result_json or "")["value"] == 5
    assert caller.run(caller.dispatcher.jobs(10)).jobs[0].id == job


def test_another_api_process_gets_the_reply(caller: Caller, start_worker: StartWorker, settings: Settings) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    other = Caller(settings)
    job = caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs())
    reply = other.run(other.dispatcher.wait(job, 30))
    other.close()
    assert reply is not None
    assert result(reply)["value"] == 5


def test_a_long_result_travels_as_a_blob(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    edges = grid(rows=100, columns=100, seed=1)
    caller.load("g", edges)
    args = MaxFlowArgs(fields=frozenset({"cut", "flow"}), zeros=True)
    answer = caller.ask(Kind.MAX_FLOW, "g", args)
    assert len(answer["flow"]["amount"]) == edges.n_edges
    assert len(answer["cut"]["source_side"]) + len(answer["cut"]["sink_side"]) == edges.n_vertices


def test_a_full_queue_is_refused(caller: Caller, start_worker: StartWorker, settings: Settings) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    worker.stop()
    client, keys = connect(settings), Keys(settings.redis_prefix)
    wait_released(settings)
    client.set(keys.lease("w0"), "held", px=60_000)
    for _ in range(settings.queue_limit):
        client.xadd(keys.commands("w0"), {"command": "{}"})
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())) == "rate_limited"
    client.close()


def wait_released(settings: Settings) -> None:
    """Until a worker that was told to stop has stopped."""
    client, keys = connect(settings), Keys(settings.redis_prefix)
    deadline = time.monotonic() + 30
    while client.exists(keys.lease("w0")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    client.close()


def test_a_silent_worker_loses_its_graphs(caller: Caller, start_worker: StartWorker, settings: Settings) -> None:
    """w0 goes without releasing anything; what waits for it is moved to w1, and w0 is fenced off."""
    w0 = start_worker("w0")
    caller.wait_ready()
    caller.load("g", diamond().edges)
    caller.ask(Kind.PATCH, "g", CLOSE_0)
    stale = w0.graphs._copies.ensure("g")
    w0.stop()
    client, keys = connect(settings), Keys(settings.redis_prefix)
    wait_released(settings)
    client.set(keys.lease("w0"), "about to expire", px=1000)
    job = caller.submit(Kind.PATCH, "g", ADD_1)
    report = json.loads(client.hget(keys.workers, "w0") or "{}") | {"beat_at": time.time() - 3600}  # type: ignore[arg-type]
    client.hset(keys.workers, "w0", json.dumps(report))
    start_worker("w1")
    reply = caller.run(caller.dispatcher.wait(job, 60))
    assert reply is not None
    assert result(reply)["version"] == 3
    assert client.hget(keys.owners, "g") == b"w1"
    assert not client.xlen(keys.commands("w0"))
    found = w0.graphs._copies.registry.find("g", stale.graph_id)
    held = found.held
    assert found.owner == "w1"
    assert held is not None
    assert (held.version, held.epoch) == (3, stale.epoch + 1)
    client.close()


def test_graphs_over_the_budget_are_spilled_and_come_back(caller: Caller, start_worker: StartWorker) -> None:
    edges = grid(rows=40, columns=40, seed=1)
    worker = start_worker(memory_budget_bytes=300_000)
    caller.wait_ready()
    for name in ("a", "b", "c"):
        caller.load(name, edges)
        caller.set(name, [0], ["7"])
    assert len(worker.graphs.residents.all()) < 3
    for name in ("a", "b", "c"):
        page = caller.ask(Kind.CAPACITIES, name, CapacitiesArgs(limit=1))
        assert (page["version"], page["capacity"]) == (2, [7])
    blob = caller.run(caller.dispatcher.blobs.put(pack(grid(rows=200, columns=200, seed=1))))
    assert code_of(lambda: caller.reply(Kind.LOAD, "d", LoadArgs(blob=blob))) == "out_of_memory"


def test_a_second_worker_of_the_same_name_replaces_the_first(caller: Caller, start_worker: StartWorker) -> None:
    first = start_worker("w0")
    caller.wait_ready()
    caller.load("g", diamond().edges)
    start_worker("w0")
    deadline = time.monotonic() + 30
    while not first._lost:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert caller.value("g") == 5


def test_the_oldest_jobs_are_forgotten(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    for _ in range(5):
        caller.value("g")
    caller.run(caller.dispatcher._job_list.trim(2, 64))
    assert len(caller.run(caller.dispatcher.jobs(10)).jobs) == 2


def test_ping(caller: Caller) -> None:
    info = caller.run(caller.dispatcher.watch.ping())
    assert (info.appendonly, info.fsync, info.maxmemory_policy) == (True, "everysec", "noeviction")
    assert info.version == ".".join(map(str, find_server(Path("no data yet")).version))


def test_a_redis_whose_disk_is_full_refuses_a_ping(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures were refused as well, and the alert told of API processes."""

    async def refuse(*_: Any) -> None:
        raise understood(redis.ResponseError("MISCONF Errors writing to the AOF file: No space left on device"))

    watch = caller.dispatcher.watch
    monkeypatch.setattr(watch._redis, "ping", refuse)
    with pytest.raises(ServiceError, match="cannot write its files"):
        caller.run(watch.ping())


def test_is_a_worker_ready(caller: Caller, start_worker: StartWorker) -> None:
    """One that has reported so, as long as it keeps its lease."""
    assert not caller.run(caller.dispatcher.watch.has_ready_worker())
    worker = start_worker()
    caller.wait_ready()
    assert caller.run(caller.dispatcher.watch.has_ready_worker())
    worker.stop()
    ends = time.monotonic() + 30
    while caller.run(caller.dispatcher.watch.has_ready_worker()):
        assert time.monotonic() < ends
        time.sleep(0.05)
    start_worker("w1")
    while not caller.run(caller.dispatcher.watch.has_ready_worker()):
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_probes_do_not_answer_for_each_other(
    caller: Caller, keys: Keys, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may learn of a worker while another waits for an answer of Redis that says nothing of its lease."""
    watch = caller.dispatcher.watch
    with connect(settings) as client:
        report = WorkerReport(name="w1", pid=1, ready=True, engine="cpu", graphs=0, bytes=0, beat_at=time.time())
        client.hset(keys.workers, "w1", report.model_dump_json())
        client.set(keys.lease("w1"), "1", ex=60)
    pipeline = watch._redis.pipeline

    def other_probe_first(**options: Any) -> Any:
        pipe = pipeline(**options)
        execute = pipe.execute

        async def late() -> list[Any]:
            answers: list[Any] = await execute()
            watch._ready = ["w1"]
            return answers

        pipe.execute = late
        return pipe

    monkeypatch.setattr(watch._redis, "pipeline", other_probe_first)
    assert caller.run(watch.has_ready_worker())
