"""Partitions in the worker: kept within bounds, forgotten, made anew, and proven before they are told."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gpu_engine.checks.partitions import prove_partition
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Cancelled, CapacityOverflow, OutOfMemory
from gpu_engine.footprint import Footprint, unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.partition import multilevel
from gpu_engine.partition.problem import Question, limit_of
from gpu_engine.partition.resident import Report, ResidentPartition
from service.protocol import Kind, PartitionArgs, Status
from service.store.graphs import Catalogue
from service.worker.process import Worker
from service.worker.questions import partition
from service.worker.questions.partition import MAX_PARTITIONS
from tests.service_fixtures import Caller, StartWorker

TWO = PartitionArgs(k=2, epsilon="0.2")


def two_rings() -> EdgeList:
    """
    ::

        0 - 1 - ... - 9 - 0      and      10 - 11 - ... - 19 - 10,  both of 5, and 0 - 10 of 1 between them
    """
    at = np.arange(10, dtype=np.int32)
    tail = np.concatenate([at, at + 10, [0]]).astype(np.int32)
    head = np.concatenate([(at + 1) % 10, (at + 1) % 10 + 10, [10]]).astype(np.int32)
    return EdgeList(20, tail, head, np.array([5] * 20 + [1]), undirected=True)


@pytest.fixture
def worker(caller: Caller, start_worker: StartWorker) -> Worker:
    worker = start_worker(open_engine=CpuEngine)
    caller.wait_ready()
    caller.load("g", two_rings())
    return worker


def test_it_is_kept_forgotten_and_made_anew(caller: Caller, worker: Worker) -> None:
    first = caller.ask(Kind.PARTITION, "g", TWO)
    assert (first["mode"], first["value"], first["n_vertices"]) == ("full", 1, [10, 10])
    assert caller.ask(Kind.PARTITION, "g", TWO)["mode"] == "unchanged"
    caller.set("g", [20], ["3"])
    after = caller.ask(Kind.PARTITION, "g", TWO)
    assert (after["mode"], after["value"], after["moved"]) == ("incremental", 3, 0)
    residents = worker.graphs.residents
    held = residents.held
    for seed in range(1, MAX_PARTITIONS + 1):
        caller.ask(Kind.PARTITION, "g", TWO.model_copy(update={"seed": seed, "k": 1}))
    graph = residents.get("g")
    assert graph is not None
    assert len(graph.partitions) == MAX_PARTITIONS
    assert residents.held.host > held.host
    assert caller.ask(Kind.PARTITION, "g", TWO)["mode"] == "full"
    residents.drop("g")  # as after a restart
    assert caller.ask(Kind.PARTITION, "g", TWO)["mode"] == "full"


def test_what_the_graph_takes_with_them_is_told(caller: Caller, worker: Worker) -> None:
    """It was told with the next flow state alone, whenever that came."""
    catalogue = Catalogue(caller.dispatcher.client, caller.dispatcher.keys)
    worker.graphs.look_after()  # as its heartbeat does
    caller.ask(Kind.PARTITION, "g", TWO)
    worker.graphs.look_after()
    info, graph = caller.run(catalogue.get("g")), worker.graphs.residents.get("g")
    assert info is not None
    assert graph is not None
    assert info.bytes == graph.footprint.host
    assert info.measured_at is not None
    assert info.measured_at > info.updated_at


def test_older_partitions_give_way(caller: Caller, worker: Worker) -> None:
    """Once there is no room for another flow state, the least recently used partition goes."""
    caller.ask(Kind.PARTITION, "g", TWO)
    graph = worker.graphs.residents.get("g")
    assert graph is not None
    assert not graph.states
    assert graph.close_oldest()
    assert not graph.partitions
    assert not graph.close_oldest()


def test_without_memory_there_is_none(caller: Caller, worker: Worker) -> None:
    residents = worker.graphs.residents
    residents.resize(replace(residents.held, host=residents.held.host + 10_000))
    reply = caller.reply(Kind.PARTITION, "g", TWO)
    assert reply.problem is not None
    assert reply.problem.code == "out_of_memory"
    residents.resize(replace(residents.held, host=residents.held.host + (1 << 30)))
    assert caller.reply(Kind.PARTITION, "g", TWO).status is Status.SUCCEEDED


@pytest.mark.parametrize("times", [1, 2])
def test_what_cannot_be_proven_is_not_answered(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """A partition that fails its check is made from nothing; one that fails again is a fault."""
    caller.ask(Kind.PARTITION, "g", TWO)
    caller.set("g", [20], ["2"])
    left = [times]

    def wrong(*given: Any) -> Any:
        left[0] -= 1
        *columns, (cut, weights) = given
        return prove_partition(*columns, (cut + 1, weights)) if left[0] >= 0 else prove_partition(*given)

    monkeypatch.setattr(partition, "prove_partition", wrong)
    reply = caller.reply(Kind.PARTITION, "g", TWO)
    assert (reply.status is Status.SUCCEEDED) is (times == 1)
    assert worker.graphs.counters["certificate_failures"] == times
    if times == 2:
        assert reply.problem is not None
        assert reply.problem.code == "engine_error"
    assert caller.ask(Kind.PARTITION, "g", TWO)["mode"] == ("unchanged" if times == 1 else "full")


class Device:
    """Stands for one on a device: the second time there is not enough memory."""

    def __init__(self, question: Question) -> None:
        self.question, self._inner = question, ResidentPartition(question)
        self._brought = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def footprint(self) -> Footprint:
        return Footprint(0, 1000)

    def bring(self, *given: Any) -> Report:
        self._brought += 1
        if self._brought > 1:
            raise OutOfMemory("the device is full")
        return self._inner.bring(*given)


@pytest.mark.parametrize(
    ("needed", "budget", "there"), [(1000, 2000, True), (3000, 2000, False), (0, 2000, False), (9, 0, False)]
)
def test_a_device_keeps_it_where_there_is_room(
    caller: Caller, worker: Worker, monkeypatch: pytest.MonkeyPatch, needed: int, budget: int, there: bool
) -> None:
    """And where the device becomes full the host makes it anew."""
    residents = worker.graphs.residents
    residents.resize(replace(residents.budget, device=budget))
    opened: list[Device] = []

    def on_device(question: Question) -> Device:
        found = Device(question)
        opened.append(found)
        return found

    monkeypatch.setattr(partition, "device_partition_nbytes", lambda network, k: needed)
    monkeypatch.setattr(partition, "device_partition", on_device)
    assert caller.ask(Kind.PARTITION, "g", TWO)["mode"] == "full"
    assert bool(opened) is there
    assert residents.held.device == (1000 if there else 0)
    caller.set("g", [20], ["3"])
    after = caller.ask(Kind.PARTITION, "g", TWO)
    assert (after["mode"], after["value"]) == ("full" if there else "incremental", 3)
    assert residents.held.device == 0


def test_the_checker_sees_what_is_wrong() -> None:
    network, one = Network(two_rings()), np.ones(20, np.int64)
    part = (np.arange(20) // 10).astype(np.int32)
    weights = np.array([10, 10])
    assert prove_partition(network, network.capacity, one, part, 2, (1, weights)).valid
    for claimed in ((2, weights), (1, weights + 1)):
        assert not prove_partition(network, network.capacity, one, part, 2, claimed).valid
    for wrong in (part + 1, part - 1, part[1:]):
        assert not prove_partition(network, network.capacity, one, wrong, 2, (1, weights)).valid


def test_a_cancel_kills_the_process_and_bad_ends_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    control, network = Control(), Network(two_rings())
    control.cancel()
    with pytest.raises(Cancelled):
        ResidentPartition(Question(2, Fraction("0.03"))).bring(network, np.ones(20, np.int64), control, unlimited)
    for answer, expected in (
        ((b"", -11), RuntimeError),
        ((b"NO_MEMORY\n", 0), OutOfMemory),
        ((b"OK\n1234", 0), RuntimeError),
    ):
        monkeypatch.setattr(multilevel, "run", lambda *_, answer=answer: answer)
        with pytest.raises(expected):
            ResidentPartition(Question(2, Fraction("0.03"))).bring(network, np.ones(20, np.int64), Control(), unlimited)


def test_a_partition_that_takes_more_memory_than_was_reckoned_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub network took 1.1 times what was reckoned, which METIS says on its standard error alone. Here too little is
    reckoned for any network."""
    asked: list[int] = []
    rng = np.random.default_rng(5)
    tail, head = rng.integers(0, 3000, (2, 90_000)).astype(np.int32)
    network = Network(EdgeList(3000, tail, head, np.ones(90_000, np.int64)))
    monkeypatch.setattr(multilevel, "SLACK_BYTES", 0)
    for name in ("SLOT_BYTES", "VERTEX_BYTES"):
        monkeypatch.setattr(multilevel, name, getattr(multilevel, name) // 4)
    found = ResidentPartition(Question(3, Fraction("0.03")))
    found.bring(network, None, Control(), lambda needed: asked.append(needed.host))
    assert len(asked) > 1
    assert found.part_weight.max() <= found.limit
    monkeypatch.setattr(multilevel, "MULTIPLES", (1,))
    with pytest.raises(OutOfMemory):
        ResidentPartition(Question(3, Fraction("0.03"))).bring(network, None, Control(), unlimited)


def test_what_metis_prints_is_no_part_of_its_answer() -> None:
    """It does where hardly a vertex weighs anything: "You are trying to partition a graph into too many parts"."""
    weight = (np.arange(20) == 0).astype(np.int64)
    found = ResidentPartition(Question(5, Fraction("0.03")))
    found.bring(Network(two_rings()), weight, Control(), unlimited)
    assert sorted(found.part_weight.tolist()) == [0, 0, 0, 0, 1]
    assert set(found.part.tolist()) <= set(range(5))


def test_memory_is_asked_for_before_it_is_taken() -> None:
    asked: list[int] = []

    def room(needed: Footprint) -> None:
        asked.append(needed.host)

    found = ResidentPartition(Question(2, Fraction("0.03")))
    found.bring(Network(two_rings()), np.ones(20, np.int64), Control(), room)
    assert asked[0] > multilevel.PROCESS_BYTES + found.nbytes


def test_sums_that_do_not_fit_are_refused() -> None:
    weight = np.full(20, 1 << 57)
    with pytest.raises(CapacityOverflow, match="the vertices weigh"):
        ResidentPartition(Question(2, Fraction("0.03"))).bring(Network(two_rings()), weight, Control(), unlimited)


def test_limits() -> None:
    assert [limit_of(100, 3, Fraction(epsilon)) for epsilon in ("0", "0.03", "0.5", "1")] == [34, 34, 50, 66]
    assert limit_of(1 << 60, 2, Fraction("0.03")) == (1 << 59) * 103 // 100
