"""The drawn networks on the engine, and what the engine refuses."""

from collections.abc import Callable

import numpy as np
import pytest

from gpu_engine.checks.certificate import certify
from gpu_engine.checks.flows import prove_flow
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Mode
from gpu_engine.errors import Cancelled, CapacityOverflow, InvalidNetwork, InvalidTerminals, SourceIsSink, Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, MAX_TOTAL
from tests import graphs


@pytest.mark.parametrize("graph", graphs.ALL, ids=lambda graph: graph.__name__)
def test_value_cut_flow_and_certificate(graph: Callable[[], graphs.Drawn]) -> None:
    case = graph()
    engine = CpuEngine(Network(case.edges))
    terminals = Terminals.of([0], [case.edges.n_vertices - 1])
    state = engine.open(terminals)
    report = engine.solve(state)
    assert (report.mode, report.value) == (Mode.COLD, case.value)
    assert engine.certificate(state).valid
    flow = engine.flow(state)
    proof = prove_flow(engine.network, terminals, flow)
    assert (proof.failures, proof.value) == ((), case.value)
    cut = engine.cut(state)
    assert cut.unique is (case.cut_edges is not None)
    if case.cut_edges is not None:
        assert tuple(cut.edges) == case.cut_edges


def opened(rows: list[tuple[int, int, int]], n: int) -> tuple[CpuEngine, object]:
    engine = CpuEngine(Network(graphs.drawn(n, rows)))
    state = engine.open(Terminals.of([0], [n - 1]))
    engine.solve(state)
    return engine, state


def test_a_cheaper_cut_edge_needs_no_solve() -> None:
    engine, state = opened([(0, 1, 9), (1, 2, 4), (2, 3, 9)], 4)
    engine.update(np.array([1]), np.array([3]))
    report = engine.solve(state)
    assert (report.mode, report.value) == (Mode.WARM, 3)
    assert report.counters["arcs_scanned"] == 0
    assert engine.certificate(state).valid


def test_what_misses_flow_and_cut_changes_nothing() -> None:
    engine, state = opened([(0, 1, 9), (1, 2, 4), (2, 3, 9)], 4)
    engine.update(np.array([0, 2]), np.array([5, 20]))
    report = engine.solve(state)
    assert (report.mode, report.value) == (Mode.UNCHANGED, 4)


def test_raising_the_cut_moves_it() -> None:
    engine, state = opened([(0, 1, 9), (1, 2, 4), (2, 3, 9)], 4)
    engine.update(np.array([1]), np.array([20]))
    report = engine.solve(state)
    assert (report.mode, report.value) == (Mode.WARM, 9)


def test_unbounded_names_the_path() -> None:
    engine = CpuEngine(Network(graphs.drawn(4, [(0, 2, INFINITE), (2, 1, INFINITE), (1, 3, INFINITE), (0, 3, 1)])))
    with pytest.raises(Unbounded) as refused:
        engine.open(Terminals.of([0], [3]))
    assert refused.value.where.vertices == [0, 2, 1, 3]


def test_an_update_that_unbounds_a_state_changes_nothing() -> None:
    engine, state = opened([(0, 1, INFINITE), (1, 2, 5)], 3)
    with pytest.raises(Unbounded):
        engine.update(np.array([1]), np.array([INFINITE]))
    assert engine.network.capacity[1] == 5
    assert engine.solve(state).value == 5


def test_totals_beyond_the_limit_are_refused_with_their_rows() -> None:
    with pytest.raises(CapacityOverflow) as refused:
        Network(graphs.drawn(3, [(0, 1, 1), (1, 2, MAX_TOTAL)]))
    assert refused.value.rows[0] == 1
    engine, state = opened([(0, 1, 1), (1, 2, MAX_TOTAL - 1)], 3)
    with pytest.raises(CapacityOverflow):
        engine.update(np.array([0]), np.array([2]))
    assert engine.solve(state).value == 1


def test_largest_capacities_stay_exact() -> None:
    half = MAX_TOTAL // 2
    engine, state = opened([(0, 1, half), (1, 2, half)], 3)
    assert engine.solve(state).value == half
    assert engine.certificate(state).valid


