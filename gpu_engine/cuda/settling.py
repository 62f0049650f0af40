"""The host's part of a drain: it starts the kernels, waits for them, and lets others do what they have left."""

import math
from collections import Counter
from time import perf_counter
from typing import Final

from gpu_engine.control import WORK_DONE, Control
from gpu_engine.cuda.launch.arrays import Topology
from gpu_engine.cuda.launch.drain import Drains
from gpu_engine.cuda.layout import CANCELLED_DRAIN, LEFT_DRAIN
from gpu_engine.cuda.state import CudaFlowState
from gpu_engine.cuda.waiting import WORK, wait
from gpu_engine.errors import Cancelled
from gpu_engine.incremental import TooSlow

ALONE_MS: Final = 20.0
"""A repair whose time limit is at most this has the whole device, since others do not wait long for it."""

COUNTERS: Final = (*WORK_DONE, "rounds", "levels")
"""What a solve on a device counts."""


def settle(
    topology: Topology, state: CudaFlowState, control: Control, sides: list[bool], limit_ms: float = math.inf
) -> dict[str, int]:
    """Drain S (True: its deficits) or T, in this order. Returns `COUNTERS`.

    Raises `Cancelled`, or `TooSlow` once ``limit_ms`` has passed; a pseudoflow that can be settled later is left.
    """
    drains, began = Drains(topology.n, topology.n_arcs), perf_counter()
    done, alone = control.slots[WORK].copy(), limit_ms <= ALONE_MS
    for deficits in sides:
        how = {"alone": alone, "trusting": state.solved, "leaving": not deficits}  # T comes last
        drains.start(topology.row_offsets, state, deficits=deficits, **how)
    counters = Counter(dict.fromkeys(COUNTERS, 0))
    while True:
        in_time = wait(control, drains, limit_ms - (perf_counter() - began) * 1e3)
        ended = []
        for result in drains.results():
            if not state.solved and not counters["levels"]:  # the first drain of a solve from zero
                state.depth = int(result["levels"]) // max(1, int(result["global_relabels"]))
            ended.append(int(result["status"]))
            state.value += int(result["gained"])
            counters.update({name: int(result[name]) for name in COUNTERS})
        control.slots[WORK] = done + [counters[name] for name in WORK_DONE]
        if CANCELLED_DRAIN in ended or LEFT_DRAIN not in ended:
            break
        drains.go_on(topology.row_offsets, state, alone=alone)
    if CANCELLED_DRAIN in ended:
        state.holding = max(state.holding, 1)
        if in_time:
            raise Cancelled("the solve was cancelled")
        raise TooSlow
    return counters
