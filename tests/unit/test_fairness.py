"""Graphs take turns: one with a long queue keeps no other waiting, and long work keeps no short work waiting."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

from gpu_engine.generators import grid
from gpu_engine.networks.edgelist import EdgeList
from service.protocol import Command, EmptyArgs, Kind, MaxFlowArgs, PatchArgs
from service.settings import Settings
from service.store.connection import connect
from service.store.graphs import Catalogue
from service.store.keys import Keys
from service.store.listed import SnapshotInfo
from service.store.snapshots import Capacities
from service.worker import saving
from service.worker.graph import Graph
from service.worker.graphs import Graphs
from service.worker.running import lanes as lanes_module
from service.worker.running.costs import IN_PROCESSES, KEPT, PER_ARC_S, TIMES, Costs
from service.worker.running.lanes import OVERRUNS, SHORT_S, SPARE, Lanes
from service.worker.saving import Saver
from tests.service_fixtures import Caller, StartWorker
from tests.unit.test_queue import wait_released

PATIENCE_S = 30.0
LONG_S = 10 * SHORT_S
SHORT_WAITS_S = 2.5
"""Ten times what docs/security.md says of short work beside any long work."""


class House:
    """Lanes whose long work lasts until it is told to end."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.go = threading.Event()
        self.lock = threading.Lock()
        self.running: set[str] = set()
        self.most = 0

    def long(self, lane: str, expected_s: float = LONG_S) -> None:
        def work() -> None:
            with self.lock:
                self.running.add(lane)
                self.most = max(self.most, len(self.running))
            self.go.wait(PATIENCE_S)
            with self.lock:
                self.running.remove(lane)

        self.lanes.put(lane, work, lambda: expected_s)

    def short(self, lane: str) -> threading.Event:
        done = threading.Event()
        self.lanes.put(lane, done.set)
        return done

    def runs(self, *lanes: str) -> bool:
        return eventually(lambda: self.running >= set(lanes))


@contextmanager
def house(threads: int) -> Iterator[House]:
    inside = House(Lanes(threads))
    try:
        yield inside
    finally:
        inside.go.set()
        inside.lanes.close()


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.001)
    return holds()


