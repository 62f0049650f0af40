"""A graph moves to another worker while it is asked and changed: nothing is lost or doubled, and it arrives warm."""

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
import redis

from gpu_engine.generators import grid
from service.errors import ServiceError
from service.protocol import CapacitiesArgs, Kind, MaxFlowArgs, MoveArgs, Operation, PatchArgs
from service.queue.drains import EXPECTED_LEASES
from service.queue.models import WorkerReport, read_report
from service.settings import Settings
from service.store.handover import Handover
from service.store.keys import Keys
from service.store.ownership import Loads, Ownership
from service.worker.membership.draining import Draining
from service.worker.membership.moving import Mover
from service.worker.membership.workers import Workers
from service.worker.process import Worker
from service.worker.running import consumer
from tests.service_fixtures import Caller, StartWorker, code_of, result
from tests.serving import eventually

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])


@pytest.fixture
def pair(caller: Caller, start_worker: StartWorker) -> tuple[Worker, Worker]:
    """w0 with the graph g, of which a flow state is solved, and w1."""
    first = start_worker("w0")
    caller.wait_ready()
    caller.load("g", grid(rows=20, columns=20, seed=5))
    assert caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())["mode"] == "cold"
    second = start_worker("w1")
    caller.wait_ready(2)
    return first, second


def move(caller: Caller, to: str, graph: str = "g") -> dict[str, Any]:
    return caller.ask(Kind.MOVE, graph, MoveArgs(to=to))


def test_a_graph_moves_with_its_flow_states(
    caller: Caller, pair: tuple[Worker, Worker], client: Any, keys: Keys
) -> None:
    first, second = pair
    value = caller.value("g")
    graph = keys.graph(client.hget(keys.names, "g").decode())
    epoch = int(client.hget(graph, "epoch"))
    moved = move(caller, "w1")
    assert int(client.hget(graph, "epoch")) == epoch + 1  # what the worker before commits from now on is refused
    assert moved["moved"]
    assert (moved["from"], moved["to"], moved["flow_states"], moved["waiting"]) == ("w0", "w1", 1, 0)
    assert 0 < moved["pause_ms"] < 60_000
    assert (first.graphs.residents.get("g"), client.hget(keys.owners, "g")) == (None, b"w1")
    answer = caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())
    assert (answer["mode"], answer["value"]) == ("unchanged", value)
    assert move(caller, "w1") == {**moved, "from": "w1", "moved": False, "pause_ms": 0, "flow_states": 0}
    caller.ask(Kind.PATCH, "g", ADD_1)
    assert move(caller, "w0")["flow_states"] == 1
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs(limit=1))["version"] == 2
    assert second.graphs.residents.get("g") is None
    assert not client.exists(keys.hold("g"))


def test_updates_go_on_in_their_order_while_it_moves(caller: Caller, pair: tuple[Worker, Worker]) -> None:
    """Each sets the edge to its number, and none waits for another; it goes to and fro meanwhile."""
    jobs: list[str] = []

    async def send_all() -> list[dict[str, Any]]:
        moves = []
        for number in range(400):
            if number % 100 == 20:
                to = f"w{1 - len(moves) % 2}"
                moves.append(await caller.dispatcher.submit(Kind.MOVE, "g", MoveArgs(to=to)))
            args = PatchArgs(batch=[Operation(op="set", edges=[0], amounts=[str(number)])])
            jobs.append(await caller.dispatcher.submit(Kind.PATCH, "g", args))
            await asyncio.sleep(0.001)
        replies = [await caller.dispatcher.wait(job, 60) for job in moves]
        return [result(reply) for reply in replies if reply is not None]

    moves = caller.run(send_all())
    assert [one["moved"] for one in moves] == [True] * 4
    versions = []
    for job_id in jobs:
        reply = caller.run(caller.dispatcher.wait(job_id, 60))
        assert reply is not None
        versions.append(result(reply)["version"])
    assert versions == list(range(2, len(jobs) + 2))
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs(limit=1))["capacity"][0] == 399


def test_what_waits_in_the_lane_goes_along(
    caller: Caller, pair: tuple[Worker, Worker], client: Any, keys: Keys, monkeypatch: Any
) -> None:
    first, _ = pair
    monkeypatch.setattr(consumer, "LOOK_BACK_S", 3600.0)  # else what is left behind is found again
    is_in_lane, gate, held = threading.Event(), threading.Event(), Handover.hold

    def hold_late(handover: Handover, name: str) -> str | None:
        is_in_lane.set()
        gate.wait(60)
        return held(handover, name)

    monkeypatch.setattr(Handover, "hold", hold_late)
    job = caller.submit(Kind.MOVE, "g", MoveArgs(to="w1"))
    assert is_in_lane.wait(60)
    patches = [caller.submit(Kind.PATCH, "g", ADD_1) for _ in range(3)]
    eventually(lambda: len(first._consumer.tasks()) == 4)
    gate.set()
    moved = caller.run(caller.dispatcher.wait(job, 60))
    assert moved is not None
    assert result(moved)["waiting"] == 3
    assert not client.xlen(keys.commands("w0"))
    replies = [caller.run(caller.dispatcher.wait(one, 60)) for one in patches]
    assert [result(reply)["version"] for reply in replies if reply is not None] == [2, 3, 4]


