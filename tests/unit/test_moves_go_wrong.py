"""A move that meets an absence of Redis, the end of a worker, or another change of its graph, at each of its steps."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import redis

from gpu_engine.generators import grid
from service.protocol import (
    CapacitiesArgs,
    DeleteArgs,
    EdgesArgs,
    EdgesOperation,
    Kind,
    MaxFlowArgs,
    MoveArgs,
    Operation,
    PatchArgs,
    Reply,
)
from service.store.handover import Handover
from service.store.keys import Keys
from service.worker.membership import draining, moving
from service.worker.membership.moving import Mover
from service.worker.process import Worker
from service.worker.running.control import ControlStream
from tests.service_fixtures import Caller, StartWorker, code_of, result
from tests.serving import eventually

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])
STEPS = ("tell", "heard", "hold", "stream", "switch")

Act = Callable[[], None]


@pytest.fixture
def pair(caller: Caller, start_worker: StartWorker) -> tuple[Worker, Worker]:
    """w0 with the graph g, of which a flow state is solved, and w1."""
    first = start_worker("w0")
    caller.wait_ready()
    caller.load("g", grid(rows=10, columns=10, seed=5))
    caller.value("g")
    second = start_worker("w1")
    caller.wait_ready(2)
    return first, second


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> dict[str, Act]:
    """What is to happen once as a step of a move is taken; "+" before its name: once it is done."""
    planned: dict[str, Act] = {}

    def happen(name: str) -> None:
        if act := planned.pop(name, None):
            act()

    for step in STEPS:
        plain = getattr(Handover, step)

        def taken(self: Handover, *arguments: Any, step: str = step, plain: Any = plain, **named: Any) -> Any:
            happen(step)
            answer = plain(self, *arguments, **named)
            happen(f"+{step}")
            return answer

        monkeypatch.setattr(Handover, step, taken)
    return planned


def lost() -> None:
    raise redis.ConnectionError("lost for the test")


def owner(client: Any, keys: Keys, name: str = "g") -> bytes | None:
    found: bytes | None = client.hget(keys.owners, name)
    return found


def ended(caller: Caller, job: str) -> Reply:
    reply = caller.run(caller.dispatcher.wait(job, 60))
    assert reply is not None
    return reply


def test_redis_is_away_for_a_moment_at_each_step(
    caller: Caller, pair: tuple[Worker, Worker], client: Any, keys: Keys, steps: dict[str, Act]
) -> None:
    """The graph arrives all the same, and each update that waits meanwhile is made once."""
    (version, before), here, there = caller.first_capacity("g"), "w0", "w1"
    for step in (*STEPS, *(f"+{step}" for step in STEPS)):
        steps[step] = lost
        move = caller.submit(Kind.MOVE, "g", MoveArgs(to=there))
        patch = caller.submit(Kind.PATCH, "g", ADD_1)
        assert result(ended(caller, move))["to"] == there, step
        assert result(ended(caller, patch))["version"] == version + 1, step
        version, before, here, there = version + 1, before + 1, there, here
        assert caller.first_capacity("g") == (version, before), step
        assert owner(client, keys) == here.encode()
        assert not steps
        assert not client.exists(keys.hold("g"))


@pytest.mark.parametrize("step", ["hold", "+switch"])
def test_the_old_worker_ends_as_it_moves_a_graph(
    caller: Caller, pair: tuple[Worker, Worker], client: Any, keys: Keys, steps: dict[str, Act], step: str
) -> None:
    """The other one takes what it leaves, and what waits is done once, in its order."""
    version, before = caller.first_capacity("g")
    is_held = threading.Event()
    """The lane of the graph, from now on."""

    def end() -> None:
        pair[0].stop()
        lost()

    def begin() -> None:
        is_held.set()
        eventually(lambda: client.xlen(keys.commands("w0")) == 4)
        if step == "hold":
            end()

    steps |= {step: end, "hold": begin}
    move = caller.submit(Kind.MOVE, "g", MoveArgs(to="w1"))
    assert is_held.wait(60)
    patches = [caller.submit(Kind.PATCH, "g", ADD_1) for _ in range(3)]
    assert [result(ended(caller, patch))["version"] for patch in patches] == [version + n for n in (1, 2, 3)]
    assert result(ended(caller, move))["to"] == "w1"
    assert caller.first_capacity("g") == (version + 3, before + 3)
    assert owner(client, keys) == b"w1"


def test_the_new_worker_is_away_as_the_graph_is_to_go(
    caller: Caller, pair: tuple[Worker, Worker], client: Any, keys: Keys, steps: dict[str, Act]
) -> None:
    def end() -> None:
        pair[1].stop()
        eventually(lambda: not client.exists(keys.lease("w1")))

    steps["+hold"] = end
    assert code_of(lambda: caller.reply(Kind.MOVE, "g", MoveArgs(to="w1"))) == "worker_unavailable"
    assert caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())["mode"] == "unchanged"
    assert owner(client, keys) == b"w0"


def test_what_the_new_worker_says_is_lost(
    caller: Caller, pair: tuple[Worker, Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while a disk is full: it is told again, and says it again."""
    answers: list[str] = []
    plain = Handover.answer

    def lose_first(handover: Handover, reply: str, text: str) -> None:
        answers.append(text)
        if len(answers) in (1, 3):
            raise redis.ResponseError("MISCONF for the test")
        plain(handover, reply, text)

    monkeypatch.setattr(Handover, "answer", lose_first)
    monkeypatch.setattr(moving, "TELL_S", 0.1)
    moved = caller.ask(Kind.MOVE, "g", MoveArgs(to="w1"))
    assert (moved["moved"], moved["flow_states"], answers) == (True, 1, ["1"] * 4)
    assert moved["pause_ms"] is not None


