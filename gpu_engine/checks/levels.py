"""Proof of what closures cost, many at once, from nested cuts: vertices have levels, those up to each are one side.

A flow comes apart into paths, so without some edges there is still a flow of all but what passes them. A cut divides
the rest as well, and pays for what of it is left. Where both come to the same, that is the value.
"""

from typing import NamedTuple, Self

import numpy as np

from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, BoolArray, EdgeArray, UnitArray, VertexArray


class Paid(NamedTuple):
    """The capacities of some cuts: the sum of the finite ones, and the number of unlimited ones, int64[count] each."""

    finite: UnitArray
    limitless: UnitArray

    @classmethod
    def nothing(cls, count: int) -> Self:
        """``count`` cuts that pay nothing."""
        return cls(np.zeros(count, np.int64), np.zeros(count, np.int64))

    def add(self, places: UnitArray, amounts: UnitArray, sign: int = 1) -> None:
        """Add (``sign`` 1) the amounts to the cuts at these places, or subtract them (-1). int64[k] each."""
        limitless = amounts == INFINITE
        np.add.at(self.finite, places[~limitless], sign * amounts[~limitless])
        np.add.at(self.limitless, places[limitless], sign)


def paid_by_levels(network: Network, terminals: Terminals, level: VertexArray) -> Paid:
    """For each level k the capacity of the cut whose source side is all vertices up to level k. O(n + m)."""
    count = int(level.max(initial=0)) + 1
    rows = np.arange(network.n_edges)
    tail, head = (level[end].astype(np.int64) for end in network.edge_ends(rows))
    crosses = (tail < head) | (network.is_undirected(rows) & (head < tail))
    amounts = network.capacity[crosses]
    change = Paid.nothing(count + 1)
    change.add(np.minimum(tail, head)[crosses], amounts)
    change.add(np.maximum(tail, head)[crosses], amounts, -1)
    change.add(np.zeros(len(terminals.sources), np.int64), terminals.supply)
    change.add(level[terminals.sources].astype(np.int64), terminals.supply, -1)
    change.add(level[terminals.sinks].astype(np.int64), terminals.demand)
    return Paid(*(np.cumsum(part)[:count] for part in change))


def cost_all_they_carry(
    network: Network,
    terminals: Terminals,
    level: VertexArray,
    flow: UnitArray,
    value: int,
    offsets: UnitArray,
    rows: EdgeArray,
    most: UnitArray,
) -> BoolArray:
    """bool[k]: closures that are shown to leave exactly ``value - most`` of a feasible ``flow`` int64[m] of ``value``.

    Closure i closes the distinct edges ``rows[offsets[i] : offsets[i + 1]]``, and no more than ``most`` int64[k] of the
    flow passes them. O(n + m + rows).
    """
    paid, count = paid_by_levels(network, terminals, level), len(offsets) - 1
    owner = np.repeat(np.arange(count), np.diff(offsets))
    tail, head = (level[end] for end in network.edge_ends(rows))
    low, high, carries = np.minimum(tail, head), np.maximum(tail, head), flow[rows] != 0
    both_ways = network.is_undirected(rows)
    last, first = np.full(count, -1), np.full(count, len(paid.finite))
    np.maximum.at(last, owner[carries], low[carries])
    np.minimum.at(first, owner[carries], high[carries])
    shown = np.zeros(count, np.bool_)
    for at in (last, first - 1):
        inside = (at >= 0) & (at < len(paid.finite))
        k = np.where(inside, at, 0)
        closed = Paid.nothing(count)
        pays = (low <= k[owner]) & (high > k[owner]) & (both_ways | (tail < head))
        closed.add(owner[pays], network.capacity[rows[pays]])
        left = paid.finite[k] - closed.finite
        shown |= inside & (paid.limitless[k] == closed.limitless) & (left == value - most)
    return shown
