"""R-MAT: a scale-free directed graph by recursive choice of adjacency-matrix quadrants.

Chakrabarti, Zhan and Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004; the
parameters are those of Graph500.
"""

from typing import Literal

import numpy as np

from gpu_engine.generators._columns import Columns, draw_capacities, edge_list, require, star_from, star_to
from gpu_engine.networks.edgelist import EdgeList

MAX_SCALE = 30


def rmat(
    *,
    seed: int,
    scale: int = 16,
    edge_factor: int = 16,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    terminals: Literal["hub", "sets"] = "hub",
    max_capacity: int = 100,
) -> EdgeList:
    """``2 ** scale`` vertices, about `edge_factor` distinct edges for each.

    Capacities are uniform on ``1 .. max_capacity``. Self-loops and repeated edges are dropped, so there are a
    few per cent fewer. With terminals ``hub`` the
    source and sink are the two vertices of highest degree; with ``sets`` two further vertices, joined by
    infinite edges to two disjoint random sets of 1 % of the vertices.
    """
    require(1 <= scale <= MAX_SCALE, f"scale must be 1 .. {MAX_SCALE}: {scale}")
    require(edge_factor >= 1, f"edge_factor must be positive: {edge_factor}")
    require(min(a, b, c) >= 0 and 0 < a + b + c <= 1, f"a, b, c must be probabilities: {a}, {b}, {c}")
    require(max_capacity >= 1, f"max_capacity must be positive: {max_capacity}")
    require(terminals in ("hub", "sets"), f"terminals must be 'hub' or 'sets': {terminals!r}")
    rng = np.random.default_rng(seed)
    n = 1 << scale
    edges = _distinct_edges(rng, scale, edge_factor, (a, b, c), max_capacity)
    if terminals == "hub":
        degree = np.bincount(edges[0], minlength=n) + np.bincount(edges[1], minlength=n)
        source, sink = np.argsort(degree, kind="stable")[:-3:-1].tolist()
        return edge_list(n, [edges], source=source, sink=sink)
    size = max(1, n // 100)
    chosen = rng.permutation(n)[: 2 * size]
    groups = [edges, star_from(n, chosen[:size]), star_to(chosen[size:], n + 1)]
    return edge_list(n + 2, groups, source=n, sink=n + 1)


def rmat_sets(*, seed: int, scale: int = 16, edge_factor: int = 16, max_capacity: int = 100) -> EdgeList:
    """R-MAT between two disjoint random 1 % sets of vertices."""
    return rmat(seed=seed, scale=scale, edge_factor=edge_factor, terminals="sets", max_capacity=max_capacity)


def _distinct_edges(
    rng: np.random.Generator, scale: int, edge_factor: int, abc: tuple[float, float, float], max_capacity: int
) -> Columns:
    a, b, c = abc
    n, m = 1 << scale, edge_factor << scale
    tail, head = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    for _ in range(scale):
        draw = rng.random(m)
        down = draw >= a + b
        right = ((draw >= a) & ~down) | (draw >= a + b + c)
        tail = 2 * tail + down
        head = 2 * head + right
    # Without a shuffle the hubs would be the vertices with few one bits, and locality unnaturally good.
    name = rng.permutation(n)
    key = np.unique(name[tail] * n + name[head])
    tail, head = np.divmod(key, n)
    no_loop = tail != head
    tail, head = tail[no_loop], head[no_loop]
    return tail, head, draw_capacities(rng, 1, max_capacity, len(tail))
