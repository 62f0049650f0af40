"""Which number each part of a new partition gets: a part keeps its number as far as it has the same vertices."""

import numpy as np
from numpy.typing import NDArray

from gpu_engine.types import UnitArray, VertexArray


def shared(before: VertexArray, now: VertexArray, k: int) -> UnitArray:
    """int64[k, k]: how many vertices each new part, a row, has in common with each old part, a column. Vertices that
    are in no part do not count. O(n + k²)."""
    n = min(len(before), len(now))
    old, new = before[:n], now[:n]
    both = (old >= 0) & (old < k) & (new >= 0) & (new < k)
    counts: UnitArray = np.bincount(new[both].astype(np.int64) * k + old[both], minlength=k * k)
    return counts.reshape(k, k)


def numbers(common: NDArray[np.int64]) -> VertexArray:
    """int32[k], a permutation: the number of each new part, which is that of the old part with which it has the most
    vertices in common. The pair with the most in common is matched first; new parts without a match get the numbers
    that are left. O(k² + p log p) for p pairs that have vertices in common."""
    new, old = np.nonzero(common)
    order = np.argsort(-common[new, old], kind="stable")
    number, taken = np.full(len(common), -1, np.int32), np.zeros(len(common), np.bool_)
    for a, b in zip(new[order].tolist(), old[order].tolist(), strict=True):
        if number[a] < 0 and not taken[b]:
            number[a], taken[b] = b, True
    number[number < 0] = np.flatnonzero(~taken)
    return number
