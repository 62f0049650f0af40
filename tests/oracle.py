"""The judge: OR-tools on a network with its terminals turned into ordinary arcs. Shares no code with ours."""

import numpy as np
from ortools.graph.python import max_flow

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, BoolArray, UnitArray

PLENTY = 1 << 50
"""Stands for an infinite capacity; the finite ones of a test add up to far less."""


def maximum_flow(edges: EdgeList, capacity: UnitArray, terminals: Terminals) -> int:
    """Value in units for ``capacity`` int64[m] in place of the edge list's own; the network must be bounded."""
    return solved(edges, capacity, terminals).optimal_flow()


def nearest_cut(edges: EdgeList, capacity: UnitArray, terminals: Terminals) -> BoolArray:
    """bool[n]: the source side of the minimum cut nearest the sources."""
    side = np.zeros(edges.n_vertices + 2, np.bool_)
    side[solved(edges, capacity, terminals).get_source_side_min_cut()] = True
    return side[: edges.n_vertices]


def solved(edges: EdgeList, capacity: UnitArray, terminals: Terminals) -> max_flow.SimpleMaxFlow:
    solver = max_flow.SimpleMaxFlow()
    arcs = np.asarray(edges.tail) != np.asarray(edges.head)
    finite = np.minimum(capacity, PLENTY)
    both = arcs & np.broadcast_to(edges.undirected, (edges.n_edges,))
    solver.add_arcs_with_capacity(edges.tail[arcs], edges.head[arcs], finite[arcs])
    solver.add_arcs_with_capacity(edges.head[both], edges.tail[both], finite[both])
    super_source, super_sink = edges.n_vertices, edges.n_vertices + 1
    for vertex, cap in zip(terminals.sources, terminals.supply, strict=True):
        solver.add_arc_with_capacity(super_source, int(vertex), 4 * PLENTY if cap == INFINITE else int(cap))
    for vertex, cap in zip(terminals.sinks, terminals.demand, strict=True):
        solver.add_arc_with_capacity(int(vertex), super_sink, 4 * PLENTY if cap == INFINITE else int(cap))
    assert solver.solve(super_source, super_sink) == solver.OPTIMAL
    return solver
