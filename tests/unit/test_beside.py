"""Questions of scenarios beside the lane of their graph: what goes on meanwhile, and how they end."""

import gc
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Self

import pytest
import redis

from gpu_engine.checks.certificate import Certificate
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.state import CpuFlowState
from gpu_engine.engine import FlowState, SolveReport
from gpu_engine.footprint import Room
from gpu_engine.networks.network import Network
from gpu_engine.trials import Trials
from service.protocol import (
    ClosureStudyArgs,
    GlobalCutArgs,
    Kind,
    Message,
    Operation,
    PairsArgs,
    Scenario,
    Status,
    WhatIfArgs,
)
from service.worker.memory import Residents
from service.worker.questions.what_if import held_bytes, read_args
from service.worker.running import rows
from service.worker.running.endings import Endings
from tests.graphs import diamond
from tests.service_fixtures import PATIENCE_S, Caller, StartWorker, result
from tests.serving import eventually

CLOSE = Operation(op="close", edges=[0])
CLOSED = Scenario(id="closed", batch=[CLOSE])
AS_IT_IS = Scenario()
MANY = 1000
"""Rows that are expected to take long."""


class Gated(CpuEngine):
    """Its forks wait until the gate is open, or until they are cancelled."""

    gate = threading.Event()
    reached = threading.Event()
    unproven = 0
    """So many proofs of forks fail."""
    is_fork = False

    def _alike(self, network: Network, room: Room) -> Self:
        fork = super()._alike(network, room)
        fork.is_fork = True
        return fork

    def _open_trials(self, pinned: CpuFlowState, count: int) -> Sequence[Trials]:
        """None: every row is solved by a fork."""
        return []

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        if self.is_fork:
            self.reached.set()
            eventually(lambda: self.gate.is_set() or (control is not None and control.cancelled))
        return super().solve(state, control, cold=cold)

    def certificate(self, state: FlowState, *, complete: bool = True) -> Certificate:
        proof = super().certificate(state, complete=complete)
        if not self.is_fork or not Gated.unproven:
            return proof
        Gated.unproven -= 1
        return replace(proof, valid=False)


@pytest.fixture(autouse=True)
def gate(start_worker: StartWorker) -> Iterator[threading.Event]:
    """Closed; whatever waits at it goes on at the end, before the workers are stopped."""
    Gated.gate.clear()
    Gated.reached.clear()
    Gated.unproven = 0
    yield Gated.gate
    Gated.gate.set()


@pytest.fixture
def asked(caller: Caller, start_worker: StartWorker) -> Caller:
    start_worker(open_engine=Gated)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    return caller


def submit(caller: Caller, *scenarios: Scenario, **more: Any) -> str:
    return caller.submit(Kind.WHAT_IF, "g", WhatIfArgs(scenarios=list(scenarios), **more))


def answer(caller: Caller, job: str) -> dict[str, Any]:
    reply = caller.run(caller.dispatcher.wait(job, PATIENCE_S))
    assert reply is not None
    return result(reply)


def status(caller: Caller, job: str) -> Status:
    found = caller.run(caller.dispatcher.job(job))
    assert found is not None
    return found.status


def test_updates_and_questions_go_on_while_rows_are_solved(asked: Caller, gate: threading.Event) -> None:
    base = asked.value("g")
    job = submit(asked, CLOSED, AS_IT_IS)
    assert Gated.reached.wait(PATIENCE_S)
    assert asked.set("g", [0, 1], ["0", "0"])["version"] == 2
    assert asked.value("g") < base
    eventually(lambda: status(asked, job) is Status.RUNNING)
    gate.set()
    told = answer(asked, job)
    assert (told["version"], told["base"]["value"]) == (1, base)
    closed, as_it_is = told["answers"]
    assert (as_it_is["value"], as_it_is["mode"]) == (base, "unchanged")
    assert closed["change"] == closed["value"] - base < 0


def test_a_study_without_trials_is_right_and_obeys_a_cancel(asked: Caller, gate: threading.Event) -> None:
    edges = diamond().edges
    job = asked.submit(Kind.CLOSURE_STUDY, "g", ClosureStudyArgs(most=edges.n_edges))
    assert Gated.reached.wait(PATIENCE_S)
    asked.run(asked.dispatcher.cancel(job))
    eventually(lambda: status(asked, job) is Status.CANCELLED)
    gate.set()
    told = asked.ask(Kind.CLOSURE_STUDY, "g", ClosureStudyArgs(most=edges.n_edges))
    assert (told["version"], told["candidates"]) == (1, edges.n_edges)
    base = told["base"]["value"]
    closed = {row["row"]: row["value"] for row in told["answers"]}
    scenarios = [Scenario(batch=[Operation(op="close", edges=[row])]) for row in range(edges.n_edges)]
    rows = answer(asked, submit(asked, *scenarios))["answers"]
    assert [closed[row["row"]] for row in rows] == [row["value"] for row in rows]
    assert [row["loss"] for row in told["answers"]] == sorted((base - row["value"] for row in rows), reverse=True)


