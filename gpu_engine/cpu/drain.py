"""Stand-in until the push-relabel kernels land: unlimited breadth-first augmentation."""

import numpy as np
from numpy.typing import NDArray

from gpu_engine.cpu import repair
from gpu_engine.cpu.scratch import Scratch
from gpu_engine.engine import Control
from gpu_engine.network import Network
from gpu_engine.types import BoolArray, UnitArray

OUTSIDE = 2


def drain(
    network: Network,
    residual: UnitArray,
    excess: UnitArray,
    role: NDArray[np.int8],
    control: Control,
    scratch: Scratch,
    *,
    mirrored: bool = False,
) -> BoolArray:
    """The closed set R, bool[n]; see `repair`."""
    side = (role == OUTSIDE) != mirrored
    inner = np.where(role == OUTSIDE, 0, role).astype(np.int8)
    holds = (excess < 0 if mirrored else excess > 0) & (role == 0)
    before = side.copy()
    scratch.reserve(network.n_vertices)
    _, scratch.epoch, _ = repair.search(
        network.row_offsets,
        network.head,
        network.reverse_arc,
        residual,
        excess,
        inner,
        side,
        np.flatnonzero(holds).astype(np.int32),
        mirrored,
        scratch.epoch + 1,
        scratch.stamp,
        scratch.via,
        scratch.queue,
        control.slots,
        1 << 62,
    )
    moved: BoolArray = side != before
    return moved
