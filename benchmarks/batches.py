"""Batches of capacity updates, defined exactly, so that a figure can be drawn again.

Where the edges come from (`Drawn`), without repetition, from those with a finite capacity:
  random      any of them
  flow        those that carry flow in the first maximum flow
  cut         those of the first minimum cut
  favoured    half of them edges at a source or sink, as far as there are, the others random (Kannappan et al. 6.2 give
              those edges "a higher probability")
What happens to capacity c (`Change`), U uniform on [0, 1):
  increase    floor(c (1 + U)) + 1
  decrease    floor(c U)
  mixed       half of the batch increased, the other half decreased; of an odd batch the last edge either way
How many: 1, 10, 0.1 % and 1 % of the network's edges, never more than there are to draw from; on a device also 100,
0.001 %, 0.01 % and 5 %.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from gpu_engine.engine import Engine, FlowState
from gpu_engine.types import INFINITE, EdgeArray, UnitArray


class Drawn(StrEnum):
    RANDOM = "random"
    FLOW = "flow"
    CUT = "cut"
    FAVOURED = "favoured"


class Change(StrEnum):
    INCREASE = "increase"
    DECREASE = "decrease"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Population:
    """Rows to draw from, and those of them that half of a batch comes from."""

    rows: EdgeArray
    favoured: EdgeArray

    def draw(self, rng: np.random.Generator, size: int) -> EdgeArray:
        """int64[size], rising, without repetition."""
        first = rng.choice(self.favoured, min((size + 1) // 2, len(self.favoured)), replace=False)
        if len(first) == 0:
            return np.sort(rng.choice(self.rows, size, replace=False))
        others = rng.choice(self.rows, min(len(self.rows), size + len(first)), replace=False)
        others = others[~np.isin(others, first)][: size - len(first)]
        return np.sort(np.concatenate((first, others)))


def populations(engine: Engine, state: FlowState) -> Mapping[Drawn, Population]:
    """What to draw from, of a solved state. Costs an edge flow and a cut."""
    finite = engine.network.capacity != INFINITE
    cut = np.zeros(len(finite), np.bool_)
    cut[engine.cut(state).edges] = True
    rows = np.arange(len(finite))
    ends = np.concatenate((state.terminals.sources, state.terminals.sinks))
    at_terminal = np.isin(engine.network.edge_tail(rows), ends) | np.isin(engine.network.edge_head(rows), ends)
    chosen = {Drawn.RANDOM: finite, Drawn.FLOW: finite & (engine.flow(state) != 0), Drawn.CUT: finite & cut}
    none = np.empty(0, np.int64)
    found = {drawn: Population(np.flatnonzero(rows), none) for drawn, rows in chosen.items()}
    found[Drawn.FAVOURED] = Population(np.flatnonzero(finite), np.flatnonzero(finite & at_terminal))
    return found


def batch_sizes(n_edges: int, population: int, *, fine: bool = False) -> dict[str, int]:
    """Label to edges in a batch; labels that would not mean more edges than the one before are left out."""
    shares = {"0.001 %": 1e-5, "0.01 %": 1e-4, "0.1 %": 1e-3, "1 %": 1e-2, "5 %": 5e-2}
    wanted = {"1": 1, "10": 10, "100": 100} | {label: round(n_edges * share) for label, share in shares.items()}
    if not fine:
        wanted = {label: wanted[label] for label in ("1", "10", "0.1 %", "1 %")}
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