@pytest.mark.parametrize(
    ("sources", "sinks", "error"),
    [
        ([], [1], InvalidTerminals),
        ([0], [0], SourceIsSink),
        ([0, 0], [1], InvalidTerminals),
        ([7], [1], InvalidTerminals),
    ],
)
def test_bad_terminals(sources: list[int], sinks: list[int], error: type[Exception]) -> None:
    engine = CpuEngine(Network(graphs.diamond().edges))
    with pytest.raises(error):
        engine.open(Terminals.of(sources, sinks))


def test_bad_columns_name_their_rows() -> None:
    good = graphs.diamond().edges
    with pytest.raises(InvalidNetwork) as refused:
        Network(EdgeList(3, good.tail, good.head, good.capacity))
    assert refused.value.rows == [3, 4]
    with pytest.raises(InvalidNetwork) as refused:
        Network(EdgeList(4, good.tail, good.head, -good.capacity))
    assert refused.value.rows == [0, 1, 2, 3, 4]


def test_an_empty_network_has_value_zero() -> None:
    none = np.empty(0, np.int32)
    engine = CpuEngine(Network(EdgeList(2, none, none, np.empty(0, np.int64))))
    state = engine.open(Terminals.of([0], [1]))
    assert engine.solve(state).value == 0
    assert engine.certificate(state).valid
    assert len(engine.flow(state)) == 0


def test_a_cancelled_solve_can_be_solved_again() -> None:
    engine = CpuEngine(Network(graphs.diamond().edges))
    state = engine.open(Terminals.of([0], [3]))
    control = Control()
    control.cancel()
    with pytest.raises(Cancelled):
        engine.solve(state, control)
    assert engine.solve(state).value == 5


def test_the_certificate_catches_each_broken_condition() -> None:
    case = graphs.bottleneck()
    engine = CpuEngine(Network(case.edges))
    terminals = Terminals.of([0], [3])
    state = engine.open(terminals)
    engine.solve(state)

    def failures(residual: int = 0, excess: int = 0, side: int | None = None) -> int:
        arrays = (state.residual.copy(), state.excess.copy(), state.source_side.copy())
        arrays[0][0] += residual
        arrays[1][1] += excess
        if side is not None:
            arrays[2][side] ^= True
        certificate = certify(engine.network, terminals, *arrays)
        assert certificate.valid is not bool(certificate.failures)
        return len(certificate.failures)

    assert failures() == 0
    assert failures(residual=1) > 0
    assert failures(excess=1) > 0
    assert all(failures(side=v) > 0 for v in range(4))


def test_a_cancelled_answer_leaves_the_flow_state_alone() -> None:
    """Flows by edge and cuts take as long as solves on large networks."""
    engine, state = opened([(0, 1, 9), (1, 2, 4), (2, 3, 9)], 4)
    whole = engine.flow(state).tolist(), engine.cut(state).edges.tolist()
    control = Control()
    control.cancel()
    for ask in (engine.flow, engine.cut):
        with pytest.raises(Cancelled):
            ask(state, control)
    assert engine.certificate(state).valid
    assert (engine.flow(state).tolist(), engine.cut(state).edges.tolist()) == whole


def test_a_cancelled_repair_can_be_finished() -> None:
    engine, state = opened([(0, 1, 9), (1, 2, 4), (2, 3, 9)], 4)
    engine.update(np.array([1]), np.array([20]))
    control = Control()
    control.cancel()
    with pytest.raises(Cancelled):
        engine.solve(state, control)
    engine.update(np.array([2]), np.array([7]))
    report = engine.solve(state)
    assert report.value == 7
    assert engine.certificate(state).valid


def test_a_cut_pays_the_caps_of_terminals_on_the_other_side() -> None:
    """
    ::

        0 (4) --9--> 1 --9--> 2 (5)      3 (0) --9--> 1
    """
    engine = CpuEngine(Network(graphs.drawn(4, [(0, 1, 9), (1, 2, 9), (3, 1, 9)])))
    for supply, demand, paid in (([4, 0], [5], ([0], [4], [], [])), ([6, 0], [5], ([], [], [2], [5]))):
        state = engine.open(Terminals.of([0, 3], [2], supply, demand))
        engine.solve(state)
        found = state.terminals.paid_by(engine.cut(state).source_side)
        assert tuple(c.tolist() for c in (found.sources, found.supply, found.sinks, found.demand)) == paid
