"""The links that carry a flow as roads: chains of links between the vertices where the flow can divide.

On a map nine of ten vertices that carry flow have just two links that do. What can be rerouted among roads can be found
in a network some tens of times smaller.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray

NOWHERE = -1


class Roads(NamedTuple):
    """By road. A junction is a terminal, or a vertex at which not exactly two links carry flow."""

    first: ArcArray
    """The arc by which it leaves its tail."""
    tail: VertexArray
    """Junctions, by number."""
    head: VertexArray
    length: UnitArray
    """The number of links of each road."""
    ahead: UnitArray
    """The capacity from tail to head: the least of its arcs."""
    back: UnitArray
    """The capacity from head to tail."""
    junction: VertexArray
    """The number of each vertex of the network as a junction, int32[n]; `NOWHERE` at others."""
    n_junctions: int


@njit(cache=True, nogil=True)
def find_roads(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    used: BoolArray,
    is_end: BoolArray,
    most: int,
) -> Roads:
    """``used`` bool[arcs], of a link both or neither, ``is_end`` bool[n] marks terminals. Roads that come back to where
    they began are left out. Gives up, with no roads at all, when there are more than ``most``. O(n + arcs).
    """
    n = len(row_offsets) - 1
    number = np.full(n, NOWHERE, np.int32)
    junctions = 0
    for v in range(n):
        links = 0
        for a in range(row_offsets[v], row_offsets[v + 1]):
            links += used[a]
        if links and (links != 2 or is_end[v]):
            number[v] = junctions
            junctions += 1
    first, tail, end = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    length, ahead, back = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    found = np.zeros(len(used), np.bool_)
    count = 0
    for v in range(n):
        if number[v] == NOWHERE:
            continue
        for a in range(row_offsets[v], row_offsets[v + 1]):
            if not used[a] or found[a]:
                continue
            links, there, here = 1, capacity[a], capacity[reverse_arc[a]]
            b = a
            while number[head[b]] == NOWHERE:
                b = next_arc(row_offsets, head, reverse_arc, used, b)
                links += 1
                there, here = min(there, capacity[b]), min(here, capacity[reverse_arc[b]])
            found[reverse_arc[b]] = True  # from its other end
            if head[b] == v:
                continue
            if count == most:
                return Roads(first[:0], tail[:0], end[:0], length[:0], ahead[:0], back[:0], number, junctions)
            first[count], tail[count], end[count] = a, number[v], number[head[b]]
            length[count], ahead[count], back[count] = links, there, here
            count += 1
    by_road = first[:count], tail[:count], end[:count], length[:count], ahead[:count], back[:count]
    return Roads(*by_road, number, junctions)


@njit(cache=True, nogil=True)
def next_arc(row_offsets: ArcArray, head: VertexArray, reverse_arc: ArcArray, used: BoolArray, arc: int) -> int:
    """The arc by which a road goes on behind ``arc``, whose head is no junction."""
    v = head[arc]
    for a in range(row_offsets[v], row_offsets[v + 1]):
        if used[a] and a != reverse_arc[arc]:
            return int(a)
    return NOWHERE


@njit(cache=True, nogil=True)
def use_roads(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    used: BoolArray,
    junction: VertexArray,
    first: ArcArray,
    amount: UnitArray,
    flow: UnitArray,
) -> None:
    """Put ``amount`` on each road, and nothing anywhere else: ``flow`` int64[arcs]. O(links)."""
    flow[:] = 0
    for road in range(len(first)):
        a = first[road]
        while amount[road] != 0:
            flow[a] = amount[road]
            flow[reverse_arc[a]] = -amount[road]
            if junction[head[a]] != NOWHERE:
                break
            a = next_arc(row_offsets, head, reverse_arc, used, a)


@njit(cache=True, nogil=True)
def open_links(
    row_offsets: ArcArray, head: VertexArray, reverse_arc: ArcArray, capacity: UnitArray, is_end: BoolArray
) -> BoolArray:
    """bool[arcs]: links that carry something one way or the other, and do not lead to a dead end. O(n + arcs)."""
    n = len(row_offsets) - 1
    used = np.empty(len(head), np.bool_)
    links, dead = np.zeros(n, np.int32), np.empty(n, np.int32)
    count = 0
    for v in range(n):
        for a in range(row_offsets[v], row_offsets[v + 1]):
            used[a] = capacity[a] > 0 or capacity[reverse_arc[a]] > 0
            links[v] += used[a]
        if links[v] == 1 and not is_end[v]:
            dead[count] = v
            count += 1
    while count > 0:
        count -= 1
        v = dead[count]
        for a in range(row_offsets[v], row_offsets[v + 1]):
            if used[a]:
                w = head[a]
                used[a] = used[reverse_arc[a]] = False
                links[w] -= 1
                if links[w] == 1 and not is_end[w]:
                    dead[count] = w
                    count += 1
    return used
