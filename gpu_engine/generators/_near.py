"""All pairs of points within a radius, by buckets; what a k-d tree would do, without needing SciPy."""

import numpy as np
from numpy.typing import NDArray

from gpu_engine.generators._columns import Indices

FORWARD_CELLS = ((0, 1), (1, -1), (1, 0), (1, 1))
"""Half of the eight neighbouring cells, so that each pair of cells is seen once."""


def pairs_within(points: NDArray[np.float64], radius: float) -> tuple[Indices, Indices]:
    """Index pairs ``lower, upper`` of the points (float64[n, 2] in the unit square) closer than `radius`.

    Cost: O(n log n + candidate pairs); a candidate is a pair in the same or in neighbouring cells.
    """
    cells = max(1, min(int(1 / radius), 1 << 15))
    width = cells + 2  # an empty border, so that no neighbour wraps around
    cell = (np.minimum((points * cells).astype(np.int64), cells - 1) + 1) @ np.array([width, 1])
    order = np.argsort(cell, kind="stable")
    ordered = cell[order]
    rank = np.arange(len(order))
    found = [_close(points, order, radius, rank + 1, np.searchsorted(ordered, ordered, side="right"))]
    for row, column in FORWARD_CELLS:
        other = ordered + row * width + column
        begin = np.searchsorted(ordered, other, side="left")
        found.append(_close(points, order, radius, begin, np.searchsorted(ordered, other, side="right")))
    one, two = (np.concatenate(column) for column in zip(*found, strict=True))
    return np.minimum(one, two), np.maximum(one, two)


def _close(
    points: NDArray[np.float64], order: Indices, radius: float, begin: Indices, end: Indices
) -> tuple[Indices, Indices]:
    """Point ``order[k]`` against the points ``order[begin[k] : end[k]]``."""
    count = end - begin
    one = np.repeat(np.arange(len(order)), count)
    offset = np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count)
    one, two = order[one], order[np.repeat(begin, count) + offset]
    gap = points[one] - points[two]
    close = np.einsum("ij,ij->i", gap, gap) < radius * radius
    return one[close], two[close]
