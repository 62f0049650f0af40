"""What does not fit is refused with the numbers; what is idle gives way and comes back."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest

from gpu_engine.auto import AutoEngine
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Counts, Footprint, Room, on_cpu, unlimited
from gpu_engine.formats import pack
from gpu_engine.generators import grid
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.types import MAX_VERTICES
from service.protocol import CapacitiesArgs, Kind, LoadArgs, MatchingArgs, MaxFlowArgs, Reply
from service.settings import Settings
from service.store.connection import connect
from service.worker import json_writer, saving
from service.worker import process as worker_module
from service.worker.graph import Graph, NotProven
from tests.service_fixtures import Caller, StartWorker, code_of

GRID = grid(rows=60, columns=60, seed=1)
NEEDS = on_cpu(Network(GRID).counts)
AT_REST = NEEDS.network + Footprint(5_000 + GRID.n_edges)
"""Of the graph in a worker, names of some updates included."""


class OnDevice(CpuEngine):
    """As if all but the network were on a device; an update takes nothing."""

    name = "device"

    def __init__(self, network: Network, room: Room = unlimited) -> None:
        super().__init__(network)
        self._room = lambda needed: room(Footprint(0, needed.host))
        room(Footprint(device=1000))

    @property
    def nbytes(self) -> int:
        return self.network.nbytes

    @property
    def device_nbytes(self) -> int:
        return 1000 + sum(state.nbytes for state in self._states)


def open_on_device(network: Network, *, room: Room = unlimited) -> OnDevice:
    return OnDevice(network, room)


def problem(caller: Caller, kind: Kind, graph: str, args: LoadArgs | MaxFlowArgs) -> str:
    reply: Reply = caller.reply(kind, graph, args)
    assert reply.problem is not None, reply
    assert reply.problem.code == "out_of_memory"
    return reply.problem.detail


@pytest.mark.parametrize("n_vertices", [MAX_VERTICES, 200_000_000])
def test_many_vertices_in_a_few_bytes_are_refused(caller: Caller, start_worker: StartWorker, n_vertices: int) -> None:
    """Found by hand: a body of 70 bytes had the kernel kill the worker, time after time."""
    start_worker()
    caller.wait_ready()
    ends = np.array([0], np.int32), np.array([1], np.int32)
    blob = caller.run(caller.dispatcher.blobs.put(pack(EdgeList(n_vertices, *ends, np.array([1], np.int64)))))
    needed = on_cpu(Counts(n_vertices, 1, 2)).of_one_state.host + 1
    detail = problem(caller, Kind.LOAD, "g", LoadArgs(blob=blob))
    budget = Settings().host_budget
    said = f"{needed} more bytes of host memory are needed, 0 of {budget} are in use; 1 edge joins few of these"
    assert detail.startswith(said)
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())) == "unknown_graph"


def test_flow_states_give_way_when_memory_is_short(caller: Caller, start_worker: StartWorker) -> None:
    budget = (AT_REST + NEEDS.scratch).host + 3 * NEEDS.state.host
    worker = start_worker(memory_budget_bytes=budget)
    caller.wait_ready()
    caller.load("g", GRID)
    for source in range(12):
        caller.value("g", sources=[source], sinks=[3599])
    (graph,) = worker.graphs.residents.all()
    assert len(graph.states) == 3
    assert worker.graphs.residents.held.host <= budget


def test_a_solve_without_working_memory_is_refused_and_the_graph_stays(
    caller: Caller, start_worker: StartWorker
) -> None:
    worker = start_worker(memory_budget_bytes=(AT_REST + NEEDS.state + NEEDS.scratch).host - 20_000)
    caller.wait_ready()
    caller.load("g", GRID)
    detail = problem(caller, Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[0], sinks=[3599]))
    assert detail.startswith(f"{NEEDS.scratch.host} more bytes of host memory are needed")
    (graph,) = worker.graphs.residents.all()
    assert not graph.states
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs(limit=1))["version"] == 1
    assert caller.set("g", [0], ["7"])["version"] == 2


@pytest.mark.parametrize(("field", "needed"), [("flow", NEEDS.flow), ("cut", NEEDS.cut)])
def test_an_answer_without_room_is_refused_with_the_numbers(
    caller: Caller, start_worker: StartWorker, field: str, needed: Footprint
) -> None:
    """Found by attack: the answer with 20 million edge flows took 5 GB, and 588 MB were counted."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", GRID)
    ask = MaxFlowArgs.model_validate({"sources": [0], "sinks": [3599], "fields": ["value", field]})
    value = caller.ask(Kind.MAX_FLOW, "g", ask)["value"]
    held, residents = worker.graphs.residents.held, worker.graphs.residents
    residents.resize(held + needed - Footprint(1))
    assert problem(caller, Kind.MAX_FLOW, "g", ask).startswith(f"{needed.host} more bytes of host memory are needed")
    assert caller.value("g", sources=[0], sinks=[3599]) == value
    residents.resize(held + needed)
    assert caller.ask(Kind.MAX_FLOW, "g", ask)["value"] == value
    assert residents.held == held


