"""The trial of two engines, with two CPU engines: what a device would add is speed."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np
import pytest

from gpu_engine.auto import AT_LEAST_MS, MUCH_LONGER, AutoEngine, Race
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.state import CpuFlowState
from gpu_engine.engine import Engine, FlowState, Mode, SolveReport
from gpu_engine.errors import Cancelled, OutOfMemory
from gpu_engine.footprint import Footprint, Room, unlimited
from gpu_engine.generators import generate
from gpu_engine.incremental import TooSlow
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from service.protocol import Kind, MaxFlowArgs
from service.store.graphs import Catalogue
from tests.congruence import check_sequence
from tests.service_fixtures import Caller, StartWorker
from tests.serving import eventually


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
    ("host", "rival", "reason"),
    [
        (Slow, Fast, "fast was faster than slow in a trial"),
        (Fast, Slow, "fast was faster than slow in a trial"),
        (
            Fast,
            Failing,
            "fast alone solved the network in a trial, as failing failed: RuntimeError: the device fell off the bus",
        ),
    ],
)
def test_the_first_to_end_stays(host: type[Engine], rival: type[Engine], reason: str) -> None:
    network, terminals = small()
    engine = AutoEngine(network, host, rival)
    states = [engine.open(terminals), engine.open(Terminals.of([1], [network.n_vertices - 1]))]
    report = engine.solve(states[0])
    assert engine.name == "fast"
    assert report.reason.endswith(f"; {reason}")
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
    engine = AutoEngine(network, CpuEngine, rival)
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
    engine = AutoEngine(network, CpuEngine, Cramped)
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

    engine = AutoEngine(network, CpuEngine, Watched)
    state = engine.open(terminals)
    alone = engine.footprint
    engine.solve(state)
    capacities = Footprint(8 * network.n_arcs)
    states = alone - Footprint(network.nbytes) - capacities
    assert held[0] == alone + states + capacities + Footprint(device=77)
    assert engine.footprint.host == alone.host
    assert engine.footprint.device in (0, 77)


def test_a_cancel_reaches_both_and_decides_nothing() -> None:
    network, terminals = small()
    engine = AutoEngine(network, Slow, Slow)
    state, control = engine.open(terminals), Control()
    threading.Timer(0.05, control.cancel).start()
    with pytest.raises(Cancelled):
        engine.solve(state, control)
    assert "trial" not in engine.name


@pytest.mark.parametrize("seed", range(20))
def test_updates_before_and_after_the_trial(seed: int) -> None:
    """Also those that open and close infinite edges."""
    check_sequence(lambda network: AutoEngine(network, CpuEngine, Fast), seed, steps=6)


def test_rows_keep_their_order_in_the_report() -> None:
    network, terminals = small()
    engine = AutoEngine(network, CpuEngine, Slow)
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

    engine = AutoEngine(network, partial(CpuEngine, room=room), partial(Fast, room=room), room)
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
    engine = AutoEngine(network, CpuEngine, Waiting)
    state = engine.open(terminals)
    before = engine.footprint
    with pytest.raises(Cancelled):
        engine.solve(state)
    assert engine.footprint == before


class Stalling(CpuEngine):
    """A device that is told to take long over each solve from zero, and stops by itself."""

    name = "stalling"
    stalls = False

    def _solve_cold(self, state: CpuFlowState, control: Control) -> Mapping[str, int]:
        if self.stalls and self.longest_ms < inf:
            self._room(self.needs.scratch)
            state.solved = False
            raise TooSlow
        return super()._solve_cold(state, control)


class Stumbling(CpuEngine):
    """Takes as long as it is told, as its report says, or ends only when cancelled."""

    name = "stumbling"
    took_ms = 0.0
    never_ends = False

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        if self.never_ends and self.longest_ms:
            Slow.solve(self, state, control)  # type: ignore[arg-type]
        report = super().solve(state, control, cold=cold)
        return replace(report, timings_ms={"solve": self.took_ms}) if self.took_ms else report


def decided(rival: type[CpuEngine], room: Room = unlimited) -> tuple[AutoEngine, list[FlowState]]:
    """An engine that has decided for the rival, over a host that was slow that one time, and two solved states."""
    hosts = iter([Slow, CpuEngine, CpuEngine])
    network, terminals = small()
    engine = AutoEngine(network, lambda network: next(hosts)(network, room), partial(rival, room=room), room)
    states = [engine.open(terminals), engine.open(Terminals.of([1], [network.n_vertices - 1]))]
    for state in states:
        engine.solve(state)
    assert engine.name == rival.name
    return engine, list(states)


def check_values(engine: AutoEngine, states: list[FlowState]) -> None:
    wanted = CpuEngine(Network(engine.network.edge_list()))
    for state in states:
        value = wanted.solve(wanted.open(state.terminals)).value
        assert engine.solve(state).value == value
        assert engine.certificate(state).value == value


def faster(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """From now on the present engine (0) or the other one (1) is the faster one in a close race."""

    def alone(race: Race) -> int:
        engine, state = race._entries[first]
        race.report = engine.solve(state, race._control, cold=True)
        return first

    monkeypatch.setattr(Race, "alone", alone)


def close_some(engine: AutoEngine) -> None:
    rows = np.flatnonzero(engine.network.capacity < 1 << 40)[::7]
    engine.update(rows, np.zeros(len(rows), np.int64))


@pytest.mark.parametrize("cold", [True, False])
def test_a_device_that_takes_much_longer_is_tried_again(monkeypatch: pytest.MonkeyPatch, cold: bool) -> None:
    """Also where it would solve anew because a repair is too slow."""
    engine, states = decided(Stalling)
    close_some(engine)
    monkeypatch.setattr(Stalling, "stalls", True)
    monkeypatch.setattr("gpu_engine.incremental.Patience.allows", lambda *_: False)
    faster(monkeypatch, 1)
    report = engine.solve(states[0], cold=cold)
    assert engine.name == report.engine == "cpu"
    assert "cpu was faster than stalling in a trial" in report.reason
    check_values(engine, states)
    close_some(engine)
    check_values(engine, states)


def test_a_host_that_took_much_longer_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its answer by then, so the next solve from zero is the trial, and a repair before it is none."""
    engine, states = decided(Stumbling)
    close_some(engine)
    monkeypatch.setattr(Stumbling, "took_ms", AT_LEAST_MS * MUCH_LONGER * 1000)
    faster(monkeypatch, 1)
    assert engine.solve(states[1], cold=True).engine == engine.name == "stumbling"
    assert engine.solve(states[1]).mode is Mode.UNCHANGED
    assert engine.solve(states[0], cold=True).engine == engine.name == "cpu"
    check_values(engine, states)


