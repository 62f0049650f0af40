"""The body of PATCH costs: one operation, or a batch of them, as for capacities but signed and without closing."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from service.models.capacities import MAX_OPERATIONS, Batch, EdgeAmounts, RowAmounts
from service.models.columns import AmountColumn, Amounts, refuse_infinite

EXAMPLES: dict[str, Any] = {
    "set": {"value": {"edges": ["a", "c"], "set": [4, -1.5]}},
    "add": {"value": {"edges": [17, 4], "add": [-2, 3]}},
    "by end points": {"value": {"tail": ["A", "B"], "head": ["B", "C"], "scale": [1.1, 2], "rounding": "nearest"}},
    "batch": {"value": {"batch": [{"edges": [17], "set": [5]}, {"edges": [4], "scale": [2]}], "on_missing": "skip"}},
}


class CostOperation(EdgeAmounts):
    """One operation on the costs of edges named by `edges`, or by `tail` and `head`."""

    set: Amounts | None = Field(default=None, description="The new costs; negative on directed edges alone.")
    add: Amounts | None = Field(default=None, description="Added to the costs; may be negative.")
    scale: Amounts | None = Field(default=None, description="Multiplied with the costs.")

    def check_amounts(self, amounts: AmountColumn) -> None:
        refuse_infinite(amounts, "a cost" if self.scale is None else "a factor", self.verb)


class CostsBody(CostOperation, Batch):
    """One operation, or several in `batch`, applied in order, all or nothing."""

    PLACES: ClassVar[tuple[str, ...]] = ("cost_decimals", "decimals")

    batch: list[CostOperation] | None = Field(default=None, max_length=MAX_OPERATIONS)

    @property
    def operations(self) -> Sequence[RowAmounts] | None:
        return self.batch
