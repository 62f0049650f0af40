"""Answers of a state on the device that do not disturb it: cuts, and whether they are the only ones, bottlenecks, and
edge flows. Most are derived on the host, from a copy of it."""

import numpy as np
from numpy.typing import NDArray

from gpu_engine.control import Control
from gpu_engine.cpu import derive
from gpu_engine.cpu.edge_flows import edge_flow, flow_of_few
from gpu_engine.cuda.cutting import cut, is_deep
from gpu_engine.cuda.forking import DeviceForks
from gpu_engine.cuda.memory import device_call
from gpu_engine.cuda.transfer import ends_on_host, few_on_host, flow_on_host, host_copy
from gpu_engine.engine import Bottlenecks, Cut, FlowState
from gpu_engine.types import End, UnitArray


class HostAnswers(DeviceForks):
    """What `gpu_engine.cuda.engine.CudaEngine` answers from copies on the host. Each copy costs the transfer of one
    residual capacity for each arc, and one number for each vertex. Where few links carry flow, their edges alone are
    copied for a flow. A cut is searched on the device where the network is not deep, and its sides and edges alone are
    copied; once such a search has begun a cancel does not end it."""

    @device_call
    def cut(self, state: FlowState, control: Control | None = None, *, near: End = "sources") -> Cut:
        self._room(self.needs.cut)
        own = self._own(state)
        if own.solved and not own.touched and not is_deep(self.network, own):
            derive.go_on(control)
            return cut(self.network, self._topology, own, near)
        return derive.cut(self.network, host_copy(self.network, self._topology, own), control, near)

    @device_call
    def bottlenecks(self, state: FlowState, control: Control | None = None) -> Bottlenecks:
        self._room(self.needs.cut)
        copy = host_copy(self.network, self._topology, self._own(state))
        return derive.limits(self.network, copy, self._room, control)

    @device_call
    def flow(self, state: FlowState, control: Control | None = None, *, acyclic: bool = True) -> UnitArray:
        self._room(self.needs.flow)
        own = self._own(state)
        few = few_on_host(self.network, self._topology, own, acyclic=acyclic)
        if few is not None:
            ends = ends_on_host(own)
            return flow_of_few(self.network, ends, few, control or Control(), acyclic=acyclic)
        copy = host_copy(self.network, self._topology, own)
        return edge_flow(self.network, copy, self.network.arc_capacity(), control, acyclic=acyclic)

    @device_call
    def export(self, state: FlowState) -> dict[str, NDArray[np.generic]]:
        own = self._own(state)
        if not own.solved:
            return {}
        flow = flow_on_host(self.network, self._topology, own)
        return {"flow": flow, "excess": own.excess.get(), "source_side": own.source_side.get()}
