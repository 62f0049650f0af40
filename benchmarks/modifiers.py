"""What is done to a network between two partitions of it: mixed modifiers as Lee et al. draw them for iG-kway, and
others that are less kind to a partition which is only brought up to date. All are drawn with a seed.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpu_engine.networks.growing import grow
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.partition.buckets import link_weights
from gpu_engine.partition.problem import edge_weights

WALK: Final = 8
"""Steps from one end of an inserted edge to the other: changes are local, as in a circuit or a street plan."""
MOST_CAPACITY: Final = 8

NONE: Final = np.empty(0, np.int32)
Modify = Callable[[Network, int, np.random.Generator], tuple[Network, float]]
"""The network after so many modifiers, and the seconds that took, drawing them not counted."""


def walked(network: Network, begin: NDArray[np.int32], steps: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Where random walks over edges that are there end, near where they begin."""
    weight = edge_weights(network, "one")
    at, link = begin.copy(), link_weights(network.n_arcs, network.edge_arc, network.reverse_arc, weight)
    for _ in range(steps):
        first, degree = network.row_offsets[at], network.row_offsets[at + 1] - network.row_offsets[at]
        arc = np.minimum(first + (rng.random(len(at)) * degree).astype(np.int32), max(network.n_arcs - 1, 0))
        at = np.where((degree > 0) & (link[arc] > 0), network.head[arc], at)
    return at


def mixed(network: Network, modifiers: int, rng: np.random.Generator) -> tuple[Network, float]:
    """Vertices and edges inserted and deleted at random, a quarter of each."""
    quarter = modifiers // 4
    there = np.flatnonzero(network.there)
    live = network.live(np.arange(network.n_edges))
    gone = rng.choice(there, max(1, quarter // 4), replace=False).astype(np.int32)  # each takes its edges with it
    deleted = rng.choice(live, quarter, replace=False)
    mark = np.zeros(network.n_vertices, np.bool_)
    mark[gone] = True
    alive = there[~mark[there]]
    tail = rng.choice(alive, quarter).astype(np.int32)
    head = walked(network, tail, WALK, rng)
    head = np.where(mark[head], tail, head)  # a loop counts as no edge
    fresh = (network.n_vertices + np.repeat(np.arange(quarter), 2)).astype(np.int32)
    near = rng.choice(alive, quarter).astype(np.int32)
    other = walked(network, near, 1, rng)
    beside = np.column_stack([near, np.where(mark[other], near, other)]).ravel()
    ends = np.concatenate([tail, fresh]), np.concatenate([head, beside])
    return changed(network, quarter, *ends, deleted, gone)


def only_deletions(network: Network, modifiers: int, rng: np.random.Generator) -> tuple[Network, float]:
    """Edges deleted at random."""
    live = network.live(np.arange(network.n_edges))
    return changed(network, 0, NONE, NONE, rng.choice(live, min(modifiers, len(live)), replace=False), NONE)


def only_insertions(network: Network, modifiers: int, rng: np.random.Generator) -> tuple[Network, float]:
    """Edges inserted at random places, each to where a walk ends."""
    tail = rng.choice(np.flatnonzero(network.there), modifiers).astype(np.int32)
    return changed(network, 0, tail, walked(network, tail, WALK, rng), NONE, NONE)


def in_one_place(network: Network, modifiers: int, rng: np.random.Generator) -> tuple[Network, float]:
    """Vertices with two edges each, and as many edges, inserted within the first tenth of all vertices."""
    half = modifiers // 2
    there = np.flatnonzero(network.there)
    tail, near = rng.choice(there[: len(there) // 10], (2, half)).astype(np.int32)
    fresh = (network.n_vertices + np.repeat(np.arange(half), 2)).astype(np.int32)
    beside = np.column_stack([near, walked(network, near, 1, rng)]).ravel()
    ends = np.concatenate([tail, fresh]), np.concatenate([walked(network, tail, WALK, rng), beside])
    return changed(network, half, *ends, NONE, NONE)


def other_capacities(network: Network, modifiers: int, rng: np.random.Generator) -> tuple[Network, float]:
    """Edges get other capacities."""
    rows = rng.choice(network.live(np.arange(network.n_edges)), modifiers, replace=False)
    began = time.perf_counter()
    after = network.fork()
    after.set_capacity(rows, rng.integers(1, MOST_CAPACITY + 1, modifiers))
    return after, time.perf_counter() - began


def into_a_cylinder(network: Network, modifiers: int, rng: np.random.Generator) -> tuple[Network, float]:
    """Edges inserted from the left to the right border of what was a square grid at first: it wants another border."""
    side = int(np.sqrt(network.loaded[0]))
    row, left, right = rng.integers(0, side, modifiers), *rng.integers(0, 20, (2, modifiers))
    tail, head = row * side + left, row * side + side - 1 - right
    kept = network.there[tail] & network.there[head]
    return changed(network, 0, tail[kept].astype(np.int32), head[kept].astype(np.int32), NONE, NONE)


KINDS: Final[Mapping[str, Modify]] = {
    "mixed": mixed,
    "only deletions": only_deletions,
    "only insertions": only_insertions,
    "in one place": in_one_place,
    "other capacities": other_capacities,
    "into a cylinder": into_a_cylinder,
}


def changed(
    network: Network,
    n_new: int,
    tail: NDArray[np.int32],
    head: NDArray[np.int32],
    deleted: NDArray[np.integer],
    gone: NDArray[np.int32],
) -> tuple[Network, float]:
    """With new vertices and edges of capacity 1, without edges ``deleted`` and vertices ``gone``; the seconds it took,
    with merged rows."""
    structure = Structure(n_new, None, tail, head, np.ones(len(tail), np.bool_))
    began = time.perf_counter()
    grown = grow(network, structure).network.fork()
    new = np.arange(network.n_edges, grown.n_edges)
    grown.set_capacity(new, np.ones(len(new), np.int64))
    mark = np.zeros(network.n_vertices, np.bool_)
    mark[gone] = True
    live = network.live(np.arange(network.n_edges)) if len(gone) else NONE
    closed = np.union1d(deleted, live[mark[network.edge_tail(live)] | mark[network.edge_head(live)]]).astype(np.int64)
    grown.set_capacity(closed, np.zeros(len(closed), np.int64))
    grown.mark(closed, np.empty(0, np.int64))
    if len(gone):
        grown.mark_vertices(gone, np.empty(0, np.int32))
    assert len(grown.rows.row_offsets)
    return grown, time.perf_counter() - began