def test_nothing_is_queued_about_a_graph_that_is_held(
    caller: Caller, pair: tuple[Worker, Worker], client: Any, keys: Keys
) -> None:
    handover = Handover(client, keys, "w0")
    with client.pipeline() as looked:
        looked.watch(keys.claim("g"))
        token = handover.hold("g")
        assert token is not None
        looked.multi()
        looked.ping()
        with pytest.raises(redis.WatchError):
            looked.execute()
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())) == "worker_unavailable"
    handover.release("g", "another's")
    assert client.exists(keys.hold("g"))
    handover.release("g", token)
    assert caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())["mode"] == "unchanged"
    assert not handover.switch("g", "w1", token, [], "")  # the hold is over
    assert handover.hold("g") is not None
    assert Ownership(client, keys).take_over("g", "w1", "w0")  # of one that died as it held the graph
    assert not client.exists(keys.hold("g"))
    assert Ownership(client, keys).take_over("g", "w0", "w1")
    assert Handover(client, keys, "w1").hold("g") is None
    assert handover.hold("nobody's") is None
    assert client.hget(keys.owners, "g") == b"w0"


def test_where_a_graph_cannot_go(caller: Caller, pair: tuple[Worker, Worker], client: Any, keys: Keys) -> None:
    def refused(to: str, graph: str = "g") -> str:
        return code_of(lambda: caller.reply(Kind.MOVE, graph, MoveArgs(to=to)))

    assert refused("w2") == "unknown_worker"
    assert refused("w1", "h") == "unknown_graph"
    client.hset(keys.draining, "w1", "0 drain")
    assert refused("w1") == "worker_drained"
    client.hdel(keys.draining, "w1")
    pair[1].stop()
    eventually(lambda: not client.exists(keys.lease("w1")))
    assert refused("w1") == "worker_unavailable"
    assert caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())["mode"] == "unchanged"


def owners(client: Any, keys: Keys) -> dict[str, str]:
    return {name.decode(): owner.decode() for name, owner in client.hgetall(keys.owners).items()}


def test_a_drain_waits_for_a_worker_that_is_started_again(
    caller: Caller, worker: Worker, client: Any, keys: Keys, settings: Settings
) -> None:
    """Between two processes it has no lease. One that is away for longer, or drained, gets no graphs."""

    def refused(silent_s: float) -> str:
        other = {"name": "w1", "pid": 1, "ready": True, "engine": "cpu", "graphs": 3, "bytes": 0}
        report = WorkerReport.model_validate(other | {"beat_at": time.time() - silent_s})
        client.hset(keys.workers, "w1", report.model_dump_json())
        return code_of(lambda: caller.run(caller.dispatcher.drains.set("w0", True)))

    assert refused(settings.lease_s) == "worker_unavailable"
    assert refused(EXPECTED_LEASES * settings.lease_s + 1) == "worker_drained"
    client.hset(keys.draining, "w1", "0 drain")
    assert refused(settings.lease_s) == "worker_drained"
    Workers(client, keys).leave("w1")  # it is told to end, and stays drained
    assert refused(settings.lease_s) == "worker_drained"
    client.hdel(keys.draining, "w1")
    Workers(client, keys).leave("w1")
    assert refused(settings.lease_s) == "worker_unavailable"
    assert refused(EXPECTED_LEASES * settings.lease_s + 1) == "worker_drained"
    client.set(keys.lease("w1"), "still ending")
    assert refused(settings.lease_s) == "worker_unavailable"
    client.delete(keys.lease("w1"))
    assert not client.hexists(keys.draining, "w0")


def test_a_worker_is_drained_and_gets_nothing_back(
    caller: Caller, pair: tuple[Worker, Worker], client: Any, keys: Keys
) -> None:
    for name in ("a", "b"):
        caller.load(name, grid(rows=5, columns=5, seed=1))
    drains = caller.dispatcher.drains
    drained = caller.run(drains.set("w0", True))
    assert drained.draining
    eventually(lambda: set(owners(client, keys).values()) == {"w1"})
    assert caller.run(drains.set("w0", True)).graphs_left == 0
    assert caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())["mode"] == "unchanged"
    assert not client.exists(keys.homes)  # they are at home where they are now
    caller.load("new", grid(rows=5, columns=5, seed=1))
    assert owners(client, keys)["new"] == "w1"
    assert code_of(lambda: caller.run(drains.set("w1", True))) == "worker_drained"  # there is no third
    starting = WorkerReport(name="w3", pid=1, ready=False, engine="cpu", graphs=0, bytes=0, beat_at=time.time())
    client.set(keys.lease("w3"), "somebody")
    client.hset(keys.workers, "w3", starting.model_dump_json())
    eventually(lambda: code_of(lambda: caller.run(drains.set("w1", True))) == "worker_unavailable")  # now there will be
    client.hdel(keys.workers, "w3")
    client.delete(keys.lease("w3"))
    assert not client.hexists(keys.draining, "w1")
    assert code_of(lambda: caller.reply(Kind.MOVE, "g", MoveArgs(to="w0"))) == "worker_drained"
    assert caller.run(drains.set("w0", False)).draining is False
    assert move(caller, "w0")["moved"]
    assert code_of(lambda: caller.run(drains.set("w2", True))) == "unknown_worker"


