"""The CPU engine: cold solves by `drain`, warm ones by `repair.search` with `drain` behind it."""

from collections.abc import Mapping, Sequence
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks.certificate import Certificate, certify, own_supply
from gpu_engine.control import Control
from gpu_engine.cpu import derive, repair, sides
from gpu_engine.cpu.audit import Audit
from gpu_engine.cpu.derive import go_on
from gpu_engine.cpu.edge_flows import edge_flow
from gpu_engine.cpu.forking import ForkableEngine
from gpu_engine.cpu.near import Near, limit_for
from gpu_engine.cpu.pseudoflow import steps_taken
from gpu_engine.cpu.reroute import passes_on
from gpu_engine.cpu.scratch import SCRATCH
from gpu_engine.cpu.settling import broken, drain_side, repair_sides
from gpu_engine.cpu.state import CpuFlowState
from gpu_engine.cpu.trying import trials_of
from gpu_engine.engine import Bottlenecks, Cut, Engine, FlowState, Fork
from gpu_engine.footprint import Footprint, Needs, Room, on_cpu, unlimited
from gpu_engine.networks.free import ORDINARY, SINK, SOURCE, free_roles
from gpu_engine.networks.growing import Growth
from gpu_engine.networks.links import shift_arc_capacity
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.trials import Trials
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, BoolArray, EdgeArray, End, UnitArray

