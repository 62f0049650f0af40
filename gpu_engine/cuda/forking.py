"""Forks of flow states on the device: copies there cost little beside a solve, and overlays are solved as any state is.

Small changes that are tried together (`gpu_engine.trials`) are tried on the host all the same, from one copy of the
flow: there a change of one edge takes microseconds, and as many are tried at a time as there are cores.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, Self

import cupy
import numpy as np

from gpu_engine.cpu.engine import fork_on_host
from gpu_engine.cpu.forking import ForkableEngine
from gpu_engine.cpu.trying import trials_of
from gpu_engine.cuda.launch.arrays import Topology, heads_and_reverses, residuals
from gpu_engine.cuda.memory import device_call, next_stream
from gpu_engine.cuda.state import CudaFlowState
from gpu_engine.cuda.transfer import host_copy, own_supply
from gpu_engine.engine import FlowState, Fork
from gpu_engine.footprint import Room, unlimited
from gpu_engine.networks.free import free_roles
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.trials import Trials
from gpu_engine.types import EdgeArray

SEARCHED_SHARE: Final = 16
"""A search on the host may scan one in this many of all arcs. A change that takes more is solved as an overlay on the
device, which is faster then, although only one is solved at a time."""
LEAST_SEARCHED: Final = 1 << 15
"""The number of arcs that a search on the host may scan in any case."""

TRIED: Final = 1 << 14
"""A change is an overlay on the device, too, if the ends of its edges have more arcs than this for each thread."""


class DeviceForks(ForkableEngine[CudaFlowState]):
    """How `gpu_engine.cuda.engine.CudaEngine` copies its states."""

    _room: Room
    _topology: Topology

    @cached_property
    def stream(self) -> Any:
        """The cupy.cuda.Stream of all calls."""
        return next_stream()

    def fork(self, state: FlowState, room: Room = unlimited, *, on_host: bool = False) -> Fork:
        if on_host:
            return fork_on_host(self, self._own(state).terminals, state, room)
        return self._fork_here(state, room)

    @device_call
    def _fork_here(self, state: FlowState, room: Room) -> Fork:
        fork = super().fork(state, room)
        cupy.cuda.get_current_stream().synchronize()  # the fork has another stream
        return fork

    def _alike(self, network: Network, room: Room) -> Self:
        """Another engine, which has the topology that this one has on the device."""
        twin = object.__new__(type(self))
        twin._begin(network, self._topology.with_own_capacity(), room)
        return twin

    def _begin(self, network: Network, topology: Topology, room: Room) -> None:
        """An engine without states of a network that is on the device."""
        raise NotImplementedError

    @device_call
    def _open_copy(self, state: CudaFlowState) -> CudaFlowState:
        return super()._open_copy(state)

    @device_call
    def _is_copy(self, pinned: CudaFlowState, state: FlowState, rows: EdgeArray) -> bool:
        return super()._is_copy(pinned, state, rows)

    def _agree(self, one: CudaFlowState, other: CudaFlowState, rows: EdgeArray) -> bool:
        if one.arcs is None or other.arcs is None or one.wide != other.wide:
            return False
        arcs = one.edge_arc[cupy.asarray(rows)]
        arcs = arcs[arcs >= 0]
        head, reverse = heads_and_reverses(one.arcs)
        back = reverse[arcs]
        same = [residuals(one.arcs, one.wide)[at] == residuals(other.arcs, other.wide)[at] for at in (arcs, back)]
        same += [one.excess[at] == other.excess[at] for at in (head[arcs], head[back])]
        return bool(cupy.concatenate(same).all())

    @device_call
    def _recap(self, state: CudaFlowState, terminals: Terminals) -> bool:
        """A terminal that gets its first cap, or loses it, takes a cold solve."""
        role = free_roles(self.network, terminals)
        if not state.solved or not np.array_equal(role, state.role.get()):
            return False
        n = self.network.n_vertices
        state.excess += own_supply(n, terminals) - own_supply(n, state.terminals)
        state.terminals = terminals
        state.value = state.reached()
        state.touched, state.lacking, state.holding = True, 1, 1  # any terminal may be broken
        return True

    @device_call
    def _open_trials(self, pinned: CudaFlowState, count: int) -> Sequence[Trials]:
        if not pinned.solved or pinned.touched:
            return []
        network, copy = self.network, host_copy(self.network, self._topology, pinned)
        limit = max(LEAST_SEARCHED, network.n_arcs // SEARCHED_SHARE)
        of_flow = pinned.terminals, copy.role, (copy.residual, copy.excess, copy.source_side), pinned.value
        return trials_of(network, network.arc_capacity(), *of_flow, limit, TRIED * count, count)
