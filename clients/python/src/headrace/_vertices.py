"""A page of the vertices that have capacities."""

from dataclasses import dataclass
from typing import Self

from headrace._results import Json, Vertex
from headrace._sequences import AmountColumn, Names


@dataclass(frozen=True, slots=True)
class VertexCapacities:
    """Vertices that were loaded with a capacity, in the order of the graph's."""

    version: int
    vertices: Names[Vertex]
    capacity: AmountColumn
    """Infinity where it does not limit."""
    next: int | None = None
    """The `offset` of the next page; None: this is the last one."""

    @classmethod
    def from_json(cls, body: Json) -> Self:
        capacity = AmountColumn.of(body["capacity"], body.get("decimals", 0), body.get("unlimited"))
        return cls(body["version"], Names.of(body["vertices"]), capacity, body.get("next"))
