"""The CPU engine: cold solves by `drain`, warm ones by `repair.search` with `drain` behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks import Certificate, certify, own_supply
from gpu_engine.cpu import cuts, repair, sides
from gpu_engine.cpu.decompose import add_returned, distribute, flow_residual
from gpu_engine.cpu.drain import drain
from gpu_engine.cpu.scratch import Scratch
from gpu_engine.engine import Control, Cut, Engine, FlowState, KeptState, Mode, SolveReport
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Footprint, Needs, Room, on_cpu, unlimited
from gpu_engine.networks.free import ORDINARY, SOURCE, free_vertices, route_free_flow
from gpu_engine.networks.links import shift_arc_capacity
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, BoolArray, EdgeArray, UnitArray, VertexArray

SEARCH_SHARE = 16
"""`repair.search` may scan this fraction of the arcs a cold solve scanned before `drain` takes over."""

NEAR = 1024
"""Arcs a first search scans around each broken vertex."""

SPARSE_DEGREE = 16
MANY_BROKEN = 100

RETRY_EVERY = 32

_SCRATCH = Scratch()
_NOTHING: VertexArray = np.empty(0, np.int32)


@dataclass(eq=False, slots=True)
class CpuFlowState(KeptState):
    """See `gpu_engine.cpu.repair` for the invariants. At rest 8 bytes an arc and 10 a vertex."""

    terminals: Terminals
    role: NDArray[np.int8]
    residual: UnitArray
    excess: UnitArray
    source_side: BoolArray
    value: int = 0
    settled_value: int = 0
    solved: bool = False
    cold_arcs_scanned: int = 0
    patience: "Patience" = field(default_factory=lambda: Patience())
    touched: list[EdgeArray] = field(default_factory=list)
    """Edge rows changed since the last solve; away from their ends all is settled."""
    touched_nbytes: int = 0
    interrupted: bool = False
    """A warm solve was cancelled: broken vertices may be anywhere."""

    @property
    def nbytes(self) -> int:
        at_rest = self.role.nbytes + self.residual.nbytes + self.excess.nbytes + self.source_side.nbytes
        return at_rest + self.touched_nbytes

    def touch(self, rows: EdgeArray) -> None:
        self.touched.append(rows)
        self.touched_nbytes += rows.nbytes

    def settle(self) -> None:
        """Nothing is broken any more."""
        self.touched, self.touched_nbytes, self.interrupted = [], 0, False


@dataclass(slots=True)
class Patience:
    """When a repair is not worth trying, learned from how long repairs and cold solves of this state took."""

    cold_ms: float = float("inf")
    """How long the last cold solve took."""
    give_up_at: int = 1 << 62
    """Broken vertices from which on a cold solve is expected to be faster."""
    refused: int = 0
    least: int = MANY_BROKEN
    """Fewer broken vertices than this are always repaired."""

    def start_with(self, n_vertices: int, n_arcs: int) -> None:
        """A first guess: excess travels far in sparse networks, so many small repairs cost more than one flood."""
        if n_arcs < SPARSE_DEGREE * n_vertices:
            self.give_up_at = max(self.least, n_vertices // 200)

    def allows(self, n_broken: int) -> bool:
        """False if a cold solve should be made; now and then a repair is tried all the same."""
        if n_broken < self.give_up_at:
            return True
        self.refused += 1
        return self.refused % RETRY_EVERY == 0

    def learn(self, n_broken: int, repair_ms: float) -> None:
        """A repair of so many broken vertices took so long."""
        if repair_ms > self.cold_ms:
            self.give_up_at = min(self.give_up_at, max(self.least, n_broken))
        elif n_broken >= self.give_up_at:
            self.give_up_at = 2 * n_broken


class CpuEngine(Engine):
    """Numba kernels on one core; the GIL is released while they run. Asks ``room`` before it takes memory."""

    name = "cpu"

    def __init__(self, network: Network, room: Room = unlimited) -> None:
        self.network = network
        self._room = room
        self._states: list[CpuFlowState] = []
        room(Footprint(8 * network.n_arcs))
        self._capacity = network.arc_capacity()
        """int64[arcs], kept up with the edges': summing them up anew takes as long as a small solve."""

    def open(self, terminals: Terminals) -> CpuFlowState:
        terminals.check(self.network.n_vertices)
        self._room(self.needs.state)
        n = self.network.n_vertices
        state = CpuFlowState(
            terminals,
            role=free_vertices(self.network, terminals).role,
            residual=np.empty(self.network.n_arcs, np.int64),
            excess=np.empty(n, np.int64),
            source_side=np.empty(n, np.bool_),
        )
        state.patience.start_with(n, self.network.n_arcs)
        self._states.append(state)
        return state

    def update(self, rows: EdgeArray, capacity: UnitArray) -> None:
        network = self.network
        change = network.check_update(rows, capacity)
        if change.touches_infinite:
            self._update_infinite(rows, capacity)
            return
        columns = rows, capacity, network.capacity, network.edge_arc, network.undirected
        for state in self._states:
            if state.solved:
                state.value += repair.apply(
                    *columns,
                    self._capacity,
                    network.head,
                    network.reverse_arc,
                    state.residual,
                    state.excess,
                    state.source_side,
                )
                state.touch(rows)
        shift_arc_capacity(*columns, network.reverse_arc, self._capacity, INFINITE_RESIDUAL)
        network.set_capacity(rows, capacity)

    def _update_infinite(self, rows: EdgeArray, capacity: UnitArray) -> None:
        """An edge becomes or ceases to be infinite: the free vertices may change, so every state goes cold."""
        old = self.network.capacity[rows].copy()
        self.network.set_capacity(rows, capacity)
        try:
            roles = [free_vertices(self.network, state.terminals).role for state in self._states]
        except Exception:
            self.network.set_capacity(rows, old)
            raise
        self._capacity = self.network.arc_capacity()
        for state, role in zip(self._states, roles, strict=True):
            state.role, state.solved = role, False

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        assert isinstance(state, CpuFlowState)
        control = control or Control()
        began = perf_counter()
        if cold or not state.solved:
            mode, reason = Mode.COLD, "asked for" if cold else "no earlier flow to start from"
            self._solve_cold(state, control)
        else:
            mode, reason = self._solve_warm(state, control)
        state.settled_value = state.value
        elapsed_ms = (perf_counter() - began) * 1e3
        return SolveReport(mode, state.value, self.name, control.progress(), {"solve": elapsed_ms}, reason)

    def _solve_cold(self, state: CpuFlowState, control: Control) -> None:
        self._room(self.needs.scratch)
        began = perf_counter()
        state.solved = False
        state.settle()
        state.residual[:] = self._capacity
        _go_on(control)
        state.excess[:] = own_supply(self.network.n_vertices, state.terminals)
        state.source_side[:] = state.role == SOURCE
        sources = np.flatnonzero(state.source_side).astype(np.int32)
        repair.saturate(*self._csr, sources, state.residual, state.excess, state.source_side)
        scanned_before = control.progress()["arcs_scanned"]
        self._drain(state, control, deficits=False)
        state.cold_arcs_scanned = control.progress()["arcs_scanned"] - scanned_before
        state.value = self._value(state)
        state.solved = True
        state.patience.cold_ms = (perf_counter() - began) * 1e3

    def _value(self, state: CpuFlowState) -> int:
        demand = state.terminals.demand
        return int(demand[demand != INFINITE].sum()) + sides.sink_side_excess(state.source_side, state.excess)

    def _solve_warm(self, state: CpuFlowState, control: Control) -> tuple[Mode, str]:
        began = perf_counter()
        lacking, holding = self._broken(state, True), self._broken(state, False)
        n_broken = len(lacking) + len(holding)
        if not n_broken:
            touched = bool(state.touched)
            state.settle()
            if state.value != state.settled_value:
                return Mode.WARM, "the cut is still minimum, its capacity changed"
            return Mode.UNCHANGED, "flow and cut are still optimal" if touched else "no change since the last solve"
        if not state.patience.allows(n_broken):
            self._solve_cold(state, control)
            return Mode.COLD, f"{n_broken} broken vertices: solving anew is faster"
        self._room(self.needs.scratch)
        self._settle(state, control, lacking, deficits=True)
        self._settle(state, control, self._broken(state, False), deficits=False)
        state.settle()
        state.patience.learn(n_broken, (perf_counter() - began) * 1e3)
        return Mode.WARM, "repaired from the last flow"

    def _broken(self, state: CpuFlowState, deficits: bool) -> VertexArray:
        if state.interrupted:
            lacks = state.source_side & (state.excess < 0)
            holds = ~state.source_side & (state.excess > 0)
            return np.flatnonzero((lacks if deficits else holds) & (state.role == ORDINARY)).astype(np.int32)
        if not state.touched:
            return _NOTHING
        rows = state.touched[0] if len(state.touched) == 1 else np.concatenate(state.touched)
        network = self.network
        return repair.broken(
            rows,
            network.edge_arc,
            network.head,
            network.reverse_arc,
            state.excess,
            state.role,
            state.source_side,
            deficits,
        )

    def _settle(self, state: CpuFlowState, control: Control, start: VertexArray, *, deficits: bool) -> None:
        """Restore invariant (b) if ``deficits``, else (c), of `repair`: near targets first, then far ones."""
        limit = state.cold_arcs_scanned // SEARCH_SHARE
        for reach in (NEAR, limit):
            if not len(start):
                return
            start = start[: self._search(state, control, start, deficits, reach, limit)]
        if not len(start):
            return
        self._drain(state, control, deficits=deficits)

    def _search(
        self, state: CpuFlowState, control: Control, start: VertexArray, deficits: bool, reach: int, limit: int
    ) -> int:
        _SCRATCH.reserve(self.network.n_vertices)
        left, _SCRATCH.epoch, gained = repair.search(
            *self._csr,
            state.residual,
            state.excess,
            state.role,
            state.source_side,
            start,
            deficits,
            _SCRATCH.epoch,
            _SCRATCH.stamp,
            _SCRATCH.via,
            _SCRATCH.queue,
            control.slots,
            reach,
            limit,
        )
        state.value += gained
        return left

    def _drain(self, state: CpuFlowState, control: Control, *, deficits: bool) -> None:
        """Settle one whole side; raises `Cancelled` with the state a pseudoflow that can be settled later."""
        if not control.cancelled:
            role = sides.drain_roles(state.role, state.source_side, deficits)
            moved = drain(self.network, state.residual, state.excess, role, control, _SCRATCH, mirrored=deficits)
            if not control.cancelled:
                held = sides.move(moved, state.source_side, state.excess, not deficits)
                state.value += held if deficits else -held
                return
        state.interrupted = True
        raise Cancelled("the solve was cancelled")

    @property
    def _csr(self) -> tuple[VertexArray, VertexArray, VertexArray]:
        return self.network.row_offsets, self.network.head, self.network.reverse_arc

    def cut(self, state: FlowState, control: Control | None = None) -> Cut:
        assert isinstance(state, CpuFlowState)
        self._room(self.needs.cut)
        side, slots = state.source_side, (control or Control()).slots
        least, takes = (
            cuts.reachable(*self._csr, state.residual, state.excess, state.role, side, forward, slots)
            for forward in (True, False)
        )
        network = self.network
        columns = network.edge_arc, network.head, network.reverse_arc, network.capacity, network.undirected
        edges, unique = cuts.crossing(*columns, least, ~takes, slots)
        _go_on(control)
        return Cut(least, edges, state.value, unique)

    def flow(self, state: FlowState, control: Control | None = None) -> UnitArray:
        assert isinstance(state, CpuFlowState)
        control = control or Control()
        self._room(self.needs.flow)
        free = free_vertices(self.network, state.terminals)
        capacity = self._capacity
        residual, excess = state.residual.copy(), state.excess.copy()
        for deficits in (False, True):
            self._return(state, capacity, residual, excess, control, deficits)
        route_free_flow(self.network, free, residual, excess)
        _go_on(control)
        np.subtract(capacity, residual, out=residual)
        del excess
        return distribute(self.network, residual)

    def _return(
        self,
        state: CpuFlowState,
        capacity: UnitArray,
        residual: UnitArray,
        excess: UnitArray,
        control: Control,
        deficits: bool,
    ) -> None:
        """Send the excess of S back to sources, or (``deficits``) draw what T lacks from sinks.

        Only flow at hand is cancelled: a drain over arcs whose residual is the flow of their reverse.
        """
        caps = state.terminals
        vertices, amounts = (caps.sinks, caps.demand) if deficits else (caps.sources, caps.supply)
        capped = amounts != INFINITE
        shift = np.zeros_like(excess)  # an unused supply or demand may stay where it is
        shift[vertices[capped]] = amounts[capped] * (-1 if deficits else 1)
        role = sides.drain_roles(state.role, state.source_side, not deficits)
        back = flow_residual(self.network.reverse_arc, capacity, residual)
        _go_on(control)
        excess -= shift
        drain(self.network, back, excess, role, control, _SCRATCH, mirrored=deficits, exact=True)
        _go_on(control)
        excess += shift
        add_returned(self.network.reverse_arc, capacity, residual, back)

    def certificate(self, state: FlowState) -> Certificate:
        assert isinstance(state, CpuFlowState)
        return certify(self.network, state.terminals, state.residual, state.excess, state.source_side)

    def export(self, state: FlowState) -> dict[str, NDArray[np.generic]]:
        assert isinstance(state, CpuFlowState)
        if not state.solved:
            return {}
        return {
            "flow": self._capacity - state.residual,
            "excess": state.excess.copy(),
            "source_side": state.source_side.copy(),
        }

    def restore(self, terminals: Terminals, arrays: Mapping[str, NDArray[np.generic]]) -> CpuFlowState:
        state = self.open(terminals)

        def fill() -> None:
            state.residual[:] = self._capacity - arrays["flow"].astype(np.int64)
            state.excess[:] = arrays["excess"]
            state.source_side[:] = arrays["source_side"]

        if arrays:
            self._keep_restored(state, fill)
        return state

    def close(self, state: FlowState) -> None:
        assert isinstance(state, CpuFlowState)
        self._states.remove(state)

    @property
    def nbytes(self) -> int:
        return self.network.nbytes + self._capacity.nbytes + sum(state.nbytes for state in self._states)

    @property
    def needs(self) -> Needs:
        return on_cpu(self.network.counts)


def _go_on(control: Control | None) -> None:
    """Between passes over all arcs: raises `Cancelled` if the flag is up."""
    if control is not None and control.cancelled:
        raise Cancelled("cancelled between two passes over the arcs")
