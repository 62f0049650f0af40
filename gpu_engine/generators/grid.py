"""2-D grids with four neighbours: between two sides, and vision-like with a terminal link at every pixel."""

import numpy as np

from gpu_engine.generators._columns import (
    Columns,
    Indices,
    draw_capacities,
    edge_list,
    require,
    star_from,
    star_to,
)
from gpu_engine.networks.edgelist import EdgeList

WAVES = 6
"""Cosine waves whose sum is the smooth field of `vision_grid`."""


def grid(
    *, seed: int, rows: int = 500, columns: int = 500, max_capacity: int = 10_000, undirected: bool = False
) -> EdgeList:
    """Flow from the left column to the right one, capacities uniform on ``1 .. max_capacity``.

    Vertex ``r * columns + c`` is the grid point; the source ``n - 2`` and sink ``n - 1`` are joined to
    their columns by infinite edges. Neighbours are joined by one undirected edge, or else by two
    anti-parallel edges whose capacities are drawn independently.
    """
    _require_grid(rows, columns, max_capacity)
    require(columns >= 2, f"the left and the right column must differ: columns={columns}")
    rng = np.random.default_rng(seed)
    point = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    n = point.size
    lower, upper = _neighbours(point)
    terminals = [star_from(n, point[:, 0]), star_to(point[:, -1], n + 1)]
    if undirected:
        links = lower, upper, draw_capacities(rng, 1, max_capacity, len(lower))
        return edge_list(n + 2, terminals, source=n, sink=n + 1, undirected=links)
    tail, head = np.concatenate([lower, upper]), np.concatenate([upper, lower])
    both_ways = tail, head, draw_capacities(rng, 1, max_capacity, len(tail))
    return edge_list(n + 2, [both_ways, *terminals], source=n, sink=n + 1)


def vision_grid(
    *, seed: int, rows: int = 400, columns: int = 400, max_capacity: int = 1_000, smoothness: int = 300
) -> EdgeList:
    """A segmentation-like energy: terminal links at the pixels, undirected links between neighbours.

    A smooth random field in 0 .. 1 says how much each pixel leans to the source. Its link from the source is
    a uniform draw on ``0 .. max_capacity`` times that, its link to the sink another draw times the rest;
    links of capacity zero are left out. Neighbour links are uniform on ``1 .. smoothness``.
    """
    _require_grid(rows, columns, max_capacity)
    require(smoothness >= 1, f"smoothness must be positive: {smoothness}")
    rng = np.random.default_rng(seed)
    point = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    n = point.size
    lower, upper = _neighbours(point)
    links = lower, upper, draw_capacities(rng, 1, smoothness, len(lower))
    lean = _smooth_field(rng, rows, columns).ravel()
    from_source = (draw_capacities(rng, 0, max_capacity, n) * lean).astype(np.int64)
    to_sink = (draw_capacities(rng, 0, max_capacity, n) * (1 - lean)).astype(np.int64)
    fed, drained = np.flatnonzero(from_source), np.flatnonzero(to_sink)
    terminals: list[Columns] = [
        (np.full_like(fed, n), fed, from_source[fed]),
        (drained, np.full_like(drained, n + 1), to_sink[drained]),
    ]
    return edge_list(n + 2, terminals, source=n, sink=n + 1, undirected=links)


def _require_grid(rows: int, columns: int, max_capacity: int) -> None:
    require(rows >= 1 and columns >= 1, f"a grid needs rows, columns >= 1: {rows}, {columns}")
    require(max_capacity >= 1, f"max_capacity must be positive: {max_capacity}")


def _neighbours(point: Indices) -> tuple[Indices, Indices]:
    """Each neighbouring pair once: first along the rows, then along the columns."""
    lower = np.concatenate([point[:, :-1].ravel(), point[:-1, :].ravel()])
    upper = np.concatenate([point[:, 1:].ravel(), point[1:, :].ravel()])
    return lower, upper


def _smooth_field(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray[tuple[int, int]]:
    """float64[rows, columns] in 0 .. 1: a sum of long waves in random directions."""
    y, x = np.mgrid[0 : 1 : rows * 1j, 0 : 1 : columns * 1j]
    field = np.zeros((rows, columns))
    for _ in range(WAVES):
        fy, fx = rng.uniform(-4, 4, size=2)
        field += np.cos(2 * np.pi * (fy * y + fx * x + rng.random()))
    return 0.5 + field / (2 * WAVES)
