"""The body of PATCH vertices: one operation on the capacities of vertices, or a batch of them; and a page of them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from service.models.amounts import Amount
from service.models.body import Body
from service.models.capacities import COLUMNS, MAX_OPERATIONS, Batch, RowAmounts, check_capacities
from service.models.columns import AmountColumn, Amounts, IdColumn, Ids
from service.models.flat import Kind

EXAMPLES: dict[str, Any] = {
    "set": {"value": {"vertices": ["v"], "set": [3]}},
    "add": {"value": {"vertices": [17, 4], "add": [-2, 3]}},
    "batch": {"value": {"batch": [{"vertices": ["u", "v"], "scale": [0.5, 2]}, {"vertices": ["w"], "set": ["inf"]}]}},
}


class VertexNames(Body):
    """Vertices named by `vertices`."""

    vertices: Ids | None = None


class VertexOperation(RowAmounts, VertexNames):
    """One operation on the capacities of `vertices`, which were loaded with one each."""

    set: Amounts | None = Field(default=None, description='The new capacities; "inf" for unlimited.')
    add: Amounts | None = Field(default=None, description="Added to the capacities; may be negative.")
    scale: Amounts | None = Field(default=None, description="Multiplied with the capacities.")

    ROWS: ClassVar[tuple[str, str]] = ("vertex", "vertices")
    COLUMNS: ClassVar[Mapping[str, Kind]] = {
        "vertices": "ids",
        **{name: kind for name, kind in COLUMNS.items() if kind == "amounts"},
    }

    def check_names(self) -> None:
        if self.vertices is None:
            raise ValueError("name the vertices by `vertices`")

    def check_amounts(self, amounts: AmountColumn) -> None:
        check_capacities(self, amounts)

    @property
    def names(self) -> dict[str, IdColumn | None]:
        return {"edges": self.vertices}


class VerticesBody(VertexOperation, Batch):
    """One operation, or several in `batch`, applied in order, all or nothing."""

    batch: list[VertexOperation] | None = Field(default=None, max_length=MAX_OPERATIONS)

    @property
    def operations(self) -> Sequence[RowAmounts] | None:
        return self.batch


class VerticesInfo(BaseModel):
    """A page of columns, one row per vertex: those that have a capacity, or all."""

    version: int
    vertices: list[int] | list[str]
    capacity: list[Amount]
    x: list[float] | None = None
    """With `y`, if vertices of the graph have coordinates."""
    y: list[float] | None = None
    next: int | None = None
    """The `offset` of the page behind this one; null: it is the last."""
