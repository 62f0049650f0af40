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
    """How many links it has."""
    ahead: UnitArray
    """The capacity from tail to head: the least of its arcs."""
    back: UnitArray
    """The capacity from head to tail."""
    junction: VertexArray
    """The number of each vertex of the network as a junction, int32[n]; `NOWHERE` at others."""
    n_junctions: int
    all: bool
    """Every link with flow lies on one of these roads: none leads round back to where it began."""


@njit(cache=True, nogil=True)
def find_roads(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    flow: UnitArray,
    is_end: BoolArray,
    most: int,
) -> Roads:
    """``flow`` int64[arcs] is antisymmetric, ``is_end`` bool[n] marks terminals. Roads that come back to where they
    began are left out. Gives up, with no roads at all, when there are more than ``most``. O(n + arcs).
    """
    n = len(row_offsets) - 1
    number = np.full(n, NOWHERE, np.int32)
    junctions, arcs = 0, 0
    for v in range(n):
        links = 0
        for a in range(row_offsets[v], row_offsets[v + 1]):
            links += flow[a] != 0
        arcs += links
        if links and (links != 2 or is_end[v]):
            number[v] = junctions
            junctions += 1
    first, tail, end = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    length, ahead, back = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    found = np.zeros(len(flow), np.bool_)
    count = 0
    for v in range(n):
        if number[v] == NOWHERE:
            continue
        for a in range(row_offsets[v], row_offsets[v + 1]):
            if flow[a] == 0 or found[a]:
                continue
            links, there, here = 1, capacity[a], capacity[reverse_arc[a]]
            b = a
            while number[head[b]] == NOWHERE:
                b = next_arc(row_offsets, head, reverse_arc, flow, b)
                links += 1
                there, here = min(there, capacity[b]), min(here, capacity[reverse_arc[b]])
            found[reverse_arc[b]] = True  # from its other end
            if head[b] == v:
                continue
            if count == most:
                return Roads(first[:0], tail[:0], end[:0], length[:0], ahead[:0], back[:0], number, junctions, False)
            first[count], tail[count], end[count] = a, number[v], number[head[b]]
            length[count], ahead[count], back[count] = links, there, here
            count += 1
            arcs -= 2 * links
    by_road = first[:count], tail[:count], end[:count], length[:count], ahead[:count], back[:count]
    return Roads(*by_road, number, junctions, arcs == 0)


@njit(cache=True, nogil=True)
def next_arc(row_offsets: ArcArray, head: VertexArray, reverse_arc: ArcArray, flow: UnitArray, arc: int) -> int:
    """The arc by which a road goes on behind ``arc``, whose head is no junction."""
    v = head[arc]
    for a in range(row_offsets[v], row_offsets[v + 1]):
        if flow[a] != 0 and a != reverse_arc[arc]:
            return int(a)
    return NOWHERE


@njit(cache=True, nogil=True)
def use_roads(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    flow: UnitArray,
    junction: VertexArray,
    first: ArcArray,
    amount: UnitArray,
) -> None:
    """Put ``amount`` on each road in place of its ``flow`` int64[arcs], by which the road is found. O(links)."""
    for road in range(len(first)):
        a = first[road]
        while True:
            last = junction[head[a]] != NOWHERE
            further = a if last else next_arc(row_offsets, head, reverse_arc, flow, a)
            flow[a] = amount[road]
            flow[reverse_arc[a]] = -amount[road]
            if last:
                break
            a = further
