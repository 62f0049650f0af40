"""Curves beside the lane of their graph, and how questions about limits end when something goes wrong."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_engine.checks.certificate import Certificate
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import FlowState, SolveReport
from gpu_engine.mincost.expansion import Expansion, cheapest_expansion
from gpu_engine.parametric import probes
from service.protocol import CapacityExpansionArgs, Kind, MaxFlowArgs, ParametricArgs, Status
from service.worker.questions import bottlenecks, capacity_expansion
from tests.graphs import diamond
from tests.service_fixtures import PATIENCE_S, Caller, StartWorker, result
from tests.serving import eventually

SCALED = ParametricArgs(edges=[3, 4], sources=[0], sinks=[3], last="3")
WIDER = CapacityExpansionArgs(raise_by="1", edges=[0, 3, 4], price=["1", "2", "3"], sources=[0], sinks=[3])


class Gated(CpuEngine):
    """Solves while the gate is open."""

    gate = threading.Event()
    reached = threading.Event()
    unproven = 0
    """So many proofs fail once the gate was reached."""
    control: Control | None = None
    """Of the solve that reached the gate."""

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        Gated.control = control
        self.reached.set()
        assert self.gate.wait(PATIENCE_S)
        return super().solve(state, control, cold=cold)

    def certificate(self, state: FlowState, *, complete: bool = True) -> Certificate:
        proof = super().certificate(state, complete=complete)
        if not self.reached.is_set() or not Gated.unproven:
            return proof
        Gated.unproven -= 1
        return replace(proof, valid=False)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch, start_worker: StartWorker) -> Iterator[threading.Event]:
    """Closed to the engines of curves; whatever waits at it goes on before the workers are stopped."""
    monkeypatch.setattr(probes, "CpuEngine", Gated)
    Gated.gate.clear()
    Gated.reached.clear()
    Gated.unproven = 0
    yield Gated.gate
    Gated.gate.set()


@pytest.fixture
def asked(caller: Caller, start_worker: StartWorker) -> Caller:
    start_worker(open_engine=CpuEngine)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    return caller


def answer(caller: Caller, job: str) -> dict[str, Any]:
    reply = caller.run(caller.dispatcher.wait(job, PATIENCE_S))
    assert reply is not None
    return result(reply)


def test_updates_go_on_while_a_curve_is_found(asked: Caller, gate: threading.Event) -> None:
    base = asked.value("g")
    job = asked.submit(Kind.PARAMETRIC, "g", SCALED)
    assert Gated.reached.wait(PATIENCE_S)
    assert asked.set("g", [3, 4], ["0", "0"])["version"] == 2
    assert asked.value("g") == 0
    gate.set()
    told = answer(asked, job)
    assert (told["version"], told["value"], told["segments"]["from"][0]) == (1, base, "0")
    assert told["segments"]["rate"][0] == base


def test_a_cancel_ends_a_curve(asked: Caller, gate: threading.Event) -> None:
    job = asked.submit(Kind.PARAMETRIC, "g", SCALED)
    assert Gated.reached.wait(PATIENCE_S)
    asked.run(asked.dispatcher.cancel(job))
    eventually(lambda: Gated.control is not None and Gated.control.cancelled)  # its worker hears of it a moment later
    gate.set()
    reply = asked.run(asked.dispatcher.wait(job, PATIENCE_S))
    assert reply is not None
    assert reply.status is Status.CANCELLED


def test_a_curve_begins_again_when_its_worker_is_left(
    caller: Caller, start_worker: StartWorker, gate: threading.Event
) -> None:
    gate.set()  # for the curve that a worker warms up with
    worker = start_worker(open_engine=CpuEngine)
    caller.wait_ready()
    gate.clear()
    Gated.reached.clear()
    caller.load("g", diamond().edges)
    job = caller.submit(Kind.PARAMETRIC, "g", SCALED)
    assert Gated.reached.wait(PATIENCE_S)
    caller.set("g", [0], ["1"])
    worker.stop()
    gate.set()
    eventually(lambda: not caller.run(caller.dispatcher.watch.workers())[0].alive)
    start_worker(open_engine=CpuEngine)
    assert answer(caller, job)["version"] == 2


def test_a_point_that_cannot_be_proven_is_solved_anew_and_then_refused(asked: Caller, gate: threading.Event) -> None:
    gate.set()
    Gated.reached.set()
    Gated.unproven = 1
    assert asked.reply(Kind.PARAMETRIC, "g", SCALED).status is not Status.SUCCEEDED  # what it begins from is not proven
    assert asked.ask(Kind.PARAMETRIC, "g", SCALED)["certificate"]["valid"]


def test_the_memory_of_a_curve_is_given_back(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker(open_engine=CpuEngine)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    base = caller.value("g", sources=[0], sinks=[3])
    residents = worker.graphs.residents
    residents.resize(replace(residents.held, host=residents.held.host + 100))
    reply = caller.reply(Kind.PARAMETRIC, "g", SCALED)
    assert reply.problem is not None
    assert reply.problem.code == "out_of_memory"
    assert caller.value("g", sources=[0], sinks=[3]) == base
    residents.resize(replace(residents.held, host=residents.held.host + 9000))
    for _ in range(10):
        assert caller.ask(Kind.PARAMETRIC, "g", SCALED)["complete"]


def test_what_cannot_be_proven_is_not_answered(asked: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def unproven(*given: Any) -> Expansion:
        found = cheapest_expansion(*given)
        return replace(found, proof=replace(found.proof, failures=("it could be had for less",)))

    assert asked.ask(Kind.CAPACITY_EXPANSION, "g", WIDER)["certificate"]["valid"]
    monkeypatch.setattr(capacity_expansion, "cheapest_expansion", unproven)
    reply = asked.reply(Kind.CAPACITY_EXPANSION, "g", WIDER)
    assert reply.problem is not None
    assert reply.problem.code == "engine_error"


def test_without_memory_nothing_is_widened(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker(open_engine=CpuEngine)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    caller.value("g", sources=[0], sinks=[3])
    residents = worker.graphs.residents
    residents.resize(replace(residents.held, host=residents.held.host + 3000))
    reply = caller.reply(Kind.CAPACITY_EXPANSION, "g", WIDER)
    assert reply.problem is not None
    assert reply.problem.code == "out_of_memory"


def test_a_cancel_between_two_bottlenecks(asked: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was promised to the trials is given back."""
    begun, go_on = threading.Event(), threading.Event()
    first = bottlenecks.Trials.edge

    def edge(trials: bottlenecks.Trials, row: int) -> int:
        if not begun.is_set():
            begun.set()
            assert go_on.wait(PATIENCE_S)
            eventually(lambda: bool(trials.control.cancelled))  # its worker hears of it a moment later
        return first(trials, row)

    monkeypatch.setattr(bottlenecks.Trials, "edge", edge)
    asked.set("g", [3], ["1"])  # what leads to the sink is the only minimum cut
    args = MaxFlowArgs(sources=[0], sinks=[3], fields=frozenset({"bottlenecks"}), up_to=5)
    job = asked.submit(Kind.MAX_FLOW, "g", args)
    assert begun.wait(PATIENCE_S)
    asked.run(asked.dispatcher.cancel(job))
    go_on.set()
    reply = asked.run(asked.dispatcher.wait(job, PATIENCE_S))
    assert reply is not None
    assert reply.status is Status.CANCELLED
    told = asked.ask(Kind.MAX_FLOW, "g", args)["bottlenecks"]
    assert len(told["up_to"]) == len(told["edges"]) > 0


def test_arguments_of_today_are_read_by_the_release_before() -> None:
    assert b"up_to" not in MaxFlowArgs().to_json()
    assert b"up_to" in MaxFlowArgs(up_to=1).to_json()
    assert np.all([b"encoding" not in MaxFlowArgs().to_json(), b"npz" in MaxFlowArgs(encoding="npz").to_json()])
