"""Batches of capacity updates, defined exactly, so that a figure can be drawn again.

Where the edges come from (`Drawn`), without repetition, from those with a finite capacity:
  random      any of them
  flow        those that carry flow in the first maximum flow
  cut         those of the first minimum cut
What happens to capacity c (`Change`), U uniform on [0, 1):
  increase    floor(c (1 + U)) + 1
  decrease    floor(c U)
  mixed       half of the batch increased, the other half decreased; of an odd batch the last edge either way
How many: 1, 10, 0.1 % and 1 % of the network's edges, never more than there are to draw from.
"""

from collections.abc import Mapping
from enum import StrEnum

import numpy as np

from gpu_engine.engine import Engine, FlowState
from gpu_engine.types import INFINITE, EdgeArray, UnitArray


class Drawn(StrEnum):
    RANDOM = "random"
    FLOW = "flow"
    CUT = "cut"


class Change(StrEnum):
    INCREASE = "increase"
    DECREASE = "decrease"
    MIXED = "mixed"


def populations(engine: Engine, state: FlowState) -> Mapping[Drawn, EdgeArray]:
    """Rows to draw from, of a solved state. Costs an edge flow and a cut."""
    finite = engine.network.capacity != INFINITE
    cut = np.zeros(len(finite), np.bool_)
    cut[engine.cut(state).edges] = True
    chosen = {Drawn.RANDOM: finite, Drawn.FLOW: finite & (engine.flow(state) != 0), Drawn.CUT: finite & cut}
    return {drawn: np.flatnonzero(rows) for drawn, rows in chosen.items()}


def batch_sizes(n_edges: int, population: int) -> dict[str, int]:
    """Label to edges in a batch; labels that would mean the same number as one before are left out."""
    wanted = {"1": 1, "10": 10, "0.1 %": round(n_edges / 1000), "1 %": round(n_edges / 100)}
    sizes: dict[str, int] = {}
    for label, size in wanted.items():
        size = min(size, population)
        if size > max(sizes.values(), default=0):
            sizes[label] = size
    return sizes


def new_capacities(rng: np.random.Generator, change: Change, capacity: UnitArray) -> UnitArray:
    """int64[k]: what `capacity` becomes, see the head of this file."""
    u = rng.random(len(capacity))
    increased = np.floor(capacity * (1 + u)).astype(np.int64) + 1
    decreased = np.floor(capacity * u).astype(np.int64)
    if change is Change.INCREASE:
        return increased
    if change is Change.DECREASE:
        return decreased
    up = rng.permutation(len(capacity)) < (len(capacity) + rng.integers(0, 2)) // 2
    return np.where(up, increased, decreased)
