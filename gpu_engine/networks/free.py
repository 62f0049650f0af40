"""Free vertices: uncapped terminals, and what they reach through infinite arcs.

An infinite arc out of an uncapped source makes its head as good as a source, and mirrored for sinks. Treating the
whole closure as terminals keeps every excess finite (no infinite arc is ever saturated), dissolves super-source
hubs, and finds an unbounded network before it is solved: exactly when the two closures meet.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.errors import ROWS_SHOWN, Unbounded
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, NO_ARC, ArcArray, BoolArray, UnitArray, VertexArray

ORDINARY, SINK, SOURCE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class FreeVertices:
    """``role`` int8[n]: ORDINARY, SINK or SOURCE. ``tree_arc`` int32[n]: the infinite arc that leads to a free
    source vertex from its parent, or from a free sink vertex to its parent; `NO_ARC` at terminals and elsewhere.
    ``order`` int32[...]: free vertices, parents before children.
    """

    role: NDArray[np.int8]
    tree_arc: ArcArray
    order: VertexArray


def uncapped_roles(n_vertices: int, terminals: Terminals) -> NDArray[np.int8]:
    """int8[n]: the roles of vertices where no edge is infinite."""
    role = np.zeros(n_vertices, np.int8)
    role[terminals.sources[terminals.supply == INFINITE]] = SOURCE
    role[terminals.sinks[terminals.demand == INFINITE]] = SINK
    return role


def free_roles(network: Network, terminals: Terminals) -> NDArray[np.int8]:
    """int8[n]: the ``role`` of `free_vertices`, alone. Raises `Unbounded` as that does. O(n), plus O(m) if any edge is
    infinite."""
    if network.n_infinite:
        return free_vertices(network, terminals).role
    return uncapped_roles(network.n_vertices, terminals)


def free_vertices(network: Network, terminals: Terminals) -> FreeVertices:
    """Raises `Unbounded` with the path. O(n), plus O(m) if any edge is infinite."""
    n = network.n_vertices
    role = uncapped_roles(n, terminals)
    order = np.flatnonzero(role != ORDINARY).astype(np.int32)  # faster of booleans
    tree_arc = np.full(n, NO_ARC, np.int32)
    if network.n_infinite:
        csr = (network.row_offsets, network.head, network.reverse_arc)
        order, meeting = _spread(*csr, network.infinite_arcs(), role, tree_arc, order)
        if meeting != NO_ARC:
            path = _path(network, tree_arc, meeting)
            labels = network.vertex_labels.of(np.array(path[:ROWS_SHOWN], np.int64))
            error = Unbounded("a path of unlimited edges leads from a source to a sink", vertices=labels)
            error.terminals = terminals.key
            raise error
    return FreeVertices(role, tree_arc, order)


@njit(cache=True, nogil=True)
def _spread(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    infinite: BoolArray,
    role: NDArray[np.int8],
    tree_arc: ArcArray,
    seeds: VertexArray,
) -> tuple[VertexArray, int]:
    """Breadth-first search along infinite arcs from sources, against them from sinks."""
    order = np.empty(len(role), np.int32)
    order[: len(seeds)] = seeds
    tail, i = len(seeds), 0
    while i < tail:
        v = order[i]
        i += 1
        for a in range(row_offsets[v], row_offsets[v + 1]):
            w = head[a]
            arc = a if role[v] == SOURCE else reverse_arc[a]
            if not infinite[arc]:
                continue
            if role[w] == ORDINARY:
                role[w] = role[v]
                tree_arc[w] = arc
                order[tail] = w
                tail += 1
            elif role[w] != role[v]:
                return order[:tail].copy(), arc
    return order[:tail].copy(), NO_ARC


def _path(network: Network, tree_arc: ArcArray, meeting: int) -> list[int]:
    """Vertices from the source to the sink along tree arcs and the arc where the closures meet."""
    left = [int(network.head[network.reverse_arc[meeting]])]
    while (arc := int(tree_arc[left[-1]])) != NO_ARC:
        left.append(int(network.head[network.reverse_arc[arc]]))
    right = [int(network.head[meeting])]
    while (arc := int(tree_arc[right[-1]])) != NO_ARC:
        right.append(int(network.head[arc]))
    return left[::-1] + right


def route_free_flow(network: Network, free: FreeVertices, residual: UnitArray, excess: UnitArray) -> None:
    """Carry what free source vertices lack, and free sink vertices hold, over the tree arcs, in place."""
    _route(network.head, network.reverse_arc, free.tree_arc, free.order, free.role, residual, excess)


@njit(cache=True, nogil=True)
def _route(
    head: VertexArray,
    reverse_arc: ArcArray,
    tree_arc: ArcArray,
    order: VertexArray,
    role: NDArray[np.int8],
    residual: UnitArray,
    excess: UnitArray,
) -> None:
    for i in range(len(order) - 1, -1, -1):
        v = order[i]
        arc = tree_arc[v]
        if arc == NO_ARC:
            continue
        parent = head[reverse_arc[arc]] if role[v] == SOURCE else head[arc]
        short = min(excess[v], 0) if role[v] == SOURCE else max(excess[v], 0)
        residual[arc] -= abs(short)
        residual[reverse_arc[arc]] += abs(short)
        excess[parent] += short
        excess[v] -= short
