"""Families whose flow is small, or unit, or must take one long way: random digraphs, trees, zig-zags, bipartite graphs,
and two trees that meet at their leaves.

A solver that floods a whole network from one side takes long on them, and one that searches from both sides does not.
"""

import numpy as np

from gpu_engine.generators._columns import (
    Columns,
    Indices,
    draw_capacities,
    edge_list,
    require,
    star_from,
    star_to,
)
from gpu_engine.networks.edgelist import EdgeList


def digraph(
    *,
    seed: int,
    n_vertices: int = 100_000,
    degree: int = 4,
    leaving: int = 6,
    entering: int = 3,
    max_capacity: int = 1,
    closed: bool = False,
) -> EdgeList:
    """A random digraph of which few edges touch the terminals.

    `degree` edges for each inner vertex join two random inner vertices; `leaving` edges lead from the source (vertex
    0) to random ones, `entering` edges from random ones to the sink (the last vertex). Capacities are uniform on
    ``1 .. max_capacity``; those into the sink are 0 if it is `closed`. Self-loops are left out.
    """
    require(n_vertices >= 4, f"two inner vertices are needed: {n_vertices}")
    require(min(degree, leaving, entering) >= 1, f"every kind of edge is needed: {degree}, {leaving}, {entering}")
    require(max_capacity >= 1, f"max_capacity must be positive: {max_capacity}")
    rng = np.random.default_rng(seed)
    tail, head = rng.integers(1, n_vertices - 1, (2, degree * n_vertices))
    inner = tail != head
    tail, head = tail[inner], head[inner]
    first, last = (rng.integers(1, n_vertices - 1, count) for count in (leaving, entering))
    groups: list[Columns] = [
        (tail, head, draw_capacities(rng, 1, max_capacity, len(tail))),
        (np.zeros_like(first), first, draw_capacities(rng, 1, max_capacity, leaving)),
        (last, np.full_like(last, n_vertices - 1), draw_capacities(rng, 1, max_capacity, entering) * (not closed)),
    ]
    return edge_list(n_vertices, groups, source=0, sink=n_vertices - 1)


def tree(
    *, seed: int, n_vertices: int = 240_000, shortcuts: int = 50, max_capacity: int = 1, undirected: bool = False
) -> EdgeList:
    """A random recursive tree, each edge in both directions, and some random edges; from its root to its last vertex.

    Vertex ``v`` hangs on a uniform earlier one. Capacities are uniform on ``1 .. max_capacity``, each direction drawn
    for itself; with `undirected` the edges can be used both ways, as two undirected ones for each link of the tree.
    """
    require(n_vertices >= 2, f"a tree needs two ends: {n_vertices}")
    require(shortcuts >= 0, f"shortcuts cannot be negative: {shortcuts}")
    require(max_capacity >= 1, f"max_capacity must be positive: {max_capacity}")
    rng = np.random.default_rng(seed)
    child = np.arange(1, n_vertices, dtype=np.int64)
    parent = (rng.random(n_vertices - 1) * child).astype(np.int64)
    ends = rng.integers(0, n_vertices, (2, shortcuts))
    ends = ends[:, ends[0] != ends[1]]
    tail, head = np.concatenate([parent, child, ends[0]]), np.concatenate([child, parent, ends[1]])
    links = tail, head, draw_capacities(rng, 1, max_capacity, len(tail))
    if undirected:
        return edge_list(n_vertices, [], source=0, sink=n_vertices - 1, undirected=links)
    return edge_list(n_vertices, [links], source=0, sink=n_vertices - 1)


def merge(*, seed: int, levels: int = 16) -> EdgeList:
    """A binary tree that spreads from the source, and one that merges into the sink, of ``2 ** levels`` leaves each.

    Vertices are numbered as in a heap: the source is vertex 1, the sink ``2 ** (levels + 1) + 1``; one before each root
    is in neither. An edge above a subtree of h levels has a capacity of ``1 .. 2 ** h + 2``. Each leaf has an edge of 1
    to its twin, and one of ``1 .. 3`` to a random leaf.
    """
    require(1 <= levels <= 24, f"there are 1 to 24 levels: {levels}")
    rng = np.random.default_rng(seed)
    n = 2 << levels
    child = np.arange(2, n, dtype=np.int64)
    parent = child // 2
    below = levels - np.floor(np.log2(child)).astype(np.int64)
    leaf = np.arange(n // 2, n, dtype=np.int64)
    groups = [
        (parent, child, rng.integers(1, (1 << below) + 3)),
        (n + child, n + parent, rng.integers(1, (1 << below) + 3)),
        (leaf, n + rng.choice(leaf, len(leaf)), draw_capacities(rng, 1, 3, len(leaf))),
        (leaf, n + leaf, np.ones_like(leaf)),
    ]
    return edge_list(2 * n, groups, source=1, sink=n + 1)


def zigzag(*, seed: int, pairs: int = 50_000, shuffled: bool = True, undirected: bool = False) -> EdgeList:
    """A path through left and right vertices in turn, to be matched: all flow is found only by one long chain of swaps.

    Left vertex i is joined to the right vertices i and i - 1; the source (``n - 2``) to all left ones, all right ones
    to the sink (``n - 1``); all capacities are 1. If `shuffled`, vertices are numbered and edges are listed at random.
    Else the first edge of each left vertex is the one that carries flow, which helps codes that keep this order.
    """
    require(pairs >= 1, f"a pair is needed: {pairs}")
    rng = np.random.default_rng(seed)
    number = rng.permutation(2 * pairs) if shuffled else np.arange(2 * pairs)
    left, right = number[:pairs], number[pairs:]
    tail, head = np.concatenate([left, left[1:]]), np.concatenate([right, right[:-1]])
    if shuffled:
        order = rng.permutation(len(tail))
        tail, head = tail[order], head[order]
    return _matched(2 * pairs, left, right, (tail, head, np.ones_like(tail)), undirected)


def bipartite(
    *, seed: int, left: int = 50_000, right: int = 50_000, degree: int = 3, skew: float = 1.0, undirected: bool = False
) -> EdgeList:
    """Left vertices with `degree` edges each to random right vertices, all capacities 1, between two terminals.

    The right end is ``floor(right * u ** skew)`` for a uniform u, so that `skew` above 1 favours some of them.
    """
    require(min(left, right, degree) >= 1, f"both sides and an edge are needed: {left}, {right}, {degree}")
    require(skew > 0, f"skew must be positive: {skew}")
    rng = np.random.default_rng(seed)
    tail = np.repeat(np.arange(left, dtype=np.int64), degree)
    head = left + (right * rng.random(len(tail)) ** skew).astype(np.int64)
    one, other = np.arange(left, dtype=np.int64), np.arange(left, left + right, dtype=np.int64)
    return _matched(left + right, one, other, (tail, head, np.ones_like(tail)), undirected)


def _matched(n: int, left: Indices, right: Indices, links: Columns, undirected: bool) -> EdgeList:
    """Source ``n`` and sink ``n + 1`` with an edge of capacity 1 for each left and each right vertex."""
    ends = [star_from(n, left, capacity=1), star_to(right, n + 1, capacity=1)]
    if undirected:
        return edge_list(n + 2, ends, source=n, sink=n + 1, undirected=links)
    return edge_list(n + 2, [links, *ends], source=n, sink=n + 1)
