"""The rules that all engines share: when a flow state is repaired and when it is solved from zero.

A state that was solved once is kept a pseudoflow by updates (`gpu_engine.cpu.repair`): it lacks flow or holds too much
only at the ends of changed edges, its *broken* ends. If there are none, flow and cut are still optimal. If there are, a
repair drains their deficits and excesses, unless a cold solve is expected to be faster, or proves to be. What is
expected is learned from how long either took (`Patience`).
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isinf
from time import perf_counter
from typing import Any, Final, Generic, TypeVar

from numpy.typing import NDArray

from gpu_engine.control import Control
from gpu_engine.engine import Engine, FlowState, Mode, SolveReport
from gpu_engine.errors import InvalidNetwork
from gpu_engine.footprint import Footprint, Room
from gpu_engine.networks.free import free_roles
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import EdgeArray, UnitArray

MANY_BROKEN: Final = 100
"""Fewer broken ends than this count as few, unless an engine says otherwise (`Patience.least`)."""
SPARSE_DEGREE: Final = 16
"""A network with fewer arcs than this for each vertex counts as sparse."""
WEIGHT: Final = 0.25
"""The weight of the latest repair in the moving mean of the repairs of its size."""

WORSE: Final = 1.1
"""Repairs of a size are not tried while their mean time is above this multiple of a cold solve's time."""

TRIFLE_MS: Final = 1.0
"""Few broken ends are repaired even if the mean time is above that of a cold solve by less than this: other work on the
machine delays a solve by as much."""

MUCH_WORSE: Final = 1.5
"""A mean time above this multiple of a cold solve's time is tried again after `RETRY_LATE` refusals, else after
`RETRY_SOON`."""
RETRY_SOON: Final = 4
RETRY_LATE: Final = 32