def test_a_worker_that_leaves_hands_its_graphs_over_and_gets_them_back(
    caller: Caller, pair: tuple[Worker, Worker], start_worker: StartWorker, client: Any, keys: Keys
) -> None:
    first, second = pair
    first.leave()
    assert owners(client, keys) == {"g": "w1"}
    assert len(second.graphs.residents.all()[0].states) == 1
    assert caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())["mode"] == "unchanged"
    assert client.hget(keys.homes, "g") == b"w0"
    eventually(lambda: not client.exists(keys.lease("w0")))
    refused = code_of(lambda: caller.reply(Kind.MOVE, "g", MoveArgs(to="w0")))
    assert refused == "worker_unavailable", "nobody has drained it, and nothing can be taken back"
    second.leave()  # nobody is there who could have it
    assert owners(client, keys) == {"g": "w1"}
    eventually(lambda: not client.exists(keys.lease("w0"), keys.lease("w1")))
    left = [read_report(name, client.hget(keys.workers, name)) for name in ("w0", "w1")]
    assert [(report.graphs, report.ready) for report in left] == [(0, False), (1, False)]
    start_worker("w0")
    caller.wait_ready()  # by the report of the process before, perhaps
    eventually(lambda: not client.hexists(keys.draining, "w0"))


def test_small_graphs_leave_side_by_side(
    caller: Caller, pair: tuple[Worker, Worker], client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, a worker of 1,500 gave a third of them away in the time that it had."""
    caller.load("h", grid(rows=3, columns=3, seed=5))
    if client.hget(keys.owners, "h") != b"w0":
        move(caller, "w0", "h")
    side_by_side, prepare = threading.Barrier(2, timeout=10), Mover._prepare

    def prepare_beside(self: Mover, *of: Any) -> bool:
        side_by_side.wait()
        return prepare(self, *of)

    monkeypatch.setattr(Mover, "_prepare", prepare_beside)
    pair[0].leave()
    assert owners(client, keys) == {"g": "w1", "h": "w1"}


@pytest.mark.parametrize("refused", [0, 6])
def test_graphs_that_leave_are_spread(client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch, refused: int) -> None:
    """Of the same size, each of two others gets half of them; what one refuses does not count as its own."""
    there: dict[str, Any] = {"pid": 1, "ready": True, "engine": "cpu", "graphs": 0, "bytes": 0, "budget_bytes": 1 << 30}
    others = [WorkerReport(name=name, beat_at=0.0, **there) for name in "ab"]
    draining = Draining(client, keys, cast(Mover, SimpleNamespace(worker="w0")), list)
    names = [f"g{i}" for i in range(20)]
    loads = Loads(dict.fromkeys(names, 1000), {}, dict.fromkeys(names, "w0"))
    monkeypatch.setattr(draining, "_others", lambda: others)
    sent: list[str] = []

    def send(name: str, to: str) -> None:
        if int(name[1:]) < refused:
            raise ServiceError("worker_drained", "it gets no graph")
        sent.append(to)

    for name in names:
        draining._give(name, loads, send)
    assert [sent.count(name) for name in "ab"] == 2 * [(len(names) - refused) // 2]
    assert loads.of_worker == {"a": 1000 * sent.count("a"), "b": 1000 * sent.count("b")}


def test_what_a_full_worker_has_no_room_for_goes_to_another(
    caller: Caller, start_worker: StartWorker, client: Any, keys: Keys
) -> None:
    edges = grid(rows=100, columns=100, seed=5)
    start_worker("w0", memory_budget_bytes=5 << 20)
    caller.wait_ready()
    caller.load("a", edges)
    start_worker("w1", memory_budget_bytes=64 << 20)
    caller.wait_ready(2)
    assert caller.value("a") is not None
    client.hset(keys.draining, "w1", "0 drain")
    for name in ("b", "c", "d", "e", "f", "g"):
        caller.load(name, edges)
        caller.value(name)
    assert set(owners(client, keys).values()) == {"w0"}
    client.hdel(keys.draining, "w1")
    for name in ("a", "b", "c"):
        caller.value(name)
    eventually(lambda: "w1" in owners(client, keys).values())
