"""An engine whose drains are done by a published system; the default drain follows and proves that nothing is left."""

import math
from collections import Counter
from dataclasses import replace
from typing import Final

from gpu_engine.control import WORK_DONE, Control
from gpu_engine.cuda.arrange import Arrangement, as_given
from gpu_engine.cuda.engine import CudaEngine
from gpu_engine.cuda.launch.drain import Drains
from gpu_engine.cuda.memory import device_call
from gpu_engine.cuda.presets.drain import PresetDrain
from gpu_engine.cuda.settling import COUNTERS
from gpu_engine.cuda.state import CudaFlowState
from gpu_engine.cuda.transfer import flow_on_host, put_flow
from gpu_engine.cuda.waiting import WORK, wait
from gpu_engine.engine import FlowState, Fork, SolveReport
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Needs, Room, unlimited
from gpu_engine.networks.growing import Growth
from gpu_engine.networks.network import Network

LEFT: Final = "left_pushes"
"""Pushes that the default drain had to make behind the preset."""


class PresetEngine(CudaEngine):
    """``preset`` is a name of `gpu_engine.cuda.presets.schedules`. Reports count the preset's work, and `LEFT`.

    The working memory of a preset is not asked of ``room``. Raises KeyError for a name that is not there.
    """

    def __init__(self, network: Network, preset: str, room: Room = unlimited) -> None:
        super().__init__(network, room)
        self.name = f"cuda:{preset}"
        self._preset = PresetDrain(preset, self._topology)

    @device_call
    def grow(self, growth: Growth) -> None:
        """Flows go through the host: the published systems want the network's own order of the arcs."""
        flows = [flow_on_host(self.network, self._topology, state) if state.solved else None for state in self._states]
        for state in self._states:
            state.drop_arcs()
        super().grow(growth)
        for state, flow in zip(self._states, flows, strict=True):
            if flow is not None:
                self._room(self._needs(state.wide).state)
                self._arrange(state)
                put_flow(self.network, self._topology, state, growth.moved(flow))
        self._preset = PresetDrain(self.name.partition(":")[2], self._topology)

    def _arranged(self, state: CudaFlowState) -> Arrangement:
        """The network's own order, as published codes have it."""
        return as_given(self.network)

    def fork(self, state: FlowState, room: Room = unlimited, *, on_host: bool = True) -> Fork:
        """On the host in any case."""
        return super().fork(state, room, on_host=True)

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        self._preset.spent_ms = 0.0
        report = super().solve(state, control, cold=cold)
        return replace(report, timings_ms={**report.timings_ms, "preset": self._preset.spent_ms})

    def _settle(
        self, state: CudaFlowState, control: Control, sides: list[bool], limit_ms: float = math.inf
    ) -> dict[str, int]:
        """As `CudaEngine._settle`, for as long as the preset takes."""
        drains = Drains(self.network.n_vertices, self.network.n_arcs)
        done = control.slots[WORK].copy()
        counters = Counter(dict.fromkeys((*COUNTERS, LEFT), 0))
        stopped = False
        try:
            if state.holding and len(sides) == 2:
                counters.update(self._preset.both(state, control))
            for deficits in sides:
                counters.update(self._preset.one(state, deficits, control))
                drains.start(self._topology.row_offsets, state, deficits=deficits)
        except Cancelled:
            stopped = True  # what the drains before it did counts all the same
        wait(control, drains, math.inf)
        for result in drains.results():
            stopped |= bool(result["status"] != 0)
            state.value += int(result["gained"])
            counters[LEFT] += int(result["pushes"])
        control.slots[WORK] = done + [counters[name] for name in WORK_DONE]
        if stopped:
            state.holding = max(state.holding, 1)
            raise Cancelled("the solve was cancelled")
        return counters

    def _needs(self, wide: bool) -> Needs:
        needs = super()._needs(wide)
        return replace(needs, fork=needs.fork_on_host)

    @property
    def device_nbytes(self) -> int:
        return super().device_nbytes + self._preset.nbytes
