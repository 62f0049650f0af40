"""Changes of capacity that are tried on one solved flow, many in one call: what engines offer beside `engine.Fork`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gpu_engine.control import Control
from gpu_engine.types import BoolArray, EdgeArray, UnitArray


@dataclass(frozen=True, slots=True)
class Changes:
    """Change i gives the distinct edges ``rows[offsets[i] : offsets[i + 1]]`` these capacities, and no others."""

    offsets: UnitArray
    rows: EdgeArray
    capacity: UnitArray

    @classmethod
    def of(cls, changes: Sequence[tuple[EdgeArray, UnitArray]]) -> Self:
        """From the distinct edge rows and the new capacities of each change."""
        offsets = np.zeros(len(changes) + 1, np.int64)
        np.cumsum([len(rows) for rows, _ in changes], out=offsets[1:])
        nothing = np.empty(0, np.int64)
        rows = np.concatenate([nothing, *(rows for rows, _ in changes)])
        return cls(offsets, rows, np.concatenate([nothing, *(capacity for _, capacity in changes)]))

    @classmethod
    def closing(cls, offsets: UnitArray, rows: EdgeArray) -> Self:
        """Change i closes its edges."""
        return cls(offsets, rows, np.zeros(len(rows), np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class Tried:
    """What changes have come to, each by itself."""

    value: UnitArray
    """int64[k]: the maximum flow, proven, where it is done."""
    done: BoolArray
    """bool[k]: False where a change takes more than a trial may, which `engine.Fork.overlay` is for."""
    warm: BoolArray
    """bool[k]: whether flow or value have changed."""


class Trials(ABC):
    """A solved flow with working memory of its own. One thread at a time, any thread."""

    @abstractmethod
    def run(self, changes: Changes, control: Control) -> Tried:
        """Try each change on the same flow. After a cancel the rest is not done.

        O(edges changed), and as much again as the repair of each flow takes. Capacities are not added up: who raises
        them checks the total before.
        """
