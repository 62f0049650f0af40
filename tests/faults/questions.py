"""What clients ask, drawn by chance: graphs, batches, kinds of questions."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from tests.faults.history import BATCH_UNIT, LOAD_UNIT, SIDED_VERTICES, SOURCE, Edges, Shape, spare_vertices

KINDS: Final = {
    "patch": 24,
    "patch unkeyed": 7,
    "patch if-match": 8,
    "patch job": 8,
    "patch cancelled": 7,
    "costs": 7,
    "costs unkeyed": 2,
    "costs if-match": 3,
    "costs job": 3,
    "costs cancelled": 2,
    "lower": 6,
    "lower unkeyed": 2,
    "lower if-match": 2,
    "lower job": 2,
    "lower cancelled": 2,
    "edges": 12,
    "edges unkeyed": 4,
    "edges if-match": 4,
    "edges job": 5,
    "edges cancelled": 3,
    "vertices": 9,
    "vertices unkeyed": 3,
    "vertices if-match": 3,
    "vertices job": 4,
    "vertices cancelled": 3,
    "circulation": 4,
    "circulation keyed": 2,
    "circulation min-version": 2,
    "circulation job": 2,
    "circulation cancelled": 2,
    "watch": 4,
    "unwatch": 1,
    "max-flow": 14,
    "max-flow keyed": 8,
    "max-flow min-version": 8,
    "max-flow limited": 5,
    "max-flow job": 5,
    "max-flow cancelled": 3,
    "what-if": 4,
    "what-if keyed": 2,
    "what-if min-version": 2,
    "what-if limited": 2,
    "what-if job": 3,
    "what-if cancelled": 2,
    "matching": 5,
    "matching keyed": 4,
    "matching min-version": 3,
    "matching limited": 2,
    "matching job": 3,
    "matching cancelled": 2,
    "min-cost-flow": 5,
    "min-cost-flow keyed": 4,
    "min-cost-flow min-version": 3,
    "min-cost-flow limited": 3,
    "min-cost-flow job": 3,
    "min-cost-flow cancelled": 3,
    "partition": 3,
    "partition keyed": 2,
    "partition min-version": 2,
    "partition limited": 2,
    "partition job": 2,
    "partition cancelled": 2,
    "capacities": 7,
    "snapshot": 4,
    "snapshot job": 2,
    "export npz": 3,
    "export arrow": 3,
    "export dimacs": 2,
    "restore": 4,
    "restore unkeyed": 2,
    "restore if-match": 2,
    "restore job": 2,
    "restore cancelled": 2,
    "copy": 3,
    "copy unkeyed": 1,
    "copy job": 2,
    "copy cancelled": 1,
    "put": 3,
    "put unkeyed": 1,
    "put job": 1,
    "put cancelled": 2,
    "delete": 2,
    "delete unkeyed": 1,
    "delete job": 1,
    "delete cancelled": 1,
}
"""What is asked, and how often."""

PLAIN: Final = {"costs": "patch", "min-cost-flow": "max-flow"}
"""What is asked of a graph without costs in place of questions about them."""

UNLIMITED_ONLY: Final = {
    "matching": "max-flow",
    "min-cost-flow": "max-flow",
    "circulation": "max-flow",
}
"""What is asked of a graph whose vertices have capacities in place of questions that do not know them."""

LIMITED: Final = 0.6
"""How often the graph of any shape is one whose vertices get capacities."""

BRIEF: Final = ("limited", "cancelled")
"""The only ways in which a cheapest flow of a large graph is asked for: it takes too long to be waited for."""

COPIES: Final = 0.25
"""Of the questions about a graph, how many go to its copy."""

BEYOND: Final = 2
"""A restore may name so many versions more than its client knows of."""

LARGE: Final = 100_000
LARGE_EVERY: Final = 10
"""One history in so many has a graph of `LARGE` edges."""

GROWN: Final = 0.3
"""How often an operation is on edges that its client has inserted, if it has; they may be gone since."""

LIMITS_S: Final = (0.0002, 0.001, 0.005, 0.05, 5.0)
ENDS: Final = 60
"""Edges at the source, and at the sink, of a large graph."""

MOST_ROWS: Final = 2000
"""Of a batch for a large graph; longer columns than 1,000 travel packed."""

BOUNDED: Final = 0.5
PLACED: Final = 0.5
"""How often a graph has lower bounds, and coordinates."""

PRICED: Final = 0.8
PRUNED: Final = 0.5
"""How often the graph of any shape loses vertices as well."""

LEAST: Final = 4
"""The largest lower bound that is set."""

COSTS: Final = (-6, 20)
"""The least cost of a unit of flow, and the largest; cycles that cost less than nothing are among the edges."""

FEW_ROWS: Final = range(2, 6)
"""Edges that every graph has, and that are never deleted."""

LASTING: Final = 1000
"""Of the edges of a large graph so many of the last ones may be deleted: batches name none of them."""


WATCHES: Final = ("main", "value")
"""Names of watches. The second one looks at the value alone, and the first at the cut as well."""


def draw_shapes(rng: random.Random, seed: int) -> list[Shape]:
    """Of the two graphs of a history: one of any shape, one that has matchings; most have costs."""
    shapes = [Shape(), Shape(rng.choice(("two-sided", "left to right")))]
    if seed % LARGE_EVERY == 0:
        large = int(rng.random() >= 0.5)
        shapes[large] = replace(shapes[large], n_edges=LARGE)
    shapes = [replace(shape, is_priced=rng.random() < PRICED) for shape in shapes]
    first = replace(shapes[0], is_limited=rng.random() < LIMITED)
    shapes = [replace(first, is_pruned=rng.random() < PRUNED), *shapes[1:]]
    return [replace(each, is_bounded=rng.random() < BOUNDED, is_placed=rng.random() < PLACED) for each in shapes]


def fitting(kind: str, shape: Shape) -> str:
    """The kind of question, or another where a graph of this shape cannot be asked it."""
    name, _, how = kind.partition(" ")
    if shape.is_pruned and name == "copy":
        kind, name = kind.replace(name, "edges"), "edges"
    if shape.is_limited:
        kind = kind.replace(name, UNLIMITED_ONLY.get(name, name)).replace("dimacs", "npz")
    elif name == "vertices":
        kind = kind.replace(name, "patch")
    if name == "lower" and not shape.is_bounded:
        kind = kind.replace(name, "patch")
    name = kind.partition(" ")[0]
    if name == "matching" and shape.kind == "any":
        return kind.replace(name, "max-flow")
    too_large = name == "min-cost-flow" and shape.is_large and how not in BRIEF
    return kind.replace(name, PLAIN[name]) if name in PLAIN and (too_large or not shape.is_priced) else kind


def earlier_version(rng: random.Random, known: int) -> int:
    """A version to restore, when the graph was at version `known`; now and then one that there is not."""
    return rng.randint(1, known if rng.random() < 0.9 else known + BEYOND)


def even_vertices(shape: Shape) -> list[int]:
    """The left vertices of every graph of this shape, which is not "any"."""
    return list(range(0, shape.n_edges // 5 if shape.is_large else SIDED_VERTICES, 2))


def random_edges(rng: random.Random, number: int, shape: Shape) -> Edges:
    """Five to eight vertices, about three edges for each, and the two marks; or a large graph of the same form.

    One that loses vertices has eight, and the spare ones, whose edges are the last ones.
    """
    spare = spare_vertices(shape)
    n = rng.randint(5, 8) if shape.kind == "any" and not spare else SIDED_VERTICES
    if shape.is_large:
        n = shape.n_edges // 5
    pairs = [(SOURCE, n - 1), (SOURCE, n - 1), *((v, v + 1) for v in range(n - 1 if not shape.is_large else 4))]
    ends = range(ENDS if shape.is_large else 0)
    pairs += [(SOURCE, rng.randrange(1, n, 2)) for _ in ends] + [(rng.randrange(2, n, 2), n - 1) for _ in ends]
    more = 2 * n if not shape.is_large else shape.n_edges - len(pairs) - 3 * len(spare)
    while more > 0:
        a, b = rng.randrange(n), rng.randrange(n)
        if a != b and (shape.kind == "any" or (a - b) % 2):
            pairs.append((a, b))
            more -= 1
    pairs += [pair for v in spare for pair in ((SOURCE, v), (rng.randrange(n), v), (v, n - 1))]
    if shape.kind == "left to right":
        pairs = [(a, b) if a % 2 == 0 else (b, a) for a, b in pairs]
    capacity = [number * LOAD_UNIT, 0, *(rng.randint(0, 40) for _ in pairs[2:])]
    cost = [0, number, *(rng.randint(*COSTS) for _ in pairs[2:])] if shape.is_priced else None
    edges = Edges(n + len(spare), [a for a, _ in pairs], [b for _, b in pairs], capacity, cost=cost, sink=n - 1)
    if shape.is_bounded and rng.random() < BOUNDED:
        edges.lower = [0, 0, *(rng.choice((0, 0, 0, rng.randint(1, LEAST))) for _ in pairs[2:])]
    if shape.is_placed:
        edges.x, edges.y = random_places(rng, edges.n_vertices), random_places(rng, edges.n_vertices)
    return edges


def random_places(rng: random.Random, count: int) -> list[float]:
    """Coordinates of so many vertices; halves, which all formats write alike."""
    return [rng.randint(-100, 100) / 2 for _ in range(count)]


def random_batch(rng: random.Random, number: int, shape: Shape, inserted: Sequence[int]) -> list[dict[str, Any]]:
    """The mark, and one to three operations on edges that every graph has, or on some that were inserted."""
    batch: list[dict[str, Any]] = [{"edges": [1], "set": [number * BATCH_UNIT]}]
    for _ in range(rng.randint(1, 3)):
        edges = _some_edges(rng, shape, inserted)
        op = rng.choice(("set", "add", "add", "add", "close", "reopen"))
        if op in ("close", "reopen"):
            batch.append({"edges": edges, "op": op})
        else:
            batch.append({"edges": edges, op: [rng.randint(0, 9) for _ in edges]})
    return batch


def random_prices(rng: random.Random, number: int, shape: Shape, inserted: Sequence[int]) -> list[dict[str, Any]]:
    """The mark, and one to three operations on costs."""
    batch: list[dict[str, Any]] = [{"edges": [1], "set": [number]}]
    for _ in range(rng.randint(1, 3)):
        edges = _some_edges(rng, shape, inserted)
        op = rng.choice(("set", "set", "add", "scale"))
        batch.append(
            {"edges": edges, op: [rng.randint(-1, 2) if op == "scale" else rng.randint(*COSTS) for _ in edges]}
        )
    return batch


def random_bounds(rng: random.Random, number: int, shape: Shape, inserted: Sequence[int]) -> list[dict[str, Any]]:
    """One to three operations on lower bounds; the request tells the batch, so `number` is not in it."""
    batch: list[dict[str, Any]] = []
    for _ in range(rng.randint(1, 3)):
        edges, op = _some_edges(rng, shape, inserted), rng.choice(("set", "set", "add", "scale"))
        batch.append({"edges": edges, op: [rng.randint(0, 2 if op == "scale" else LEAST) for _ in edges]})
    return batch


def _some_edges(rng: random.Random, shape: Shape, inserted: Sequence[int]) -> list[int]:
    if inserted and rng.random() < GROWN:
        return rng.sample(inserted, min(len(inserted), rng.randint(1, 3)))
    if shape.is_large:
        return rng.sample(range(2, shape.n_edges - LASTING), rng.choice((3, 100, MOST_ROWS)))
    return rng.sample(FEW_ROWS, rng.randint(1, 3))
