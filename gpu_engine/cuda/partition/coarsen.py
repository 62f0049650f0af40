"""Levels of smaller graphs on the device: vertices drawn together by groups, and their links added up by a sort."""

from typing import Final, NamedTuple

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array
from gpu_engine.cuda.launch.partition import COARSEN, Rows, by_tile, strided

ROUNDS: Final = 4
"""The number of rounds in which vertices point at each other, before those that are left over pair off."""

ALONE: Final = 0.9
"""No level is made that has more than this share of the vertices of the one before."""

MOST_LEVELS: Final = 40

INSIDE: Final = (1 << 63) - 1
"""The key of a link within a group."""


class Level(NamedTuple):
    """A graph of ``n`` vertices, and which of them are drawn together in the next."""

    n: int
    rows: Rows
    vertex_weight: Array
    there: Array
    """int32[n]: not negative for vertices that are there."""
    group: Array
    """int32[n], -1 for vertices that are not there."""


class Small(NamedTuple):
    """The graph of the last level, of vertices that are all there."""

    n: int
    rows: Rows
    vertex_weight: Array


def levels_of(
    n: int, rows: Rows, vertex_weight: Array, there: Array, few: int, heaviest: int
) -> tuple[list[Level], Small]:
    """Levels until a graph has at most so ``few`` vertices, or cannot be made much smaller without groups that weigh
    more than ``heaviest``. Each has at most about half the vertices of the one before; O((n + slots) log n) in all."""
    levels: list[Level] = []
    small = Small(n, rows, vertex_weight)
    while small.n > few and len(levels) < MOST_LEVELS:
        leader, number, count = groups(small, there, heaviest)
        if count > ALONE * small.n:
            break
        weight = cupy.zeros(count, np.int64)
        of = cupy.empty(small.n, np.int32)
        strided(COARSEN, "number_groups", small.n, np.int32(small.n), leader, number, small.vertex_weight, of, weight)
        levels.append(Level(small.n, small.rows, small.vertex_weight, there, of))
        small = Small(count, contracted(small, of, count), weight)
        there = cupy.zeros(count, np.int32)
    return levels, small


def groups(graph: Small, there: Array, heaviest: int) -> tuple[Array, Array, int]:
    """The leader of each vertex's group, int32[n], how many leaders there are up to each vertex, int32[n], and how many
    there are."""
    n, rows = graph.n, graph.rows
    leader, points = cupy.empty(n, np.int32), cupy.empty(n, np.int32)
    leader.fill(-1)
    points.fill(-1)
    columns = rows.start, rows.used, rows.head, rows.weight, graph.vertex_weight, there, np.int64(heaviest)
    for _ in range(ROUNDS):
        by_tile(COARSEN, "point", n, np.int32(n), *columns, np.int32(0), leader, points)
        strided(COARSEN, "pair_up", n, np.int32(n), points, leader)
    by_tile(COARSEN, "point", n, np.int32(n), *columns, np.int32(1), leader, points)
    left = cupy.flatnonzero((leader < 0) & (there[:n] >= 0) & (points >= 0)).astype(np.int32)
    if len(left) > 1:
        aims = points[left]
        order = cupy.argsort(aims.astype(np.int64) << 32 | left)
        left, aims = left[order], aims[order]
        first = cupy.ones(len(left), np.bool_)
        first[1:] = aims[1:] != aims[:-1]
        begins = cupy.flatnonzero(first)
        place = (cupy.arange(len(left)) - begins[cupy.cumsum(first) - 1]).astype(np.int32)
        given = left, points, place, graph.vertex_weight, np.int64(heaviest), leader
        strided(COARSEN, "pair_off", len(left), np.int32(len(left)), *given)
    strided(COARSEN, "stay_alone", n, np.int32(n), there, leader)
    number = cupy.cumsum(leader == cupy.arange(n, dtype=np.int32), dtype=np.int32)
    return leader, number, int(number[-1])


def contracted(graph: Small, group: Array, count: int) -> Rows:
    """The graph in which each group is one vertex, without room for changes."""
    n, rows = graph.n, graph.rows
    through = cupy.cumsum(rows.used[:n], dtype=np.int64)
    total = int(through[-1])
    first = through - rows.used[:n]
    key, own = cupy.empty(total, np.int64), cupy.empty(total, np.int64)
    given = rows.start, rows.used, rows.head, rows.weight, group, first, key, own
    by_tile(COARSEN, "list_links", n, np.int32(n), *given)
    order = cupy.argsort(key)
    key, own = key[order], own[order]
    del order
    key = key[: int((key != INSIDE).sum())]
    last = cupy.ones(len(key), np.bool_)
    last[:-1] = key[1:] != key[:-1]
    ends = cupy.flatnonzero(last)
    sums = cupy.cumsum(own)[ends]
    weight = sums.copy()
    weight[1:] -= sums[:-1]
    key = key[ends]
    offsets = cupy.searchsorted(key, cupy.arange(count + 1, dtype=np.int64) << 32).astype(np.int64)
    used = (offsets[1:] - offsets[:-1]).astype(np.int32)
    return Rows(offsets[:-1], used, used, (key & 0xFFFFFFFF).astype(np.int32), weight)
