"""What limits a flow, as max-flow answers it."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from headrace._results import EdgeId, Json, Vertex
from headrace._sequences import AmountColumn, Column, Names, flags


@dataclass(frozen=True, slots=True)
class Bottlenecks:
    """What some minimum cut pays, what every one pays first: edges, and the caps of sources and sinks.

    `gain` is what the flow gains for each of the first units more, 1 or 0. `up_to` is what it gains without that limit,
    for the first of them; None unless it was asked for.
    """

    edges: Names[EdgeId]
    in_every: Column[bool]
    gain: Column[int]
    up_to: AmountColumn | None
    sources: Names[Vertex]
    """Capped sources whose supply is used up."""
    source_in_every: Column[bool]
    source_gain: Column[int]
    source_up_to: AmountColumn | None
    sinks: Names[Vertex]
    """Capped sinks whose demand is met."""
    sink_in_every: Column[bool]
    sink_gain: Column[int]
    sink_up_to: AmountColumn | None
    vertices: Names[Vertex] = field(default_factory=lambda: Names.of([]))
    """Vertices that let no more through, where vertices have capacities."""
    vertex_in_every: Column[bool] = field(default_factory=lambda: flags(()))
    vertex_gain: Column[int] = field(default_factory=lambda: Column(np.empty(0, np.int64)))

    @classmethod
    def from_json(cls, body: Json, decimals: int = 0) -> Self:
        def gains(prefix: str) -> dict[str, Any]:
            every, found = flags(body[f"{prefix}in_every"]), body.get(f"{prefix}up_to")
            unlimited = body.get(f"{prefix}up_to_unlimited")
            return {
                f"{prefix}in_every": every,
                f"{prefix}gain": Column(every.array.astype("int64")),
                f"{prefix}up_to": None if found is None else AmountColumn.of(found, decimals, unlimited),
            }

        of_vertices: dict[str, Any] = {}
        if "vertices" in body:
            of_vertices = {"vertices": Names.of(body["vertices"]), **gains("vertex_")}
            del of_vertices["vertex_up_to"]
        return cls(
            edges=Names.of(body["edges"]),
            sources=Names.of(body["sources"]),
            sinks=Names.of(body["sinks"]),
            **gains(""),
            **gains("source_"),
            **gains("sink_"),
            **of_vertices,
        )
