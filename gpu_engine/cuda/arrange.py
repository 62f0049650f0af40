"""The order of a flow state's arcs on the device.

A drain fills the arcs of a row in turn, so their order decides where excess goes. In the network's own order, by head,
it takes two to three times the rounds it needs on grids, genrmf and level graphs: whatever the numbers of the vertices
stand for pulls all excess one way. The best of all orders tried (benchmarks/NOTES.md) has neighbours near a sink first,
and those at one distance in the order of a hash, one for all rows, so that excess of many vertices meets. Only
vertices with long rows keep their numbers: in acyclic dense networks these are the topological order.
"""

from dataclasses import dataclass

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrange import levels_from
from gpu_engine.cuda.launch.arrays import Array, Topology
from gpu_engine.footprint import ARRANGED_AT_ONCE, LONG_ROW
from gpu_engine.networks.network import Network
from gpu_engine.types import VertexArray


@dataclass(frozen=True, slots=True)
class Arrangement:
    """On the device: ``head``, ``reverse`` int32[arcs] in the order chosen, ``edge_arc`` int32[m] into them."""

    head: Array
    reverse: Array
    edge_arc: Array


def as_given(network: Network) -> Arrangement:
    """The order of the network's own arrays."""
    head, reverse, edge_arc = (cupy.asarray(a) for a in (network.head, network.reverse_arc, network.edge_arc))
    return Arrangement(head, reverse, edge_arc)


def sinks_first(network: Network, topology: Topology, sinks: VertexArray) -> Arrangement:
    """Rows in the order of the distance to the sinks, without any chance in it. Costs a sort of the arcs."""
    given = as_given(network)
    if not topology.n_arcs:
        return given
    rank = _ranks(topology, levels_from(topology, given.head, sinks))
    position = _positions(network, topology, given.head, rank)
    head, reverse = cupy.empty_like(given.head), cupy.empty_like(given.reverse)
    head[position], reverse[position] = given.head, position[given.reverse]
    edge_arc = cupy.where(given.edge_arc < 0, np.int32(-1), position[given.edge_arc])
    return Arrangement(head, reverse, edge_arc)


def _ranks(topology: Topology, level: Array) -> Array:
    """int64[n]: the place of a vertex by level, then by number if its row is long, else by hash."""
    number = cupy.arange(topology.n, dtype=np.uint32)
    short = cupy.diff(topology.row_offsets) < LONG_ROW
    within = cupy.where(short, _hash(number) >> np.uint32(1) | np.uint32(1 << 31), number)
    rank = cupy.empty(topology.n, np.int64)
    rank[cupy.argsort(level.astype(np.int64) << 32 | within.astype(np.int64))] = cupy.arange(topology.n)
    return rank


def _hash(x: Array) -> Array:
    """The finalizer of MurmurHash3, uint32 to uint32, one to one."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ x >> np.uint32(shift)) * np.uint32(factor)
    return x ^ x >> np.uint32(16)


def _positions(network: Network, topology: Topology, head: Array, rank: Array) -> Array:
    """int32[arcs]: where each arc of the network goes within its row."""
    position = cupy.empty(topology.n_arcs, np.int32)
    ends = network.row_offsets[1:]
    row = begin = 0
    while begin < topology.n_arcs:
        last = max(row + 1, int(np.searchsorted(ends, begin + ARRANGED_AT_ONCE, side="right")))
        end = int(ends[last - 1])
        arcs = cupy.arange(begin, end, dtype=np.int32)
        tail = cupy.searchsorted(topology.row_offsets, arcs, side="right")
        order = cupy.argsort(tail.astype(np.int64) << 32 | rank[head[begin:end]])
        position[arcs[order]] = arcs
        row, begin = last, end
    return position
