"""After a restart or a takeover flow states come back by themselves, and are in nobody's way."""

import threading
import time
from typing import Any, ClassVar

import numpy as np
import pytest
import redis

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import FlowState, SolveReport
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Footprint
from gpu_engine.generators import grid
from gpu_engine.networks.terminals import Terminals
from service.protocol import EmptyArgs, Kind, MaxFlowArgs
from service.store.keys import Keys
from service.store.states import MAX_BYTES, UNPACKED_BYTES, Noted, pack_states, unpack_states
from service.worker.copies import Copies
from service.worker.graph import Graph
from service.worker.process import Worker
from service.worker.reopening import TRIES
from tests.service_fixtures import Caller, StartWorker
from tests.serving import eventually

EDGES = grid(rows=8, columns=8, seed=3)
PAIRS = [(0, 63), (8, 55), (16, 47)]
LEASE_S = 0.5


def ask(caller: Caller, pair: tuple[int, int], name: str = "g") -> dict[str, Any]:
    return caller.ask(Kind.MAX_FLOW, name, MaxFlowArgs(sources=[pair[0]], sinks=[pair[1]]))


def terminals(*pairs: tuple[int, int]) -> list[bytes]:
    return [Terminals.of([source], [sink]).key for source, sink in pairs]


def states(worker: Worker, name: str = "g") -> list[bytes]:
    graph = worker.graphs.residents.get(name)
    return [] if graph is None else list(graph.states)


@pytest.fixture
def values(caller: Caller, start_worker: StartWorker) -> list[Any]:
    """Of a graph g whose worker has ended; PAIRS were asked for in their order, then the first one again."""
    worker = start_worker("w0")
    caller.wait_ready()
    caller.load("g", EDGES)
    values = [ask(caller, pair)["value"] for pair in PAIRS]
    assert ask(caller, PAIRS[0])["mode"] == "unchanged"
    worker.graphs.look_after()  # as its heartbeat does
    stop(worker)
    return values


def stop(worker: Worker) -> None:
    worker.stop()
    for thread in threading.enumerate():
        if thread.name == worker.name:
            thread.join()


def test_flow_states_come_back(caller: Caller, start_worker: StartWorker, values: list[Any]) -> None:
    """Solved and in the order in which they were used, so that the right one goes first when there are too many."""
    worker = start_worker("w0")
    eventually(lambda: len(states(worker)) == 3)
    eventually(lambda: worker.graphs.counters.get("flow_states_reopened") == 3)
    assert states(worker) == terminals(PAIRS[1], PAIRS[2], PAIRS[0])
    for pair, value in zip(PAIRS, values, strict=True):
        answer = ask(caller, pair)
        assert (answer["mode"], answer["value"], answer["certificate"]["valid"]) == ("unchanged", value, True)


def test_an_update_finds_them_as_before(caller: Caller, start_worker: StartWorker, values: list[Any]) -> None:
    worker = start_worker("w0")
    eventually(lambda: worker.graphs.counters.get("flow_states_reopened") == 3)
    assert len(caller.set("g", [0], ["7"])["flow_states"]) == 3
    stop(worker)
    later = start_worker("w0")
    eventually(lambda: later.graphs.counters.get("flow_states_reopened") == 3)
    assert ask(caller, PAIRS[0])["mode"] == "unchanged"


def test_they_come_back_where_a_graph_is_taken_over(
    caller: Caller, start_worker: StartWorker, values: list[Any]
) -> None:
    """Their own worker stays away; nobody has asked the one that took the graph."""
    worker = start_worker("w1", lease_s=LEASE_S)
    eventually(lambda: worker.graphs.counters.get("flow_states_reopened") == 3)
    assert states(worker) == terminals(PAIRS[1], PAIRS[2], PAIRS[0])
    for pair, value in zip(PAIRS, values, strict=True):
        answer = ask(caller, pair)
        assert (answer["mode"], answer["value"], answer["certificate"]["valid"]) == ("unchanged", value, True)


