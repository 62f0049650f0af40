"""Suppositions about a graph: what they try on copies, and what is counted for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Mode
from gpu_engine.errors import CapacityOverflow, OutOfMemory, Unbounded
from gpu_engine.footprint import Footprint
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import CapacityTable, Change
from gpu_engine.types import INFINITE, MAX_TOTAL
from service.worker.graph import Graph, Solved
from service.worker.memory import Residents
from service.worker.questions.supposed import Supposer
from service.worker.supposing import Supposition, has_room_beside, needs

NOTHING = np.empty(0, np.int64)


def solved_graph() -> tuple[Graph, Solved]:
    edges = generate("genrmf-wide", seed=1, a=6)
    network = Network(edges)
    graph = Graph("g", "id", 1, 7, network, CpuEngine(network), CapacityTable(network))
    solved = graph.open(Terminals.of([edges.source], [edges.sink]))
    graph.solve(solved, Control(), lambda: None, complete=True)
    return graph, solved


def closing(*rows: int) -> Change:
    found = np.array(rows, np.int64)
    return Change(found, np.ones(len(rows), np.int64), np.ones(len(rows), np.bool_))


def value(supposed: Supposition, change: Change, terminals: Terminals) -> int:
    with supposed.under(change, terminals) as state:
        answer = supposed.graph.solve(state, Control(), lambda: None)
        assert answer.certificate.valid
        return answer.report.value


def test_each_change_is_tried_on_the_state_as_it_was() -> None:
    graph, solved = solved_graph()
    assert solved.report is not None
    base, cut = solved.report.value, graph.engine.cut(solved.state).edges
    supposed = Supposition.of(graph, solved, "guest")
    losses = [base - value(supposed, closing(row), solved.terminals) for row in [*cut, *cut]]
    assert losses == [int(graph.network.capacity[row]) for row in [*cut, *cut]]
    assert value(supposed, closing(), solved.terminals) == base
    assert value(supposed, closing(*cut), solved.terminals) == 0
    assert graph.engine.solve(solved.state).mode is Mode.UNCHANGED


def test_each_begins_with_the_very_flow_that_there_was() -> None:
    graph, solved = solved_graph()
    was, supposed = graph.engine.export(solved.state), Supposition.of(graph, solved, "guest")
    for row in range(graph.network.n_edges):
        value(supposed, closing(row), solved.terminals)
        with supposed.under(closing(), solved.terminals) as state:
            now = supposed.graph.engine.export(state.state)
        assert all((now[name] == was[name]).all() for name in was), row


def test_what_has_no_bound_for_these_terminals_may_have_one_for_others() -> None:
    graph, solved = solved_graph()
    source, sink = int(solved.terminals.sources[0]), int(solved.terminals.sinks[0])
    rows = np.arange(graph.network.n_edges)
    unlimited = Change(rows, np.full(len(rows), INFINITE), np.zeros(len(rows), np.bool_))
    supposed = Supposition.of(graph, solved, "guest")
    assert value(supposed, closing(), solved.terminals) > 0
    with pytest.raises(Unbounded), supposed.under(unlimited, solved.terminals):
        pass
    for other in (source, 1):
        assert value(supposed, closing(), solved.terminals) > 0
        assert value(supposed, unlimited, Terminals.of([other], [sink], [5])) == 5
    assert solved.report is not None
    assert value(supposed, closing(), solved.terminals) == solved.report.value


def test_what_has_a_bound_by_its_change_alone_leaves_nothing_behind() -> None:
    """
        inf     3
    (s) --> (u) --> (t)
    """
    network = Network(EdgeList(3, np.array([0, 1]), np.array([1, 2]), np.array([INFINITE, 3])))
    graph = Graph("g", "id", 1, 7, network, CpuEngine(network), CapacityTable(network))
    solved = graph.open(Terminals.of([0], [2], [1]))
    graph.solve(solved, Control(), lambda: None, complete=True)
    supposed = Supposition.of(graph, solved, "guest")
    limited = Change(np.array([0]), np.array([2]), np.array([False]))
    for terminals in (Terminals.of([0], [1]), Terminals.of([0], [2])):
        assert value(supposed, limited, terminals) == 2
        assert supposed.graph.network.capacity.tolist() == [INFINITE, 3]
        assert value(supposed, closing(), solved.terminals) == 1


def test_an_update_of_the_graph_is_not_seen_and_does_not_see() -> None:
    graph, solved = solved_graph()
    assert solved.report is not None
    base, row = solved.report.value, int(graph.engine.cut(solved.state).edges[0])
    supposed = Supposition.of(graph, solved, "guest")
    with supposed.under(closing(row), solved.terminals) as state:
        assert graph.network.capacity[row] > 0
        graph.update(closing(row))
        graph.update(Change(np.array([row]), np.array([99]), np.array([True])))
        assert supposed.graph.solve(state, Control(), lambda: None).report.value < base
    assert supposed.graph.table.own(np.array([row])) != [99]
    assert not supposed.graph.table.closed[row]
    assert value(supposed, closing(), solved.terminals) == base
    assert graph.table.closed[row]
    assert graph.network.capacity[row] == 0


def test_other_caps_of_the_same_terminals_are_met_from_the_same_flow() -> None:
    graph, solved = solved_graph()
    assert solved.report is not None
    base, (source,), (sink,) = solved.report.value, solved.terminals.sources, solved.terminals.sinks
    supposed = Supposition.of(graph, solved, "guest")
    for cap in (0, 5, base, base + 1):
        for terminals in (
            Terminals.of([source], [sink], [cap]),
            Terminals.of([source], [sink], None, [cap]),
            Terminals.of([source], [sink], [cap], [base]),
        ):
            with supposed.under(closing(), terminals) as state:
                answer = supposed.graph.solve(state, Control(), lambda: None)
                assert (answer.report.value, answer.certificate.valid) == (min(cap, base), True)
                assert answer.report.mode is not Mode.COLD
            assert value(supposed, closing(), solved.terminals) == base


def test_a_fork_is_beside_the_states_if_nobody_there_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here no state is on a device, so its needs are made up."""
    graph, _ = solved_graph()
    of_engine = graph.engine.needs
    assert needs(graph, on_host=False) == needs(graph)
    assert has_room_beside(graph, Footprint())
    on_device = replace(of_engine, fork=Footprint(host=1, device=100))
    monkeypatch.setattr(CpuEngine, "needs", on_device)
    names = needs(graph) - of_engine.fork_on_host
    assert needs(graph, on_host=False) == Footprint(host=1, device=100) + names
    assert has_room_beside(graph, Footprint(device=100))
    assert not has_room_beside(graph, Footprint(host=10**9, device=99))


