"""Which pairs a worker gives to a device, and what it counts for them. There is no device here: a seat that notes what
it is asked stands for one, and tests/gpu/test_pair_kernel.py has the real one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.errors import OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.generators import grid
from gpu_engine.networks.network import Network
from gpu_engine.pairs.solver import PairSolver, Seat
from gpu_engine.types import UnitArray, VertexArray
from service.protocol import Kind, PairsArgs
from service.worker.process import Worker
from service.worker.questions import pairs
from tests.service_fixtures import Caller, StartWorker
from tests.serving import eventually

GRID = grid(seed=1, rows=40, columns=40)
BUDGET, SEAT = 10**9, 10**8


class Noted:
    """What the seat of a device was made with, and the pairs that it was given at once."""

    def __init__(self) -> None:
        self.nbytes: list[int] = []
        self.counts: list[int] = []
        self.promised: list[Footprint] = []
        self.fails = False
        self.residents: Callable[[], Footprint] = Footprint

    def seat(self, solver: PairSolver, host: Seat, nbytes: int) -> "Noted":
        self.nbytes.append(nbytes)
        if self.fails:
            raise OutOfMemory("too little")
        self.host = host
        return self

    def values(self, sources: VertexArray, sinks: VertexArray, control: Control) -> UnitArray:
        self.counts.append(len(sources))
        self.promised.append(self.residents())
        return self.host.values(sources, sinks, control)


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    found = Noted()

    def needed(network: Network) -> int:
        return SEAT

    monkeypatch.setattr(pairs, "device_seat", found.seat)
    monkeypatch.setattr(pairs, "device_seat_nbytes", needed)
    return found


@pytest.fixture
def worker(caller: Caller, start_worker: StartWorker, noted: Noted) -> Worker:
    worker = start_worker(engine="auto", device_budget_bytes=BUDGET)
    caller.wait_ready()
    residents = worker.graphs.residents
    residents.resize(Footprint(residents.budget.host, BUDGET))
    noted.residents = lambda: residents.budget - residents.unused
    caller.load("g", GRID)
    return worker


def args(count: int, **more: Any) -> PairsArgs:
    rng = np.random.default_rng(count)
    source = rng.integers(0, 800, count)
    return PairsArgs(
        source=source.tolist(), sink=(source + 1 + rng.integers(0, 700, count)).tolist(), most=10**6, **more
    )


def values(caller: Caller, asked: PairsArgs) -> list[Any]:
    return [row["value"] for row in caller.ask(Kind.PAIRS, "g", asked)["answers"]]


def test_many_values_are_a_device_s_work(caller: Caller, worker: Worker, noted: Noted) -> None:
    asked = args(pairs.DEVICE_FROM)
    found = values(caller, asked)
    assert (noted.nbytes, noted.counts) == ([SEAT], [pairs.DEVICE_FROM]), "they are asked for at once"
    assert noted.promised[0].device == SEAT
    eventually(lambda: worker.graphs.residents.unused.device == BUDGET)  # what was promised is given back
    worker.graphs.residents.resize(Footprint(worker.graphs.residents.budget.host))
    assert values(caller, asked) == found
    assert len(noted.counts) == 1


def test_few_pairs_and_whole_answers_stay_on_the_host(caller: Caller, worker: Worker, noted: Noted) -> None:
    values(caller, args(pairs.DEVICE_FROM - 1))
    caller.ask(Kind.PAIRS, "g", PairsArgs(source=[0], sink=[9], most=9, fields=frozenset({"value", "cut"})))
    assert noted.nbytes == []


def test_a_question_takes_a_share_and_none_that_others_hold(caller: Caller, worker: Worker, noted: Noted) -> None:
    residents = worker.graphs.residents
    residents.resize(Footprint(residents.budget.host, SEAT))
    values(caller, args(pairs.DEVICE_FROM))
    assert noted.nbytes == [SEAT // pairs.DEVICE_SHARE]
    with residents.at_work("other"):
        residents.promise("other", Footprint(device=SEAT - 1))
        values(caller, args(pairs.DEVICE_FROM))
    assert len(noted.nbytes) == 1


def test_a_device_that_is_too_small_leaves_them_to_the_host(caller: Caller, worker: Worker, noted: Noted) -> None:
    noted.fails = True
    found = values(caller, args(pairs.DEVICE_FROM))
    assert (len(found), noted.nbytes, noted.counts) == (pairs.DEVICE_FROM, [SEAT], [])


def test_a_worker_of_the_cpu_engine_uses_no_device(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker(engine="cpu", device_budget_bytes=BUDGET)
    caller.wait_ready()
    assert worker.graphs.residents.budget.device == 0