@pytest.mark.parametrize("expected_s", [0.0, LONG_S])
def test_lanes_take_turns(expected_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """One slot, 50 pieces of work for `a` and then one for `b`: b comes second or third, not last."""
    monkeypatch.setattr(lanes_module, "SPARE", 1)
    monkeypatch.setattr(lanes_module, "OVERRUNS", 0)
    lanes = Lanes(1)
    order: list[str] = []
    started, go, done = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        started.set()
        go.wait(PATIENCE_S)

    def put(lane: str, work: Callable[[], None]) -> None:
        lanes.put(lane, work, lambda: expected_s)

    put("a", first)
    assert started.wait(PATIENCE_S)
    for _ in range(50):
        put("a", lambda: order.append("a"))
    for name in ("b", "c"):
        put(name, lambda name=name: order.append(name))  # type: ignore[misc]
    put("z", done.set)
    go.set()
    assert done.wait(PATIENCE_S)
    lanes.close()
    assert max(order.index("b"), order.index("c")) <= 4


def test_work_that_was_done_with_what_was_before_it_takes_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five pieces of work for `a`, of which the first does three more, and ten for `b`: `a` is next, not fourth."""
    monkeypatch.setattr(lanes_module, "SPARE", 1)
    lanes = Lanes(1)
    order: list[str] = []
    started, go, done = threading.Event(), threading.Event(), threading.Event()
    answered: set[int] = set()

    def first() -> None:
        started.set()
        go.wait(PATIENCE_S)
        answered.update(range(3))

    lanes.put("a", first)
    assert started.wait(PATIENCE_S)
    for number in range(4):
        lanes.put("a", lambda: order.append("a"), is_done=partial(answered.__contains__, number))
    for _ in range(10):
        lanes.put("b", lambda: order.append("b"))
    lanes.put("z", lambda: None)
    lanes.put("b", done.set)
    go.set()
    assert done.wait(PATIENCE_S)
    lanes.close()
    assert order.count("a") == 1
    assert order.index("a") <= 2


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_long_work_has_its_slots_and_short_work_has_others(threads: int) -> None:
    names = [f"long {i}" for i in range(3 * threads)]
    with house(threads) as inside:
        for name in names:
            inside.long(name)
        assert inside.runs(*names[:threads])
        for i in range(20):
            assert inside.short(f"short {i}").wait(PATIENCE_S)
        assert inside.running == set(names[:threads])
        inside.go.set()
        assert eventually(lambda: all(inside.lanes.is_idle(name) for name in names))
        assert inside.most == threads


def test_work_that_turns_out_long_leaves_its_slot() -> None:
    """Before it did, short work waited for it; long work that was known to be long waits for it still."""
    names = [f"lie {i}" for i in range(SPARE + 3)]
    with house(2) as inside:
        for name in names:
            inside.long(name, expected_s=0.0)
        assert inside.runs(*names)
        inside.long("honest")
        began = time.monotonic()
        assert inside.short("short").wait(PATIENCE_S)
        assert time.monotonic() - began < 10 * SHORT_S
        assert inside.running == set(names)
    assert inside.lanes.is_idle("honest") or not inside.running


def test_what_may_turn_out_long_is_bounded_and_nothing_is_lost() -> None:
    threads, names = 2, [f"lie {i}" for i in range(40)]
    with house(threads) as inside:
        for name in names:
            inside.long(name, expected_s=0.0)
        assert eventually(lambda: len(inside.running) == threads + OVERRUNS + SPARE)
        late = inside.short("short")
        assert not late.wait(3 * SHORT_S)
        inside.go.set()
        assert late.wait(PATIENCE_S)
        assert eventually(lambda: all(inside.lanes.is_idle(name) for name in names))
        assert inside.most == threads + OVERRUNS + SPARE
        crews = [inside.lanes._short, inside.lanes._long]
        assert eventually(lambda: sum(len(crew.threads) for crew in crews) <= threads + SPARE)


def test_a_lane_is_in_order_whatever_its_work_is_expected_to_take() -> None:
    lanes = Lanes(3)
    order: list[int] = []
    done = threading.Event()
    for i in range(200):
        lanes.put("a", lambda i=i: order.append(i), lambda i=i: LONG_S * (i % 3))  # type: ignore[misc]
        lanes.put(f"other {i % 7}", lambda: None)
    lanes.put("a", done.set)
    assert done.wait(PATIENCE_S)
    lanes.close()
    assert order == list(range(200))


def test_work_that_raises_does_not_keep_its_lane() -> None:
    lanes = Lanes(1)

    def broken() -> None:
        raise RuntimeError("as if")

    lanes.put("a", broken)
    done = threading.Event()
    lanes.put("a", done.set)
    assert done.wait(PATIENCE_S)
    lanes.close()


def test_work_whose_time_cannot_be_guessed_is_done_all_the_same() -> None:
    """Else a command that nobody can make sense of would end each process that reads it."""
    lanes, done = Lanes(1), threading.Event()
    nonsense = command(Kind.PATCH, {"batch": [None]})
    lanes.put("a", done.set, lambda: Costs().expected_s(nonsense))
    assert done.wait(PATIENCE_S)
    lanes.close()


def command(kind: Kind, args: dict[str, object], graph: str = "g") -> Command:
    return Command(id="1", kind=kind, graph=graph, args=args, reply_to="r", created_at=0.0)


def question(source: int, **more: object) -> Command:
    return command(Kind.MAX_FLOW, MaxFlowArgs(sources=[source]).model_dump(mode="json") | more)


def patch(rows: int) -> Command:
    batch = [{"op": "close", "edges": list(range(rows)), "tail": None, "head": None, "amounts": None}]
    return command(Kind.PATCH, PatchArgs.model_validate({"batch": batch}).model_dump(mode="json"))


def test_a_question_that_was_asked_is_expected_to_be_short_and_a_new_one_is_not() -> None:
    costs = Costs({"g": 20_000_000}.get)
    assert costs.expected_s(question(0)) > SHORT_S
    costs.took(question(0), 1.5)
    assert costs.expected_s(question(0, min_version=7)) == 0.0
    assert costs.expected_s(question(1)) == 1.5
    assert costs.expected_s(question(1).model_copy(update={"graph": "small"})) == 0.0
    for _ in range(TIMES):
        costs.took(question(0), 2.5)
    assert costs.expected_s(question(0)) == 2.5
    assert costs.expected_s(question(1)) == 1.5
    for took_s in (0.001, *[2.5] * (TIMES - 1)):  # a busy machine makes short work long, but no long work short
        costs.took(question(0), took_s)
        assert costs.expected_s(question(0)) == 0.001
    costs.took(question(0), 2.5)
    assert costs.expected_s(question(0)) == 2.5
    many = question(0).model_copy(update={"args": {"sources": list(range(1000))}})
    assert costs.expected_s(many) == 1.5


def test_updates_are_told_apart_by_their_size() -> None:
    costs = Costs()
    assert costs.expected_s(patch(1)) == 0.0
    costs.took(patch(5), 0.01)
    costs.took(patch(100_000), 3.0)
    assert costs.expected_s(patch(7)) == 0.01
    assert costs.expected_s(patch(99_999)) == 3.0


def test_what_is_done_in_a_process_of_its_own_is_long_work_until_it_was_timed() -> None:
    """However small the graph is: the process has to start."""
    costs = Costs({"g": 4}.get)
    assert costs.expected_s(question(0)) < SHORT_S
    for kind in IN_PROCESSES:
        assert costs.expected_s(command(kind, {})) > SHORT_S
        costs.took(command(kind, {}), 0.02)
        assert costs.expected_s(command(kind, {"min_version": 2})) <= 0.02


def test_loads_and_snapshots_are_guessed_by_their_size() -> None:
    costs = Costs({"g": 100_000_000}.get)
    assert costs.expected_s(command(Kind.LOAD, {"blob": "b", "n_bytes": 100})) < SHORT_S
    assert costs.expected_s(command(Kind.LOAD, {"blob": "b", "n_bytes": 100_000_000})) > SHORT_S
    assert costs.expected_s(command(Kind.SNAPSHOT, {})) > SHORT_S
    assert costs.expected_s(command(Kind.CAPACITIES, {})) == 0.0


def test_what_is_remembered_is_bounded() -> None:
    costs = Costs()
    for i in range(KEPT + 100):
        costs.took(command(Kind.CAPACITIES, {}, f"g{i}"), 1.0)
    assert len(costs._took_s) == KEPT


@pytest.mark.parametrize("n_long", [2, 6])
def test_a_small_graph_is_answered_beside_large_ones(caller: Caller, start_worker: StartWorker, n_long: int) -> None:
    """Found by attack: with two threads, two cold solves kept a graph of one edge waiting for 38 s."""
    start_worker(threads=2)
    caller.wait_ready()
    one = EdgeList(2, np.array([0], np.int32), np.array([1], np.int32), np.array([4]), source=0, sink=1)
    caller.load("one", one)
    edges = grid(rows=600, columns=600, seed=3)  # some hundredths of a second for each question
    for i in range(n_long):
        caller.load(f"large {i}", edges)
    solves = [
        caller.submit(Kind.MAX_FLOW, f"large {i}", MaxFlowArgs(sources=[v], sinks=[edges.n_vertices - 1 - v]))
        for v in range(720 // n_long)  # what is not done in time is cancelled
        for i in range(n_long)
    ]
    waits = []
    for amount in range(20):
        began = time.monotonic()
        assert caller.set("one", [0], [str(amount)])["version"] == amount + 2
        assert caller.value("one") == amount
        waits.append(time.monotonic() - began)
        time.sleep(0.05)
    unfinished = 0
    for job_id in solves:
        job = caller.run(caller.dispatcher.cancel(job_id))
        unfinished += job is not None and job.finished_at is None
    assert unfinished, "the large graphs were done before anything was measured"
    print(f"{n_long} large graphs: the longest of {len(waits)} waits took {1e3 * max(waits):.0f} ms")
    assert max(waits) < SHORT_WAITS_S


def test_a_small_graph_is_restored_beside_large_ones(
    caller: Caller, start_worker: StartWorker, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = start_worker(threads=1)
    caller.wait_ready()
    large = [f"large {i}" for i in range(3)]
    for name in [*large, "small"]:
        caller.load(name, grid(rows=3, columns=3, seed=1))
    worker.stop()
    wait_released(settings)
    client, keys = connect(settings), Keys(settings.redis_prefix)
    for name in large:
        graph_id = client.hget(keys.names, name)
        assert isinstance(graph_id, bytes)
        client.hset(keys.graph(graph_id.decode()), "bytes", 10**10)
    client.close()
    go, restore = threading.Event(), Graphs.restore

    def slowly(graphs: Graphs, name: str, *, displaces: bool = True) -> None:
        if name in large:
            go.wait(PATIENCE_S)
        restore(graphs, name, displaces=displaces)

    monkeypatch.setattr(Graphs, "restore", slowly)
    try:
        start_worker(threads=1)
        assert eventually(lambda: any(worker.alive for worker in caller.run(caller.dispatcher.watch.workers())))
        assert caller.value("small", sources=[0], sinks=[8]) > 0
        assert not go.is_set()
    finally:
        go.set()
    caller.wait_ready()
    assert caller.value("large 2", sources=[0], sinks=[8]) > 0


def test_work_that_was_done_before_it_is_put_takes_no_turn() -> None:
    with house(1) as inside:
        inside.lanes.put("g", lambda: inside.long("never"), is_done=lambda: True)
        assert inside.lanes.is_idle("g")
        assert inside.short("g").wait(PATIENCE_S)
        assert inside.lanes.is_idle("never")


def test_a_question_that_is_answered_before_it_is_in_its_lane_keeps_no_other_from_its_answer(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader had lost the processor just then, and what came next was never answered."""
    start_worker()
    caller.wait_ready()
    caller.load("g", grid(rows=3, columns=3, seed=1))
    put = Lanes.put

    def late(lanes: Lanes, *piece: Any) -> None:
        time.sleep(0.02)
        put(lanes, *piece)

    monkeypatch.setattr(Lanes, "put", late)
    jobs = [caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[0], sinks=[8])) for _ in range(30)]
    replies = [caller.run(caller.dispatcher.wait(job, 10)) for job in jobs]
    assert None not in replies


