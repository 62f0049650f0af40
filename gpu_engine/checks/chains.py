"""Edges whose closure lets the same flow through: those of one chain, and those that carry none either way.

A vertex with one open edge that is no terminal passes nothing on: its edge may as well be closed, and others after it.
A vertex that then has two open edges, and is no terminal, passes on what comes by one of them over the other. So if
either is closed nothing passes the other one, and closing both is the same again. Capacities of vertices take nothing
away from that.
"""

import numpy as np
from numba import njit

from gpu_engine.checks.cut_trees import find
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import BoolArray, UnitArray, VertexArray


def closed_alike(network: Network, terminals: Terminals) -> UnitArray:
    """int64[m]: a number for each edge. The closure of any edges with one number has the same effect as the closure of
    all of them, and the closure of an edge with the number -1 has none. O(m)."""
    is_terminal = np.zeros(network.n_vertices, np.bool_)
    is_terminal[terminals.sources] = is_terminal[terminals.sinks] = True
    return chains(*network.edge_ends(np.arange(network.n_edges)), network.capacity, is_terminal)


@njit(cache=True, nogil=True)
def chains(tail: VertexArray, head: VertexArray, capacity: UnitArray, is_terminal: BoolArray) -> UnitArray:
    """`closed_alike` on columns: ``tail``, ``head`` int32[m], ``capacity`` int64[m], ``is_terminal`` bool[n]."""
    n, m = len(is_terminal), len(tail)
    is_open = (capacity > 0) & (tail != head)
    # The number of open edges at each vertex, and the exclusive or of their rows.
    degree, edges = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for e in range(m):
        if is_open[e]:
            for v in (tail[e], head[e]):
                degree[v] += 1
                edges[v] ^= e
    for v in range(n):
        u = v
        while degree[u] == 1 and not is_terminal[u]:
            e = edges[u]
            is_open[e] = False
            degree[u] = 0
            u = tail[e] + head[e] - u
            degree[u] -= 1
            edges[u] ^= e
    leader, first = np.arange(m), np.full(n, -1, np.int64)
    for e in range(m):
        if is_open[e]:
            for v in (tail[e], head[e]):
                if degree[v] == 2 and not is_terminal[v]:
                    if first[v] < 0:
                        first[v] = e
                    else:
                        leader[find(leader, e)] = find(leader, first[v])
    for e in range(m):
        leader[e] = find(leader, e) if is_open[e] else -1
    return leader
