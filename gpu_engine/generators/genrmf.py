"""GENRMF: `b` square frames of ``a * a`` vertices in a row, joined by random permutations.

Goldfarb and Grigoriadis, "A computational comparison of the Dinic and network simplex methods for maximum
flow", Annals of Operations Research 13 (1988); used by the first DIMACS challenge.
"""

import numpy as np

from gpu_engine.generators._columns import Columns, draw_capacities, edge_list, require
from gpu_engine.networks.edgelist import EdgeList


def genrmf(*, seed: int, a: int, b: int, c1: int = 100, c2: int = 10_000) -> EdgeList:
    """``a * a * b`` vertices and ``4a(a-1)b + a*a*(b-1)`` edges.

    Inside a frame neighbours are joined both ways with capacity ``c2 * a * a``, which never limits; each
    vertex has one edge to the next frame, by a random permutation, with capacity uniform on ``c1 .. c2``.
    The source is the first vertex of the first frame, the sink the last vertex of the last.
    """
    require(a >= 1 and b >= 1 and a * a * b >= 2, f"genrmf needs a, b >= 1 and two vertices: a={a}, b={b}")
    require(0 <= c1 <= c2, f"genrmf needs 0 <= c1 <= c2: c1={c1}, c2={c2}")
    rng = np.random.default_rng(seed)
    groups = [_frames(a, b, c2 * a * a), _between_frames(rng, a * a, b, c1, c2)]
    return edge_list(a * a * b, groups, source=0, sink=a * a * b - 1)


def genrmf_long(*, seed: int, a: int = 29, b: int | None = None, c1: int = 100, c2: int = 10_000) -> EdgeList:
    """A long pipe, eight frames per unit of `a`; 195 112 vertices by default."""
    return genrmf(seed=seed, a=a, b=8 * a if b is None else b, c1=c1, c2=c2)


def genrmf_wide(*, seed: int, a: int = 60, b: int | None = None, c1: int = 100, c2: int = 10_000) -> EdgeList:
    """A cube of frames, ``a = b``; 216 000 vertices by default."""
    return genrmf(seed=seed, a=a, b=a if b is None else b, c1=c1, c2=c2)


def _frames(a: int, b: int, capacity: int) -> Columns:
    vertex = np.arange(a * a * b, dtype=np.int64).reshape(b, a, a)
    lower = np.concatenate([vertex[:, :, :-1].ravel(), vertex[:, :-1, :].ravel()])
    upper = np.concatenate([vertex[:, :, 1:].ravel(), vertex[:, 1:, :].ravel()])
    tail, head = np.concatenate([lower, upper]), np.concatenate([upper, lower])
    return tail, head, np.full_like(tail, capacity)


def _between_frames(rng: np.random.Generator, frame: int, b: int, c1: int, c2: int) -> Columns:
    tail = np.arange(frame * (b - 1), dtype=np.int64)
    permutation = rng.permuted(np.tile(np.arange(frame, dtype=np.int64), (b - 1, 1)), axis=1)
    next_frame = np.arange(1, b, dtype=np.int64)[:, None] * frame
    return tail, (permutation + next_frame).ravel(), draw_capacities(rng, c1, c2, len(tail))
