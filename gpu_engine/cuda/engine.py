"""The CUDA engine: the state machine of `gpu_engine.cpu.engine` with every array on the device.

A cold solve is one drain; an update is applied and classified in one launch; a warm solve drains only the sides on
which the update left a deficit or an excess. Nothing but a few counters is read back.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks.certificate import Certificate
from gpu_engine.control import Control
from gpu_engine.cuda import proving
from gpu_engine.cuda.arrange import Arrangement, sinks_first
from gpu_engine.cuda.host_answers import HostAnswers
from gpu_engine.cuda.launch.arrays import Array, Topology, new_arcs, unknown_labels
from gpu_engine.cuda.launch.growing import InsertedArcs, inserted_bytes, with_zeros
from gpu_engine.cuda.launch.state import saturate, zero_flow
from gpu_engine.cuda.launch.update import Batch
from gpu_engine.cuda.memory import DeviceFull, device_call
from gpu_engine.cuda.settling import settle
from gpu_engine.cuda.state import CudaFlowState
from gpu_engine.cuda.transfer import own_supply, put_flow
from gpu_engine.cuda.width import needs_wide, widen
from gpu_engine.engine import FlowState, SolveReport
from gpu_engine.footprint import Footprint, Needs, Room, arranging_bytes, on_cuda, unlimited
from gpu_engine.incremental import Patience
from gpu_engine.networks.free import SOURCE, free_roles
from gpu_engine.networks.growing import Growth
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, BoolArray, EdgeArray, UnitArray

FEW_BROKEN: Final = 32
"""Fewer broken ends than this are always repaired, at first."""

GIVE_UP_MS: Final = 1.0
GIVE_UP_SHARE: Final = 1.5
"""A repair is given up after `GIVE_UP_SHARE` times the time of the last cold solve, and `GIVE_UP_MS` more."""

MOST_APPENDED: Final = 8
"""A cold solve arranges the rows anew if more than one in this many arcs was appended to the end of its row."""


class CudaEngine(HostAnswers):
    """One device, the current one of the calling thread.

    Asks ``room`` before it takes memory. Each call raises `OutOfMemory` if the device is full, and can then be made
    again.
    """

    name = "cuda"

    @device_call
    def __init__(self, network: Network, room: Room = unlimited) -> None:
        room(Footprint(device=on_cuda(network.counts).network.device))
        topology = Topology(
            n=network.n_vertices,
            n_arcs=network.n_arcs,
            row_offsets=cupy.asarray(network.row_offsets),
            capacity=cupy.asarray(network.capacity),
            undirected=cupy.asarray(network.undirected),
        )
        self._begin(network, topology, room)

    def _begin(self, network: Network, topology: Topology, room: Room) -> None:
        self.network, self._topology, self._room = network, topology, room
        self._states: list[CudaFlowState] = []
        self._batch = Batch()
        self._infinite_arcs: BoolArray | None = network.infinite_arcs()

    @device_call
    def open(self, terminals: Terminals) -> CudaFlowState:
        terminals.check(self.network.n_vertices)
        role = free_roles(self.network, terminals)
        n = self.network.n_vertices
        wide = needs_wide(self.network, self._topology)
        self._room(self._needs(wide).state + Footprint(device=arranging_bytes(n, self.network.n_arcs)))
        state = CudaFlowState(
            terminals=terminals,
            role=cupy.asarray(role),
            excess=cupy.empty(n, np.int64),
            source_side=cupy.empty(n, np.bool_),
            labels=unknown_labels(n),
            wide=wide,
            patience=Patience(least=FEW_BROKEN),
        )
        self._arrange(state)
        self._states.append(state)
        return state

    def _arrange(self, state: CudaFlowState) -> None:
        """Give the state its arcs."""
        arranged = self._arranged(state)
        state.edge_arc, state.n_appended = arranged.edge_arc, 0
        state.arcs, state.keeps_pair_sums = new_arcs(arranged.head, arranged.reverse, state.wide), False

    def _arranged(self, state: CudaFlowState) -> Arrangement:
        """The order of the arcs of each row."""
        return sinks_first(self.network, self._topology, state.terminals.sinks)

    @device_call
    def grow(self, growth: Growth) -> None:
        """New arcs go to the ends of the rows that each state has, which is a copy on the device: the rows of the
        network on the host stay pending."""
        before, network = self._topology, growth.network
        largest = max((state.nbytes for state in self._states), default=0)
        self._room(on_cuda(network.counts).network + Footprint(device=largest + inserted_bytes(growth.inserted)))
        n_more, m_more = network.n_vertices - before.n, network.n_edges - len(before.capacity)
        arcs = InsertedArcs(growth.inserted, before)
        topology = replace(
            before,
            n=network.n_vertices,
            n_arcs=network.n_arcs,
            row_offsets=arcs.moved_rows(network.n_vertices),
            capacity=with_zeros(before.capacity, m_more),
            undirected=cupy.asarray(network.undirected),
        )
        columns = [
            (
                *(with_zeros(column, n_more) for column in (state.role, state.excess, state.source_side)),
                unknown_labels(network.n_vertices),
            )
            for state in self._states
        ]
        self.network, self._topology, self._infinite_arcs = network, topology, None
        for state, by_vertex in zip(self._states, columns, strict=True):
            state.role, state.excess, state.source_side, state.labels = by_vertex
            state.sums = None
            if state.arcs is None:
                continue
            try:
                state.arcs, state.edge_arc = arcs.moved(state, topology.row_offsets)
            except DeviceFull:  # it is solved from zero when it is asked for
                state.solved = False
                state.drop_arcs()
            else:
                state.n_appended += arcs.k

    @device_call
    def update(self, rows: EdgeArray, capacity: UnitArray) -> None:
        if len(rows) == 0:
            return
        batch = self._batch.load(rows, capacity)  # all the memory it takes, before anything changes
        if self.network.exchange(rows, capacity).touches_infinite:
            self._update_infinite(rows, capacity)
            return
        beside_infinite = self._shares_links_with_infinite(rows)
        for state in self._states:
            state.solved &= not beside_infinite  # rare enough to be left to a cold solve
            if state.solved:
                state.take(batch.apply(self._topology, state))
            else:
                state.keeps_pair_sums, state.sums = False, None
        batch.store(self._topology)
        batch.wait()  # it is read before it is written again
        widen(self.network, self._topology, self._states)

    def _shares_links_with_infinite(self, rows: EdgeArray) -> bool:
        """A finite edge of the batch shares its link with an infinite one."""
        if not (self.network.n_infinite and self.network.has_shared_links):
            return False
        arcs = self.network.edge_arc[rows[self.network.capacity[rows] != INFINITE]]
        arcs = arcs[arcs >= 0]
        if self._infinite_arcs is None:
            self._infinite_arcs = self.network.infinite_arcs()
        infinite = self._infinite_arcs
        return bool((infinite[arcs] | infinite[self.network.reverse_arc[arcs]]).any())

    def _kept_role(self, role: NDArray[Any]) -> Array:
        return cupy.asarray(role)

    def _store_infinite(self, rows: EdgeArray, capacity: UnitArray) -> None:
        self._topology.capacity[cupy.asarray(rows)] = cupy.asarray(capacity)
        self._infinite_arcs = self.network.infinite_arcs()

    def _update_infinite(self, rows: EdgeArray, capacity: UnitArray) -> None:
        super()._update_infinite(rows, capacity)
        wide = needs_wide(self.network, self._topology)
        for state in self._states:
            state.wide = wide
            state.drop_arcs()

    @device_call
    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        try:
            return super().solve(state, control, cold=cold)
        except DeviceFull:
            self._own(state).solved = False  # wherever it ended, from zero it can be solved
            raise

    def _solve_cold(self, state: CudaFlowState, control: Control) -> Mapping[str, int]:
        state.solved = False
        needs = self._needs(state.wide)
        if state.n_appended > self.network.n_arcs // MOST_APPENDED:
            state.drop_arcs()
        self._room(needs.scratch if state.arcs is not None else needs.scratch + needs.state)
        if state.arcs is None:
            self._arrange(state)
        zero_flow(self._topology, state)
        state.excess[:] = own_supply(self.network.n_vertices, state.terminals)
        state.source_side[:] = state.role == SOURCE
        saturate(self._topology, state)
        counters = self._settle(state, control, [False], self.longest_ms)
        state.value = state.reached()
        return counters

    def _count_broken(self, state: CudaFlowState) -> int:
        return state.lacking + state.holding

    def _is_changed(self, state: CudaFlowState) -> bool:
        return state.touched

    def _forget_changes(self, state: CudaFlowState) -> None:
        state.lacking = state.holding = 0
        state.touched = False

    def _repair(self, state: CudaFlowState, control: Control) -> Mapping[str, int]:
        """A repair that takes much longer than the last cold solve did is given up, so that no update costs more than
        two and a half of them."""
        self._room(self._needs(state.wide).scratch)
        # Vertices whose deficits find nothing in S move to T, where there may be excess to drain into them.
        sides = [True, False] if state.lacking else [False]
        return self._settle(state, control, sides, GIVE_UP_SHARE * state.patience.cold_ms + GIVE_UP_MS)

    def _settle(
        self, state: CudaFlowState, control: Control, sides: list[bool], limit_ms: float = math.inf
    ) -> dict[str, int]:
        """As `settle`."""
        return settle(self._topology, state, control, sides, limit_ms)

    @device_call
    def certificate(self, state: FlowState, *, complete: bool = True) -> Certificate:
        return proving.certificate(self.network, self._topology, self._own(state), complete=complete)

    @device_call
    def restore(self, terminals: Terminals, arrays: Mapping[str, NDArray[np.generic]]) -> CudaFlowState:
        state = self.open(terminals)

        def fill() -> None:
            put_flow(self.network, self._topology, state, arrays["flow"].astype(np.int64))
            state.excess[:] = cupy.asarray(arrays["excess"])
            state.source_side[:] = cupy.asarray(arrays["source_side"])

        if arrays:
            self._keep_restored(state, fill)
        return state

    @property
    def nbytes(self) -> int:
        flags = 0 if self._infinite_arcs is None else self._infinite_arcs.nbytes
        return self.network.nbytes + flags + self._batch.nbytes

    @property
    def device_nbytes(self) -> int:
        return self._topology.nbytes + sum(state.nbytes for state in self._states)

    @property
    @device_call
    def needs(self) -> Needs:
        return self._needs(needs_wide(self.network, self._topology))

    def _needs(self, wide: bool) -> Needs:
        return on_cuda(replace(self.network.counts, wide=wide))
