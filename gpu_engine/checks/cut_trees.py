"""Proof of a Gomory-Hu tree, from the network and from the flows that were proven while it was made.

Upper bound: for each row of the tree the capacity of its cut is added up anew. All rows together take one pass over
the edges: an edge counts at each of its ends and twice less at the vertex where the ways to the root meet; what a
subtree counts in all is what leaves it. Lower bound: at least c units flow between the ends of a row of value c if a
chain of proven flows of at least c each leads from one to the other (each cut between the ends separates two
neighbours of the chain). Union-find over flows and rows in falling order finds that for all rows. Both bounds together
make every row's cut a minimum cut of its ends; then the least row between any two terminals is their minimum cut.
"""

import numpy as np
from numba import njit

from gpu_engine.networks.network import Network
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, UnitArray, VertexArray


def tree_failures(
    network: Network,
    terminals: VertexArray,
    tail: VertexArray,
    head: VertexArray,
    value: UnitArray,
    group: VertexArray,
    proven: UnitArray,
) -> tuple[str, ...]:
    """What is wrong with a tree of rows from ``tail`` to ``head``, the first terminal being its root; () if nothing is.

    ``group`` int32[n]: the terminal with which each vertex goes. ``proven`` int64[k, 3]: two vertices, and what at
    least flows from one to the other. O((n + m) log n).
    """
    n, root = network.n_vertices, int(terminals[0])
    parent = np.full(n, -1, np.int32)
    parent[tail] = head
    order = leaves_first(parent, terminals)
    if len(tail) != len(terminals) - 1 or len(order) != len(terminals) or parent[root] >= 0:
        return ("the rows are no tree of the terminals",)
    node = np.zeros(n, np.bool_)
    node[terminals] = True
    if not node[group].all() or not np.array_equal(group[terminals], terminals):
        return ("a vertex goes with no terminal",)
    rows = np.arange(network.n_edges)
    ends = group[network.edge_tail(rows)], group[network.edge_head(rows)]
    cut, limitless = subtree_cuts(parent, order, *ends, network.capacity)
    wanted, paid = value != INFINITE, np.where(limitless[tail] > 0, INFINITE, cut[tail])
    failures = []
    if not np.array_equal(paid, value):
        failures.append(f"{(paid != value).sum()} rows have another value than their cuts")
    unlimited = network.capacity == INFINITE
    joins = np.column_stack((ends[0][unlimited], ends[1][unlimited], np.full(unlimited.sum(), INFINITE_RESIDUAL)))
    flows = np.concatenate((proven, joins.astype(np.int64)))
    least = np.where(wanted, value, INFINITE_RESIDUAL)
    falling, rows_falling = np.argsort(-flows[:, 2], kind="stable"), np.argsort(-least, kind="stable")
    unproven = count_unproven(n, flows[falling], tail[rows_falling], head[rows_falling], least[rows_falling])
    if unproven:
        failures.append(f"{unproven} rows have cuts that no flow was proven to fill")
    return tuple(failures)


@njit(cache=True, nogil=True)
def leaves_first(parent: VertexArray, terminals: VertexArray) -> VertexArray:
    """The terminals, each before its parent; fewer of them if the rows contain a cycle."""
    children = np.zeros(len(parent), np.int32)
    for v in terminals:
        if parent[v] >= 0:
            children[parent[v]] += 1
    order = np.empty(len(terminals), np.int32)
    end, k = 0, 0
    for v in terminals:
        if children[v] == 0 and end < len(order):
            order[end] = v
            end += 1
    while k < end:
        above = parent[order[k]]
        k += 1
        if above >= 0:
            children[above] -= 1
            if children[above] == 0 and end < len(order):
                order[end] = above
                end += 1
    return order[:end].copy()


@njit(cache=True, nogil=True)
def heavy_paths(parent: VertexArray, order: VertexArray) -> tuple[VertexArray, VertexArray]:
    """int32[n] each, of trees whose vertices come in ``order``, leaves first: the top of each vertex's path, which goes
    on to the child with the most vertices below it, and its depth. A way to the root meets O(log n) paths."""
    n = len(parent)
    size, heavy = np.ones(n, np.int32), np.full(n, -1, np.int32)
    top, depth = np.arange(n).astype(np.int32), np.zeros(n, np.int32)
    for v in order:
        p = parent[v]
        if p >= 0:
            size[p] += size[v]
            if heavy[p] < 0 or size[v] > size[heavy[p]]:
                heavy[p] = v
    for i in range(len(order) - 1, -1, -1):
        v = order[i]
        p = parent[v]
        if p >= 0:
            depth[v] = depth[p] + 1
            top[v] = top[p] if heavy[p] == v else v
    return top, depth


@njit(cache=True, nogil=True)
def subtree_cuts(
    parent: VertexArray, order: VertexArray, tail: VertexArray, head: VertexArray, capacity: UnitArray
) -> tuple[UnitArray, UnitArray]:
    """int64[n] each: the finite capacity that leaves each subtree, and how many unlimited edges do.

    Ways to the root are climbed by heavy paths: O(log n) steps an edge.
    """
    n = len(parent)
    cut, limitless = np.zeros(n, np.int64), np.zeros(n, np.int64)
    top, depth = heavy_paths(parent, order)
    for e in range(len(tail)):
        u, w = tail[e], head[e]
        meet, other = u, w
        while top[meet] != top[other]:
            if depth[top[meet]] < depth[top[other]]:
                meet, other = other, meet
            meet = parent[top[meet]]
        if depth[other] < depth[meet]:
            meet = other
        if capacity[e] == INFINITE:
            limitless[u] += 1
            limitless[w] += 1
            limitless[meet] -= 2
        else:
            cut[u] += capacity[e]
            cut[w] += capacity[e]
            cut[meet] -= 2 * capacity[e]
    for v in order:
        if parent[v] >= 0:
            cut[parent[v]] += cut[v]
            limitless[parent[v]] += limitless[v]
    return cut, limitless


@njit(cache=True, nogil=True)
def count_unproven(n: int, flows: UnitArray, tail: VertexArray, head: VertexArray, value: UnitArray) -> int:
    """The number of rows whose ends are joined by no chain of flows of at least their value. The values of ``flows``
    and ``value`` have to be in falling order."""
    leader = np.arange(n)
    k, missing = 0, 0
    for i in range(len(tail)):
        while k < len(flows) and flows[k, 2] >= value[i]:
            leader[find(leader, flows[k, 0])] = find(leader, flows[k, 1])
            k += 1
        missing += find(leader, tail[i]) != find(leader, head[i])
    return missing


@njit(cache=True, nogil=True)
def find(leader: UnitArray, v: int) -> int:
    """The representative of v in union-find; halves the path to it."""
    while leader[v] != v:
        leader[v] = leader[leader[v]]
        v = leader[v]
    return int(v)
