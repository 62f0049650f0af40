"""Capacities of vertices: batches of them, drawn by chance, and what each makes of a graph.

The source and the sink of a graph never have one: the marks pass between them.
"""

import random
from collections.abc import Mapping
from typing import Any, Final

from tests.faults.history import Shape, spare_vertices

UNLIMITED: Final = 2**63 - 1
"""As the log and packed edges have it."""

SPARED: Final = 0.3
"""How often an operation is on vertices that may be gone, where some may be."""

INNER: Final = range(1, 4)
"""Vertices of every small graph that are neither its source nor its sink."""


def random_limits(rng: random.Random, shape: Shape) -> list[dict[str, Any]]:
    """One to three operations on vertices."""
    batch: list[dict[str, Any]] = []
    for _ in range(rng.randint(1, 3)):
        inner = range(1, shape.n_edges // 5 - 1) if shape.is_large else INNER
        spare = spare_vertices(shape)
        vertices = rng.sample(spare if spare and rng.random() < SPARED else inner, rng.randint(1, 3))
        if rng.random() < 0.7:
            batch.append({"vertices": vertices, "set": [rng.choice((rng.randint(0, 60), "inf")) for _ in vertices]})
        else:
            batch.append({"vertices": vertices, "add": [rng.randint(0, 9) for _ in vertices]})
    return batch


def limited(
    before: Mapping[int, int], batch: list[dict[str, Any]], lost: frozenset[int] = frozenset()
) -> dict[int, int]:
    """The capacities by vertex after a batch, which passes over `lost` vertices. A vertex that stays unlimited does not
    get one."""
    after = dict(before)
    for operation in batch:
        for i, vertex in enumerate(operation["vertices"]):
            if vertex in lost:
                continue
            now = after.get(vertex, UNLIMITED)
            if "set" in operation:
                amount = operation["set"][i]
                after[vertex] = UNLIMITED if amount == "inf" else amount
            else:
                after[vertex] = now if now == UNLIMITED else now + operation["add"][i]
    return {vertex: limit for vertex, limit in after.items() if vertex in before or limit != UNLIMITED}


def changed(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """The vertices whose capacities differ, rising, with those that they have after."""
    return {v: after[v] for v in sorted(after) if before.get(v, UNLIMITED) != after[v]}
