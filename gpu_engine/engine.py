"""One interface, several engines.

An engine holds one network and its flow states. A *flow state* is a terminal set with its residual, excess and
cut; it stays valid through any number of updates and is brought to a maximum flow again by `solve`, warm.
The order of use: open -> (update)* -> solve -> cut / flow / certificate, and again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks.certificate import Certificate
from gpu_engine.control import Control
from gpu_engine.errors import Unbounded
from gpu_engine.footprint import Footprint, Needs, Room, unlimited
from gpu_engine.networks.growing import Growth
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.trials import Trials
from gpu_engine.types import BoolArray, EdgeArray, End, UnitArray, VertexArray


class Mode(StrEnum):
    """How an answer was reached."""

    UNCHANGED = "unchanged"
    """The flow and cut at hand were still optimal; nothing was solved."""
    WARM = "warm"
    """Repaired from the flow state at hand."""
    COLD = "cold"
    """Solved from zero flow."""


@dataclass(frozen=True, slots=True)
class SolveReport:
    """How a solve went. Times are wall-clock milliseconds by phase; `value` is in units."""

    mode: Mode
    value: int
    engine: str
    counters: Mapping[str, int] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    """Why this mode was chosen, for people."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A minimum cut. ``source_side`` bool[n] holds all sources but those whose whole cap is used, and no uncapped sink.

    Of several it is the one nearest the sources or the one nearest the sinks, as asked, the same whatever was solved
    before: its source side is the intersection, or the union, of those of all minimum cuts.
    """

    source_side: BoolArray
    edges: EdgeArray
    """Rows of the edges with capacity that leave the source side (an undirected one in either orientation), rising."""
    value: int
    unique: bool
    """True if every minimum cut pays for the same: these edges, and the caps of the same terminals."""
    vertices: VertexArray = field(default_factory=lambda: np.empty(0, np.int32))
    """The vertices whose capacity is paid, rising; they lie on the source side."""
    passed: BoolArray | None = None
    """bool[n], where vertices have capacities: those on the source side that are not cut themselves. A sink among them
    pays its cap. None: all on the source side."""

    def paid(self, terminals: Terminals) -> Terminals:
        """The terminals whose caps are paid."""
        return terminals.paid_by(self.source_side, self.passed)


@dataclass(frozen=True, slots=True)
class Bottlenecks:
    """What limits a flow: the edges, caps and vertex capacities that some minimum cut pays, and for each whether every
    minimum cut pays it.

    If one of them falls, so does the value, from the first unit on. If one that every minimum cut pays rises, the value
    rises by one unit for the first unit. If another one rises alone, the value stays.
    """

    edges: EdgeArray
    """Rows of edges with capacity, rising."""
    in_every: BoolArray
    sources: VertexArray
    """Capped sources whose supply is paid, rising."""
    source_in_every: BoolArray
    sinks: VertexArray
    """Capped sinks whose demand is paid, rising."""
    sink_in_every: BoolArray
    vertices: VertexArray = field(default_factory=lambda: np.empty(0, np.int32))
    """Vertices whose capacity is paid, rising."""
    vertex_in_every: BoolArray = field(default_factory=lambda: np.empty(0, np.bool_))

    @property
    def columns(self) -> Sequence[NDArray[np.generic]]:
        every = self.in_every, self.source_in_every, self.sink_in_every, self.vertex_in_every
        return self.edges, self.sources, self.sinks, self.vertices, *every


class FlowState(ABC):
    """A terminal set solved on an engine's network; opaque outside its engine."""

    terminals: Terminals


class Engine(ABC):
    """One network and its flow states. Not thread-safe but for `Control`: callers keep one call at a time."""

    name: str
    network: Network
    longest_ms: float = inf
    """The limit of a solve from zero in milliseconds. An engine that can stop by itself ends a solve that takes longer;
    with a limit of 0 every engine refuses to begin one (see `solve`)."""

    @abstractmethod
    def open(self, terminals: Terminals) -> FlowState:
        """A new state at zero flow. Raises `InvalidTerminals`, `Unbounded` (with the path). O(n + m)."""

    @abstractmethod
    def update(self, rows: EdgeArray, capacity: UnitArray) -> None:
        """Give distinct edge rows new capacities; every open state is adjusted, none is solved.

        All or nothing: raises `CapacityOverflow`, or `Unbounded` for the first state the update leaves
        without a finite answer, before anything changes. O(k) for each state.
        """

    def capacity(self, rows: EdgeArray) -> UnitArray:
        """int64[k]: what `update` would have to be given to change nothing."""
        return self.network.capacity[rows]

    def check_update(self, rows: EdgeArray, capacity: UnitArray) -> None:
        """Raise `CapacityOverflow` as `update` would. O(k)."""
        self.network.check_update(rows, capacity)

    @abstractmethod
    def grow(self, growth: Growth) -> None:
        """Go on with a network that has grown out of the present one, and whose new edges have no capacity yet.

        Open states keep their flows, and what is broken of them; an engine that cannot carry one over leaves it to a
        cold solve. Forks go on with the network they have. After an exception the engine is of no more use. O(n + m)
        for each state.
        """

    @abstractmethod
    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        """Bring the state to a maximum flow. ``cold`` forces a solve from zero flow.

        Raises `Cancelled`, or `gpu_engine.incremental.TooSlow` after `longest_ms`; the state is then consistent and can
        be solved again.
        """

    @abstractmethod
    def cut(self, state: FlowState, control: Control | None = None, *, near: End = "sources") -> Cut:
        """The minimum cut of the last solve that is nearest this end, with uniqueness. O(n + m). Raises `Cancelled`."""

    @abstractmethod
    def bottlenecks(self, state: FlowState, control: Control | None = None) -> Bottlenecks:
        """What the minimum cuts of the last solve pay. O(n + m). Raises `Cancelled`."""

    @abstractmethod
    def flow(self, state: FlowState, control: Control | None = None, *, acyclic: bool = True) -> UnitArray:
        """int64[m]: the flow of each edge along its direction (negative: an undirected edge used backwards).

        Unless ``acyclic`` is False it has no cycles, and is short where `gpu_engine.cpu.routes` finds how with about as
        much work as a cold solve. The net flow of a link is given to its edges that can carry it in that direction, in
        row order, each filled before the next. The warm state is not disturbed. Cost: about a solve. Raises
        `Cancelled`.
        """

    @abstractmethod
    def certificate(self, state: FlowState, *, complete: bool = True) -> Certificate:
        """Prove the answer from capacities, residuals and excesses alone. O(n + m).

        Unless ``complete``, an engine may prove only what has changed since the last proof, in proportion to that.
        """

    @abstractmethod
    def fork(self, state: FlowState, room: Room = unlimited, *, on_host: bool = False) -> "Fork":
        """A copy of a solved state with capacities of its own. Neither sees what becomes of the other. O(n + m).

        The fork lies where the state lies and takes `Needs.fork`; if ``on_host`` it lies in host memory and takes
        `Needs.fork_on_host`. It asks ``room`` before it takes more memory.
        """

    @abstractmethod
    def export(self, state: FlowState) -> dict[str, NDArray[np.generic]]:
        """Arrays that `restore` accepts, on the same network at the same capacities. O(n + m)."""

    @abstractmethod
    def restore(self, terminals: Terminals, arrays: Mapping[str, NDArray[np.generic]]) -> FlowState:
        """A state from `export`; raises `InvalidNetwork` if the arrays do not belong to the network."""

    @abstractmethod
    def close(self, state: FlowState) -> None:
        """Forget the state and free its memory."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of host memory at rest, the network and all open states."""

    @property
    def device_nbytes(self) -> int:
        """Bytes of device memory at rest, the network and all open states."""
        return 0

    @property
    def footprint(self) -> Footprint:
        """Host and device memory at rest."""
        return Footprint(self.nbytes, self.device_nbytes)

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """The memory that the network, each flow state and a solve take, by the network's counts."""


