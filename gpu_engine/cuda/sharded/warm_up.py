"""The kernels that the engine over several devices runs, once: so that no caller waits for a compiler."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from gpu_engine.cuda.sharded.engine import ShardedEngine
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals

NARROW, WIDE = 3, 1 << 40
"""Capacities that 32-bit residuals hold, and that they do not."""

VERTICES: Final = 64


def warm_up(devices: Sequence[int]) -> None:
    """Solve a path cold and warm, in both widths, and prove it. Seconds the first time ever, then some tenths."""
    path = np.arange(VERTICES - 1, dtype=np.int32)
    for most in (NARROW, WIDE):
        capacity = np.full(len(path), most, np.int64)
        engine = ShardedEngine(Network(EdgeList(VERTICES, path, path + np.int32(1), capacity)), devices)
        state = engine.open(Terminals.of([0], [VERTICES - 1], None, [most + 1]))
        for changed in (most, most - 1, most - 2, most):
            engine.update(np.array([3]), np.array([changed]))
            engine.solve(state)
        engine.certificate(state, complete=False)
        engine.restore(state.terminals, engine.export(state))
