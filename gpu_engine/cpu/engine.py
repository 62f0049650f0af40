"""The CPU engine: cold solves by `drain`, warm ones by `repair.search` with `drain` behind it."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks.certificate import Certificate, certify, own_supply
from gpu_engine.cpu import derive, repair, sides
from gpu_engine.cpu.audit import Audit
from gpu_engine.cpu.derive import go_on
from gpu_engine.cpu.drain import drain
from gpu_engine.cpu.forking import ForkableEngine, ForkableState
from gpu_engine.cpu.scratch import SCRATCH
from gpu_engine.engine import Control, Cut, Engine, FlowState, Fork
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Footprint, Needs, Room, on_cpu, unlimited
from gpu_engine.networks.free import ORDINARY, SINK, SOURCE, free_vertices
from gpu_engine.networks.links import shift_arc_capacity
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, BoolArray, EdgeArray, UnitArray, VertexArray

SEARCH_SHARE = 16
"""`repair.search` may scan this fraction of the arcs a cold solve scanned before `drain` takes over."""

NEAR = 1024
"""Arcs a first search scans around each broken vertex."""

_NOTHING: VertexArray = np.empty(0, np.int32)


@dataclass(eq=False, slots=True, kw_only=True)
class CpuFlowState(ForkableState):
    """See `gpu_engine.cpu.repair` for the invariants. At rest 8 bytes an arc and 20 a vertex."""

    role: NDArray[np.int8]
    residual: UnitArray
    excess: UnitArray
    source_side: BoolArray
    cold_arcs_scanned: int = 0
    touched: list[EdgeArray] = field(default_factory=list)
    """Edge rows changed since the last solve; away from their ends all is settled."""
    touched_nbytes: int = 0
    audit: Audit | None = None
    """None: the next proof is a complete one."""
    interrupted: bool = False
    """A warm solve was cancelled: broken vertices may be anywhere."""

    @property
    def nbytes(self) -> int:
        """An audit counts before it is there, as its first proof may come when nobody asks for memory."""
        audited = self.role.nbytes + self.excess.nbytes + self.source_side.nbytes
        noted = self.audit.noted_nbytes if self.audit else 0
        return self.residual.nbytes + 2 * audited + self.touched_nbytes + noted

    def touch(self, rows: EdgeArray) -> None:
        self.touched.append(rows)
        self.touched_nbytes += rows.nbytes

    def copied(self) -> Self:
        return replace(
            self,
            residual=self.residual.copy(),
            excess=self.excess.copy(),
            source_side=self.source_side.copy(),
            touched=[*self.touched],
            audit=self.audit and self.audit.copy(),
            patience=deepcopy(self.patience),
        )

    def settle(self) -> None:
        """Nothing is broken any more."""
        self.touched, self.touched_nbytes, self.interrupted = [], 0, False


class CpuEngine(ForkableEngine[CpuFlowState]):
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
            terminals=terminals,
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
            if state.audit:
                state.audit.note_update(rows, capacity, network)
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

    def _store_infinite(self, rows: EdgeArray, capacity: UnitArray) -> None:
        for state in self._states:
            state.audit = None
        self._capacity = self.network.arc_capacity()

    def _solve_cold(self, state: CpuFlowState, control: Control) -> Mapping[str, int]:
        self._room(self.needs.scratch)
        state.solved, state.audit = False, None
        state.settle()
        state.residual[:] = self._capacity
        go_on(control)
        state.excess[:] = own_supply(self.network.n_vertices, state.terminals)
        state.source_side[:] = state.role == SOURCE
        sources = np.flatnonzero(state.source_side).astype(np.int32)
        repair.saturate(*self._csr, sources, state.residual, state.excess, state.source_side)
        scanned_before = control.progress()["arcs_scanned"]
        self._drain(state, control, deficits=False, repair=False)
        state.cold_arcs_scanned = control.progress()["arcs_scanned"] - scanned_before
        state.value = self._value(state)
        return control.progress()

    def _value(self, state: CpuFlowState) -> int:
        demand = state.terminals.demand
        return int(demand[demand != INFINITE].sum()) + sides.sink_side_excess(state.source_side, state.excess)

    def _count_broken(self, state: CpuFlowState) -> int:
        return len(self._broken(state, True)) + len(self._broken(state, False))

    def _is_changed(self, state: CpuFlowState) -> bool:
        return bool(state.touched)

    def _forget_changes(self, state: CpuFlowState) -> None:
        state.settle()

    def _repair(self, state: CpuFlowState, control: Control) -> Mapping[str, int]:
        self._room(self.needs.scratch)
        for deficits in (True, False):  # what deficits draw from T, T may lack or hold afterwards
            self._settle(state, control, self._broken(state, deficits), deficits=deficits)
        return control.progress()

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
        self._drain(state, control, deficits=deficits, repair=True)

    def _search(
        self, state: CpuFlowState, control: Control, start: VertexArray, deficits: bool, reach: int, limit: int
    ) -> int:
        SCRATCH.reserve(self.network.n_vertices)
        left, SCRATCH.epoch, gained, n_changed = repair.search(
            *self._csr,
            state.residual,
            state.excess,
            state.role,
            state.source_side,
            start,
            deficits,
            SCRATCH.epoch,
            SCRATCH.stamp,
            SCRATCH.via,
            SCRATCH.queue,
            SCRATCH.changed,
            control.slots,
            reach,
            limit,
        )
        state.value += gained
        if n_changed > len(SCRATCH.changed):
            state.audit = None
        elif state.audit:
            state.audit.note(SCRATCH.changed[:n_changed].copy())
        return left

    def _drain(self, state: CpuFlowState, control: Control, *, deficits: bool, repair: bool) -> None:
        """Settle one whole side; raises `Cancelled` with the state a pseudoflow that can be settled later."""
        state.audit = None
        if not control.cancelled:
            role = sides.drain_roles(state.role, state.source_side, deficits)
            arrays = state.residual, state.excess, role
            moved = drain(self.network, *arrays, control, SCRATCH, mirrored=deficits, repair=repair)
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
        self._room(self.needs.cut)
        return derive.cut(self.network, self._own(state), control)

    def flow(self, state: FlowState, control: Control | None = None, *, acyclic: bool = True) -> UnitArray:
        self._room(self.needs.flow)
        return derive.flow(self.network, self._own(state), self._capacity, control, acyclic=acyclic)

    def certificate(self, state: FlowState, *, complete: bool = True) -> Certificate:
        own = self._own(state)
        arrays = own.residual, own.excess, own.source_side
        if own.audit and not own.audit.is_full and not complete:
            proven = own.audit.certificate(self.network, own.terminals, self._capacity, *arrays)
            if proven.valid:
                return proven
        own.audit = None
        proven = certify(self.network, own.terminals, *arrays, self._capacity)
        if proven.valid and own.solved:
            own.audit = Audit.of(self.network, own.terminals, own.excess, own.source_side, proven)
        return proven

    def _alike(self, network: Network, room: Room) -> Self:
        return type(self)(network, room)

    def _recap(self, state: CpuFlowState, terminals: Terminals) -> bool:
        role, side = free_vertices(self.network, terminals).role, state.source_side
        if not state.solved or (side & (role == SINK)).any() or (~side & (role == SOURCE)).any():
            return False
        n = self.network.n_vertices
        state.excess += own_supply(n, terminals) - own_supply(n, state.terminals)
        state.terminals, state.role, state.audit = terminals, role, None
        state.interrupted = True  # any vertex may be broken
        state.value = self._value(state)
        return True

    def _agree(self, one: CpuFlowState, other: CpuFlowState, rows: EdgeArray) -> bool:
        arcs = self.network.edge_arc[rows]
        arcs = arcs[arcs >= 0]
        back = self.network.reverse_arc[arcs]
        heads, tails = self.network.head[arcs], self.network.head[back]
        return all((one.residual[at] == other.residual[at]).all() for at in (arcs, back)) and all(
            (one.excess[at] == other.excess[at]).all() for at in (heads, tails)
        )

    def export(self, state: FlowState) -> dict[str, NDArray[np.generic]]:
        own = self._own(state)
        if not own.solved:
            return {}
        return {
            "flow": self._capacity - own.residual,
            "excess": own.excess.copy(),
            "source_side": own.source_side.copy(),
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

    @property
    def nbytes(self) -> int:
        return self.network.nbytes + self._capacity.nbytes + sum(state.nbytes for state in self._states)

    @property
    def needs(self) -> Needs:
        return on_cpu(self.network.counts)


def fork_on_host(engine: Engine, terminals: Terminals, state: FlowState, room: Room = unlimited) -> Fork:
    """`Engine.fork` for the state of an engine whose memory is elsewhere: overlays are small, and here they take none
    of its memory. Takes what `export` and `restore` take."""
    host = CpuEngine(engine.network.fork(), room)
    return host.fork(host.restore(terminals, engine.export(state)), room)
