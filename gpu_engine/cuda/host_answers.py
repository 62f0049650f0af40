"""Answers of a state on the device that are derived on the host, from a copy of it, so that they do not disturb it:
cuts, and whether they are the only ones, bottlenecks, edge flows, and states to try changes on."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_engine.cpu import derive
from gpu_engine.cpu.engine import fork_on_host
from gpu_engine.cuda.launch.arrays import Topology
from gpu_engine.cuda.memory import device_call, next_stream
from gpu_engine.cuda.state import CudaFlowState
from gpu_engine.cuda.transfer import flow_on_host, host_copy
from gpu_engine.engine import Bottlenecks, Control, Cut, FlowState, Fork
from gpu_engine.footprint import Room, unlimited
from gpu_engine.incremental import IncrementalEngine
from gpu_engine.types import End, UnitArray


class HostAnswers(IncrementalEngine[CudaFlowState]):
    """What `gpu_engine.cuda.engine.CudaEngine` answers from copies on the host. Each copy costs the transfer of one
    residual capacity for each arc, and one number for each vertex."""

    _room: Room
    _topology: Topology

    @cached_property
    def stream(self) -> Any:
        """The cupy.cuda.Stream of all calls."""
        return next_stream()

    @device_call
    def cut(self, state: FlowState, control: Control | None = None, *, near: End = "sources") -> Cut:
        self._room(self.needs.cut)
        return derive.cut(self.network, host_copy(self.network, self._topology, self._own(state)), control, near)

    @device_call
    def bottlenecks(self, state: FlowState, control: Control | None = None) -> Bottlenecks:
        self._room(self.needs.cut)
        copy = host_copy(self.network, self._topology, self._own(state))
        return derive.limits(self.network, copy, self._room, control)

    @device_call
    def flow(self, state: FlowState, control: Control | None = None, *, acyclic: bool = True) -> UnitArray:
        self._room(self.needs.flow)
        copy = host_copy(self.network, self._topology, self._own(state))
        return derive.flow(self.network, copy, self.network.arc_capacity(), control, acyclic=acyclic)

    def fork(self, state: FlowState, room: Room = unlimited) -> Fork:
        return fork_on_host(self, self._own(state).terminals, state, room)

    @device_call
    def export(self, state: FlowState) -> dict[str, NDArray[np.generic]]:
        own = self._own(state)
        if not own.solved:
            return {}
        flow = flow_on_host(self.network, self._topology, own)
        return {"flow": flow, "excess": own.excess.get(), "source_side": own.source_side.get()}
