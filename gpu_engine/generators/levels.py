"""Layered and acyclic families: Washington's random level graph, two chains, a line, and the dense acyclic graph.

Anderson et al., "The DIMACS international algorithm implementation challenge: maximum flow and minimum cut"
(1991), generators `washington` (function 2; chains and line are like its exponential and random lines) and `ac`.
"""

import numpy as np

from gpu_engine.generators._columns import draw_capacities, edge_list, require, star_from, star_to
from gpu_engine.networks.edgelist import EdgeList

OUT_DEGREE = 3


def rlg(*, seed: int, rows: int, columns: int, max_capacity: int = 10_000) -> EdgeList:
    """`columns` levels of `rows` vertices, three edges from each vertex to random ones of the next level.

    Capacities are uniform on ``1 .. max_capacity``; two equal draws make parallel edges. The source (vertex
    ``n - 2``) feeds the first level and the last level drains into the sink (``n - 1``), each edge with
    ``3 * max_capacity``, which never limits what a vertex of the first level can send on.
    """
    require(rows >= 1 and columns >= 1, f"a level graph needs rows, columns >= 1: {rows}, {columns}")
    require(max_capacity >= 1, f"max_capacity must be positive: {max_capacity}")
    rng = np.random.default_rng(seed)
    n = rows * columns
    tail = np.repeat(np.arange(n - rows, dtype=np.int64), OUT_DEGREE)
    next_level = (tail // rows + 1) * rows
    head = next_level + rng.integers(0, rows, size=len(tail))
    capacity = draw_capacities(rng, 1, max_capacity, len(tail))
    at_terminal = OUT_DEGREE * max_capacity
    first = np.arange(rows, dtype=np.int64)
    last = np.arange(n - rows, n, dtype=np.int64)
    groups = [
        (tail, head, capacity),
        star_from(n, first, at_terminal),
        star_to(last, n + 1, at_terminal),
    ]
    return edge_list(n + 2, groups, source=n, sink=n + 1)


def rlg_long(*, seed: int, rows: int = 410, max_capacity: int = 10_000) -> EdgeList:
    """Twice as many levels as vertices in a level; 336 202 vertices by default."""
    return rlg(seed=seed, rows=rows, columns=2 * rows, max_capacity=max_capacity)


def rlg_wide(*, seed: int, rows: int = 580, max_capacity: int = 10_000) -> EdgeList:
    """As many levels as vertices in a level; 336 402 vertices by default."""
    return rlg(seed=seed, rows=rows, columns=rows, max_capacity=max_capacity)


def chains(*, seed: int, length: int = 40_000, widest: int = 1 << 40, rung: int = 1 << 20) -> EdgeList:
    """Two chains of `length` vertices side by side, from the source (``n - 2``) to the sink (``n - 1``).

    Up one the capacities double at each step, to `widest`; down the other they halve at the end. At each step a rung
    of capacity 1 leads from the first to the second, and one of up to `rung`, which is drawn, leads back.
    """
    require(length >= 2, f"a chain has two ends: {length}")
    require(widest >= 1 and rung >= 1, f"capacities must be positive: {widest}, {rung}")
    rng = np.random.default_rng(seed)
    up = np.arange(length, dtype=np.int64)
    down, step, most = up + length, up[:-1], widest.bit_length() - 1
    doubled = np.int64(1) << np.minimum(step, most)
    halved = np.int64(1) << np.minimum(length - step, most)
    back = rng.integers(1, np.minimum(doubled, rung) + 1)
    source, sink = 2 * length, 2 * length + 1
    groups = [
        (up[:-1], up[1:], doubled),
        (down[:-1], down[1:], halved),
        (up[:-1], down[:-1], np.ones_like(step)),
        (down[:-1], up[:-1], back),
        star_from(source, np.array([0, length]), 2 * widest),
        star_to(np.array([length - 1, 2 * length - 1]), sink, 2 * widest),
    ]
    return edge_list(2 * length + 2, groups, source=source, sink=sink)


def line(*, seed: int, width: int = 3, length: int = 150_000, degree: int = 3, max_capacity: int = 1000) -> EdgeList:
    """``width * length`` vertices in a row, `degree` edges from each to random ones not far ahead.

    An edge leads ``1 .. width * degree - 1`` vertices on (1 where that is none); those that would lead past the end are
    left out. Capacities are uniform on ``1 .. max_capacity``. The source (vertex ``n - 2``) feeds the first `width`
    vertices and the last ones drain into the sink (``n - 1``), each edge with ``degree * max_capacity``.
    """
    require(min(width, length, degree) >= 1, f"a line needs vertices and edges: {width}, {length}, {degree}")
    require(max_capacity >= 1, f"max_capacity must be positive: {max_capacity}")
    rng = np.random.default_rng(seed)
    n = width * length
    tail = np.repeat(np.arange(n, dtype=np.int64), degree)
    head = tail + rng.integers(1, max(2, width * degree), size=len(tail))
    inside = head < n
    tail, head = tail[inside], head[inside]
    at_terminal = degree * max_capacity
    groups = [
        (tail, head, draw_capacities(rng, 1, max_capacity, len(tail))),
        star_from(n, np.arange(width, dtype=np.int64), at_terminal),
        star_to(np.arange(n - width, n, dtype=np.int64), n + 1, at_terminal),
    ]
    return edge_list(n + 2, groups, source=n, sink=n + 1)


def acyclic_dense(*, seed: int, n_vertices: int = 1450, max_capacity: int = 10_000) -> EdgeList:
    """The complete acyclic graph: an edge ``u -> v`` for every ``u < v``, from vertex 0 to the last."""
    require(n_vertices >= 2, f"an acyclic dense graph needs two vertices: {n_vertices}")
    require(max_capacity >= 1, f"max_capacity must be positive: {max_capacity}")
    rng = np.random.default_rng(seed)
    tail, head = np.triu_indices(n_vertices, k=1)
    capacity = draw_capacities(rng, 1, max_capacity, len(tail))
    return edge_list(n_vertices, [(tail, head, capacity)], source=0, sink=n_vertices - 1)
