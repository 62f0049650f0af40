"""The engine for one network over several devices: the state machine of `gpu_engine.cuda.engine`, in shards.

It is for networks that are large or do not fit one device: all devices wait for each other between two steps, so that
what has many small steps is faster on one. Forks are on the host.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Final

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks.certificate import Certificate, certify
from gpu_engine.control import Control
from gpu_engine.cpu import derive
from gpu_engine.cpu.derive import HostCopy
from gpu_engine.cpu.edge_flows import edge_flow
from gpu_engine.cpu.engine import fork_on_host
from gpu_engine.cuda.launch.arrays import residuals
from gpu_engine.cuda.memory import DeviceFull, device_call
from gpu_engine.cuda.sharded.certify import certify as certify_shards
from gpu_engine.cuda.sharded.drain import Stopped
from gpu_engine.cuda.sharded.launch import ChangedEdges, Shards
from gpu_engine.cuda.sharded.places import Places
from gpu_engine.cuda.sharded.solving import settle, start_from_zero
from gpu_engine.cuda.sharded.state import Columns, ShardedFlowState
from gpu_engine.cuda.sharded.topology import Topology, arcs_of, topology_of
from gpu_engine.engine import Bottlenecks, Cut, FlowState, Fork
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Needs, Room, on_shards, unlimited
from gpu_engine.incremental import IncrementalEngine, Patience, TooSlow
from gpu_engine.networks.free import ORDINARY, free_roles
from gpu_engine.networks.growing import Growth
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import EdgeArray, End, UnitArray

FEW_BROKEN: Final = 32
"""Fewer broken ends than this are always repaired, at first."""

GIVE_UP_MS: Final = 5.0
GIVE_UP_SHARE: Final = 1.5
"""A repair is given up after `GIVE_UP_SHARE` times the time of the last cold solve, and `GIVE_UP_MS` more."""


class ShardedEngine(IncrementalEngine[ShardedFlowState]):
    """One shard for each of ``devices``, of which some may be the same: their numbers as this process sees them.

    Asks ``room`` before it takes memory; of devices it counts that of all together. Raises `EngineError` if they do not
    reach each other's memory, and from each call `OutOfMemory` if one is full; the call can then be made again.
    """

    name = "cuda-peers"

    def __init__(self, network: Network, devices: Sequence[int], room: Room = unlimited) -> None:
        self.network, self._room = network, room
        self._places = Places(devices)
        self._states: list[ShardedFlowState] = []
        self._topology: Topology | None = None
        """The network on the devices; None where it is laid out at the next solve."""
        room(self.needs.network)

    @property
    def stream(self) -> Any:
        """The stream of all work outside of the shards."""
        return cupy.cuda.Stream.null

    def open(self, terminals: Terminals) -> ShardedFlowState:
        terminals.check(self.network.n_vertices)
        role = free_roles(self.network, terminals)
        self._room(self.needs.state)
        state = ShardedFlowState(terminals=terminals, role=role, patience=Patience(least=FEW_BROKEN))
        self._states.append(state)
        return state

    def grow(self, growth: Growth) -> None:
        """Flow states are solved from zero when they are asked for."""
        self.network = growth.network
        self._forget()
        for state in self._states:
            more = self.network.n_vertices - len(state.role)
            state.role = np.concatenate([state.role, np.full(more, ORDINARY, np.int8)])

    def _forget(self) -> None:
        self._topology = None
        for state in self._states:
            state.forget_columns()

    @device_call
    def _laid_out(self) -> Topology:
        if self._topology is None:
            self._places.trim()
            self._topology = topology_of(self.network, self._places)
        return self._topology

    @device_call
    def _columns(self, state: ShardedFlowState) -> Columns:
        """The state's arrays; new ones are at zero flow."""
        if state.columns is None:
            topology = self._laid_out()
            self._places.trim()
            columns = Columns.of(topology, arcs_of(self.network, topology), state.role)
            self._places.barrier()  # pair sums need the capacities of other shards
            Shards(topology, columns).zero_flow(sum_pairs=True)
            self._places.wait()
            state.columns = columns
        return state.columns

    def update(self, rows: EdgeArray, capacity: UnitArray) -> None:
        if len(rows) == 0:
            return
        before = self.network.capacity[rows]
        if self.network.exchange(rows, capacity).touches_infinite:
            self._update_infinite(rows, capacity)
            return
        arcs = self.network.edge_arc[rows]
        if self.network.n_infinite and self.network.has_shared_links:
            self._forget()  # a finite edge may share its link with an infinite one
            return
        kept = arcs >= 0
        if not kept.any():
            self._note(None, self._states)
            return
        rows = rows[kept]
        change = (capacity - before)[kept]
        laid_out = [state for state in self._states if state.columns is not None]
        if self._topology is None or not laid_out:
            self._forget()
            return
        both = np.ascontiguousarray(self.network.is_undirected(rows))
        edges = ChangedEdges(self._topology, arcs[kept].astype(np.int64), change, both)
        if not self._change(edges, laid_out):
            self._forget()  # all of it is laid out anew, from the capacities of now

    def _change(self, edges: ChangedEdges, states: list[ShardedFlowState]) -> bool:
        """Whether all states have the change. If not, some have it or a part of it, so that it cannot be made again:
        residuals have to be wider, or a device is full."""
        try:
            return all(self._change_one(edges, state, first=at == 0) for at, state in enumerate(states))
        except DeviceFull:
            return False

    def _change_one(self, edges: ChangedEdges, state: ShardedFlowState, *, first: bool) -> bool:
        """The ``first`` state's change is also that of the topology. False if residuals have to be wider."""
        assert self._topology is not None
        assert state.columns is not None
        result = Shards(self._topology, state.columns).update(edges, first=first, repaired=state.solved)
        if result["overflow"]:
            return False
        self._note(result, [state])
        return True

    def _note(self, result: NDArray[np.void] | None, states: list[ShardedFlowState]) -> None:
        """Note what an update has changed: a `SHARD_UPDATE` record, or None where it changed capacities of self-loops
        alone."""
        for state in states:
            state.touched = True
            if result is not None:
                state.value += int(result["gained"])
                state.lacking += int(result["lacking"])
                state.holding += int(result["holding"])

    def _store_infinite(self, rows: EdgeArray, capacity: UnitArray) -> None:
        self._forget()

    @device_call
    def _solve_cold(self, state: ShardedFlowState, control: Control) -> Mapping[str, int]:
        state.solved = False
        self._room(self.needs.scratch)
        shards = Shards(self._laid_out(), self._columns(state))
        start_from_zero(shards, state.terminals)
        return self._settle(shards, state, control, [False], math.inf)

    def _put(self, into: Sequence[Any], columns: Sequence[NDArray[Any]]) -> None:
        for place, array, column in zip(self._places.all, into, columns, strict=True):
            with place.on():
                array[:] = cupy.asarray(column)

    @device_call
    def _repair(self, state: ShardedFlowState, control: Control) -> Mapping[str, int]:
        self._room(self.needs.scratch)
        sides = [True, False] if state.lacking else [False]
        until_s = perf_counter() + (GIVE_UP_SHARE * state.patience.cold_ms + GIVE_UP_MS) / 1e3
        return self._settle(Shards(self._laid_out(), self._columns(state)), state, control, sides, until_s)

    def _settle(
        self, shards: Shards, state: ShardedFlowState, control: Control, sides: list[bool], until_s: float
    ) -> dict[str, int]:
        """Drain S (True: its deficits) or T. Raises `Cancelled` or `TooSlow`; a pseudoflow is left."""
        try:
            work = settle(shards, control, sides, until_s)
        except Stopped:
            state.lacking, state.holding = max(state.lacking, 1), max(state.holding, 1)
            if control.cancelled:
                raise Cancelled("the solve was cancelled") from None
            raise TooSlow from None
        state.value = state.reached(shards.topology)
        return work

    def _count_broken(self, state: ShardedFlowState) -> int:
        return state.lacking + state.holding

    def _is_changed(self, state: ShardedFlowState) -> bool:
        return state.touched

    def _forget_changes(self, state: ShardedFlowState) -> None:
        state.lacking = state.holding = 0
        state.touched = False

    @device_call
    def _on_host(self, state: FlowState) -> HostCopy:
        own = self._own(state)
        topology, columns = self._laid_out(), self._columns(own)
        self._places.wait()
        return HostCopy(
            own.terminals,
            role=own.role,
            residual=columns.residuals_on_host(topology),
            excess=columns.excess_on_host(topology),
            source_side=columns.sides_on_host(topology),
            value=own.value,
        )

    def cut(self, state: FlowState, control: Control | None = None, *, near: End = "sources") -> Cut:
        self._room(self.needs.cut)
        return derive.cut(self.network, self._on_host(state), control, near)

    def bottlenecks(self, state: FlowState, control: Control | None = None) -> Bottlenecks:
        self._room(self.needs.cut)
        return derive.limits(self.network, self._on_host(state), self._room, control)

    def flow(self, state: FlowState, control: Control | None = None, *, acyclic: bool = True) -> UnitArray:
        self._room(self.needs.flow)
        return edge_flow(self.network, self._on_host(state), self.network.arc_capacity(), control, acyclic=acyclic)

    def certificate(self, state: FlowState, *, complete: bool = True) -> Certificate:
        """On the host, by the scan that proves the answers of every engine there.

        Unless ``complete``, on the devices: then it is taken for granted that the arcs' capacities there are those of
        the edges.
        """
        if not complete:
            return self._proven_on_devices(self._own(state))
        copy = self._on_host(state)
        return certify(self.network, copy.terminals, copy.residual, copy.excess, copy.source_side)

    @device_call
    def _proven_on_devices(self, state: ShardedFlowState) -> Certificate:
        found = certify_shards(Shards(self._laid_out(), self._columns(state)), state.terminals)
        return replace(found, complete=False)

    def fork(self, state: FlowState, room: Room = unlimited, *, on_host: bool = False) -> Fork:
        return fork_on_host(self, self._own(state).terminals, state, room)

    def export(self, state: FlowState) -> dict[str, NDArray[np.generic]]:
        if not self._own(state).solved:
            return {}
        copy = self._on_host(state)
        flow = self.network.arc_capacity() - copy.residual
        return {"flow": flow, "excess": copy.excess, "source_side": copy.source_side}

    @device_call
    def restore(self, terminals: Terminals, arrays: Mapping[str, NDArray[np.generic]]) -> ShardedFlowState:
        state = self.open(terminals)

        def fill() -> None:
            residual = self.network.arc_capacity() - arrays["flow"].astype(np.int64)
            topology, columns = self._laid_out(), self._columns(state)
            shards, wide = range(len(self._places)), topology.wide
            bounds = [slice(*topology.first_arc[shard : shard + 2]) for shard in shards]
            own = [residuals(arcs, wide) for arcs in columns.arcs]
            self._put(own, [residual[at].astype(own[0].dtype) for at in bounds])
            for into, name in ((columns.excess, "excess"), (columns.source_side, "source_side")):
                self._put(into, [arrays[name][topology.rows(shard)] for shard in shards])

        if arrays:
            self._keep_restored(state, fill)
        return state

    @property
    def nbytes(self) -> int:
        return self.network.nbytes + sum(int(state.role.nbytes) for state in self._states)

    @property
    def device_nbytes(self) -> int:
        held = 0 if self._topology is None else self._topology.nbytes
        return held + sum(state.columns.nbytes for state in self._states if state.columns is not None)

    @property
    def needs(self) -> Needs:
        return on_shards(self.network.counts, len(self._places))