def test_a_thread_that_cannot_be_started_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a container has as many as it may have: the lane stood still for good, whatever came later."""
    start, refused = threading.Thread.start, list[str]()

    def refuse(thread: threading.Thread) -> None:
        refused.append(thread.name)
        raise RuntimeError("can't start new thread")

    with house(1) as inside:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        first, other = inside.short("g"), inside.short("h")
        assert refused
        assert not first.is_set()
        monkeypatch.setattr(threading.Thread, "start", start)
        inside.lanes.look_again()
        assert first.wait(PATIENCE_S)
        assert other.wait(PATIENCE_S)


def test_a_question_does_not_wait_for_all_graphs_that_are_restored(
    caller: Caller, start_worker: StartWorker, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty thousand of them took half a minute after a restart, and another worker's graphs waited as well."""
    worker = start_worker(threads=1)
    caller.wait_ready()
    names = [f"g{number}" for number in range(2 * (OVERRUNS + SPARE))]
    for name in names:
        caller.load(name, grid(rows=3, columns=3, seed=1))
    worker.stop()
    wait_released(settings)
    begun: list[str] = []
    go, restore = threading.Event(), Graphs.restore

    def slowly(graphs: Graphs, name: str, *, displaces: bool = True) -> None:
        begun.append(name)
        go.wait(PATIENCE_S)
        restore(graphs, name, displaces=displaces)

    monkeypatch.setattr(Graphs, "restore", slowly)
    try:
        start_worker(threads=1)
        assert eventually(lambda: len(begun) > SPARE)
        time.sleep(2 * SHORT_S)
        (asked, *_) = [name for name in names if name not in begun]
        assert caller.value(asked, sources=[0], sinks=[8]) > 0
        assert not go.is_set()
        assert asked not in begun
    finally:
        go.set()
    caller.wait_ready()


