"""The CUDA engine with waves in place of the drains of T: searches run beside the rounds, which pays in deep networks.

It is no default yet: benchmarks/NOTES.md says how far it has been tried.
"""

import math
from collections import Counter
from time import perf_counter

import cupy

from gpu_engine.control import WORK_DONE, Control
from gpu_engine.cuda.engine import ALONE_MS, COUNTERS, CudaEngine
from gpu_engine.cuda.launch.waves import Waves
from gpu_engine.cuda.layout import CANCELLED, LEVEL_BITS, ROUNDS_SPENT
from gpu_engine.cuda.presets.schedules import WAVES
from gpu_engine.cuda.state import CudaFlowState
from gpu_engine.cuda.waiting import WORK, wait
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import LONG_ROW, Room, unlimited
from gpu_engine.incremental import TooSlow
from gpu_engine.networks.free import ORDINARY
from gpu_engine.networks.network import Network


class WaveEngine(CudaEngine):
    """As `CudaEngine`, which solves networks that have long rows or 2^23 vertices. 8 bytes a vertex of its working
    memory are not asked of ``room``."""

    def __init__(self, network: Network, room: Room = unlimited) -> None:
        super().__init__(network, room)
        self.name = f"cuda:{WAVES}"

    def _settle(
        self, state: CudaFlowState, control: Control, sides: list[bool], limit_ms: float = math.inf
    ) -> dict[str, int]:
        """As `CudaEngine._settle`, with waves on T."""
        if not self._is_taken(state):
            return super()._settle(state, control, sides, limit_ms)
        began, alone = perf_counter(), limit_ms <= ALONE_MS
        counters = Counter(dict.fromkeys(COUNTERS, 0))
        if True in sides:
            counters.update(super()._settle(state, control, [True], limit_ms))
        ended, in_time = ROUNDS_SPENT, True
        while ended == ROUNDS_SPENT:
            done = control.slots[WORK].copy()
            waves = Waves(self.network.n_vertices, self.network.n_arcs)
            waves.start_on_sinks(self._topology.row_offsets, state, alone=alone)
            in_time = wait(control, waves, limit_ms - (perf_counter() - began) * 1e3)
            (result,) = waves.results()
            ended = int(result["status"])
            state.value += int(result["gained"])
            work = {name: int(result[name]) for name in COUNTERS}
            counters.update(work)
            control.slots[WORK] = done + [work[name] for name in WORK_DONE]
        if ended == CANCELLED:
            state.holding = max(state.holding, 1)
            if in_time:
                raise Cancelled("the solve was cancelled")
            raise TooSlow
        return counters

    def _is_taken(self, state: CudaFlowState) -> bool:
        """Eight threads visit a row in waves, however long it is."""
        if not self.network.n_arcs or self.network.n_vertices >= 1 << LEVEL_BITS:
            return False
        lengths = cupy.diff(self._topology.row_offsets)[state.role == ORDINARY]
        return not len(lengths) or int(lengths.max()) < LONG_ROW