def test_a_graph_that_is_taken_over_displaces_nobody(
    caller: Caller, start_worker: StartWorker, values: list[Any]
) -> None:
    """It is restored when somebody asks for it."""
    worker = start_worker("w1", lease_s=60)
    caller.wait_ready()
    caller.load("own", EDGES)
    residents = worker.graphs.residents
    budget, held = residents.budget, residents.held.host
    residents.resize(Footprint(held + held // 2))
    worker._takeover._take_from("w0")
    eventually(lambda: worker._lanes.is_idle("g"))
    assert [graph.name for graph in residents.all()] == ["own"]
    residents.resize(budget)
    assert ask(caller, PAIRS[0])["value"] == values[0]


def test_a_lost_connection_keeps_none_of_them_away(
    caller: Caller, start_worker: StartWorker, values: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Redis did not take of the first one is noted later."""
    note, lost = Copies.note, [True]

    def noted(copies: Copies, graph: Graph) -> None:
        if graph.states and lost:
            lost.clear()
            raise redis.ConnectionError("gone")
        note(copies, graph)

    monkeypatch.setattr(Copies, "note", noted)
    worker = start_worker("w0")
    eventually(lambda: worker.graphs.counters.get("flow_states_reopened") == 3)
    assert not lost
    assert states(worker) == terminals(PAIRS[1], PAIRS[2], PAIRS[0])


class Slow(CpuEngine):
    """Solves only when it is let, and can be cancelled meanwhile."""

    may_go_on = threading.Event()
    begun = threading.Event()
    tries: ClassVar[list[bytes]] = []

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        if control is not None and self.network.n_vertices == EDGES.n_vertices and not Slow.may_go_on.is_set():
            Slow.tries.append(state.terminals.key)
            Slow.begun.set()
            while not Slow.may_go_on.is_set():
                if control.cancelled:
                    raise Cancelled("cancelled")
                time.sleep(0.005)
        return super().solve(state, control, cold=cold)


@pytest.fixture
def slow() -> type[Slow]:
    Slow.may_go_on, Slow.begun, Slow.tries = threading.Event(), threading.Event(), []
    return Slow


def test_a_command_does_not_wait_for_them(
    caller: Caller, start_worker: StartWorker, values: list[Any], slow: type[Slow]
) -> None:
    """It cancels what is being solved, which is tried again afterwards: some times, and not for ever."""
    worker = start_worker("w0", slow)
    assert slow.begun.wait(20)
    for _ in range(2 * TRIES):
        assert caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())["version"] == 1
        time.sleep(0.05)
    assert states(worker) == []
    assert slow.tries == TRIES * terminals(PAIRS[0])
    slow.may_go_on.set()
    assert ask(caller, PAIRS[1])["mode"] == "cold"


def test_one_is_solved_at_a_time(
    caller: Caller, start_worker: StartWorker, values: list[Any], slow: type[Slow]
) -> None:
    """Whatever the number of graphs: the other threads are for commands."""
    slow.may_go_on.set()
    worker = start_worker("w0", slow)
    caller.wait_ready()
    names = [f"h{number}" for number in range(5)]
    for name in names:
        caller.load(name, EDGES)
        ask(caller, PAIRS[0], name)
    eventually(lambda: worker.graphs.counters.get("flow_states_reopened") == 3)
    stop(worker)
    slow.may_go_on.clear()
    later = start_worker("w0", slow)
    caller.wait_ready()
    assert slow.begun.wait(20)
    time.sleep(0.3)
    assert len(slow.tries) == 1
    slow.may_go_on.set()
    eventually(lambda: later.graphs.counters.get("flow_states_reopened") == 3 + len(names))


def test_a_worker_that_stops_does_not_wait_for_them(
    start_worker: StartWorker, values: list[Any], slow: type[Slow]
) -> None:
    worker = start_worker("w0", slow)
    assert slow.begun.wait(20)
    began = time.monotonic()
    stop(worker)
    assert time.monotonic() - began < 10
    assert len(slow.tries) == 1


def test_they_displace_nobody(caller: Caller, start_worker: StartWorker, values: list[Any]) -> None:
    """With room for two graphs at rest and not for a flow state more, both stay, and the states are not there."""
    worker = start_worker("w0")
    caller.wait_ready()
    caller.load("other", EDGES)
    eventually(lambda: worker.graphs.counters.get("flow_states_reopened") == 3)
    stop(worker)
    held = {graph.name: graph.footprint.host for graph in worker.graphs.residents.all()}
    one_state = (held["g"] - held["other"]) // 3
    later = start_worker("w0", memory_budget_bytes=2 * held["other"] + one_state // 2)
    eventually(lambda: len(later.graphs.residents.all()) == 2)
    eventually(lambda: not any(graph.to_reopen for graph in later.graphs.residents.all()))
    assert len(later.graphs.residents.all()) == 2
    assert "graphs_spilled" not in later.graphs.counters


def test_the_list_goes_with_its_graph(caller: Caller, client: Any, keys: Keys, start_worker: StartWorker) -> None:
    start_worker("w0")
    caller.wait_ready()
    for edges in (EDGES, EDGES):
        caller.load("g", edges)
        ask(caller, PAIRS[0])
    pattern = keys.states("*")
    assert len([*client.scan_iter(pattern)]) == 1
    caller.ask(Kind.DELETE, "g", EmptyArgs())
    assert [*client.scan_iter(pattern)] == []


def noted(n_terminals: int, seed: int = 0) -> Noted:
    vertices = np.random.default_rng(seed).permutation(2_000_000).astype(np.int32)[: 2 * n_terminals]
    caps = np.arange(n_terminals, dtype=np.int64)
    return Noted(Kind.MAX_FLOW, Terminals.of(vertices[:n_terminals], vertices[n_terminals:], caps, caps))


def test_the_list_is_read_as_it_was_written() -> None:
    written = [noted(3), noted(1), Noted(Kind.MATCHING, Terminals.of([5], [6]))]
    read = unpack_states(pack_states(written))
    assert [(state.kind, state.terminals.key) for state in read] == [
        (state.kind, state.terminals.key) for state in written
    ]


def test_the_list_is_bounded() -> None:
    """What was asked for last is in it."""
    small, large = noted(3), noted(20_000)
    packed = pack_states([small, large, small])
    assert len(packed) <= MAX_BYTES
    assert [state.terminals.key for state in unpack_states(packed)] == [small.terminals.key]
    assert unpack_states(pack_states([small, noted(UNPACKED_BYTES // 12)])) == []


@pytest.mark.parametrize("packed", [None, b"", b"nonsense", pack_states([noted(5)])[:-4], b"\x28\xb5\x2f\xfd"])
def test_a_list_that_cannot_be_read_is_none(packed: bytes | None) -> None:
    assert unpack_states(packed) == []


def test_a_network_that_has_not_these_vertices_does_without(
    caller: Caller, client: Any, keys: Keys, start_worker: StartWorker, values: list[Any]
) -> None:
    (key,) = client.scan_iter(keys.states("*"))
    client.set(key, pack_states([noted(2), Noted(Kind.MAX_FLOW, Terminals.of([0], [63]))]))
    worker = start_worker("w0")
    eventually(lambda: worker.graphs.counters.get("flow_states_reopened") == 1)
    assert ask(caller, PAIRS[0])["mode"] == "unchanged"
