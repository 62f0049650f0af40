"""Which items of a network are deleted: a deleted item keeps its number, and has a mark.

`Marks` are never changed in place: a change makes new ones, which also list the items of the latest changes. A caller
that has kept earlier marks is told from these lists which items differ now, mostly without a look at all items.
"""

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from gpu_engine.types import BoolArray, EdgeArray, VertexArray

STEPS: Final = 16
"""How many of the latest changes are listed, at most."""
SHARE: Final = 64
"""The listed changes name at most one in this many of all items, or `FEW` if that is more."""

FEW: Final = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Which of ``n`` items are deleted."""

    n: int
    column: BoolArray = field(default_factory=lambda: np.empty(0, np.bool_))
    """bool[n], or bool[0] if no item was ever deleted."""
    n_gone: int = 0
    """How many items are deleted now."""
    state: object = field(default_factory=object)
    """A new object after each change of marks; it stays the same when items are only added at the end."""
    steps: tuple[tuple[object, EdgeArray], ...] = ()
    """The latest changes, the oldest first: `state` before the change, and int64[k] rising, the items it touched."""

    @property
    def nbytes(self) -> int:
        return self.column.nbytes + sum(rows.nbytes for _, rows in self.steps)

    def of(self, items: VertexArray | EdgeArray) -> BoolArray:
        """bool[k]: which of these items are deleted. O(k)."""
        return self.column[items] if len(self.column) else np.zeros(len(items), np.bool_)

    def changed(self, gone: VertexArray | EdgeArray, back: VertexArray | EdgeArray) -> "Marks":
        """The marks after the items ``gone`` were deleted and the items ``back`` restored; self if there are none.
        O(n)."""
        if not len(gone) and not len(back):
            return self
        column = self.column.copy() if len(self.column) else np.zeros(self.n, np.bool_)
        column[gone], column[back] = True, False
        steps = (*self.steps[-STEPS + 1 :], (self.state, np.unique(np.concatenate([gone, back]).astype(np.int64))))
        while sum(len(rows) for _, rows in steps) > max(FEW, self.n // SHARE):
            steps = steps[1:]
        return Marks(self.n, column, int(np.count_nonzero(column)), object(), steps)

    def longer(self, n: int) -> "Marks":
        """The marks of ``n`` items, of which the new ones are not deleted. O(n)."""
        column = np.concatenate([self.column, np.zeros(n - self.n, np.bool_)]) if len(self.column) else self.column
        return self if n == self.n else replace(self, n=n, column=column)

    def touched_since(self, before: "Marks") -> EdgeArray | None:
        """int64[k], rising: items that contain all whose mark has changed since ``before``. None if that change is not
        listed any more. O(k log k)."""
        if before.state is self.state:
            return np.empty(0, np.int64)
        for i, (state, rows) in enumerate(self.steps):
            if state is before.state:
                more = [rows for _, rows in self.steps[i + 1 :]]
                return np.unique(np.concatenate([rows, *more])) if more else rows
        return None
