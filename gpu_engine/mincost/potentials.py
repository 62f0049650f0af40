"""Potentials of a network of arcs with costs, or a cycle that costs less than nothing where there are none.

The potential of a vertex is the least cost of a path that begins at any vertex and ends there; the path without arcs
costs 0, so no potential is above 0. With potentials no arc is a shortcut:
``cost + potential[tail] >= potential[head]``. They exist if and only if no cycle costs less than nothing.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled
from gpu_engine.types import BoolArray, UnitArray, VertexArray

POLL_MASK = (1 << 12) - 1
"""The cancel flag is read after each `POLL_MASK` + 1 vertices scanned."""


def potentials(
    n: int, tail: VertexArray, head: VertexArray, cost: UnitArray, control: Control
) -> tuple[UnitArray, VertexArray]:
    """int64[n], and the vertices of a cycle that costs less than nothing: int32[...], empty if the potentials are good.

    Bellman, Ford and Moore's algorithm with a queue, which passes over vertices whose parent is still to be scanned,
    and looks for cycles among the parents (Cherkassky and Goldberg 1999, BFCP). At worst O(nm), on networks of roads
    about O(m). 12 bytes an arc and 26 a vertex. Raises `Cancelled`.
    """
    offsets, heads, costs = _by_tail(n, tail, head, cost)
    found, cycle = _shortest(offsets, heads, costs, control.slots)
    if control.cancelled:
        raise Cancelled("cancelled while potentials were computed")
    return found, cycle


@njit(cache=True, nogil=True)
def _by_tail(
    n: int, tail: VertexArray, head: VertexArray, cost: UnitArray
) -> tuple[NDArray[np.int64], VertexArray, UnitArray]:
    """The arcs in compressed rows: offsets int64[n+1], heads and costs."""
    offsets = np.zeros(n + 1, np.int64)
    for v in tail:
        offsets[v + 1] += 1
    for v in range(n):
        offsets[v + 1] += offsets[v]
    place, heads, costs = offsets[:n].copy(), np.empty(len(tail), np.int32), np.empty(len(tail), np.int64)
    for a in range(len(tail)):
        heads[place[tail[a]]], costs[place[tail[a]]] = head[a], cost[a]
        place[tail[a]] += 1
    return offsets, heads, costs


@njit(cache=True, nogil=True)
def _shortest(
    offsets: NDArray[np.int64], heads: VertexArray, costs: UnitArray, slots: NDArray[np.int64]
) -> tuple[UnitArray, VertexArray]:
    n = len(offsets) - 1
    distance, parent = np.zeros(n, np.int64), np.full(n, -1, np.int32)
    queue, waits = np.arange(n).astype(np.int32), np.ones(n, np.bool_)
    first, count, scanned, shortened = 0, n, 0, 0
    while count > 0:
        v = queue[first]
        first, count = (first + 1) % n, count - 1
        waits[v] = False
        scanned += 1
        if scanned & POLL_MASK == 0 and slots[0] != 0:
            break
        if parent[v] >= 0 and waits[parent[v]]:
            continue
        for a in range(offsets[v], offsets[v + 1]):
            w = heads[a]
            if distance[v] + costs[a] < distance[w]:
                distance[w] = distance[v] + costs[a]
                parent[w] = v
                shortened += 1
                if not waits[w]:
                    queue[(first + count) % n] = w
                    count += 1
                    waits[w] = True
        if shortened >= n:
            shortened = 0
            cycle = _cycle(parent, np.zeros(n, np.bool_))
            if len(cycle):
                return distance, cycle
    return distance, np.empty(0, np.int32)


@njit(cache=True, nogil=True)
def _cycle(parent: VertexArray, seen: BoolArray) -> VertexArray:
    """The vertices of a cycle of parents, in the order of its arcs; empty if there is none. O(n)."""
    n = len(parent)
    path = np.empty(n, np.int32)
    on_path = np.zeros(n, np.bool_)
    for start in range(n):
        v, depth = start, 0
        while v >= 0 and not seen[v]:
            seen[v] = on_path[v] = True
            path[depth] = v
            depth += 1
            v = parent[v]
        if v >= 0 and on_path[v]:
            begin = 0
            while path[begin] != v:
                begin += 1
            return path[begin:depth][::-1].copy()
        for i in range(depth):
            on_path[path[i]] = False
    return np.empty(0, np.int32)
