"""Columns that must agree, compared by random sums instead of place by place.

What belongs together often lies far apart in memory: an edge and its arc, the two arcs of a link. To compare such
places one by one is a miss of the cache for each. Here every place has a weight that is a function of its number and
of a secret ``seed``, each column is read from end to end, and only sums of amounts times weights are compared, modulo
2**64 (Freivalds, "Probabilistic machines can use less running time", 1977).

Columns that agree always have equal sums. Columns that do not agree have them for hardly any seed: for one in 2**63,
and for one in 2**(63 - k) if whatever is wrong is a multiple of 2**k, as weights are odd numbers modulo 2**64. (This
takes the weights as random; they are what a good mixing function makes of seed and number.) One wrong place alone is
always seen. A seed must therefore be drawn anew for each comparison, after the columns are known.

Each pass is O(1) per place, and without branches, so that it is done in vector registers: 0.3 to 0.8 ns a place. Only
of undirected edges the arc back is looked up: 2 ns.
"""

import numpy as np
from numba import njit

from gpu_engine.types import INFINITE, ArcArray, BoolArray, UnitArray

_GOLDEN, _MIX, _MIX_AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""Multipliers of SplitMix64 (Steele, Lea, Flood 2014): the first spreads numbers, the others mix their bits."""
_UNLIMITED = _MIX_AGAIN
"""Stands for an infinite amount."""
_SHIFT, _WORD = np.uint64(29), np.uint64(32)
_ONE, _ZERO = np.uint64(1), np.uint64(0)
_AMOUNT_BITS = np.int64(61)
_FINITE = np.int64((1 << 61) - 1)
"""The bits of `INFINITE_RESIDUAL` and those below it: finite capacities have these alone."""


@njit(inline="always")
def _weight(place: int, seed: np.uint64) -> np.uint64:
    """An odd number for each place."""
    x = (np.uint64(place) + seed) * _GOLDEN
    return ((x ^ (x >> _SHIFT)) * _MIX) | _ONE


@njit(inline="always")
def _mark(place: int, amount: int, seed: np.uint64) -> np.uint64:
    """A number for each pair of a place and an amount."""
    x = (np.uint64(place) + seed) * _GOLDEN + np.uint64(amount) * _MIX
    x = (x ^ (x >> _SHIFT)) * _MIX_AGAIN
    return x ^ (x >> _WORD)


@njit(cache=True, nogil=True)
def of_edges(
    edge_arc: ArcArray, reverse_arc: ArcArray, capacity: UnitArray, undirected: BoolArray, seed: np.uint64
) -> np.uint64:
    """The sum over all arcs of the capacities that their edges give them. ``capacity`` int64[m]; ``undirected`` is
    bool[m], or bool[1] when all edges agree. An infinite edge counts as a number of its own, so it must be the only
    edge of its link. O(m)."""
    total = _ZERO
    same = len(undirected) == 1
    if same and not undirected[0]:
        for row in range(len(edge_arc)):
            units = _UNLIMITED if capacity[row] == INFINITE else np.uint64(capacity[row])
            total += _weight(edge_arc[row], seed) * units if edge_arc[row] >= 0 else _ZERO
        return total
    for row in range(len(edge_arc)):
        if edge_arc[row] < 0:  # a self-loop
            continue
        weight = _weight(edge_arc[row], seed)
        if undirected[0 if same else row]:
            weight += _weight(reverse_arc[np.uint64(edge_arc[row])], seed)
        total += weight * (_UNLIMITED if capacity[row] == INFINITE else np.uint64(capacity[row]))
    return total


@njit(cache=True, nogil=True)
def of_arcs(capacity: UnitArray, seed: np.uint64) -> np.uint64:
    """The same sum from ``capacity`` int64[arcs], where an infinite edge has given its arc `INFINITE_RESIDUAL`."""
    total = _ZERO
    for a in range(len(capacity)):
        finite, unlimited = capacity[a] & _FINITE, capacity[a] >> _AMOUNT_BITS
        total += _weight(a, seed) * (np.uint64(finite) + _UNLIMITED * np.uint64(unlimited))
    return total


@njit(cache=True, nogil=True)
def flows_cancel(reverse_arc: ArcArray, capacity: UnitArray, residual: UnitArray, seed: np.uint64) -> bool:
    """Whether no residual is negative, and what each arc carries (capacity minus residual, both int64[arcs]) is what
    its reverse carries with the sign changed. O(arcs)."""
    total, signs = _ZERO, np.int64(0)
    for a in range(len(reverse_arc)):
        flow, r = capacity[a] - residual[a], reverse_arc[a]
        signs |= residual[a]
        mark = _mark(min(a, r), flow if a < r else -flow, seed)
        total += mark if a < r else _ZERO - mark
    return bool(total == _ZERO and signs >= 0)