@pytest.mark.parametrize(
    ("unused", "free", "wanted"),
    [
        (200, 200, (2, False)),  # threads, and whether on the host
        (50, 200, (2, True)),
        (200, 50, (0, True)),  # another took it meanwhile
    ],
)
def test_a_question_is_answered_on_the_host_where_a_device_is_full(
    unused: int, free: int, wanted: tuple[int, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, solved = solved_graph()
    monkeypatch.setattr(CpuEngine, "needs", replace(graph.engine.needs, fork=Footprint(device=100)))

    def make_room(graph: Graph, needed: Footprint, but: Solved) -> None:
        if needed.device > free:
            raise OutOfMemory("the device is full")

    copies = SimpleNamespace(residents=SimpleNamespace(unused=Footprint(device=unused)))
    supposer = Supposer(cast("Any", copies), cast("Any", SimpleNamespace(make_room=make_room)), 2)
    promised, *rest = supposer._make_room(graph, solved, Footprint(), 2)
    assert tuple(rest) == wanted
    assert promised.device == (0 if wanted[1] else 100)


def test_what_is_refused_leaves_nothing_behind() -> None:
    graph, solved = solved_graph()
    assert solved.report is not None
    supposed = Supposition.of(graph, solved, "guest")
    too_much = Change(np.array([0]), np.array([MAX_TOTAL]), np.array([False]))
    for _ in range(2):
        with pytest.raises(CapacityOverflow), supposed.under(too_much, solved.terminals):
            pass
    with pytest.raises(KeyError), supposed.under(closing(0), solved.terminals):
        raise KeyError
    assert supposed.graph.states == {}
    assert supposed.graph.engine.nbytes == Supposition.of(graph, solved, "guest").graph.engine.nbytes
    assert value(supposed, closing(), solved.terminals) == solved.report.value


def test_other_terminals_begin_at_zero_flow() -> None:
    graph, solved = solved_graph()
    supposed, n = Supposition.of(graph, solved, "guest"), graph.network.n_vertices
    other = Terminals.of([1], [n - 2])
    wanted = graph.engine.solve(graph.engine.open(other)).value
    assert value(supposed, closing(), other) == wanted
    assert value(supposed, closing(0), solved.terminals) >= 0
    assert value(supposed, closing(), other) == wanted


@contextmanager
def at_work(residents: Residents, graph: Graph) -> Iterator[None]:
    with residents.at_work(graph.name):
        residents.keep(graph)
        yield


def test_its_memory_is_counted_before_and_given_back() -> None:
    graph, solved = solved_graph()
    needed = needs(graph)
    supposed = Supposition.of(graph, solved, "guest")
    with supposed.under(closing(0), solved.terminals):
        assert supposed.graph.footprint.host <= needed.host
    held = graph.footprint.host
    residents = Residents(Footprint(held + needed.host), lambda graph: None)
    with at_work(residents, graph):
        residents.take("g", needed)
        with residents.at_work("guest", displaces=False):
            residents.promise("guest", needed)
            residents.measure(graph)
            with pytest.raises(OutOfMemory):
                residents.take("guest", Footprint(1))
        residents.take("g", needed)