@dataclass(eq=False, slots=True)
class Fork:
    """A flow state as it was once, on which overlays are tried one after the other, each from that same state."""

    engine: Engine
    """The engine of the fork, which nobody else uses. It has the capacities of that time while there is no overlay."""
    terminals: Terminals
    """The terminals of the state."""
    _copy: Callable[[], FlowState]
    """Opens one more copy of the state in the engine."""
    _is_copy: Callable[[FlowState, EdgeArray], bool]
    """Whether a copy equals the state again, now that an overlay of these rows is undone."""
    _recap: Callable[[FlowState, Terminals], bool]
    """Give a copy other caps of the same vertices. Returns False, and changes nothing, if its flow is of no use to
    them."""
    _trials: Callable[[int], Sequence[Trials]]
    """Opens trials of the state."""
    _spare: FlowState | None = None
    """An open copy of the state, unchanged."""
    _tried: FlowState | None = None
    _rows: EdgeArray | None = None
    _before: UnitArray | None = None

    def overlay(self, rows: EdgeArray, capacity: UnitArray, terminals: Terminals | None = None) -> FlowState:
        """The state under new capacities of distinct edge rows, not solved yet. It replaces the overlay before.

        Other caps of the same vertices may begin from the state as well, other ``terminals`` begin at zero flow. Raises
        as `Engine.update` and `Engine.open`; then there is no overlay. O(k), and O(n + m) for other terminals, or to
        copy the state if the overlay before has moved flow.
        """
        self.drop()
        if terminals is None:
            self._tried, self._spare = self._spare or self._copy(), None
            self._change(rows, capacity)
            return self._tried
        if terminals.joins_as(self.terminals):
            self._tried, self._spare = self._spare or self._copy(), None
            if self._is_of_use(self._tried, terminals):
                self._change(rows, capacity)
                return self._tried
            self._tried, self._spare = None, self._tried
        if self._spare is not None:  # it must not stand in the way of what has no bound for it
            self.engine.close(self._spare)
            self._spare = None
        self._change(rows, capacity)
        try:
            self._tried = self.engine.open(terminals)
        except BaseException:
            self.drop()
            raise
        return self._tried

    def trials(self, count: int) -> Sequence[Trials]:
        """The state with working memory for ``count`` threads, which `Needs.trial` is for; none if it is not solved.

        They see no overlay, and overlays may be tried meanwhile. O(n + m).
        """
        self.drop()
        return self._trials(count)

    def drop(self) -> None:
        """Forget the overlay. O(k)."""
        tried, self._tried = self._tried, None
        if tried is not None and tried.terminals is not self.terminals:  # it may have no bound without the overlay
            self._close(tried)
            tried = None
        if self._rows is not None and self._before is not None:
            self.engine.update(self._rows, self._before)
        if tried is not None and self._rows is not None and self._is_copy(tried, self._rows):
            self._spare = tried
        elif tried is not None:
            self._close(tried)
        self._rows = self._before = None

    def _close(self, state: FlowState) -> None:
        with suppress(ValueError):  # it has been closed already
            self.engine.close(state)

    def _is_of_use(self, copy: FlowState, terminals: Terminals) -> bool:
        """Give the copy these caps. Returns False if its flow is no start for them, or if a flow has no bound under
        them, which the change of capacities that follows may set."""
        try:
            return self._recap(copy, terminals)
        except Unbounded:
            return False

    def _change(self, rows: EdgeArray, capacity: UnitArray) -> None:
        before = self.engine.capacity(rows)
        self.engine.update(rows, capacity)
        self._rows, self._before = rows, before
