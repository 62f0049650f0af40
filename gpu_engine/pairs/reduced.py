"""A smaller network in which certain vertices have the same maximum flows between them.

Nine of ten vertices of a road map are bends and ends of dead-end roads. A dead end that holds no terminal carries no
flow: it is peeled off, vertex by vertex. A vertex that then has two neighbours passes on what comes: a chain of such
vertices becomes one link, as wide in either direction as the narrowest of its arcs. What remains are junctions, and
the terminals that the caller names. Nothing is proven here: flows found in the smaller network are written out arc by
arc in the whole one (`Reduced.chain`) and proven there.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray

WORTH_IT = 4
"""A network is reduced only if at least one in so many of its vertices can be removed."""


class Reduced(NamedTuple):
    """A bidirectional CSR, whose arcs may be parallel, and the chain of the whole network for which each arc stands."""

    row_offsets: ArcArray
    head: VertexArray
    reverse_arc: ArcArray
    capacity: UnitArray
    """int64[arcs]: the least capacity of an arc of the chain."""
    offsets: ArcArray
    """int32[arcs + 1]: the chain of arc a is ``chain[offsets[a]:offsets[a + 1]]``."""
    chain: ArcArray
    """Arcs of the whole network, from the tail of the chain to its head."""
    number: VertexArray
    """int32[n]: the number that each vertex of the whole network has here, -1 if it was removed."""


def reduced(
    row_offsets: ArcArray, head: VertexArray, reverse_arc: ArcArray, capacity: UnitArray, kept: VertexArray
) -> Reduced:
    """The network without all that does not matter to flows between the vertices ``kept``, or the whole network if too
    little can be removed (`WORTH_IT`). ``capacity`` is int64[arcs]. O(n + arcs)."""
    n, arcs = len(row_offsets) - 1, len(head)
    terminal = np.zeros(n, np.bool_)
    terminal[kept] = True
    degree = peel(row_offsets, head, terminal)
    number = number_junctions(degree, terminal)
    left = int(number.max(initial=-1)) + 1
    if WORTH_IT * left > (WORTH_IT - 1) * n:
        every = np.arange(arcs + 1, dtype=np.int32)
        whole = np.arange(n, dtype=np.int32)
        return Reduced(row_offsets, head, reverse_arc, capacity, every, every[:arcs], whole)
    return contract(row_offsets, head, reverse_arc, capacity, degree, number, left)


@njit(cache=True, nogil=True)
def peel(row_offsets: ArcArray, head: VertexArray, terminal: BoolArray) -> NDArray[np.int32]:
    """int32[n]: how many neighbours each vertex has after dead ends without terminals were removed, -1 for those that
    were."""
    n = len(terminal)
    degree = np.empty(n, np.int32)
    stack = np.empty(n, np.int32)
    waiting = 0
    for v in range(n):
        degree[v] = row_offsets[v + 1] - row_offsets[v]
        if degree[v] <= 1 and not terminal[v]:
            stack[waiting] = v
            waiting += 1
    while waiting > 0:
        waiting -= 1
        v = stack[waiting]
        degree[v] = -1
        for a in range(row_offsets[v], row_offsets[v + 1]):
            w = head[a]
            if degree[w] < 0:
                continue
            degree[w] -= 1
            if degree[w] == 1 and not terminal[w]:
                stack[waiting] = w
                waiting += 1
    return degree


@njit(cache=True, nogil=True)
def number_junctions(degree: NDArray[np.int32], terminal: BoolArray) -> VertexArray:
    """int32[n]: numbers for terminals and for vertices where flow can divide, rising; -1 for all others."""
    number = np.full(len(degree), -1, np.int32)
    count = 0
    for v in range(len(degree)):
        if terminal[v] or degree[v] > 2:
            number[v] = count
            count += 1
    return number


@njit(cache=True, nogil=True)
def contract(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    degree: NDArray[np.int32],
    number: VertexArray,
    left: int,
) -> Reduced:
    """Chains between numbered vertices become arcs; a chain that leads back to where it began is left out."""
    arcs = 0
    for v in range(len(degree)):
        if number[v] >= 0:
            arcs += max(degree[v], 0)
    rows = np.zeros(left + 1, np.int32)
    heads, reverse = np.empty(arcs, np.int32), np.empty(arcs, np.int32)
    widths = np.empty(arcs, np.int64)
    offsets, chain = np.zeros(arcs + 1, np.int32), np.empty(len(head), np.int32)
    begins = np.full(len(head), -1, np.int32)  # which reduced arc begins with this arc
    r, used = 0, 0
    for v in range(len(degree)):
        if number[v] < 0:
            continue
        for a in range(row_offsets[v], row_offsets[v + 1]):
            if degree[head[a]] < 0:
                continue
            start, b, width = used, a, capacity[a]
            chain[used] = a
            used += 1
            while number[head[b]] < 0:
                b = onward(row_offsets, head, reverse_arc, degree, b)
                chain[used] = b
                used += 1
                width = min(width, capacity[b])
            if head[b] == v:
                used = start
                continue
            heads[r], widths[r] = number[head[b]], width
            begins[a] = r
            r += 1
            offsets[r] = used
        rows[number[v] + 1] = r
    for i in range(r):
        reverse[i] = begins[reverse_arc[chain[offsets[i + 1] - 1]]]
    return Reduced(
        rows,
        heads[:r].copy(),
        reverse[:r].copy(),
        widths[:r].copy(),
        offsets[: r + 1].copy(),
        chain[:used].copy(),
        number,
    )


@njit(cache=True, nogil=True)
def onward(row_offsets: ArcArray, head: VertexArray, reverse_arc: ArcArray, degree: NDArray[np.int32], arc: int) -> int:
    """The arc by which a chain goes on behind ``arc``, whose head has two neighbours left."""
    v = head[arc]
    for a in range(row_offsets[v], row_offsets[v + 1]):
        if degree[head[a]] >= 0 and a != reverse_arc[arc]:
            return int(a)
    return -1
