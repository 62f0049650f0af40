"""Graphs that were taken over go back once their worker is well again: in order, by size, and not over and over."""

import asyncio
import json
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

from service.errors import ServiceError
from service.protocol import CapacitiesArgs, Kind, MaxFlowArgs, Operation, PatchArgs, Status
from service.queue.models import WorkerReport
from service.store.keys import LEAVING, Keys
from service.store.ownership import Ownership
from service.worker.membership import takeover as takeover_module
from service.worker.membership.handback import (
    FORGOTTEN_S,
    GIVEN_AT_ONCE,
    LONGEST_STEADY_S,
    SMALL_BYTES,
    SMALL_GIVEN_AT_ONCE,
    Absences,
    HandBack,
    is_steady,
)
from service.worker.membership.lease import Silences
from service.worker.membership.takeover import MOVED_AT_ONCE_BYTES, Queued, Takeover
from service.worker.process import Worker
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, result
from tests.serving import eventually

LEASE_S = 0.5
FIRST = int(diamond().edges.capacity[0])
ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])


def owner(client: Any, keys: Keys, name: str) -> str:
    return str((client.hget(keys.owners, name) or b"").decode())


def reports(client: Any, keys: Keys) -> dict[str, WorkerReport]:
    texts = client.hgetall(keys.workers)
    return {name.decode(): WorkerReport.model_validate_json(text) for name, text in texts.items()}


def taken_over(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys, *names: str) -> Worker:
    """Graphs of w0 that w1 has now; w0 is away."""
    w0 = start_worker("w0", lease_s=LEASE_S)
    caller.wait_ready()
    for name in names:
        caller.load(name, diamond().edges)
    w1 = start_worker("w1", lease_s=LEASE_S)
    caller.wait_ready(2)
    eventually(lambda: reports(client, keys)["w0"].graphs == len(names))  # or more would be given to it
    for name in names:
        caller.load(f"own {name}", diamond().edges)
        assert owner(client, keys, f"own {name}") == "w1"
    w0.stop()
    eventually(lambda: all(owner(client, keys, name) == "w1" for name in names))
    return w1


def test_graphs_go_back_to_their_worker(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> None:
    """While they are asked: nothing is lost or doubled, and they are there before the next question."""
    names = [f"g{i}" for i in range(GIVEN_AT_ONCE + 2)]
    w1 = taken_over(caller, start_worker, client, keys, *names)
    assert set(client.hgetall(keys.homes).values()) == {b"w0"}
    w0 = start_worker("w0", lease_s=LEASE_S)
    done, end = 0, time.monotonic() + 60
    while any(owner(client, keys, name) == "w1" for name in names):
        assert time.monotonic() < end
        assert caller.ask(Kind.PATCH, "g0", ADD_1)["version"] == done + 2
        done += 1
        time.sleep(0.02)
    for name in names:
        eventually(lambda name=name: w0.graphs.residents.get(name) is not None)  # type: ignore[misc]
        assert w1.graphs.residents.get(name) is None
        assert caller.value(name) == 5
    page = caller.ask(Kind.CAPACITIES, "g0", CapacitiesArgs(limit=1))
    assert (page["version"], page["capacity"][0]) == (1 + done, FIRST + done)
    assert not client.exists(keys.homes)
    assert w1.graphs.counters["graphs_handed_back"] == len(names)


def test_commands_keep_their_order_while_their_graph_moves(
    caller: Caller, start_worker: StartWorker, client: Any, keys: Keys
) -> None:
    """Each sets the edge to its number, and none waits for another: over a takeover and the way back."""
    w0 = start_worker("w0", lease_s=LEASE_S)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    start_worker("w1", lease_s=LEASE_S)
    caller.wait_ready(2)
    jobs: list[str] = []

    async def send() -> None:
        args = PatchArgs(batch=[Operation(op="set", edges=[0], amounts=[str(100 + len(jobs))])])
        jobs.append(await caller.dispatcher.submit(Kind.PATCH, "g", args))

    for _ in range(20):
        caller.run(send())
    w0.stop()
    while owner(client, keys, "g") == "w0":
        with suppress(ServiceError):  # nobody takes commands for a worker that is away
            caller.run(send())
        time.sleep(0.01)
    for _ in range(5):
        caller.run(send())
    start_worker("w0", lease_s=LEASE_S)
    end = time.monotonic() + 60
    while owner(client, keys, "g") == "w1":
        assert time.monotonic() < end
        caller.run(send())
        time.sleep(0.03)
    for _ in range(5):
        caller.run(send())
    versions = []
    for job_id in jobs:
        reply = caller.run(caller.dispatcher.wait(job_id, 60))
        assert reply is not None
        versions.append(result(reply)["version"])
    assert versions == list(range(2, len(jobs) + 2))
    page = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs(limit=1))
    assert page["capacity"][0] == 99 + len(jobs)


