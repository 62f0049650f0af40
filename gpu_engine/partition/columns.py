"""Columns by vertex or edge that become longer, mostly without a copy."""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

SHARE: Final = 16
"""A column that is copied because it becomes longer gets this part of its length as room behind it."""

Scalar = TypeVar("Scalar", bound=np.generic)


def lengthened(column: NDArray[Scalar], n: int, fill: int = 0) -> NDArray[Scalar]:
    """The column with ``n`` items, the new ones ``fill``: a longer view if there is room behind it, else a copy with
    room. The column given is of no use any more. O(what is new), or O(n)."""
    if n <= len(column):
        return column
    whole = column.base
    if not isinstance(whole, np.ndarray) or len(whole) < n:
        whole = np.empty(n + n // SHARE, column.dtype)
        whole[: len(column)] = column
    whole[len(column) : n] = fill
    return whole[:n]
