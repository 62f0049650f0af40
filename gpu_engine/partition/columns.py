"""Columns by vertex or edge that become longer, mostly without a copy.

Each of these columns has one owner, who drops the shorter one. `gpu_engine.networks.spare` is for columns that networks
share.
"""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

SHARE: Final = 16
"""A column of n items that has to be copied gets room for another n / `SHARE` behind it."""

Scalar = TypeVar("Scalar", bound=np.generic)


def lengthened(column: NDArray[Scalar], n: int, fill: int = 0) -> NDArray[Scalar]:
    """The column with ``n`` items, of which the new ones are ``fill``: a longer view if there is room behind the
    column, else a copy. The column given must not be used any more. O(new items), or O(n) for a copy."""
    if n <= len(column):
        return column
    whole = column.base
    if not isinstance(whole, np.ndarray) or len(whole) < n:
        whole = np.empty(n + n // SHARE, column.dtype)
        whole[: len(column)] = column
    whole[len(column) : n] = fill
    return whole[:n]