def report(name: str, **more: Any) -> WorkerReport:
    fields = {"pid": 1, "ready": True, "engine": "cpu", "graphs": 1, "bytes": 1, "budget_bytes": 10**9}
    return WorkerReport(name=name, **{**fields, "beat_at": 1000.0, "ready_since": 0.0, **more})


def test_a_worker_that_comes_and_goes_waits_longer_each_time() -> None:
    def steady_after(count: int, lost_at: float = 0.0, **more: Any) -> float:
        reports = ((s, report("w0", beat_at=s, **more)) for s in range(100_000))
        return next(s for s, said in reports if is_steady(said, (count, lost_at), s, 5.0))

    assert [steady_after(count) for count in (0, 1, 2, 3)] == [30, 30, 60, 120]
    assert steady_after(1, ready_since=100.0) == 130
    assert steady_after(1, lost_at=500.0) == 530  # a process that was paused, and is the same as before
    assert steady_after(1000) == LONGEST_STEADY_S
    assert not is_steady(report("w0", ready=False, beat_at=1e9), (1, 0.0), 1e9, 5.0)


@pytest.mark.parametrize("ahead_s", [-86_400.0, 86_400.0])
def test_a_worker_whose_clock_differs_waits_no_longer_and_no_shorter(ahead_s: float) -> None:
    """How long it has been ready is read from its clock, and how long ago it lost its graphs from ours."""

    def steady(ready_s: float, well_s: float) -> bool:
        there, here = 1e9 + ahead_s, 1e9
        said = report("w0", beat_at=there, ready_since=there - ready_s)
        return is_steady(said, (1, here - well_s), here, 5.0)

    assert [steady(*s) for s in ((30, 30), (29, 30), (30, 29))] == [True, False, False]


def test_a_worker_is_missed_after_two_leases() -> None:
    """Its supervisor has had time to start it again."""
    now = time.time()
    assert not Silences(5.0).is_silent(report("w0", beat_at=now - 9.0))
    assert Silences(5.0).is_silent(report("w0", beat_at=now - 10.1))


def test_a_worker_whose_clock_is_ahead_is_missed_as_soon_as_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its heartbeats come from a time that is not there yet; what counts is for how long there is no other one."""
    silences, now, ahead = Silences(5.0), [1000.0], time.time() + 7200
    monkeypatch.setattr("service.worker.membership.lease.time.monotonic", lambda: now[0])
    for _ in range(10):
        assert not silences.is_silent(report("w0", beat_at=ahead))
        now[0] += 1.1
    assert not silences.is_silent(report("w1", beat_at=ahead))
    assert silences.is_silent(report("w0", beat_at=ahead))
    assert not silences.is_silent(report("w1", beat_at=ahead))
    silences.forget(but={"w0"})
    assert silences.is_silent(report("w0", beat_at=ahead)), "it is still known"
    now[0] += 100.0
    assert not silences.is_silent(report("w1", beat_at=ahead)), "seen for the first time again"
    assert not silences.is_silent(report("w0", beat_at=ahead + 10))


def test_a_worker_that_lives_is_not_missed_after_a_pause_of_all_or_a_step_of_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All leases are over then, and whoever wakes up first took the graphs of the others."""
    silences, now, wall = Silences(5.0), [1000.0], [2000.0]
    monkeypatch.setattr("service.worker.membership.lease.time.monotonic", lambda: now[0])
    monkeypatch.setattr("service.worker.membership.lease.time.time", lambda: wall[0])
    assert not silences.is_silent(report("w0", beat_at=1999.0))
    wall[0] += 86_400  # the clock is set, or the machine was suspended, which no monotonic clock counts
    assert not silences.is_silent(report("w0", beat_at=1999.0))
    now[0] += 60  # the processes were stopped
    assert not silences.is_silent(report("w0", beat_at=1999.0))
    for _ in range(5):
        now[0] += 1.25
        gone = silences.is_silent(report("w0", beat_at=1999.0))
    assert gone, "it has not come back"


