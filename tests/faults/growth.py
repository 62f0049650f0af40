"""Changes of structure that clients ask for, drawn by chance, and what a client knows of how a graph has grown."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.faults.history import SIDED_VERTICES, Shape, spare_vertices
from tests.faults.questions import COSTS, LASTING, LEAST, random_places

LIMITED: Final = 0.5
"""How often vertices that come to a graph whose vertices have capacities have some."""

BOUND: Final = 0.5
"""How often edges that come to a graph with lower bounds have some."""

PRUNED: Final = 0.5
"""How often a change of a graph that loses vertices deletes some."""

LEAST_VERTICES: Final = 5
"""Of a graph of any shape."""

FEW_DELETABLE: Final = range(6, 16)
"""Edges that every small graph begins with, and that may be deleted."""

FIRST_ID: Final = 10**6
ROWS_A_CHANGE: Final = 10**4
"""The ids that the change of number k gives, where edges have ids, are from ``FIRST_ID + k * ROWS_A_CHANGE`` on."""

MANY: Final = 1100
"""Edges that come to a large graph, or go, at a time; longer columns than 1,000 travel packed."""

REPEATED: Final = 0.2
"""How often edges are deleted that are perhaps gone already."""


@dataclass(slots=True)
class Growth:
    """What one client has been told of one graph. Others change it too, so it may have grown, or be another."""

    n_vertices: int = 0
    inserted: list[int] = field(default_factory=list)
    """What edges that came are named by."""
    gone: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    """Vertices that it has deleted."""
    has_ids: bool = False

    def told(self, body: dict[str, Any], batch: list[dict[str, Any]]) -> None:
        """Of a change that was made."""
        inserted = body["inserted"]
        self.n_vertices = inserted.get("first_vertex", 0) + inserted["vertices"] or self.n_vertices
        ids = [name for operation in batch for name in operation.get("edge_ids", ())]
        first = inserted.get("first_edge", 0)
        self.inserted += ids or range(first, first + inserted["edges"])
        for operation in batch:
            if operation["op"] == "delete":
                self.gone |= {*operation.get("edges", ())}
                self.lost |= {*operation.get("vertices", ())}
        # Names are given once more where somebody has loaded another graph.
        self.inserted = [name for name in dict.fromkeys(self.inserted) if name not in self.gone]


def random_change(rng: random.Random, number: int, shape: Shape, growth: Growth) -> tuple[list[dict[str, Any]], bool]:
    """One to three operations, and whether edges that there are not are to be passed over."""
    batch: list[dict[str, Any]] = []
    spare = spare_vertices(shape)
    known = max(growth.n_vertices, spare.stop if spare else _least_vertices(shape))
    pruned = [v for v in range(spare.start, known) if v not in growth.lost] if spare else []
    if rng.random() < 0.3:
        limits = [rng.randint(0, 60), rng.choice((rng.randint(0, 60), "inf"))]
        capacity = {"capacity": limits} if shape.is_limited and rng.random() < LIMITED else {}
        places = {"x": random_places(rng, 2), "y": random_places(rng, 2)} if shape.is_placed else {}
        batch.append({"op": "insert", "count": 2} | capacity | places)
        known += 2
    if pruned and rng.random() < PRUNED:
        doomed = rng.sample(pruned, min(len(pruned), rng.randint(1, 2)))
        if growth.lost and rng.random() < REPEATED:
            doomed.append(min(growth.lost))
        return [{"op": "delete", "vertices": doomed}, *batch], rng.random() < 0.6
    how = rng.choice(("insert", "insert", "delete", "both"))
    if how != "insert":
        batch.append({"op": "delete", "edges": _deleted(rng, shape, growth)})
    if how != "delete":
        batch.append(_inserted(rng, number, shape, growth, known))
    rng.shuffle(batch)
    return batch, rng.random() < 0.6


def _least_vertices(shape: Shape) -> int:
    if shape.is_large:
        return shape.n_edges // 5
    return LEAST_VERTICES if shape.kind == "any" else SIDED_VERTICES


def _deleted(rng: random.Random, shape: Shape, growth: Growth) -> list[int]:
    loaded = range(shape.n_edges - LASTING, shape.n_edges) if shape.is_large else FEW_DELETABLE
    there = [name for name in (*loaded, *growth.inserted) if name not in growth.gone or rng.random() < REPEATED]
    count = rng.choice((2, MANY)) if shape.is_large else rng.randint(1, 2)
    return rng.sample(there, min(count, len(there)))


def _inserted(rng: random.Random, number: int, shape: Shape, growth: Growth, n_vertices: int) -> dict[str, Any]:
    """Edges among the vertices that are known of. Those of a shape with sides lead from a loaded even one to an odd
    one, or back where the shape allows it: who asks for a matching names the even vertices of the load."""
    count = rng.choice((2, MANY)) if shape.is_large else rng.randint(1, 3)
    there = [v for v in range(n_vertices) if v not in growth.lost]
    ends = [_ends(rng, shape, there) for _ in range(count)]
    operation: dict[str, Any] = {"op": "insert", "tail": [a for a, _ in ends], "head": [b for _, b in ends]}
    operation["capacity"] = [rng.randint(0, 40) for _ in ends]
    if shape.is_priced:
        operation["cost"] = [rng.randint(*COSTS) for _ in ends]
    if shape.is_bounded and rng.random() < BOUND:
        operation["lower"] = [rng.randint(0, LEAST) for _ in ends]
    if growth.has_ids:
        first = FIRST_ID + number * ROWS_A_CHANGE
        operation["edge_ids"] = [*range(first, first + count)]
    return operation


def _ends(rng: random.Random, shape: Shape, there: Sequence[int]) -> tuple[int, int]:
    if shape.kind == "any":
        a, b = rng.sample(there, 2)
        return a, b
    even, odd = rng.randrange(0, _least_vertices(shape), 2), rng.choice(there[1::2])
    return (odd, even) if shape.kind == "two-sided" and rng.random() < 0.5 else (even, odd)
