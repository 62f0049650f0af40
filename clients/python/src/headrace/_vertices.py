"""A page of vertices."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from headrace._results import Json, Vertex
from headrace._sequences import AmountColumn, Column, Names


@dataclass(frozen=True, slots=True)
class VertexCapacities:
    """Vertices that have a capacity, or all, in the order of the graph's."""

    version: int
    vertices: Names[Vertex]
    capacity: AmountColumn
    """Infinity where it does not limit."""
    next: int | None = None
    """The `offset` of the next page; None: this is the last one."""
    x: Column[float] | None = None
    """Where each of them lies, with `y`; None: the graph has no coordinates."""
    y: Column[float] | None = None

    @classmethod
    def from_json(cls, body: Json) -> Self:
        capacity = AmountColumn.of(body["capacity"], body.get("decimals", 0), body.get("unlimited"))
        x, y = (_places(body.get(name)) for name in ("x", "y"))
        return cls(body["version"], Names.of(body["vertices"]), capacity, body.get("next"), x, y)


def _places(received: Any) -> Column[float] | None:
    return None if received is None else Column(np.asarray(received, np.float64))
