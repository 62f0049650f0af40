"""How the question for a circulation ends when something goes wrong in the worker."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_engine.checks.circulations import Barrier
from gpu_engine.circulations.solver import find_circulation
from gpu_engine.cpu.engine import CpuEngine
from service.protocol import CirculationArgs, Kind, Status
from service.worker.questions import circulation
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker

CAN = CirculationArgs(sources=[0], sinks=[3], min_demand=["5"], fields=frozenset({"flow"}))
CANNOT = CirculationArgs(sources=[0], sinks=[3], min_demand=["6"])


@pytest.fixture
def asked(caller: Caller, start_worker: StartWorker) -> Caller:
    start_worker(open_engine=CpuEngine)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    return caller


@pytest.mark.parametrize("args", [CAN, CANNOT])
def test_what_cannot_be_proven_is_not_answered(
    asked: Caller, monkeypatch: pytest.MonkeyPatch, args: CirculationArgs
) -> None:
    def wrong(*given: Any) -> Barrier | np.ndarray:
        found = find_circulation(*given)
        return replace(found, must=found.can or 0) if isinstance(found, Barrier) else found + 1

    assert asked.ask(Kind.CIRCULATION, "g", args)["feasible"] is (args is CAN)
    monkeypatch.setattr(circulation, "find_circulation", wrong)
    reply = asked.reply(Kind.CIRCULATION, "g", args)
    assert reply.problem is not None
    assert reply.problem.code == "engine_error"


def test_without_memory_nothing_is_solved_and_what_it_took_is_given_back(
    caller: Caller, start_worker: StartWorker
) -> None:
    worker = start_worker(open_engine=CpuEngine)
    caller.wait_ready()
    caller.load("g", diamond().edges)
    residents = worker.graphs.residents
    for more in (100, 600, 1200):
        residents.resize(replace(residents.held, host=residents.held.host + more))
        reply = caller.reply(Kind.CIRCULATION, "g", CANNOT)
        assert reply.problem is not None
        assert reply.problem.code == "out_of_memory"
    residents.resize(replace(residents.held, host=residents.held.host + 6000))
    for _ in range(10):
        assert caller.reply(Kind.CIRCULATION, "g", CAN).status is Status.SUCCEEDED
