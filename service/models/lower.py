"""The body of PATCH lower: one operation, or a batch of them, as for capacities but finite and without closing."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from service.models.capacities import MAX_OPERATIONS, Batch, EdgeAmounts, RowAmounts
from service.models.columns import AmountColumn, Amounts, refuse_infinite, refuse_negative

EXAMPLES: dict[str, Any] = {
    "set": {"value": {"edges": ["a", "c"], "set": [4, 1.5]}},
    "by end points": {"value": {"tail": ["A", "B"], "head": ["B", "C"], "add": [1, -2]}},
    "batch": {"value": {"batch": [{"edges": [17], "set": [5]}, {"edges": [4], "scale": [2]}], "on_missing": "skip"}},
}


class LowerOperation(EdgeAmounts):
    """One operation on the lower bounds of edges named by `edges`, or by `tail` and `head`."""

    set: Amounts | None = Field(default=None, description="The new lower bounds; of directed edges alone, unless 0.")
    add: Amounts | None = Field(default=None, description="Added to the lower bounds; may be negative.")
    scale: Amounts | None = Field(default=None, description="Multiplied with the lower bounds.")

    def check_amounts(self, amounts: AmountColumn) -> None:
        what = "a lower bound" if self.scale is None else "a factor"
        refuse_infinite(amounts, what, self.verb)
        if self.add is None:
            refuse_negative(amounts, what, self.verb)


class LowerBody(LowerOperation, Batch):
    """One operation, or several in `batch`, applied in order, all or nothing."""

    batch: list[LowerOperation] | None = Field(default=None, max_length=MAX_OPERATIONS)

    @property
    def operations(self) -> Sequence[RowAmounts] | None:
        return self.batch
