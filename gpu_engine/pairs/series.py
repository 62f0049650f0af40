"""Vertices that are linked with one or two others are taken out of an undirected network, again and again, and put into
its Gomory-Hu tree once that of the rest is known: each costs a step, however long the ways around it are.

With one neighbour a vertex hangs on it. Let v have two, a by ``ca`` units and b by ``cb``, ``ca >= cb``. To the cuts
of others it is a link of a and b by ``cb``: they have v on the side of a. Its own cut from a costs ``ca`` and the
lesser of ``cb`` and what flows between a and b without it. Where that is ``cb``, v hangs on a. Else a and b are
neighbours in the tree of the rest, or a cut between them would divide what lies on one side of the cut of a and b for
less than it costs; and v comes between them. So of a network of treewidth 2, such as trees of rings, ladders, and rings
that meet at two vertices, nothing is left to cut.

Duffin, "Topology of series-parallel networks", Journal of Mathematical Analysis and Applications 10 (1965). Arnborg and
Proskurowski, "Characterization and recognition of partial 3-trees", SIAM Journal on Algebraic and Discrete Methods 7
(1986), section 3. Gomory, Hu, "Multi-terminal network flows", Journal of SIAM 9 (1961).
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.checks.cut_trees import find
from gpu_engine.checks.series import Steps
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.pairs.values import Whole
from gpu_engine.types import BoolArray, UnitArray, VertexArray

NONE: Final = -1

FEW: Final = 2
"""A vertex with more neighbours than this is not taken out."""

MASK: Final = (1 << 62) - 1

ARC_BYTES: Final = 40
VERTEX_BYTES: Final = 150
"""Bytes for each arc, and for each vertex, that taking vertices out takes at most."""


class Rest(NamedTuple):
    """What is left of a network after vertices were taken out of it, and the steps that took them out."""

    steps: Steps
    is_node: BoolArray
    """bool[n]: the vertices of the tree. Besides those that were asked for, these are neighbours beside which one of
    them is put in."""
    network: Network
    vertex: VertexArray
    """int32[vertices]: the vertex of the whole network that each one is."""


def taken_out(network: Network, stands_for: VertexArray, is_node: BoolArray) -> Rest:
    """The rest of an undirected network in which each vertex is one with that which ``stands_for`` it, int32[n].
    O(n + m) expected. A vertex that the tree is to have, ``is_node``, stays where both of its neighbours are none."""
    n, is_node = network.n_vertices, is_node.copy()
    whole = Whole(network.row_offsets, network.head, network.reverse_arc, network.arc_capacity())
    itself = np.arange(n, dtype=np.int32)
    if _fewest(whole) > FEW and np.array_equal(stands_for, itself):
        none, nothing = np.empty(0, np.int32), np.empty(0, np.int64)
        return Rest(Steps(none, none, none, nothing, nothing), is_node, network, itself)
    columns, gone, one, other, units = _shrunk(whole, stands_for, is_node)
    vertex = np.flatnonzero(~gone & (stands_for == itself)).astype(np.int32)
    number = np.full(n, NONE, np.int32)
    number[vertex] = np.arange(len(vertex))
    left = EdgeList(len(vertex), number[one], number[other], units, True)
    return Rest(Steps(*columns), is_node, Network(left), vertex)


@njit(cache=True, nogil=True)
def put_in(steps: Steps, is_node: BoolArray, up: VertexArray, value: UnitArray, group: VertexArray) -> UnitArray:
    """Put what was taken out into a tree, the last one first: ``up`` and ``value`` have the links of its nodes, and
    ``group`` the node with which each vertex goes. Returns int64[k]: what has to flow at least between the two
    neighbours of each for its cut to be right, the link in its place included. O(k)."""
    least = np.zeros(len(steps.vertex), np.int64)
    for i in range(len(steps.vertex) - 1, -1, -1):
        v, a, b = steps.vertex[i], steps.near[i], steps.far[i]
        ca, cb = steps.near_units[i], steps.far_units[i]
        if not is_node[v]:
            group[v] = group[a]
            continue
        group[v], up[v], value[v], least[i] = v, a, ca + cb, 2 * cb
        if b < 0 or (up[a] != b and up[b] != a):
            continue
        flows = value[a] if up[a] == b else value[b]
        if flows >= 2 * cb:
            continue
        least[i] = flows
        if up[a] == b:
            up[v], value[v] = b, flows
            up[a], value[a] = v, ca + flows - cb
        else:
            value[v] = ca + flows - cb
            up[b], value[b] = v, flows
    return least


@njit(cache=True, nogil=True)
def without_others(
    up: VertexArray, value: UnitArray, is_asked: BoolArray, root: int
) -> tuple[VertexArray, VertexArray]:
    """A tree of those nodes alone that are asked for, hung up at the ``root``, one of them. Each other node becomes one
    with the neighbour to which most flows: what flows to a third from either is limited by the link of that, so its cut
    stays a minimum cut. Returns the links, int32[n], and for which node each stands, int32[n]; the values are put into
    ``value``, and ``up`` is overwritten. O(n log n)."""
    v, above, units = root, NONE, np.int64(0)
    while v >= 0:  # the links on the path to the old root change direction
        following, amount = up[v], value[v]
        up[v], value[v] = above, units
        v, above, units = int(following), int(v), np.int64(amount)
    leader, links = np.arange(len(up)), np.flatnonzero(up >= 0)
    label = np.where(is_asked, np.arange(len(up)), NONE).astype(np.int32)
    for x in links[np.argsort(-value[links])]:
        one, other = find(leader, int(x)), find(leader, int(up[x]))
        if label[one] < 0 or label[other] < 0:
            label[other] = max(label[one], label[other])
            leader[one] = other
    head, amounts = np.full(len(up), NONE, np.int32), np.zeros(len(up), np.int64)
    for x in links:
        node, above_it = label[find(leader, int(x))], label[find(leader, int(up[x]))]
        if node != above_it:
            head[node], amounts[node] = above_it, value[x]
    value[:] = amounts
    for v in range(len(up)):
        label[v] = label[find(leader, v)]
    return head, label


@njit(cache=True, nogil=True)
def _fewest(whole: Whole) -> int:
    """The least number of neighbours that a vertex with any neighbours has."""
    fewest = len(whole.row_offsets)
    for v in range(len(whole.row_offsets) - 1):
        links = 0
        for a in range(whole.row_offsets[v], whole.row_offsets[v + 1]):
            links += whole.capacity[a] > 0
        if links > 0:
            fewest = min(fewest, links)
    return fewest


class Links(NamedTuple):
    """Links while vertices are taken out, found by their ends in a table with open places."""

    place: VertexArray
    """int32[2^x]: the link of each place of the table, -1 for none."""
    ends: VertexArray
    """int32[links, 2]"""
    units: UnitArray
    """int64[links]: 0 once an end is taken out."""
    first: VertexArray
    """int32[n]: 2 e or 2 e + 1 for the first link e of a vertex, which is its first or second end; -1 for none."""
    following: VertexArray
    """int32[2 links]: the next one."""
    degree: VertexArray
    """int32[n]"""
    made: UnitArray
    """int64[1]: how many links were made."""


@njit(cache=True, nogil=True)
def _wait(waiting: VertexArray, count: UnitArray, v: int, is_node: bool) -> None:
    row = 1 if is_node else 0
    waiting[row, count[row]] = v
    count[row] += 1


@njit(cache=True, nogil=True)
def _shrunk(
    whole: Whole, stands_for: VertexArray, is_node: BoolArray
) -> tuple[
    tuple[VertexArray, VertexArray, VertexArray, UnitArray, UnitArray],
    BoolArray,
    VertexArray,
    VertexArray,
    UnitArray,
]:
    """The columns of the steps, who is gone, and the links that are left, by their ends and units."""
    n = len(stands_for)
    links = _linked(whole, stands_for)
    gone, k = np.zeros(n, np.bool_), 0
    vertex, near, far = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    near_units, far_units = np.empty(n, np.int64), np.empty(n, np.int64)
    # Vertices that are to be looked at; those of the tree are in the second row.
    waiting, count = np.empty((2, 3 * n), np.int32), np.zeros(2, np.int64)
    for v in range(n):
        _wait(waiting, count, v, is_node[v])
    while count.sum() > 0:
        last = 0 if count[0] > 0 else 1
        count[last] -= 1
        v = waiting[last, count[last]]
        if gone[v] or not 0 < links.degree[v] <= FEW:
            continue
        one, other = _neighbours(links, v)
        a, b, cb = int(links.ends[one >> 1, 1 - (one & 1)]), NONE, 0
        if other >= 0:
            b, cb = int(links.ends[other >> 1, 1 - (other & 1)]), int(links.units[other >> 1])
        if is_node[v]:
            if b >= 0 and not is_node[a] and not is_node[b]:
                continue
            is_node[a] = True
            if b >= 0:
                is_node[b] = True
        vertex[k], near[k], far[k], near_units[k], far_units[k] = v, a, b, links.units[one >> 1], cb
        k += 1
        gone[v] = True
        links.units[one >> 1] = 0
        links.degree[a] -= 1
        if b >= 0:
            links.units[other >> 1] = 0
            links.degree[b] -= 1
            _link(links, a, b, cb)
        for side in range(2):
            w = a if side == 0 else b
            if w >= 0 and links.degree[w] <= FEW:
                _wait(waiting, count, w, is_node[w])
    left = np.flatnonzero(links.units[: links.made[0]] > 0)
    columns = vertex[:k].copy(), near[:k].copy(), far[:k].copy(), near_units[:k].copy(), far_units[:k].copy()
    return columns, gone, links.ends[left, 0].copy(), links.ends[left, 1].copy(), links.units[left]


@njit(cache=True, nogil=True)
def _linked(whole: Whole, stands_for: VertexArray) -> Links:
    """The links that have capacity, between vertices that stand for others."""
    n, most, size = len(stands_for), len(whole.head) // 2 + len(stands_for), 4
    while size < 2 * most:
        size *= 2
    links = Links(
        np.full(size, NONE, np.int32),
        np.empty((most, 2), np.int32),
        np.zeros(most, np.int64),
        np.full(n, NONE, np.int32),
        np.empty(2 * most, np.int32),
        np.zeros(n, np.int32),
        np.zeros(1, np.int64),
    )
    for v in range(n):
        for a in range(whole.row_offsets[v], whole.row_offsets[v + 1]):
            if v < whole.head[a] and whole.capacity[a] > 0 and stands_for[v] != stands_for[whole.head[a]]:
                _link(links, stands_for[v], stands_for[whole.head[a]], whole.capacity[a])
    return links


@njit(cache=True, nogil=True)
def _link(links: Links, a: int, b: int, units: int) -> None:
    """Add ``units`` to the link between two vertices, which is made if there is none."""
    low, high = min(a, b), max(a, b)
    last = len(links.place) - 1
    i = (low * 2654435769 + high * 40503) & MASK
    i = (i ^ (i >> 15)) & last
    while links.place[i] >= 0:
        e = links.place[i]
        if links.ends[e, 0] == low and links.ends[e, 1] == high:
            links.units[e] += units
            return
        i = (i + 1) & last
    e = links.made[0]
    links.made[0] += 1
    links.place[i] = e
    links.ends[e, 0], links.ends[e, 1], links.units[e] = low, high, units
    for side in range(2):
        v = low if side == 0 else high
        links.following[2 * e + side] = links.first[v]
        links.first[v] = 2 * e + side
        links.degree[v] += 1


@njit(cache=True, nogil=True)
def _neighbours(links: Links, v: int) -> tuple[int, int]:
    """Where the one or two links of a vertex stand, that with more units first; the others leave its list."""
    one, other, at = NONE, NONE, links.first[v]
    while at >= 0:
        if links.units[at >> 1] > 0:
            one, other = at, one
        at = links.following[at]
    links.first[v] = one
    links.following[one] = other
    if other >= 0:
        links.following[other] = NONE
        if links.units[other >> 1] > links.units[one >> 1]:
            return other, one
    return one, other
