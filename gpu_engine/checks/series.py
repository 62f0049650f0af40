"""Proof that flows found where vertices were taken out of a network are flows of the network with them.

A vertex v that is taken out leaves a link of its two neighbours a and b in its place: what flows there flows through v,
over a link of v and a and one of v and b that nothing else uses from then on. So a flow of what is left is one of the
network, if no link has more units than it had and those in the place of the vertices taken out before. Between v and a
there flow as many units as their link has, and by way of b as many as that of b, or as flow between a and b without v.

Taking out what has more than two neighbours would lose flow but nothing of this proof: it shows that flows are there,
and cuts of the network itself show that there are no greater ones.
"""

from typing import NamedTuple

import numpy as np

from gpu_engine.checks.cut_trees import count_unproven
from gpu_engine.networks.network import Network
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, MAX_VERTICES, UnitArray, VertexArray


class Steps(NamedTuple):
    """The vertices that were taken out, in this order."""

    vertex: VertexArray
    near: VertexArray
    """int32[k]: the neighbour to which it was linked by more units, or its only one."""
    far: VertexArray
    """int32[k]: the other neighbour, -1 for none."""
    near_units: UnitArray
    far_units: UnitArray
    """int64[k]: the units of the link to ``far``, 0 where there is none. A link of as many units takes the place of the
    vertex, between its two neighbours."""


def flows_beside(steps: Steps, least: UnitArray) -> UnitArray:
    """int64[k, 3]: each vertex that was taken out, the nearer neighbour, and what flows between them if ``least``
    int64[k] flows between both neighbours where it is taken out, and no other vertex since."""
    around = np.where(steps.far >= 0, np.minimum(steps.far_units, least - steps.far_units), 0)
    return np.column_stack((steps.vertex, steps.near, steps.near_units + around)).astype(np.int64)


def series_failures(
    network: Network,
    stands_for: VertexArray,
    steps: Steps,
    rest: Network,
    vertex: VertexArray,
    least: UnitArray,
    proven: UnitArray,
) -> tuple[str, ...]:
    """What is wrong with what was taken out of a network whose edges are undirected; () if nothing is.

    ``stands_for`` int32[n]: a vertex for all those that edges without limit join; ``rest``: what is left, ``vertex``
    int32[...] being the vertex of the network that each of its vertices is; ``least`` int64[k]: what flows at least
    between the neighbours of each vertex where it is taken out; ``proven`` int64[..., 3]: two vertices of the network
    that are left, and what flows between them in the rest. O((n + m) log(n + m)).
    """
    n, k = network.n_vertices, len(steps.vertex)
    when = np.full(n, k, np.int64)
    when[steps.vertex] = np.arange(k)
    two = steps.far >= 0
    once = len(np.unique(steps.vertex)) == k and (steps.near != steps.far).all()
    before = (when[steps.near] > np.arange(k)).all() and (when[steps.far[two]] > np.flatnonzero(two)).all()
    if not once or not before or (when[vertex] < k).any() or len(np.unique(vertex)) < len(vertex):
        return ("a vertex is used after it was taken out",)
    failures = []
    for end in (0, 1):
        if len(proven) and ((when[proven[:, end]] < k).any() or not np.isin(proven[:, end], vertex).all()):
            failures.append("a flow of the rest ends elsewhere")
    rows = np.arange(network.n_edges)
    tail, head = stands_for[network.edge_tail(rows)], stands_for[network.edge_head(rows)]
    left = np.arange(rest.n_edges)
    had = [_keys(tail, head, network.capacity), _keys(steps.near[two], steps.far[two], steps.far_units[two])]
    used = [
        _keys(steps.vertex, steps.near, steps.near_units),
        _keys(steps.vertex[two], steps.far[two], steps.far_units[two]),
        _keys(vertex[rest.edge_tail(left)], vertex[rest.edge_head(left)], rest.capacity),
    ]
    more = _sums(*had, *[(keys, -units) for keys, units in used])
    if (more < 0).any() or any((units < 0).any() for _, units in used):
        failures.append(f"{(more < 0).sum()} links have more units than there are")
    asked = np.flatnonzero(two & (least > 0))
    flows = np.concatenate((proven, flows_beside(steps, least)))
    unproven = _unproven(n, flows, steps.near[asked], steps.far[asked], least[asked])
    if unproven:
        failures.append(f"{unproven} vertices have neighbours between which less was proven to flow")
    unlimited, others = network.capacity == INFINITE, np.flatnonzero(stands_for != np.arange(n)).astype(np.int32)
    ends = [end[unlimited] for end in network.edge_ends(rows)]
    joins = np.column_stack((*ends, np.ones(len(ends[0]), np.int64)))
    apart = _unproven(n, joins, others, stands_for[others], np.ones(len(others), np.int64))
    if apart:
        failures.append(f"{apart} vertices are not joined without limit to what stands for them")
    return tuple(failures)


def _unproven(n: int, flows: UnitArray, tail: VertexArray, head: VertexArray, value: UnitArray) -> int:
    falling, order = np.argsort(-flows[:, 2], kind="stable"), np.argsort(-value, kind="stable")
    ends = tail[order].astype(np.int32), head[order].astype(np.int32)
    return int(count_unproven(n, flows[falling].astype(np.int64), *ends, value[order]))


def _keys(one: VertexArray, other: VertexArray, units: UnitArray) -> tuple[UnitArray, UnitArray]:
    """A number for each link, whichever end is named first, and its units; what has no limit is within one vertex."""
    low, high = np.minimum(one, other).astype(np.int64), np.maximum(one, other)
    apart = low != high
    return (low * (MAX_VERTICES + 1) + high)[apart], np.minimum(units[apart], INFINITE_RESIDUAL)


def _sums(*parts: tuple[UnitArray, UnitArray]) -> UnitArray:
    """The sum of the units of each link."""
    _, place = np.unique(np.concatenate([keys for keys, _ in parts]), return_inverse=True)
    sums = np.zeros(int(place.max(initial=-1)) + 1, np.int64)
    np.add.at(sums, place, np.concatenate([units for _, units in parts]))
    return sums
