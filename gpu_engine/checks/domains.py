"""Proof of what closures cost, many at once, from sets of vertices within the levels of nested cuts.

On each level there are trees. For each vertex v of one there are two cuts: the sink side of one is all that is below v
in its tree, and all higher levels; the source side of the other is all that is below v, and all lower levels. What they
pay is what the cut of the level pays, and what changes as the vertices below v change sides, added up along the trees.
If edges are closed, then the flow is at least what does not pass them, and at most what is left of a cut.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gpu_engine.checks.contractions import spans
from gpu_engine.checks.cut_trees import heavy_paths, leaves_first
from gpu_engine.checks.levels import Paid, paid_by_levels
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import BoolArray, EdgeArray, UnitArray, VertexArray


class Closures(NamedTuple):
    """Closure i closes the distinct edges ``rows[offsets[i] : offsets[i + 1]]``, and no more than ``most`` int64[k] of
    the flow passes them."""

    offsets: UnitArray
    rows: EdgeArray
    most: UnitArray


class Trees(NamedTuple):
    """Trees of vertices on each level."""

    parent: VertexArray
    """int32[n]: the parent of each vertex, -1 for roots."""
    holds_sinks: bool
    """Whether the vertices below a vertex are on the sink side of its cut, with all higher levels; else they are on the
    source side, with all lower ones."""


def closures_cost_the_most(
    network: Network,
    terminals: Terminals,
    level: VertexArray,
    trees: Trees,
    flow: UnitArray,
    value: int,
    closures: Closures,
) -> BoolArray:
    """bool[k]: closures that are shown to leave exactly ``value - most`` of a feasible ``flow`` int64[m] of ``value``.
    Each is held against one cut: of the vertex nearest to a root to which an edge of it leads flow, or from which one
    does where the trees hold sources. O((m + rows) log n)."""
    offsets, rows, most = closures
    n, count = network.n_vertices, len(offsets) - 1
    order = leaves_first(trees.parent, np.arange(n, dtype=np.int32))
    inner = trees.parent >= 0
    if len(order) < n or (level[trees.parent[inner]] != level[inner]).any():
        return np.zeros(count, np.bool_)
    begins, ends = spans(trees.parent, order)
    pays = paid_below(network, terminals, level, trees, order)
    owner = np.repeat(np.arange(count), np.diff(offsets))
    tail, head = network.edge_ends(rows)
    leads = (flow[rows] > 0) == trees.holds_sinks
    at, carries = begins[np.where(leads, head, tail)], flow[rows] != 0
    nearest = np.full(count, n, np.int64)
    np.minimum.at(nearest, owner[carries], at[carries])
    vertex = np.zeros(n + 1, np.int64)
    vertex[begins] = np.arange(n)
    v = vertex[nearest]

    def on_source_side(x: VertexArray) -> BoolArray:
        w = v[owner]
        below = (begins[w] <= begins[x]) & (begins[x] < ends[w])
        found: BoolArray = (level[x] < level[w]) | ((level[x] == level[w]) & (below != trees.holds_sinks))
        return found

    leaves, enters = on_source_side(tail), on_source_side(head)
    crosses = (leaves & ~enters) | (network.is_undirected(rows) & enters & ~leaves)
    closed = Paid.nothing(count)
    closed.add(owner[crosses], network.capacity[rows[crosses]])
    left = pays.finite[v] - closed.finite
    shown: BoolArray = (nearest < n) & (pays.limitless[v] == closed.limitless) & (left == value - most)
    return shown


def paid_below(network: Network, terminals: Terminals, level: VertexArray, trees: Trees, order: VertexArray) -> Paid:
    """The capacity of the cut of each vertex. O(m log n)."""
    n, sign = network.n_vertices, 1 if trees.holds_sinks else -1
    rows = np.arange(network.n_edges)
    tail, head = (end.astype(np.int64) for end in network.edge_ends(rows))
    both = network.is_undirected(rows)
    x, y = np.concatenate((tail, head[both])), np.concatenate((head, tail[both]))
    amounts = np.concatenate((network.capacity, network.capacity[both]))
    change, meet = Paid.nothing(n), meeting(trees.parent, order, x, y)
    up, along = level[x] < level[y], level[x] == level[y]
    change.add(x[up], amounts[up], -sign)
    change.add(y[up], amounts[up], sign)
    change.add((y if trees.holds_sinks else x)[along & (meet >= 0)], amounts[along & (meet >= 0)])
    change.add(meet[along & (meet >= 0)], amounts[along & (meet >= 0)], -1)
    apart = along & (meet < 0)  # the ends lie in two trees of one level
    change.add((y if trees.holds_sinks else x)[apart], amounts[apart])
    change.add(terminals.sources.astype(np.int64), terminals.supply, sign)
    change.add(terminals.sinks.astype(np.int64), terminals.demand, -sign)
    for sums in change:
        sum_up(trees.parent, order, sums)
    paid = paid_by_levels(network, terminals, level)
    if trees.holds_sinks:
        return Paid(*(sums + base[level] for sums, base in zip(change, paid, strict=True)))
    everything = Paid.nothing(1)
    everything.add(np.zeros(len(terminals.sources), np.int64), terminals.supply)
    below = (np.concatenate((first, base)) for first, base in zip(everything, paid, strict=True))
    return Paid(*(sums + base[level] for sums, base in zip(change, below, strict=True)))


@njit(cache=True, nogil=True)
def sum_up(parent: VertexArray, order: VertexArray, sums: UnitArray) -> None:
    """Add to the sum of each vertex the sums of the vertices below it."""
    for v in order:
        if parent[v] >= 0:
            sums[parent[v]] += sums[v]


@njit(cache=True, nogil=True)
def meeting(parent: VertexArray, order: VertexArray, one: UnitArray, other: UnitArray) -> UnitArray:
    """int64[k]: the vertex at which the paths from two vertices to the root meet, -1 for vertices of two trees; by
    heavy paths, O(log n) each."""
    top, depth = heavy_paths(parent, order)
    found = np.empty(len(one), np.int64)
    for e in range(len(one)):
        u, w = one[e], other[e]
        while u >= 0 and top[u] != top[w]:
            if depth[top[u]] < depth[top[w]]:
                u, w = w, u
            u = parent[top[u]]
        found[e] = -1 if u < 0 else (u if depth[u] < depth[w] else w)
    return found