def test_a_host_that_was_cancelled_after_much_longer_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by review: as it never ended, each question ran into its time limit for ever."""
    engine, states = decided(Stumbling)
    monkeypatch.setattr(Stumbling, "never_ends", True)
    for after_s in (0.01, 10 * AT_LEAST_MS / 1e3):
        assert engine._engine.longest_ms > 0
        control = Control()
        threading.Timer(after_s, control.cancel).start()
        with pytest.raises(Cancelled):
            engine.solve(states[0], control, cold=True)
    assert engine._engine.longest_ms == 0
    faster(monkeypatch, 1)
    assert engine.solve(states[0], cold=True).engine == engine.name == "cpu"
    check_values(engine, states)


def test_a_trial_that_was_cancelled_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, states = decided(Stumbling)
    with monkeypatch.context() as slow:
        slow.setattr(Stumbling, "took_ms", AT_LEAST_MS * MUCH_LONGER * 1000)
        engine.solve(states[0], cold=True)
    control = Control()
    control.cancel()
    with pytest.raises(Cancelled):
        engine.solve(states[0], control, cold=True)
    faster(monkeypatch, 1)
    assert engine.solve(states[0], cold=True).engine == "cpu"
    check_values(engine, states)


def limited(monkeypatch: pytest.MonkeyPatch) -> tuple[AutoEngine, list[FlowState], Callable[[Footprint], None]]:
    """A `Stalling` that has won, and a call that leaves it room for so much more than it holds."""
    left = Footprint(1 << 40)

    def room(needed: Footprint) -> None:
        nonlocal left
        if not (needed.within(left) or needed.within(Footprint())):
            raise OutOfMemory(f"{needed} of {left}")
        left -= needed

    def leave(more: Footprint) -> None:
        nonlocal left
        left = more

    engine, states = decided(Stalling, room)
    monkeypatch.setattr(Stalling, "stalls", True)
    return engine, states, leave


def test_a_second_trial_fits_where_both_engines_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by review: what the solve that was given up had been promised still counted, so the engine seemed not to
    fit."""
    engine, states, leave = limited(monkeypatch)
    needs, capacities = engine.needs, Footprint(8 * engine.network.n_arcs)
    leave(capacities + needs.state + needs.state + needs.scratch + needs.scratch)
    assert "was faster than" in engine.solve(states[0], cold=True).reason


def test_an_engine_that_has_solved_a_network_may_do_so_though_the_other_one_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, states, leave = limited(monkeypatch)

    def none(network: Network) -> Engine:
        raise OutOfMemory("9 more bytes of memory are needed")

    engine._open_other = none
    leave(engine.needs.scratch)
    assert "stalling alone can hold the network: 9 more" in engine.solve(states[0], cold=True).reason


