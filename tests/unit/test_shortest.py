"""The search for shortest paths of `gpu_engine.cpu.shortest`: what its results do not show."""

import numpy as np

from gpu_engine.cpu.shortest import POLL_MASK, Streets, _distances, sides_of


def test_a_cancel_ends_a_search_that_has_begun() -> None:
    """A search of a large network takes seconds."""
    n = 4 * POLL_MASK
    row = np.arange(n - 1, dtype=np.int32)
    one = np.ones(n - 1, np.int64)
    sides = sides_of(n, Streets(row, row + 1, one, one, 0 * one, 0 * one))
    excess, distance, potential = np.zeros(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64)
    excess[0], excess[-1] = 1, -1
    heap = np.empty(n + len(sides.to), np.int64)
    for cancelled, furthest in ((0, n - 1), (1, -1)):
        slots = np.array([cancelled])
        looked, found = _distances(sides, potential, excess, distance, heap, 1, slots)
        assert found == furthest
    assert looked <= 2 * POLL_MASK