TRIED_SHARE: Final = 4
"""A change is tried (`gpu_engine.trials`) if the ends of its edges have at most one in this many of all arcs, for each
thread. For more arcs an overlay is faster, although it copies all arcs and only one thread works on it."""
LEAST_TRIED: Final = 1 << 16
"""A change with at most this many arcs at the ends of its edges is tried in any case."""
ANEW: Final = 2
"""An update of more than one edge in this many has all flows solved from zero: to enter it into a flow and to look for
what is broken took 0.2 to 3 times as long as that, and what was broken was nearly always too much to repair."""
LEAST_ANEW: Final = 4096
"""An update of fewer edges is entered in any case: that takes a quarter of a millisecond."""


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
            role=free_roles(self.network, terminals),
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
        anew = len(rows) >= LEAST_ANEW and ANEW * len(rows) > network.n_edges
        for state in self._states:
            if anew:
                state.solved, state.audit, state.near = False, None, None
                continue
            if state.near and state.near.changes_with(network, rows):
                self._fill(state)
            if state.audit:
                state.audit.note_update(rows, capacity, network)
            if state.near:
                state.touch(rows)
            elif state.solved:
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
        network.store(rows, capacity, change)

    def grow(self, growth: Growth) -> None:
        n_states, network = len(self._states), growth.network
        n_more = network.n_vertices - self.network.n_vertices
        self._room(Footprint(8 * network.n_arcs * (1 + n_states) + 20 * network.n_vertices * n_states))
        for state in self._states:
            self._fill(state)
        self._capacity, self.network = growth.moved(self._capacity), network
        for state in self._states:
            state.grow(growth, n_more)

    def _store_infinite(self, rows: EdgeArray, capacity: UnitArray) -> None:
        for state in self._states:
            state.audit = state.near = None
        self._capacity = self.network.arc_capacity()

    def _solve_cold(self, state: CpuFlowState, control: Control) -> Mapping[str, int]:
        self._room(self.needs.scratch)
        state.solved, state.audit, state.near = False, None, None
        state.settle()
        if state.may_be_near and self._is_near(state, control):
            return control.progress()
        state.residual[:] = self._capacity
        go_on(control)
        state.excess[:] = own_supply(self.network.n_vertices, state.terminals)
        state.source_side[:] = state.role == SOURCE
        sources = np.flatnonzero(state.source_side).astype(np.int32)
        network = self.network
        csr = network.row_offsets, network.head, network.reverse_arc
        repair.saturate(*csr, sources, state.residual, state.excess, state.source_side)
        scanned_before, steps_before = control.progress()["arcs_scanned"], steps_taken(control.slots)
        drain_side(self.network, state, control, deficits=False)
        state.cold_arcs_scanned = control.progress()["arcs_scanned"] - scanned_before
        state.cold_steps = steps_taken(control.slots) - steps_before
        state.narrow = bool(control.slots[Control.NARROW])
        state.value = self._value(state)
        return control.progress()

    def _is_near(self, state: CpuFlowState, control: Control) -> bool:
        """Whether a look around the terminals finds the flow; the state then has it as a list. What repairs may scan
        goes by a size of the network then, the least that a solve of the arrays costs."""
        n, arcs = self.network.n_vertices, self.network.n_arcs
        memory, limit = (SCRATCH.desk(n), SCRATCH.reach(n)), limit_for(self.network)
        state.near = Near.look(self.network, self._capacity, state.terminals, limit, *memory, control)
        if state.near is None:
            return False
        state.cold_arcs_scanned, state.cold_steps, state.narrow = n + arcs, n, False
        state.value = state.near.value
        return True

    def _fill(self, state: CpuFlowState) -> CpuFlowState:
        """The state with its flow in the arrays. O(n + arcs) if it was a list until now."""
        near, state.near = state.near, None
        if near:
            own = own_supply(self.network.n_vertices, state.terminals)
            arrays = state.residual, state.excess, state.source_side
            near.fill(self.network, self._capacity, own, state.terminals, arrays)
        return state

    def _value(self, state: CpuFlowState) -> int:
        demand = state.terminals.demand
        return int(demand[demand != INFINITE].sum()) + sides.sink_side_excess(state.source_side, state.excess)

    def _count_broken(self, state: CpuFlowState) -> int:
        if state.near:
            return 0
        return sum(len(broken(self.network, state, deficits)) for deficits in (True, False))

    def _is_changed(self, state: CpuFlowState) -> bool:
        return bool(state.touched)

    def _forget_changes(self, state: CpuFlowState) -> None:
        state.settle()

    def _repair(self, state: CpuFlowState, control: Control) -> Mapping[str, int]:
        self._room(self.needs.scratch)
        repair_sides(self.network, state, control)
        return control.progress()

    def cut(self, state: FlowState, control: Control | None = None, *, near: End = "sources") -> Cut:
        self._room(self.needs.cut)
        return derive.cut(self.network, self._fill(self._own(state)), control, near)

    def bottlenecks(self, state: FlowState, control: Control | None = None) -> Bottlenecks:
        self._room(self.needs.cut)
        return derive.limits(self.network, self._fill(self._own(state)), self._room, control)

    def flow(self, state: FlowState, control: Control | None = None, *, acyclic: bool = True) -> UnitArray:
        self._room(self.needs.flow)
        return edge_flow(self.network, self._fill(self._own(state)), self._capacity, control, acyclic=acyclic)

    def certificate(self, state: FlowState, *, complete: bool = True) -> Certificate:
        own = self._own(state)
        if own.near and not complete:
            ledger = SCRATCH.desk(self.network.n_vertices).ledger
            proven = own.near.certificate(self.network, self._capacity, own.terminals, ledger)
            if proven.valid:
                return proven
            own.may_be_near = False
        self._fill(own)
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

    def fork(self, state: FlowState, room: Room = unlimited, *, on_host: bool = False) -> Fork:
        return super().fork(self._fill(self._own(state)), room, on_host=on_host)

    def _alike(self, network: Network, room: Room) -> Self:
        return type(self)(network, room)

    def _recap(self, state: CpuFlowState, terminals: Terminals) -> bool:
        role, side = free_roles(self.network, terminals), self._fill(state).source_side
        if not state.solved or (side & (role == SINK)).any() or (~side & (role == SOURCE)).any():
            return False
        if self._passes_on(state, (state.role == ORDINARY) & (role != ORDINARY), role):
            return False
        n = self.network.n_vertices
        state.excess += own_supply(n, terminals) - own_supply(n, state.terminals)
        state.terminals, state.role, state.audit = terminals, role, None
        state.interrupted = True  # any vertex may be broken
        state.value = self._value(state)
        return True

    def _passes_on(self, state: CpuFlowState, freed: BoolArray, role: NDArray[np.int8]) -> bool:
        """Whether any flow goes into one of these vertices that is a source now, or out of one that is a sink, whatever
        it has on balance: while it was capped it may have stood on the way of another's flow, and nothing takes that
        back once it is free."""
        vertices = np.flatnonzero(freed).astype(np.int32)
        return passes_on(self.network.row_offsets, self._capacity, state.residual, role, vertices)

    def _open_trials(self, pinned: CpuFlowState, count: int) -> Sequence[Trials]:
        if not pinned.solved or pinned.touched or pinned.interrupted:
            return []
        flow = pinned.residual, pinned.excess, pinned.source_side
        of_flow = pinned.terminals, pinned.role, flow, pinned.value
        limit = max(pinned.cold_arcs_scanned, 4 * self.network.n_arcs)
        most = max(LEAST_TRIED, self.network.n_arcs // TRIED_SHARE * count)
        return trials_of(self.network, self._capacity, *of_flow, limit, most, count)

    def _agree(self, one: CpuFlowState, other: CpuFlowState, rows: EdgeArray) -> bool:
        arcs = self.network.edge_arc[rows]
        arcs = arcs[arcs >= 0]
        back = self.network.reverse_arc[arcs]
        heads, tails = self.network.head[arcs], self.network.head[back]
        return all((one.residual[at] == other.residual[at]).all() for at in (arcs, back)) and all(
            (one.excess[at] == other.excess[at]).all() for at in (heads, tails)
        )

    def export(self, state: FlowState) -> dict[str, NDArray[np.generic]]:
        own = self._fill(self._own(state))
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