def test_a_repair_that_is_given_up_leaves_its_working_memory_to_the_solve_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, states, leave = limited(monkeypatch)

    def gives_up(self: CpuEngine, state: CpuFlowState, control: Control) -> Mapping[str, int]:
        self._room(self.needs.scratch)
        raise TooSlow

    monkeypatch.setattr(Stalling, "stalls", False)
    monkeypatch.setattr("gpu_engine.incremental.Patience.allows", lambda *_: True)
    monkeypatch.setattr(Stalling, "_repair", gives_up)
    close_some(engine)
    leave(engine.needs.scratch)
    assert "a repair took longer" in engine.solve(states[0]).reason


def test_it_stays_if_it_is_the_faster_one_again_and_may_then_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, states = decided(Stumbling)
    faster(monkeypatch, 0)
    tried: list[str] = []
    try_both = AutoEngine._try_both

    def counted(self: AutoEngine, state: FlowState, control: Control) -> SolveReport:
        tried.append(self.name)
        return try_both(self, state, control)

    monkeypatch.setattr(AutoEngine, "_try_both", counted)
    for took_ms in (AT_LEAST_MS, 2 * AT_LEAST_MS, 3 * AT_LEAST_MS, 12 * AT_LEAST_MS, 13 * AT_LEAST_MS, AT_LEAST_MS):
        monkeypatch.setattr(Stumbling, "took_ms", took_ms)
        assert engine.solve(states[0], cold=True).engine == "stumbling"
    assert tried == ["stumbling", "stumbling"]
    check_values(engine, states)


def test_repairs_are_no_reason_for_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, states = decided(Stumbling)
    monkeypatch.setattr("gpu_engine.incremental.Patience.allows", lambda *_: True)
    monkeypatch.setattr(Stumbling, "took_ms", AT_LEAST_MS * MUCH_LONGER * 1000)
    rows = np.flatnonzero(engine.network.capacity < 1 << 40)[:1]
    engine.update(rows, engine.network.capacity[rows] // 2)
    assert engine.solve(states[0]).mode is not Mode.COLD
    assert engine.name == "stumbling"


def test_a_device_alone_may_take_as_long_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no memory for the other engine."""
    engine, states = decided(Stalling)

    def none(network: Network) -> Engine:
        raise OutOfMemory("9 more bytes of memory are needed")

    monkeypatch.setattr(Stalling, "stalls", True)
    engine._open_other = none
    report = engine.solve(states[0], cold=True)
    assert report.engine == "stalling"
    assert "9 more bytes" in report.reason


def test_a_cancel_of_a_second_trial_leaves_all_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, states = decided(Stalling)
    longest_ms, control = engine._engine.longest_ms, Control()
    assert AT_LEAST_MS <= longest_ms < inf
    monkeypatch.setattr(Stalling, "stalls", True)

    def waits(network: Network) -> Engine:
        control.cancel()
        return Slow(network)

    engine._open_other = waits
    with pytest.raises(Cancelled):
        engine.solve(states[0], control, cold=True)
    monkeypatch.undo()
    assert (engine.name, engine._engine.longest_ms, engine._trying) == ("stalling", longest_ms, None)
    check_values(engine, states)


@pytest.mark.parametrize("seed", range(20))
def test_updates_between_trials(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each solve from zero is another trial."""
    monkeypatch.setattr("gpu_engine.auto.AT_LEAST_MS", 1e-9)
    monkeypatch.setattr("gpu_engine.auto.MUCH_LONGER", 1e-9)
    check_sequence(lambda network: AutoEngine(network, CpuEngine, Fast), seed, steps=6)


def test_the_list_of_graphs_names_the_engine_that_has_a_graph_now(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It named the one that the graph was loaded with for ever; and after a trial it told nothing of what it takes."""

    def try_both(network: Network, *, room: Room = unlimited) -> AutoEngine:
        return AutoEngine(network, partial(CpuEngine, room=room), partial(Fast, room=room), room)

    worker = start_worker(open_engine=try_both)
    catalogue = Catalogue(caller.dispatcher.client, caller.dispatcher.keys)

    def is_told(name: str) -> bool:
        worker.graphs.look_after()  # as its heartbeat does, for graphs that are not at work
        info = caller.run(catalogue.get("g"))
        return info is not None and info.engine == name

    caller.wait_ready()
    caller.load("g", generate("genrmf-wide", seed=1, a=6))
    for winner, name in ((0, "cpu"), (1, "fast")):
        faster(monkeypatch, winner)
        monkeypatch.setattr("gpu_engine.auto.GRACE_S", 60)
        caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[0], sinks=[215]))
        (graph,) = worker.graphs.residents.all()
        assert isinstance(graph.engine, AutoEngine)
        graph.engine._longest_ms = 0  # the next solve is another trial
        eventually(partial(is_told, name))
