"""The trial of two engines, with two CPU engines: what a device would add is speed."""

import threading

import numpy as np
import pytest

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.state import CpuFlowState
from gpu_engine.engine import Control, Engine, FlowState, SolveReport
from gpu_engine.errors import Cancelled, OutOfMemory
from gpu_engine.footprint import Footprint
from gpu_engine.generators import generate
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.trial import TrialEngine
from tests.congruence import check_sequence


class Slow(CpuEngine):
    """Ends only when cancelled."""

    name = "slow"

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        assert control is not None
        while not control.cancelled:
            threading.Event().wait(0.001)
        raise Cancelled("too late")


class Fast(CpuEngine):
    name = "fast"


class Failing(CpuEngine):
    name = "failing"

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        raise RuntimeError("the device fell off the bus")


def small() -> tuple[Network, Terminals]:
    edges = generate("genrmf-wide", seed=1, a=6)
    return Network(edges), Terminals.of([edges.source], [edges.sink])


@pytest.mark.parametrize(
    ("host", "rival", "winner"), [(Slow, Fast, "fast"), (Fast, Slow, "fast"), (Fast, Failing, "fast")]
)
def test_the_first_to_end_stays(host: type[Engine], rival: type[Engine], winner: str) -> None:
    network, terminals = small()
    engine = TrialEngine(host(network), rival)
    states = [engine.open(terminals), engine.open(Terminals.of([1], [network.n_vertices - 1]))]
    report = engine.solve(states[0])
    assert engine.name == winner
    assert "faster than" in report.reason
    wanted = CpuEngine(Network(network.edge_list()))
    for state in states:
        value = wanted.solve(wanted.open(state.terminals)).value
        assert engine.solve(state).value == value
        assert engine.certificate(state).value == value
    engine.close(states[1])
    assert len(engine.flow(states[0])) == network.n_edges


def test_a_rival_that_cannot_be_opened_has_lost() -> None:
    def rival(network: Network) -> Engine:
        raise MemoryError("80 GB wanted")

    network, terminals = small()
    engine = TrialEngine(CpuEngine(network), rival)
    report = engine.solve(engine.open(terminals))
    assert "80 GB wanted" in report.reason
    assert engine.name == "cpu"


class Cramped(CpuEngine):
    """Has room for its states, not for a solve."""

    name = "cramped"

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        raise OutOfMemory("7 more bytes of device memory are needed")


def test_a_rival_without_room_is_no_slower_one() -> None:
    network, terminals = small()
    engine = TrialEngine(CpuEngine(network), Cramped)
    report = engine.solve(engine.open(terminals))
    assert report.engine == engine.name == "cpu"
    assert "cpu alone can solve the network: 7 more bytes" in report.reason


def test_a_trial_holds_what_both_hold() -> None:
    network, terminals = small()
    held: list[Footprint] = []

    class Watched(Fast):
        @property
        def device_nbytes(self) -> int:
            return 77

        def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
            held.append(engine.footprint)
            return super().solve(state, control, cold=cold)

    host = CpuEngine(network)
    engine = TrialEngine(host, Watched)
    state = engine.open(terminals)
    alone = engine.footprint
    engine.solve(state)
    states = alone - Footprint(network.nbytes + host._capacity.nbytes)
    assert held[0] == Footprint(alone.host + states.host + host._capacity.nbytes, 77)
    assert engine.footprint.host == alone.host
    assert engine.footprint.device in (0, 77)


def test_a_cancel_reaches_both_and_decides_nothing() -> None:
    network, terminals = small()
    engine = TrialEngine(Slow(network), Slow)
    state, control = engine.open(terminals), Control()
    threading.Timer(0.05, control.cancel).start()
    with pytest.raises(Cancelled):
        engine.solve(state, control)
    assert "trial" not in engine.name


@pytest.mark.parametrize("seed", range(20))
def test_updates_before_and_after_the_trial(seed: int) -> None:
    """Also those that open and close infinite edges."""
    check_sequence(lambda network: TrialEngine(CpuEngine(network), Fast), seed, steps=6)


def test_rows_keep_their_order_in_the_report() -> None:
    network, terminals = small()
    engine = TrialEngine(CpuEngine(network), Slow)
    state = engine.open(terminals)
    before = engine.solve(state).value
    rows = np.flatnonzero(network.capacity < 1 << 40)[:5]
    engine.update(rows, np.zeros(5, np.int64))
    assert engine.solve(state).value <= before


def test_rounds_alone_are_promised_their_working_memory_once() -> None:
    """Found by review: each round counted anew, until an engine seemed not to fit that had just solved the network."""
    network, terminals = small()
    promised = Footprint()

    def room(needed: Footprint) -> None:
        nonlocal promised
        promised += needed

    engine = TrialEngine(CpuEngine(network, room), lambda network: Fast(network, room), room)
    state = engine.open(terminals)
    engine.solve(state)
    needs = engine.needs
    capacities = Footprint(8 * network.n_arcs)  # each engine's own, beside the network
    each = capacities + needs.state + needs.scratch
    assert promised == each + each


def test_a_rival_whose_opening_was_cancelled_holds_nothing() -> None:
    class Waiting(Fast):
        device_nbytes = 77

        def open(self, terminals: Terminals) -> CpuFlowState:
            raise Cancelled("cancelled while it waited for memory")

    network, terminals = small()
    engine = TrialEngine(CpuEngine(network), Waiting)
    state = engine.open(terminals)
    before = engine.footprint
    with pytest.raises(Cancelled):
        engine.solve(state)
    assert engine.footprint == before