def test_losses_are_counted_and_forgotten(client: Any, keys: Keys) -> None:
    absences = Absences(client, keys)
    now = 1_000_000.0
    assert absences.read("w0", now) == (0, 0.0)
    for seconds, count in ((0, 1), (0.5, 1), (100, 2), (200, 3), (200 + FORGOTTEN_S + 1, 1)):
        absences.note("w0", now + seconds, 0.5)
        assert absences.read("w0", now + seconds)[0] == count
    assert absences.read("w1", now) == (0, 0.0)


def test_a_loss_noted_while_a_clock_was_ahead_counts_from_when_it_is_seen(client: Any, keys: Keys) -> None:
    """A takeover noted a day ahead put the way back off by that day."""
    absences, now = Absences(client, keys), 1_000_000.0
    absences.note("w0", now + 86_400, 0.5)
    assert absences.read("w0", now) == (1, now)
    assert absences.read("w0", now + 10) == (1, now)
    absences.note("w1", now + 86_400, 0.5)
    absences.note("w1", now, 0.5)
    absences.note("w1", now + 5, 0.5)
    assert absences.read("w1", now + 9) == (2, now + 5)


class House:
    """A catalogue with graphs of any size, and workers who say that they are well."""

    def __init__(self, client: Any, keys: Keys) -> None:
        self.client, self.keys = client, keys
        self.given: list[tuple[str, str]] = []
        self.busy: set[str] = set()

    def worker(self, name: str, **more: Any) -> None:
        self.client.set(self.keys.lease(name), "somebody")
        self.client.hset(self.keys.workers, name, report(name, **more).model_dump_json())

    def graph(self, name: str, owner: str, size: int, home: str | None = None) -> None:
        self.client.hset(self.keys.names, name, f"id-{name}")
        self.client.hset(self.keys.owners, name, owner)
        self.client.hset(self.keys.graph(f"id-{name}"), mapping={"bytes": size - 1, "device_bytes": 1, "epoch": 1})
        if home is not None:
            self.client.hset(self.keys.homes, name, home)

    def check(self, worker: str) -> list[str]:
        self.given.clear()
        is_idle, give = (lambda name: name not in self.busy), (lambda *pair: self.given.append(pair))
        HandBack(self.client, self.keys, worker, 5.0, is_idle, give).check()
        return [name for name, _ in self.given]


@pytest.fixture
def house(client: Any, keys: Keys) -> House:
    house = House(client, keys)
    house.worker("w0")
    house.worker("w1")
    return house


def test_what_goes_back_leaves_home_with_no_more_than_is_here(house: House) -> None:
    house.worker("w0", budget_bytes=400)
    for name, size in (("a", 50), ("b", 40), ("c", 30)):
        house.graph(name, "w1", size, home="w0")
    house.graph("own", "w1", 20)
    house.graph("other", "w1", 10, home="w2")  # who is not there
    assert house.check("w1") == ["a", "b"]  # then 90 are there, where 100 were here; a quarter of 400 is plenty
    house.graph("new", "w0", 60)
    assert house.check("w1") == ["a"]
    house.graph("more", "w0", 61)
    assert house.check("w1") == []
    assert house.check("w0") == []


def test_a_graph_alone_goes_back_too(house: House) -> None:
    house.worker("w0", budget_bytes=400)
    house.graph("b", "w0", 90)
    house.graph("a", "w1", 10, home="w0")
    assert house.check("w1") == ["a"]


