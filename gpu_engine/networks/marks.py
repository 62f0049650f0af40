"""Which items of a network are gone: those that were deleted keep their numbers.

A column of marks is never changed: a change makes another one, which also knows for some changes back which items were
marked or lost their mark. So who keeps the marks of then is told what differs now, mostly without a look at all items.
"""

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from gpu_engine.types import BoolArray, EdgeArray, VertexArray

STEPS: Final = 16
SHARE: Final = 64
"""So many changes are known at most, which touch this part of all items at most, but always `FEW`."""

FEW: Final = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Which of ``n`` items are gone."""

    n: int
    column: BoolArray = field(default_factory=lambda: np.empty(0, np.bool_))
    """bool[n], or bool[0] where no item has ever gone."""
    n_gone: int = 0
    state: object = field(default_factory=object)
    """Another object after each change; that items are added at the end is no change."""
    steps: tuple[tuple[object, EdgeArray], ...] = ()
    """The latest changes, the last one at the end: the state before it, and the items it touched, rising."""

    @property
    def nbytes(self) -> int:
        return self.column.nbytes + sum(rows.nbytes for _, rows in self.steps)

    def of(self, items: VertexArray | EdgeArray) -> BoolArray:
        """bool[k]: which of these items are gone."""
        return self.column[items] if len(self.column) else np.zeros(len(items), np.bool_)

    def changed(self, gone: VertexArray | EdgeArray, back: VertexArray | EdgeArray) -> "Marks":
        """With other items gone, and some that are there again; itself if these are none. O(n)."""
        if not len(gone) and not len(back):
            return self
        column = self.column.copy() if len(self.column) else np.zeros(self.n, np.bool_)
        column[gone], column[back] = True, False
        steps = (*self.steps[-STEPS + 1 :], (self.state, np.unique(np.concatenate([gone, back]).astype(np.int64))))
        while sum(len(rows) for _, rows in steps) > max(FEW, self.n // SHARE):
            steps = steps[1:]
        return Marks(self.n, column, int(np.count_nonzero(column)), object(), steps)

    def longer(self, n: int) -> "Marks":
        """With so many items, the new ones there. O(n)."""
        column = np.concatenate([self.column, np.zeros(n - self.n, np.bool_)]) if len(self.column) else self.column
        return self if n == self.n else replace(self, n=n, column=column)

    def touched_since(self, before: "Marks") -> EdgeArray | None:
        """int64[k], rising: items among which all are that were marked or lost their mark since then; None: that is
        not known any more. O(k log k)."""
        if before.state is self.state:
            return np.empty(0, np.int64)
        for i, (state, rows) in enumerate(self.steps):
            if state is before.state:
                more = [rows for _, rows in self.steps[i + 1 :]]
                return np.unique(np.concatenate([rows, *more])) if more else rows
        return None