@dataclass(slots=True)
class Patience:
    """The times of one flow state's solves: of cold ones, and of repairs by the size of what was to be repaired.

    The size is the number of broken ends, in powers of two. A mean decides and not the last
    repair, because repairs of one size differ by a factor of five and more.
    """

    least: int = MANY_BROKEN
    """Fewer broken ends than this are repaired until repairs of their size have proven to be slower by `TRIFLE_MS`."""
    slow_from: int = 1 << 62
    """Broken ends from which on a repair that nobody has tried yet is expected to be slower than a cold solve."""
    cold_ms: float = float("inf")
    """The time of the last cold solve, in ms."""
    _means: dict[int, float] = field(default_factory=dict)
    """Bits of the number of broken ends -> mean time of repairs in ms."""
    _refused: int = 0

    def start_with(self, n_vertices: int, n_arcs: int) -> None:
        """Set a first guess from the counts: many small repairs cost more than one cold solve in sparse networks, where
        excess travels far."""
        if n_arcs < SPARSE_DEGREE * n_vertices:
            self.slow_from = max(self.least, n_vertices // 200)

    def allows(self, n_broken: int) -> bool:
        """Whether a state with so many broken ends should be repaired, and not be solved from zero. Now and then a
        repair is allowed that is expected to be slower."""
        expected_ms = self._expected_ms(n_broken)
        if n_broken < self.least:
            is_new = n_broken.bit_length() not in self._means
            if is_new or expected_ms - self.cold_ms < TRIFLE_MS:
                return True
        if expected_ms <= WORSE * self.cold_ms:
            return True
        self._refused += 1
        return self._refused % (RETRY_SOON if expected_ms < MUCH_WORSE * self.cold_ms else RETRY_LATE) == 0

    def learn(self, n_broken: int, repair_ms: float) -> None:
        """A repair of so many broken ends took so long, or was given up.

        It counts as at most twice a cold solve, so that a few fast repairs outweigh a very slow one. Nothing is learned
        of a restored state before its first cold solve, as there is nothing to compare a repair with.
        """
        if isinf(self.cold_ms):
            return
        before = self._expected_ms(n_broken)
        self._means[n_broken.bit_length()] = before + WEIGHT * (min(repair_ms, 2 * self.cold_ms) - before)

    def _expected_ms(self, n_broken: int) -> float:
        """The mean time of repairs of this size. For a size that was never repaired: the longest mean of a smaller
        size, or a guess from the cold solve if that is longer."""
        size = n_broken.bit_length()
        if size in self._means:
            return self._means[size]
        guess = (2 if n_broken >= self.slow_from else 0.5) * self.cold_ms
        return max([guess, *(mean for smaller, mean in self._means.items() if smaller < size)])


class TooSlow(Exception):
    """A repair has taken longer than a cold solve takes, or a cold solve longer than `Engine.longest_ms`. The state can
    be solved from zero."""


@dataclass(eq=False, slots=True, kw_only=True)
class IncrementalState(FlowState):
    """The part of a flow state that all engines have."""

    terminals: Terminals
    role: Any
    """int8[n] where the engine keeps it: `gpu_engine.networks.free`."""
    value: int = 0
    """The value of the flow, in units; after an update, the capacity of the cut at hand."""
    settled_value: int = 0
    """The value when it was solved last."""
    solved: bool = False
    """False: the next solve is from zero."""
    patience: Patience = field(default_factory=Patience)
    moved: bool = False
    """A solve has moved flow since this was set to False."""


State = TypeVar("State", bound=IncrementalState)


class IncrementalEngine(Engine, Generic[State]):
    """One network with flow states that are repaired after updates. An engine adds where the arrays live."""

    _states: list[State]
    _room: Room

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        own, control, began = self._own(state), control or Control(), perf_counter()
        if cold or not own.solved:
            mode, reason = Mode.COLD, "asked for" if cold else "no earlier flow to start from"
            counters = self._solve_cold_timed(own, control)
        else:
            mode, reason, counters = self._solve_warm(own, control)
        own.settled_value = own.value
        self._forget_changes(own)
        timings_ms = {"solve": (perf_counter() - began) * 1e3}
        return SolveReport(mode, own.value, self.name, counters, timings_ms, reason)

    def close(self, state: FlowState) -> None:
        self._states.remove(self._own(state))

    def _own(self, state: FlowState) -> State:
        """Raises ValueError for a state of another engine, or one that was closed."""
        for own in self._states:
            if own is state:
                return own
        raise ValueError("a flow state of another engine, or one that was closed")

    def _solve_cold_timed(self, state: State, control: Control) -> Mapping[str, int]:
        if not self.longest_ms:
            raise TooSlow
        began, state.moved = perf_counter(), True
        with self._giving_back():
            counters = self._solve_cold(state, control)
        state.solved = True
        state.patience.cold_ms = (perf_counter() - began) * 1e3
        return counters

    def _solve_warm(self, state: State, control: Control) -> tuple[Mode, str, Mapping[str, int]]:
        n_broken = self._count_broken(state)
        if not n_broken:
            nothing = control.progress()
            if state.value != state.settled_value:
                return Mode.WARM, "the cut is still minimum, its capacity changed", nothing
            changed = self._is_changed(state)
            reason = "flow and cut are still optimal" if changed else "no change since the last solve"
            return Mode.UNCHANGED, reason, nothing
        if not state.patience.allows(n_broken):
            counters = self._solve_cold_timed(state, control)
            return Mode.COLD, f"{n_broken} broken ends: solving anew is faster", counters
        began, state.moved = perf_counter(), True
        try:
            with self._giving_back():
                counters = self._repair(state, control)
        except TooSlow:
            state.patience.learn(n_broken, float("inf"))
            counters = self._solve_cold_timed(state, control)
            return Mode.COLD, "a repair took longer than a cold solve does", counters
        state.patience.learn(n_broken, (perf_counter() - began) * 1e3)
        return Mode.WARM, "repaired from the last flow", counters

    @contextmanager
    def _giving_back(self) -> Iterator[None]:
        """If the solve inside is given up, say that its working memory is free again: the cold solve that follows asks
        for it anew."""
        try:
            yield
        except TooSlow:
            self._room(Footprint() - self.needs.scratch)
            raise

    @abstractmethod
    def _solve_cold(self, state: State, control: Control) -> Mapping[str, int]:
        """Solve from zero flow and set the value; counters of the work. The state is unsolved from its first change on.

        Raises `Cancelled`, or `TooSlow`.
        """

    @abstractmethod
    def _repair(self, state: State, control: Control) -> Mapping[str, int]:
        """Drain the deficits and excesses of the broken ends, and keep the value up; counters of the work.

        Raises `Cancelled`, or `TooSlow`.
        """

    @abstractmethod
    def _count_broken(self, state: State) -> int:
        """The number of broken ends; 0 if the state is optimal."""

    @abstractmethod
    def _is_changed(self, state: State) -> bool:
        """Whether an update has changed edges since the last solve."""

    @abstractmethod
    def _forget_changes(self, state: State) -> None:
        """Note that the state is optimal, and that no changed edge has a broken end."""

    def _update_infinite(self, rows: EdgeArray, capacity: UnitArray) -> None:
        """Update edges of which some become or cease to be infinite. Every state has to be solved from zero afterwards,
        because its free vertices may be others."""
        network = self.network
        old = network.capacity[rows].copy()
        network.set_capacity(rows, capacity)
        try:
            roles = [self._kept_role(free_roles(network, state.terminals)) for state in self._states]
            self._store_infinite(rows, capacity)
        except Exception:
            network.set_capacity(rows, old)
            raise
        for state, role in zip(self._states, roles, strict=True):
            state.role, state.solved = role, False

    def _kept_role(self, role: NDArray[Any]) -> Any:
        """The array where the engine keeps it."""
        return role

    @abstractmethod
    def _store_infinite(self, rows: EdgeArray, capacity: UnitArray) -> None:
        """Put new capacities, some of which are or were infinite, beside the network's own."""

    def _keep_restored(self, state: State, fill: Callable[[], None]) -> None:
        """The end of `restore`: the open state stays if what ``fill`` puts into it is a maximum flow.

        Raises `InvalidNetwork`; the state is then closed.
        """
        try:
            fill()
            certificate = self.certificate(state)
        except (KeyError, ValueError) as error:
            self.close(state)
            raise InvalidNetwork(f"the saved flow state does not fit the network: {error}") from None
        except Exception:
            self.close(state)
            raise
        if not certificate.valid:
            self.close(state)
            raise InvalidNetwork(f"the saved flow state fails its checks: {'; '.join(certificate.failures)}")
        state.value = state.settled_value = certificate.value
        state.solved = True