def test_no_more_than_fits_and_a_few_at_once(house: House) -> None:
    size = SMALL_BYTES // 2
    for number in range(10):
        house.graph(f"g{number}", "w1", size, home="w0")
    house.busy = {"g0", "g1"}
    house.worker("w0", budget_bytes=8 << 30)
    assert house.check("w1") == [f"g{number}" for number in range(2, 2 + GIVEN_AT_ONCE)]
    house.worker("w0", budget_bytes=5 * size // 2)
    assert len(house.check("w1")) == 2


def test_of_small_graphs_many_go_back_at_once(house: House) -> None:
    """Four with each heartbeat, ten thousand of them took an hour and a half."""
    for number in range(SMALL_GIVEN_AT_ONCE + 1):
        house.graph(f"g{number}", "w1", 400, home="w0")
    house.worker("w0", budget_bytes=8 << 30)
    assert len(house.check("w1")) == SMALL_GIVEN_AT_ONCE
    house.graph("large", "w1", SMALL_BYTES, home="w0")
    assert len(house.check("w1")) == GIVEN_AT_ONCE
    assert house.given[0] == ("large", "w0")


@pytest.mark.parametrize("more", [{"ready": False}, {"ready_since": 990.0}])
def test_nothing_goes_to_a_worker_that_is_not_well(house: House, more: dict[str, Any]) -> None:
    house.graph("a", "w1", 50, home="w0")
    house.worker("w0", **more)
    assert house.check("w1") == []


def test_nothing_goes_to_a_worker_without_a_lease(house: House) -> None:
    house.graph("a", "w1", 50, home="w0")
    house.client.delete(house.keys.lease("w0"))
    assert house.check("w1") == []


def queue(house: House, worker: str, graph: str) -> None:
    job_id = f"job of {graph}"
    house.client.hset(house.keys.job(job_id), "graph", graph)
    house.client.zadd(house.keys.waiting(worker), {job_id: 1.0})


def test_a_graph_is_handed_back_only_if_nothing_waits_for_it(house: House) -> None:
    ownership, client, keys = Ownership(house.client, house.keys), house.client, house.keys
    house.graph("a", "w1", 50, home="w0")
    queue(house, "w1", "b")
    queue(house, "w1", "a")
    assert not ownership.hand_back("a", "w1", "w0")
    client.delete(keys.waiting("w1"))
    assert not ownership.hand_back("a", "w2", "w0")
    client.delete(keys.lease("w0"))
    assert not ownership.hand_back("a", "w1", "w0")
    house.worker("w0")
    assert ownership.hand_back("a", "w1", "w0")
    assert (client.hget(keys.owners, "a"), client.hget(keys.graph("id-a"), "epoch")) == (b"w0", b"2")
    assert client.hgetall(keys.homes) == {}
    ((_, told),) = client.xrange(keys.control("w0"))
    assert told == {b"restore": b"a"}
    assert not ownership.hand_back("nobody's", "w1", "w0")


def test_a_command_that_comes_meanwhile_stops_it(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from service.store import ownership

    watched, calls = ownership.watched, []

    def queue_meanwhile(pipe: Any, names: list[str], *reads: Any) -> list[Any]:
        answers = watched(pipe, names, *reads)
        if not names:  # it has looked at all that waits
            calls.append(len(reads))
            queue(house, "w1", "a")
            house.client.xadd(house.keys.commands("w1"), {"command": "of a"})
        return answers

    monkeypatch.setattr(ownership, "watched", queue_meanwhile)
    house.graph("a", "w1", 50, home="w0")
    assert not Ownership(house.client, house.keys).hand_back("a", "w1", "w0")
    assert calls == [0, 1]
    assert house.client.hget(house.keys.owners, "a") == b"w1"


def test_the_way_home_is_remembered_through_takeovers(house: House) -> None:
    ownership, client, keys = Ownership(house.client, house.keys), house.client, house.keys
    house.graph("a", "w0", 50)
    assert ownership.take_over("a", "w1", "w0")
    assert ownership.take_over("a", "w2", "w1")
    assert client.hget(keys.homes, "a") == b"w0"
    assert ownership.away_from_home("w2") == {"a": "w0"}
    assert ownership.away_from_home("w1") == {}
    assert ownership.take_over("a", "w0", "w2")
    assert client.hgetall(keys.homes) == {}
    client.hset(keys.owners, "a name that is only placed", "w0")
    assert ownership.take_over("a name that is only placed", "w1", "w0")
    assert client.hgetall(keys.homes) == {}


def test_what_waits_goes_with_its_graph(caller: Caller, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the takeover's own MULTI: what is asked right behind it comes behind what was asked before."""
    client, keys = house.client, house.keys
    for name in ("a", "b"):
        house.graph(name, "w0", 10)
    waiting = [caller.submit(Kind.MAX_FLOW, name, MaxFlowArgs()) for name in ("a", "b", "a")]
    client.xadd(keys.commands("w0"), {"command": "nonsense"})
    client.delete(keys.lease("w0"))
    take_over, later = Ownership.take_over, []

    def ask_right_behind(ownership: Ownership, name: str, *args: Any) -> bool:
        taken = take_over(ownership, name, *args)
        thread = threading.Thread(target=lambda: later.append(asyncio.run(_ask(caller, name))))
        thread.start()
        thread.join()
        return taken

    monkeypatch.setattr(Ownership, "take_over", ask_right_behind)
    Takeover(client, keys, "w1", 5.0)._take_from("w0")
    ids = [json.loads(fields[b"command"])["id"] for _, fields in client.xrange(keys.commands("w1"))]
    assert ids == [waiting[0], waiting[2], later[0], waiting[1], later[1]]
    assert client.xlen(keys.commands("w0")) == 0
    assert client.zcard(keys.waiting("w0")) == 0
    assert client.zcard(keys.waiting("w1")) == 5
    assert {client.hget(keys.job(job_id), "worker") for job_id in ids} == {b"w1"}
    assert Absences(client, keys).read("w0", time.time())[0] == 1


async def _ask(caller: Caller, name: str) -> str:
    """By an API process of its own."""
    other = await Caller._open(caller, caller.dispatcher.settings)
    try:
        return await other.submit(Kind.MAX_FLOW, name, MaxFlowArgs())
    finally:
        await other.close()


def test_more_than_can_be_moved_at_once_is_moved_all_the_same(
    caller: Caller, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOVED_AT_ONCE_BYTES <= 64 << 20
    monkeypatch.setattr("service.worker.membership.takeover.MOVED_AT_ONCE_BYTES", 1500)
    client, keys = house.client, house.keys
    for name in ("a", "b"):
        house.graph(name, "w0", 10)
    waiting = [caller.submit(Kind.MAX_FLOW, name, MaxFlowArgs()) for name in ("a", "a", "b", "a", "b", "b") * 20]
    client.delete(keys.lease("w0"))
    Takeover(client, keys, "w1", 5.0)._take_from("w0")
    moved = [json.loads(fields[b"command"]) for _, fields in client.xrange(keys.commands("w1"))]
    assert {command["id"] for command in moved} == set(waiting)
    assert len(moved) == len(waiting)
    for name in ("a", "b"):
        ours = [command["id"] for command in moved if command["graph"] == name]
        assert ours == [job_id for job_id in waiting if job_id in ours]
    assert all(client.hget(keys.job(job_id), "status") == Status.QUEUED.encode() for job_id in waiting)


@pytest.mark.parametrize("n_waiting", [0, 3, 200])
def test_two_workers_that_take_from_each_other_come_to_an_end(
    caller: Caller, house: House, monkeypatch: pytest.MonkeyPatch, n_waiting: int
) -> None:
    """As after a pause of the whole machine, when each finds the other's lease over: what one has moved is moved back
    by the other at once, and is not taken a second time."""
    client, keys = house.client, house.keys
    house.graph("g", "w0", 10)
    waiting = [caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs()) for _ in range(n_waiting)]
    client.hdel(keys.owners, "g")
    moves, move = [], Takeover._move_all

    def moved_and_moved_back(takeover: Takeover, other: str, queued: list[Queued], pipe: Any) -> None:
        assert len(moves) < 2 * n_waiting, "without end"
        move(takeover, other, queued, pipe)
        moves.extend(queued)
        for one in queued:
            client.xadd(keys.commands(other), one.fields)

    monkeypatch.setattr(Takeover, "_move_all", moved_and_moved_back)
    Takeover(client, keys, "w1", 5.0)._take_from("w0")
    assert [one.command.id for one in moves if one.command is not None] == waiting


def test_a_worker_that_takes_over_much_shows_that_it_lives(caller: Caller, house: House) -> None:
    """Else the others take its graphs meanwhile, and it theirs."""
    client, keys, signs = house.client, house.keys, []
    for name in ("a", "b", "c", "of nobody"):
        house.graph(name, "w0", 10)
    caller.submit(Kind.MAX_FLOW, "of nobody", MaxFlowArgs())
    client.hdel(keys.owners, "of nobody")
    Takeover(client, keys, "w1", 5.0, show_life=lambda: signs.append(time.time()))._take_from("w0")
    assert len(signs) == 3 + 1, "one for each graph, and one for each command that is moved by itself"


def test_workers_that_are_gone_for_a_day_are_forgotten(
    client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines come and go under new names: each name that is kept costs every heartbeat of every worker."""
    house, now = House(client, keys), time.time()
    for name, hours in {"gone": 25, "left": 25, "drained": 25, "busy": 25, "full": 25, "late": 23, "back": 25}.items():
        house.worker(name, beat_at=now - 3600 * hours)
        client.hset(keys.absences, name, "1 5.0")
        if name != "back":
            client.delete(keys.lease(name))
    house.graph("g", "full", 10)
    client.hset(keys.draining, mapping={"left": f"5 {LEAVING.decode()}", "drained": "5 drain"})
    monkeypatch.setattr(Takeover, "_move", lambda *_: None)
    client.xadd(keys.commands("busy"), {"command": "nonsense"})
    Takeover(client, keys, "w1", 5.0).check()
    assert {name.decode() for name in client.hkeys(keys.workers)} == {"busy", "late", "back"}
    assert {name.decode() for name in client.hkeys(keys.absences)} == {"busy", "late", "back"}
    assert client.hkeys(keys.draining) == [b"drained"]
    assert client.hget(keys.owners, "g") == b"w1"


def test_nobody_waits_for_workers_that_are_no_more(client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """They beat a moment ago, and have no lease: one that may come back is waited for, one that lives keeps all."""
    house = House(client, keys)
    for name in ("w1", "w2", "gone", "alive"):
        house.worker(name, beat_at=time.time())
        house.graph(f"of-{name}", name, 10)
    client.delete(keys.lease("w2"), keys.lease("gone"))
    monkeypatch.setattr(Takeover, "_move", lambda *_: None)
    Takeover(client, keys, "w1", 5.0).check()
    assert client.hget(keys.owners, "of-gone") == b"gone"
    Takeover(client, keys, "w1", 5.0, only_workers=("w1", "w2")).check()
    owners = {name.decode(): owner.decode() for name, owner in client.hgetall(keys.owners).items()}
    assert owners == {"of-w1": "w1", "of-w2": "w2", "of-gone": "w1", "of-alive": "alive"}
    assert {name.decode() for name in client.hkeys(keys.workers)} == {"w1", "w2", "alive"}, "it stays away for no day"


def test_a_worker_that_comes_back_at_this_moment_is_not_forgotten(
    client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, look = House(client, keys), takeover_module.watched
    house.worker("w0", beat_at=5.0)
    client.delete(keys.lease("w0"))

    def looked(*asked: Any) -> list[Any]:
        found = look(*asked)
        client.set(keys.lease("w0"), "again")
        return found

    monkeypatch.setattr(takeover_module, "watched", looked)
    Takeover(client, keys, "w1", 5.0).check()
    assert client.hexists(keys.workers, "w0")