def test_an_answer_counts_while_it_is_written(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", GRID)
    in_use: list[int] = []
    pieces = json_writer.pieces

    def watched(value: object, **options: bool) -> Iterator[bytes]:
        in_use.append(worker.graphs.residents._in_use.host)
        yield from pieces(value, **options)

    monkeypatch.setattr(json_writer, "pieces", watched)
    for fields in (["value"], ["flow"]):
        args = MaxFlowArgs.model_validate({"sources": [0], "sinks": [3599], "fields": fields})
        caller.ask(Kind.MAX_FLOW, "g", args)
    held = worker.graphs.residents.held.host
    assert [now - held for now in in_use] == [0, 2 * (8 * GRID.n_edges + 16)]  # a source and a sink give and get


def test_an_answer_that_is_cancelled_while_it_is_written_leaves_nothing(
    caller: Caller, start_worker: StartWorker, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = start_worker()._consumer._control
    caller.wait_ready()
    caller.load("g", grid(rows=200, columns=200, seed=1))
    client = connect(settings)
    blobs = set(client.scan_iter(f"{settings.redis_prefix}blob:*"))
    pieces = json_writer.pieces

    def slowly(value: object, **options: bool) -> Iterator[bytes]:
        for i, piece in enumerate(pieces(value, **options)):
            if i == 3:
                caller_cancels.set()
                cancelled.wait(30)
            yield piece

    caller_cancels, cancelled = threading.Event(), threading.Event()
    monkeypatch.setattr(json_writer, "pieces", slowly)
    monkeypatch.setattr(control, "_on_cancel", _then(control._on_cancel, cancelled))
    args = MaxFlowArgs.model_validate({"sources": [0], "sinks": [39_999], "fields": ["flow"], "zeros": True})
    job_id = caller.submit(Kind.MAX_FLOW, "g", args)
    assert caller_cancels.wait(30)
    caller.run(caller.dispatcher.cancel(job_id))
    assert code_of(lambda: caller.run(caller.dispatcher.wait(job_id, 30))) == "cancelled"
    assert set(client.scan_iter(f"{settings.redis_prefix}blob:*")) == blobs
    client.close()


def _then(work: Callable[..., None], done: threading.Event) -> Callable[..., None]:
    def both(*args: object) -> None:
        work(*args)
        done.set()

    return both


def test_an_update_is_kept_even_if_its_solve_has_no_room(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker(memory_budget_bytes=1 << 30)
    caller.wait_ready()
    caller.load("g", GRID)
    rows = list(range(0, GRID.n_edges, 7))
    before = caller.value("g", sources=[0], sinks=[3599])
    held = worker.graphs.residents.held
    worker.graphs.residents.resize(held + Footprint(2_000 + 16 * len(rows)))
    (state,) = caller.set("g", rows, ["0"] * len(rows))["flow_states"]
    assert (state["mode"], state["value"]) == ("pending", None)
    worker.graphs.residents.resize(Footprint(1 << 30))
    assert caller.value("g", sources=[0], sinks=[3599]) < before


def test_a_load_may_take_the_place_of_the_graph_it_replaces(caller: Caller, start_worker: StartWorker) -> None:
    start_worker(memory_budget_bytes=(AT_REST + NEEDS.state + NEEDS.scratch).host)
    caller.wait_ready()
    for version in range(2):
        caller.load("g", GRID)
        assert caller.value("g", sources=[0], sinks=[3599]) > 0, version


@pytest.mark.parametrize("updates", [3, 10])
def test_what_would_be_long_to_replay_has_a_snapshot_before_it_gives_way(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch, updates: int
) -> None:
    monkeypatch.setattr(saving, "REPLAYED_AT_ONCE", 10)
    worker = start_worker(memory_budget_bytes=2 * NEEDS.network.host)
    caller.wait_ready()
    caller.load("a", GRID)
    for amount in range(updates):
        caller.set("a", [0], [str(amount)])
    caller.load("b", GRID)
    assert [graph.name for graph in worker.graphs.residents.all()] == ["b"]
    assert worker.graphs.counters.get("snapshots_written", 0) == (updates >= 10)
    page = caller.ask(Kind.CAPACITIES, "a", CapacitiesArgs(limit=1))
    assert (page["version"], page["capacity"]) == (1 + updates, [updates - 1])


def test_graphs_give_way_on_the_device(caller: Caller, start_worker: StartWorker) -> None:
    one = 1000 + (NEEDS.state + NEEDS.scratch).host
    worker = start_worker(open_engine=open_on_device, device_budget_bytes=one + 500)
    caller.wait_ready()
    worker.graphs.residents.resize(Footprint(1 << 30, one + 500))
    values = []
    for name in ("a", "b", "a"):
        if len(values) < 2:
            caller.load(name, GRID)
        values.append(caller.value(name, sources=[0], sinks=[3599]))
        assert worker.graphs.residents.held.device <= one
    assert values[0] == values[1] == values[2]
    assert worker.graphs.counters["graphs_spilled"] == 2
    worker.graphs.residents.resize(Footprint(1 << 30, one - 500))
    detail = problem(caller, Kind.MAX_FLOW, "b", MaxFlowArgs(sources=[1], sinks=[3599]))
    assert "bytes of device memory are needed" in detail


@pytest.mark.parametrize(("stated", "budget"), [(0, 400), (70, 70)])
def test_workers_share_a_device(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch, stated: int, budget: int
) -> None:
    monkeypatch.setattr(worker_module, "device_bytes", lambda choice: 1000)
    start_worker(workers=2, device_budget_bytes=stated)
    caller.wait_ready()
    (report,) = caller.run(caller.dispatcher.watch.workers())
    assert (report.budget_bytes, report.device_budget_bytes, report.device_bytes) == (Settings().host_budget, budget, 0)


def test_a_network_too_large_for_the_device_stays_on_the_host(caller: Caller, start_worker: StartWorker) -> None:
    def try_both(network: Network, *, room: Room = unlimited) -> AutoEngine:
        return AutoEngine(network, partial(CpuEngine, room=room), partial(OnDevice, room=room))

    worker = start_worker(open_engine=try_both)
    caller.wait_ready()
    caller.load("g", GRID)
    worker.graphs.residents.resize(Footprint(1 << 30, 2000))
    answer = caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[0], sinks=[3599]))
    assert answer["engine"] == "cpu"
    assert "cpu alone can hold the network" in answer["reason"]
    assert "1000 of 2000 are in use" in answer["reason"]
    assert worker.graphs.residents.held.device == 0


def test_an_undirected_graph_is_copied_for_a_matching_only_if_both_fit(
    caller: Caller, start_worker: StartWorker
) -> None:
    """Every left vertex meets every right one: 60 and 60."""
    tail, head = np.repeat(np.arange(60, dtype=np.int32), 60), np.tile(np.arange(60, 120, dtype=np.int32), 60)
    edges = EdgeList(120, tail, head, np.ones(3600, np.int64), undirected=True)
    needs = on_cpu(Network(edges).counts)
    budget = needs.network + needs.state + needs.scratch + Footprint(20_000)
    start_worker(memory_budget_bytes=budget.host)
    caller.wait_ready()
    caller.load("g", edges)
    left = MatchingArgs(left=list(range(60)))
    assert code_of(lambda: caller.reply(Kind.MATCHING, "g", left)) == "out_of_memory"
    assert caller.value("g", sources=[0], sinks=[119]) == 60


@pytest.mark.parametrize("kind", [Kind.MAX_FLOW, Kind.MATCHING])
def test_the_time_limit_holds_while_a_graph_waits_for_memory(
    caller: Caller, start_worker: StartWorker, kind: Kind
) -> None:
    """Found by review: a graph that had given way waited for the others for as long as they took."""
    worker = start_worker(memory_budget_bytes=AT_REST.host * 3 // 2)
    caller.wait_ready()
    for name in ("a", "b"):
        caller.load(name, GRID)
    assert [graph.name for graph in worker.graphs.residents.all()] == ["b"]
    args = MaxFlowArgs(time_limit_s=0.1) if kind is Kind.MAX_FLOW else MatchingArgs(time_limit_s=0.1)
    with worker.graphs.residents.at_work("b"):
        assert code_of(lambda: caller.reply(kind, "a", args)) == "timeout"


def test_solves_that_were_cancelled_leave_no_promises(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by review: what each had been promised added up, until the other flow states gave way."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", GRID)
    for source in range(4):
        caller.value("g", sources=[source], sinks=[3599])
    (graph,) = worker.graphs.residents.all()
    worker.graphs.residents.resize(graph.footprint + NEEDS.scratch + Footprint(5_000))

    def cancelled(*_: object, **__: object) -> None:
        worker.graphs.residents.take("g", NEEDS.scratch)
        raise Cancelled("just now")

    monkeypatch.setattr(Graph, "solve", cancelled)
    assert [state["mode"] for state in caller.set("g", [0], ["0"])["flow_states"]] == ["pending"] * 4
    assert len(graph.states) == 4


@pytest.mark.parametrize("error", [MemoryError("Unable to allocate"), NotProven("an arc is not saturated")])
def test_an_update_is_kept_if_its_solve_fails(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Found by review: it was refused after it had been committed."""
    start_worker()
    caller.wait_ready()
    caller.load("g", GRID)
    caller.value("g", sources=[0], sinks=[3599])
    with monkeypatch.context() as full:
        full.setattr(CpuEngine, "solve", Mock(side_effect=error))
        answer = caller.set("g", [0], ["0"])
    assert (answer["version"], answer["flow_states"][0]["mode"]) == (2, "pending")
    assert caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[0], sinks=[3599]))["version"] == 2


def test_a_load_in_the_place_of_another_counts_its_network_once(caller: Caller, start_worker: StartWorker) -> None:
    """Found by review: after a try without the device memory of the old graph, the new network was counted twice."""
    worker = start_worker(open_engine=open_on_device)
    caller.wait_ready()
    worker.graphs.residents.resize(Footprint(AT_REST.host * 3 // 2, 1500))
    caller.load("g", grid(rows=3, columns=3, seed=1))
    assert caller.load("g", GRID)["n_edges"] == GRID.n_edges


def test_flow_states_give_way_to_the_copy_for_a_matching(caller: Caller, start_worker: StartWorker) -> None:
    """Found by review: it was refused while older flow states of the same graph stayed."""
    tail, head = np.repeat(np.arange(60, dtype=np.int32), 60), np.tile(np.arange(60, 120, dtype=np.int32), 60)
    edges = EdgeList(120, tail, head, np.ones(3600, np.int64), undirected=True)
    needs = on_cpu(Network(edges).counts)
    reading = needs.flow + Footprint(32 * 3600)
    both = needs.network + needs.of_one_state + reading
    worker = start_worker(memory_budget_bytes=both.host + 3 * needs.state.host)
    caller.wait_ready()
    caller.load("g", edges)
    for source in range(3):
        caller.value("g", sources=[source], sinks=[119])
    (graph,) = worker.graphs.residents.all()
    assert len(graph.states) == 3
    assert caller.ask(Kind.MATCHING, "g", MatchingArgs(left=list(range(60))))["size"] == 60
    assert 0 < len(graph.states) < 3
    assert worker.graphs.residents.held == graph.footprint


def test_a_refusal_for_memory_leaves_the_idempotency_key_free(caller: Caller, start_worker: StartWorker) -> None:
    """Found by review: who made room and repeated the command under its key was refused for an hour."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", GRID)
    ask, budget = MaxFlowArgs(sources=[0], sinks=[3599]), worker.graphs.residents.budget
    worker.graphs.residents.resize(AT_REST)
    reply = caller.reply(Kind.MAX_FLOW, "g", ask, "key", "digest")
    assert reply.problem is not None
    assert reply.problem.code == "out_of_memory"
    worker.graphs.residents.resize(budget)
    assert caller.reply(Kind.MAX_FLOW, "g", ask, "key", "digest").problem is None
