"""Some texts of a column as a column of their own, copied by a kernel: the interpreter is free meanwhile."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.text.texts import Texts


def take_texts(texts: Texts, rows: NDArray[np.int64]) -> Texts:
    """The texts of these rows, in order; ``offsets`` begin at 0. O(bytes)."""
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(texts.offsets[rows + 1] - texts.offsets[rows], out=offsets[1:])
    data = np.empty(offsets[-1], np.uint8)
    _copy(texts.data, texts.offsets, rows, data)
    return Texts(data, offsets)


@njit(cache=True, nogil=True)
def _copy(data: NDArray[np.uint8], offsets: NDArray[np.int64], rows: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
    at = 0
    for row in rows:
        for i in range(offsets[row], offsets[row + 1]):
            out[at] = data[i]
            at += 1