def test_a_study_begins_again_when_its_worker_is_left(
    caller: Caller, start_worker: StartWorker, gate: threading.Event
) -> None:
    worker = start_worker(open_engine=Gated)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    job = caller.submit(Kind.CLOSURE_STUDY, "g", ClosureStudyArgs(candidates=[0]))
    assert Gated.reached.wait(PATIENCE_S)
    caller.set("g", [0], ["0"])
    worker.stop()
    gate.set()
    eventually(lambda: not caller.run(caller.dispatcher.watch.workers())[0].alive)
    start_worker(open_engine=Gated)
    told = answer(caller, job)
    assert (told["version"], told["answers"][0]["loss"]) == (2, 0)


def test_one_that_waits_for_its_turn_is_cancelled_at_once(asked: Caller) -> None:
    first = submit(asked, *[AS_IT_IS] * MANY)
    assert Gated.reached.wait(PATIENCE_S)
    second = submit(asked, *[AS_IT_IS] * MANY)
    eventually(lambda: status(asked, second) is Status.RUNNING)
    asked.run(asked.dispatcher.cancel(second))
    eventually(lambda: status(asked, second) is Status.CANCELLED)
    assert status(asked, first) is Status.RUNNING


def test_one_that_is_cancelled_while_it_waits_holds_nothing(caller: Caller, start_worker: StartWorker) -> None:
    """Else a hundred of them would keep the memory of the worker from others for as long as what they wait for runs."""
    worker = start_worker(open_engine=Gated)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    first = submit(caller, *[AS_IT_IS] * MANY)
    assert Gated.reached.wait(PATIENCE_S)
    caller.value("g")
    unused = worker.graphs.residents.unused
    second = submit(caller, *[AS_IT_IS] * MANY)
    caller.value("g")  # which comes behind what it does in its lane
    assert worker.graphs.residents.unused.host < unused.host
    caller.run(caller.dispatcher.cancel(second))
    eventually(lambda: worker.graphs.residents.unused == unused)
    eventually(lambda: status(caller, second) is Status.CANCELLED)
    assert status(caller, first) in {Status.QUEUED, Status.RUNNING}


@pytest.mark.parametrize(
    ("kind", "args"),
    [(Kind.PAIRS, PairsArgs(source=[0], sink=[3], most=1)), (Kind.GLOBAL_MIN_CUT, GlobalCutArgs())],
    ids=["pairs", "global-min-cut"],
)
def test_a_short_one_does_not_wait_for_a_long_one(asked: Caller, kind: Kind, args: Message) -> None:
    """Found by attack: a pair of a graph of four vertices waited for the 100,000 pairs of somebody else."""
    long = [submit(asked, *[AS_IT_IS] * MANY) for _ in range(3)]
    assert Gated.reached.wait(PATIENCE_S)
    assert asked.ask(kind, "g", args)["version"] == 1
    assert {status(asked, job) for job in long} <= {Status.QUEUED, Status.RUNNING}


def test_graphs_take_turns_with_long_ones(asked: Caller, gate: threading.Event) -> None:
    """Found by attack: a question waited for the sixty that somebody else had asked about another graph before."""
    asked.load("h", diamond().edges)
    long = [submit(asked, *[AS_IT_IS] * MANY) for _ in range(4)]
    assert Gated.reached.wait(PATIENCE_S)
    asked.value("g")  # which comes behind what they do in its lane
    other = asked.submit(Kind.WHAT_IF, "h", WhatIfArgs(scenarios=[AS_IT_IS] * MANY))
    asked.value("h")
    gate.set()
    ends: list[datetime] = []
    for job in (*long, other):
        asked.run(asked.dispatcher.wait(job, PATIENCE_S))
        found = asked.run(asked.dispatcher.job(job))
        assert found is not None
        assert found.finished_at is not None
        ends.append(found.finished_at)
    assert sorted(ends).index(ends[-1]) == 1


def test_a_cancel_ends_it_between_two_rows(asked: Caller, gate: threading.Event) -> None:
    job = submit(asked, *[AS_IT_IS] * MANY)
    assert Gated.reached.wait(PATIENCE_S)
    asked.run(asked.dispatcher.cancel(job))  # the gate stays closed: what waits at it goes on when it is cancelled
    reply = asked.run(asked.dispatcher.wait(job, PATIENCE_S))
    assert reply is not None
    assert reply.status is Status.CANCELLED


def test_it_begins_again_when_its_worker_is_left(
    caller: Caller, start_worker: StartWorker, gate: threading.Event
) -> None:
    worker = start_worker(open_engine=Gated)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    job = submit(caller, CLOSED, AS_IT_IS)
    assert Gated.reached.wait(PATIENCE_S)
    caller.set("g", [0], ["0"])
    worker.stop()
    gate.set()
    eventually(lambda: not caller.run(caller.dispatcher.watch.workers())[0].alive)
    start_worker(open_engine=Gated)
    told = answer(caller, job)
    assert (told["version"], told["answers"][0]["change"]) == (2, 0)


