"""Passes over all vertices between drains, without arrays in between."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import ORDINARY, UNLIMITED
from gpu_engine.networks.free import SINK, SOURCE
from gpu_engine.types import BoolArray, UnitArray

OUTSIDE = 2
"""A vertex that a drain ignores with all its arcs."""


@njit(cache=True, nogil=True)
def drain_roles(role: NDArray[np.int8], source_side: BoolArray, deficits: bool) -> NDArray[np.int8]:
    """int8[n]: what the vertices are to a drain of the source side (``deficits``) or of the sink side."""
    unlimited = SOURCE if deficits else SINK
    found = np.empty(len(role), np.int8)
    for v in range(len(role)):
        if source_side[v] != deficits:
            found[v] = OUTSIDE
        else:
            found[v] = UNLIMITED if role[v] == unlimited else ORDINARY
    return found


@njit(cache=True, nogil=True)
def holds_any(role: NDArray[np.int8], excess: UnitArray, deficits: bool) -> bool:
    """Whether an ordinary vertex has excess, or (``deficits``) lacks flow; ``role`` as `drain_roles` gives it."""
    sign = -1 if deficits else 1
    found = False
    for v in range(len(role)):
        found |= role[v] == ORDINARY and sign * excess[v] > 0
    return found


@njit(cache=True, nogil=True)
def move(moved: BoolArray, source_side: BoolArray, excess: UnitArray, to_source_side: bool) -> int:
    """Put ``moved`` on the other side; returns the sum of its excess."""
    total = 0
    for v in range(len(moved)):
        if moved[v]:
            source_side[v] = to_source_side
            total += excess[v]
    return total


@njit(cache=True, nogil=True)
def sink_side_excess(source_side: BoolArray, excess: UnitArray) -> int:
    """The sum of what the vertices of the sink side hold."""
    total = 0
    for v in range(len(excess)):
        if not source_side[v]:
            total += excess[v]
    return total