def test_a_graph_is_asked_to_move_twice_at_once(
    caller: Caller, pair: tuple[Worker, Worker], client: Any, keys: Keys
) -> None:
    moves = [caller.submit(Kind.MOVE, "g", MoveArgs(to="w1")) for _ in range(2)]
    assert sorted(result(ended(caller, move))["moved"] for move in moves) == [False, True]
    assert owner(client, keys) == b"w1"
    assert caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())["mode"] == "unchanged"


def test_what_is_said_to_a_worker_that_is_just_ready_is_heard(
    caller: Caller, start_worker: StartWorker, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread may begin to read some time later."""
    begins, read = threading.Event(), ControlStream.read

    def read_late(stream: ControlStream, stopping: threading.Event) -> None:
        begins.wait(60)
        read(stream, stopping)

    monkeypatch.setattr(ControlStream, "read", read_late)
    start_worker("w0")
    caller.wait_ready()
    Handover(client, keys, "w1").tell("w0", "prepare", "g", keys.reply("1"))
    begins.set()
    eventually(lambda: client.get(keys.reply("1")) == b"0")


def test_no_graph_is_given_to_a_worker_that_cannot_hold_it(
    caller: Caller, start_worker: StartWorker, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start_worker("w0")
    caller.wait_ready()
    caller.load("g", grid(rows=10, columns=10, seed=5))
    start_worker("w1", memory_budget_bytes=1 << 10)
    caller.wait_ready(2)
    tries: list[str] = []
    plain = draining.Draining._give

    def give(self: draining.Draining, name: str, *arguments: Any) -> bool:
        tries.append(name)
        return plain(self, name, *arguments)

    monkeypatch.setattr(draining.Draining, "_give", give)
    monkeypatch.setattr(draining, "LEAVE_S", 3600.0)
    leaving = threading.Thread(target=first.leave, daemon=True)
    leaving.start()
    eventually(lambda: len(tries) > 2)
    first._draining.stop()  # as a signal does that stops it at once
    leaving.join(60)
    assert not leaving.is_alive()
    assert owner(client, keys) == b"w0"


class Reading:
    """Moves stop once the other worker has read the graph, until they are let on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.is_read, self.goes_on = threading.Event(), threading.Event()
        plain = Mover._prepare

        def prepared(mover: Mover, *arguments: Any) -> bool:
            done = plain(mover, *arguments)
            self.is_read.set()
            self.goes_on.wait(60)
            return done

        patch.setattr(Mover, "_prepare", prepared)

    def move(self, caller: Caller, to: str, meanwhile: Callable[[], object]) -> Reply:
        """Move g, with something done in between."""
        self.is_read.clear()
        self.goes_on.clear()
        move = caller.submit(Kind.MOVE, "g", MoveArgs(to=to))
        assert self.is_read.wait(60)
        meanwhile()
        self.goes_on.set()
        return ended(caller, move)


INSERT = EdgesOperation(op="insert", tail=[0], head=[99], capacity=["7"])
CHANGES: tuple[tuple[Kind, Any, bool], ...] = (
    (Kind.PATCH, ADD_1, True),
    (Kind.PATCH_LOWER, PatchArgs(batch=[Operation(op="set", edges=[0], amounts=["1"])]), False),
    (Kind.PATCH_EDGES, EdgesArgs(batch=[INSERT]), False),
    (Kind.PATCH_VERTICES, PatchArgs(batch=[Operation(op="set", edges=[50], amounts=["3"])]), False),
)


def test_a_graph_changes_after_it_was_read(
    caller: Caller, pair: tuple[Worker, Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By updates of each kind: what a copy cannot be brought up to is read again."""
    reading, to = Reading(monkeypatch), 1
    _, capacity = caller.first_capacity("g")
    for kind, args, is_kept in CHANGES:
        moved = result(reading.move(caller, f"w{to}", lambda kind=kind, args=args: caller.ask(kind, "g", args)))  # type: ignore[misc]
        assert (moved["moved"], moved["flow_states"] == 1) == (True, is_kept), kind
        before, after = (worker.graphs.residents.get("g") for worker in (pair[1 - to], pair[to]))
        assert before is None
        assert after is not None
        assert caller.first_capacity("g") == (after.version, capacity + 1)
        to = 1 - to
    assert after.lowers is not None
    assert after.lowers.lower[0] > 0
    assert after.vertices is not None
    assert after.network.n_edges == after.network.loaded[1] + 1


def test_a_graph_is_deleted_or_replaced_after_it_was_read(
    caller: Caller, pair: tuple[Worker, Worker], client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(monkeypatch)
    other = grid(rows=4, columns=4, seed=1)
    replaced = result(reading.move(caller, "w1", lambda: caller.load("g", other)))
    assert (replaced["moved"], replaced["flow_states"]) == (True, 0)
    assert len(caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())["capacity"]) == other.n_edges
    gone = reading.move(caller, "w0", lambda: caller.ask(Kind.DELETE, "g", DeleteArgs()))
    assert gone.problem is not None
    assert gone.problem.code == "unknown_graph"
    assert owner(client, keys) is None
    assert not client.exists(keys.hold("g"))
    caller.load("g", other)
    assert caller.value("g") is not None


def test_what_was_read_before_redis_came_back_is_read_again(
    caller: Caller, pair: tuple[Worker, Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have versions that Redis has lost, and whose numbers others have now."""

    def age() -> None:
        graph = pair[1].graphs.residents.get("g")
        assert graph is not None
        assert graph.ahead is not None
        graph.ahead = replace(graph.ahead, run="that of another server")

    assert result(Reading(monkeypatch).move(caller, "w1", age))["flow_states"] == 0