def test_a_redis_that_is_away_at_the_end_is_waited_for(
    asked: Caller, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed, failures = Endings.succeed, iter([redis.ConnectionError("away"), redis.ConnectionError("away")])

    def sometimes(endings: Endings, task: Any, found: Any) -> None:
        if task.command.kind is Kind.WHAT_IF and (error := next(failures, None)) is not None:
            raise error
        succeed(endings, task, found)

    monkeypatch.setattr(Endings, "succeed", sometimes)
    gate.set()
    told = answer(asked, submit(asked, CLOSED, AS_IT_IS))
    assert [row["row"] for row in told["answers"]] == [0, 1]
    assert told["answers"][1]["change"] == 0


def test_a_row_that_cannot_be_proven_is_told_and_the_next_is_answered(asked: Caller, gate: threading.Event) -> None:
    gate.set()
    Gated.unproven = 2
    first, second = answer(asked, submit(asked, CLOSED, CLOSED))["answers"]
    assert first["error"]["code"] == "internal_error"
    assert second["certificate"]["valid"]


def test_memory_that_is_short_refuses_the_question_and_nothing_else(
    caller: Caller, start_worker: StartWorker, gate: threading.Event
) -> None:
    gate.set()
    worker = start_worker(open_engine=Gated)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    base = caller.value("g")
    residents = worker.graphs.residents
    residents.resize(replace(residents.held, host=residents.held.host + 3000))
    reply = caller.reply(Kind.WHAT_IF, "g", WhatIfArgs(scenarios=[AS_IT_IS] * 3))
    assert reply.problem is not None
    assert reply.problem.code == "out_of_memory"
    assert caller.value("g") == base
    residents.resize(replace(residents.held, host=residents.held.host + 1_000_000))
    reply = caller.reply(Kind.WHAT_IF, "g", WhatIfArgs(scenarios=[Scenario(batch=[CLOSE] * 500)]))
    assert reply.problem is not None
    assert reply.problem.code == "out_of_memory"
    residents.resize(replace(residents.held, host=residents.held.host + held_bytes([CLOSED] * 500) + 10_000))
    many = WhatIfArgs(scenarios=[CLOSED] * 500, fields=frozenset({"value", "flow"}))
    assert [row.get("error") for row in caller.ask(Kind.WHAT_IF, "g", many)["answers"]] == [None] * 500
    residents.resize(replace(residents.held, host=residents.held.host + 20_000))
    for _ in range(10):  # what one took is given back
        assert answer(caller, submit(caller, AS_IT_IS, CLOSED))["answers"][0]["change"] == 0


def test_scenarios_are_read_one_by_one_and_nothing_is_looked_through_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred thousand at once, and the collector all the while, kept every caller of the worker waiting: no other
    thread runs during either."""
    said = WhatIfArgs(scenarios=[CLOSED] * 20_000).model_dump(mode="json")
    whole = WhatIfArgs.model_validate(said)
    read, at_once, collections = WhatIfArgs.model_validate, list[int](), list[str]()

    def noted(given: Any) -> WhatIfArgs:
        at_once.append(len(given["scenarios"]))
        return read(given)

    monkeypatch.setattr(WhatIfArgs, "model_validate", noted)
    gc.callbacks.append(lambda phase, _: collections.append(phase))
    try:
        args = read_args(said)
    finally:
        gc.callbacks.pop()
    assert args == whole
    assert at_once == [0]
    assert len(collections) < 10  # once all are there
    assert gc.isenabled()


def test_what_fails_as_it_gives_back_is_forgotten_all_the_same(
    caller: Caller, start_worker: StartWorker, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.set()
    start_worker(open_engine=Gated, queue_limit=2)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    at_work = Residents.at_work

    @contextmanager
    def fails(residents: Residents, name: str, *about: Any, **more: Any) -> Iterator[None]:
        with at_work(residents, name, *about, **more):
            yield
        if " " in name:
            raise RuntimeError("it cannot be given back")

    monkeypatch.setattr(Residents, "at_work", fails)
    for _ in range(4):  # more than the worker takes at a time
        assert answer(caller, submit(caller, CLOSED))["answers"][0]["change"] < 0


def test_an_answer_that_grows_too_long_is_refused(
    asked: Caller, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.set()
    monkeypatch.setattr(rows, "MOST_BYTES", 1000)
    reply = asked.reply(Kind.WHAT_IF, "g", WhatIfArgs(scenarios=[CLOSED] * 50))
    assert reply.problem is not None
    assert (reply.problem.code, reply.problem.field) == ("too_large", "/fields")
    assert len(answer(asked, submit(asked, CLOSED))["answers"]) == 1
