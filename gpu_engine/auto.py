"""The engine "auto": two engines run its first solve at once, and the faster one stays until it is slow.

No rule on size and shape told the faster engine reliably: of networks of 80 to 90 thousand arcs one is twice as fast on
a CPU core, another a third faster on a device (benchmarks/NOTES.md). So both engines are measured on the network at
hand. Until then the host engine does all else; once decided, calls go straight to the engine that won, and the memory
of the other one is freed.

The measurement holds for the terminals and the capacities of that solve. With others the engine that won may be the
slower one: by a factor of thousands on a device, where excess has to travel along chains. So once a solve from zero
takes much longer than the one that was measured, both engines are tried again: at once if the engine stops by itself,
as one on a device does, else in the next solve from zero, as this one has its answer.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks.certificate import Certificate
from gpu_engine.control import Control
from gpu_engine.engine import Bottlenecks, Cut, Engine, FlowState, Fork, Mode, SolveReport
from gpu_engine.errors import Cancelled, OutOfMemory
from gpu_engine.footprint import Footprint, Needs, Room, unlimited
from gpu_engine.incremental import TooSlow
from gpu_engine.networks.growing import Growth
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import EdgeArray, End, UnitArray

WATCH_S: Final = 0.002
"""How often a trial looks for a cancel."""

GRACE_S: Final = 0.01
"""The slower engine is given as much time again as the faster one took, and at least this; then it has lost."""

SHORT_S: Final = 0.05
"""A race that took less than this is short."""
ROUNDS: Final = 3
"""After a close race each engine solves alone this many times if the race was short, else once."""

MUCH_LONGER: Final = 4.0
AT_LEAST_MS: Final = 50.0
"""Both engines are tried again once a solve from zero takes longer than `MUCH_LONGER` times the solve that decided the
race, and longer than `AT_LEAST_MS`. A solve that is cancelled after that time counts too."""


@dataclass(eq=False, slots=True)
class AutoState(FlowState):
    """A flow state of whichever engine has it now."""

    terminals: Terminals
    inner: FlowState


class AutoEngine(Engine):
    """The engine of ``open_host`` until the first cold solve; then the faster of this one and that of ``open_rival``,
    on the same network, until that proves to be slow. Both engines ask ``room``."""

    def __init__(
        self,
        network: Network,
        open_host: Callable[[Network], Engine],
        open_rival: Callable[[Network], Engine],
        room: Room = unlimited,
    ) -> None:
        self.network = network
        self._room = room
        self._engine = open_host(network)
        self._trying: Engine | None = None
        """The other engine during a trial, on the same network."""
        self._open, self._open_other = open_host, open_rival
        self._longest_ms = 0.0
        """The limit of a solve from zero, in ms, beyond which both engines are tried again; 0 before the first
        trial."""
        self._states: list[AutoState] = []
        self._verdict = ""

    @property
    def name(self) -> str:  # type: ignore[override]  # a plain attribute elsewhere, here it changes
        """The name of the engine that has the states now."""
        return self._engine.name

    def open(self, terminals: Terminals) -> AutoState:
        return self._keep(terminals, self._engine.open(terminals))

    def restore(self, terminals: Terminals, arrays: Mapping[str, NDArray[np.generic]]) -> AutoState:
        return self._keep(terminals, self._engine.restore(terminals, arrays))

    def _keep(self, terminals: Terminals, inner: FlowState) -> AutoState:
        state = AutoState(terminals, inner)
        self._states.append(state)
        return state

    def update(self, rows: EdgeArray, capacity: UnitArray) -> None:
        self._engine.update(rows, capacity)

    def grow(self, growth: Growth) -> None:
        self._engine.grow(growth)
        self.network = growth.network

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        control = control or Control()
        report = self._solve_in_time(state, control, cold) if self._longest_ms > 0 else None
        if report is None:
            present, longest_ms = self._engine, self._engine.longest_ms
            try:
                report = self._try_both(state, control)
            except BaseException:
                present.longest_ms = longest_ms
                raise
            finally:
                self._trying = None
        return replace(report, reason=f"{report.reason}; {self._verdict}")

    def _solve_in_time(self, state: FlowState, control: Control, cold: bool) -> SolveReport | None:
        """Solve on the present engine; None if it has stopped by itself. One that does not, and takes too long, stops
        before its next solve from zero."""
        began = perf_counter()
        try:
            report = self._engine.solve(_inner(state), control, cold=cold)
        except TooSlow:
            return None
        except Cancelled:
            self._note(1e3 * (perf_counter() - began))
            raise
        if report.mode is Mode.COLD:
            self._note(report.timings_ms["solve"])
        return report

    def _note(self, took_ms: float) -> None:
        """Note the time of a solve, or of one that was cancelled after this time."""
        if took_ms > self._longest_ms:
            self._engine.longest_ms = 0.0

    def _try_both(self, state: FlowState, control: Control) -> SolveReport:
        """Solve cold on both; the state and all others move to the faster engine, which solves the others when they are
        asked for.

        Raises `Cancelled`; nothing is decided then. The other engine has lost if it cannot be opened, or fails.
        """
        present = self._engine
        present.longest_ms = inf
        try:
            other = self._trying = self._open_other(self.network)
            moved = [other.open(each.terminals) for each in self._states]
        except (MemoryError, RuntimeError, OutOfMemory) as error:
            self._verdict = f"{present.name} alone can hold the network: {error}"
            report = present.solve(_inner(state), control, cold=True)
            self._decide(report)
            return report
        inner = [_inner(state), moved[self._states.index(_own(state))]]
        race = Race([present, other], inner, control, self._room)
        first, close = race.run()
        if close:
            first = race.alone()
        self._verdict = race.verdict(first)
        if first == 1:
            self._engine = other
            self._open, self._open_other = self._open_other, self._open
            for each, new in zip(self._states, moved, strict=True):
                present.close(each.inner)
                each.inner = new
        self._decide(race.report)
        return race.report

    def _decide(self, report: SolveReport) -> None:
        """Keep the engine of this solve while its solves from zero do not take much longer."""
        self._engine.longest_ms = self._longest_ms = max(MUCH_LONGER * report.timings_ms["solve"], AT_LEAST_MS)

    def cut(self, state: FlowState, control: Control | None = None, *, near: End = "sources") -> Cut:
        return self._engine.cut(_inner(state), control, near=near)

    def bottlenecks(self, state: FlowState, control: Control | None = None) -> Bottlenecks:
        return self._engine.bottlenecks(_inner(state), control)

    def flow(self, state: FlowState, control: Control | None = None, *, acyclic: bool = True) -> UnitArray:
        return self._engine.flow(_inner(state), control, acyclic=acyclic)

    def fork(self, state: FlowState, room: Room = unlimited, *, on_host: bool = False) -> Fork:
        return self._engine.fork(_inner(state), room, on_host=on_host)

    def certificate(self, state: FlowState, *, complete: bool = True) -> Certificate:
        return self._engine.certificate(_inner(state), complete=complete)

    def export(self, state: FlowState) -> dict[str, NDArray[np.generic]]:
        return self._engine.export(_inner(state))

    def close(self, state: FlowState) -> None:
        own = _own(state)
        self._states.remove(own)
        self._engine.close(own.inner)

    @property
    def nbytes(self) -> int:
        return self._engine.nbytes + (self._trying.nbytes - self.network.nbytes if self._trying else 0)

    @property
    def device_nbytes(self) -> int:
        return self._engine.device_nbytes + (self._trying.device_nbytes if self._trying else 0)

    @property
    def needs(self) -> Needs:
        return self._engine.needs


def _own(state: FlowState) -> AutoState:
    assert isinstance(state, AutoState)
    return state


def _inner(state: FlowState) -> FlowState:
    return _own(state).inner


class Race:
    """Engines that solve the same state cold, at the same time or in turn."""

    def __init__(self, engines: Sequence[Engine], states: Sequence[FlowState], control: Control, room: Room) -> None:
        self._entries = list(zip(engines, states, strict=True))
        self._control = control
        self._room = room
        self._errors: list[BaseException | None] = [None] * len(engines)
        self.report: SolveReport
        """The report of the winner."""
        self._spent_s = 0.0

    def verdict(self, first: int) -> str:
        """Why the engine with this index has won, as a text for people."""
        winner, loser = (self._entries[i][0].name for i in (first, 1 - first))
        error = self._errors[1 - first]
        if isinstance(error, OutOfMemory):
            return f"{winner} alone can solve the network: {error}"
        if error is None or isinstance(error, Cancelled):
            return f"{winner} was faster than {loser} in a trial"
        return f"{winner} alone solved the network in a trial, as {loser} failed: {type(error).__name__}: {error}"

    def run(self) -> tuple[int, bool]:
        """Solve on all engines at once. The others get as much time again as the first one has taken, then they are
        cancelled. Returns the index of the first one, and whether the others have ended in that time.

        Raises `Cancelled` if the caller cancelled, and a solve's error if none succeeds.
        """
        controls = [Control() for _ in self._entries]
        began = perf_counter()
        with ThreadPoolExecutor(len(controls), "trial") as pool:
            runs = [
                pool.submit(engine.solve, state, own, cold=True)
                for (engine, state), own in zip(self._entries, controls, strict=True)
            ]
            first = self._first(runs)
            self._spent_s = perf_counter() - began
            if first is not None:
                wait(runs, max(self._spent_s, GRACE_S))
            for own in controls:
                own.cancel()
        if first is None:
            raise Cancelled("the solve was cancelled")
        self.report = runs[first].result()
        self._control.add(controls[first].progress())
        self._errors = [run.exception() for run in runs]
        return first, all(error is None for error in self._errors)

    def alone(self) -> int:
        """Which engine is faster when it solves alone: a first solve touches new memory, and two at once share the
        host's cores. Raises `Cancelled`."""
        best_s = [inf] * len(self._entries)
        reports: list[SolveReport | None] = [None] * len(self._entries)
        for _ in range(ROUNDS if self._spent_s < SHORT_S else 1):
            for i, (engine, state) in enumerate(self._entries):
                began = perf_counter()
                try:
                    self._room(Footprint() - engine.needs.scratch)  # of its solve before
                    reports[i] = engine.solve(state, self._control, cold=True)
                except (MemoryError, RuntimeError, OutOfMemory) as error:
                    self._errors[i] = error
                    best_s[i] = inf
                    continue
                best_s[i] = min(best_s[i], perf_counter() - began)
        first = best_s.index(min(best_s))
        report, failure = reports[first], self._errors[first]
        if report is None:
            assert failure is not None
            raise failure
        self.report = report
        return first

    def _first(self, runs: Sequence[Future[SolveReport]]) -> int | None:
        """Index of the first to succeed; None once the caller cancels."""
        pending = set(runs)
        while not self._control.cancelled:
            ended, pending = wait(pending, WATCH_S, FIRST_COMPLETED)
            good = [i for i, run in enumerate(runs) if run in ended and run.exception() is None]
            if good:
                return good[0]
            if not pending:
                runs[0].result()
        return None
