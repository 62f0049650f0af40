"""Which number each part of a new partition has: a district keeps its own as far as it is the same."""

import numpy as np
from numpy.typing import NDArray

from gpu_engine.types import UnitArray, VertexArray


def shared(before: VertexArray, now: VertexArray, k: int) -> UnitArray:
    """int64[k, k]: how many vertices a part of now, a row, has in common with a part of before. Vertices with another
    number than those of parts count nowhere. O(n + k²)."""
    n = min(len(before), len(now))
    old, new = before[:n], now[:n]
    both = (old >= 0) & (old < k) & (new >= 0) & (new < k)
    counts: UnitArray = np.bincount(new[both].astype(np.int64) * k + old[both], minlength=k * k)
    return counts.reshape(k, k)


def numbers(common: NDArray[np.int64]) -> VertexArray:
    """int32[k], a permutation: the number of each new part, which is that of the part of before it has the most
    vertices in common with. The pair with the most comes first; who is left over has one of the other numbers.
    O(k² + p log p) for p pairs that have vertices in common."""
    new, old = np.nonzero(common)
    order = np.argsort(-common[new, old], kind="stable")
    number, taken = np.full(len(common), -1, np.int32), np.zeros(len(common), np.bool_)
    for a, b in zip(new[order].tolist(), old[order].tolist(), strict=True):
        if number[a] < 0 and not taken[b]:
            number[a], taken[b] = b, True
    number[number < 0] = np.flatnonzero(~taken)
    return number