def held_back(
    monkeypatch: pytest.MonkeyPatch, versions: Mapping[int, threading.Event] | None = None
) -> threading.Event:
    """Snapshots, or those of these versions, are written once the event is set. The event of a version is set when its
    snapshot would have been."""
    go, write = threading.Event(), Saver._write

    def slowly(saver: Saver, name: str, graph_id: str, epoch: int, taken: Capacities) -> SnapshotInfo:
        if versions is None or taken.version in versions:
            if versions is not None:
                versions[taken.version].set()
            go.wait(PATIENCE_S)
        return write(saver, name, graph_id, epoch, taken)

    monkeypatch.setattr(Saver, "_write", slowly)
    return go


def test_a_large_snapshot_keeps_nobody_waiting(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken in its graph's own lane, and written beside it, as long work. It has what was there when it was
    taken, and the updates since count towards the next one."""
    monkeypatch.setitem(PER_ARC_S, Kind.SNAPSHOT, 1.0)
    go = held_back(monkeypatch)
    worker = start_worker(threads=1, snapshot_every_updates=2)
    caller.wait_ready()
    graphs = worker.graphs.residents
    try:
        for name in ("a", "b", "c"):
            caller.load(name, grid(rows=3, columns=3, seed=1))
            assert [caller.set(name, [0], [str(amount)])["version"] for amount in range(3, 8)] == [2, 3, 4, 5, 6]
            assert caller.value(name, sources=[0], sinks=[8]) > 0
        assert not go.is_set()
        assert [graph.unsaved for graph in graphs.all()] == [5, 5, 5]
    finally:
        go.set()
    assert eventually(lambda: all(not graph.saving for graph in graphs.all()))
    catalogue = Catalogue(caller.dispatcher.client, caller.dispatcher.keys)
    for graph in graphs.all():
        listed = caller.run(catalogue.snapshots(graph.name))
        assert listed is not None
        versions = [snapshot.version for snapshot in listed]
        assert min(versions) in (3, 4)  # an update may be quicker than the lane, which takes the snapshot
        assert graph.unsaved == 6 - max(versions)  # on a slow machine the next one has followed


def test_what_waits_to_be_written_is_bounded(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One snapshot may always be taken; another one that would be too much is taken later."""
    monkeypatch.setattr(saving, "MOST_TAKEN_BYTES", 10)
    go = held_back(monkeypatch)
    worker = start_worker(threads=4, snapshot_every_updates=1)
    caller.wait_ready()
    try:
        for name in ("a", "b"):
            caller.load(name, grid(rows=3, columns=3, seed=1))
            caller.set(name, [0], ["3"])
            caller.set(name, [0], ["4"])
        first, second = (worker.graphs.residents.get(name) for name in ("a", "b"))
        assert first is not None
        assert second is not None
        assert eventually(lambda: not second.saving)
        assert first.saving
    finally:
        go.set()
    assert eventually(lambda: not first.saving)
    caller.set("b", [0], ["5"])
    assert eventually(lambda: second.unsaved == 0)


def test_a_snapshot_that_was_asked_for_meanwhile_is_no_failure(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()
    go = held_back(monkeypatch, {2: begun})
    worker = start_worker(threads=4, snapshot_every_updates=1)
    caller.wait_ready()
    caller.load("g", grid(rows=3, columns=3, seed=1))
    try:
        caller.set("g", [0], ["3"])
        assert begun.wait(PATIENCE_S)
        caller.set("g", [0], ["4"])
        assert caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())["version"] == 3
    finally:
        go.set()
    graph = worker.graphs.residents.get("g")
    assert graph is not None
    assert eventually(lambda: not graph.saving)
    assert (graph.unsaved, worker.graphs.counters.get("snapshots_failed", 0)) == (0, 0)


def test_a_snapshot_that_there_is_no_memory_for_is_taken_later(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, failed = saving._capacities_of, threading.Event()

    def fails_once(graph: Graph) -> Capacities:
        if not failed.is_set():
            failed.set()
            raise MemoryError
        return taken(graph)

    monkeypatch.setattr(saving, "_capacities_of", fails_once)
    monkeypatch.setattr(saving, "MOST_TAKEN_BYTES", 10)
    worker = start_worker(snapshot_every_updates=1)
    caller.wait_ready()
    caller.load("g", grid(rows=3, columns=3, seed=1))
    caller.set("g", [0], ["3"])
    assert failed.wait(PATIENCE_S)
    graph = worker.graphs.residents.get("g")
    assert graph is not None
    assert eventually(lambda: not graph.saving)
    caller.set("g", [0], ["4"])
    assert eventually(lambda: graph.unsaved == 0)
