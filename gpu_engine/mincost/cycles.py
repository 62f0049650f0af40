"""The part of a flow that runs in cycles: a cheapest flow has cycles of negative cost, and may have cycles of cost
0."""

import numpy as np

from gpu_engine.control import Control
from gpu_engine.cpu.cycles import cancel_cycles
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Footprint, Room, unlimited
from gpu_engine.networks.network import Network
from gpu_engine.types import NO_ARC, UnitArray


def cycles_of(network: Network, flow: UnitArray, control: Control | None = None, room: Room = unlimited) -> UnitArray:
    """int64[m] along each edge: what of ``flow`` int64[m] leads round. The rest of it is acyclic. Raises `Cancelled`.

    Each edge has its own cost, so two edges that carry flow to and fro between two vertices are a cycle as well, and so
    is a self-loop. `cancel_cycles` says how long it takes; ``room`` is asked for 120 bytes an edge with flow and 16 a
    vertex.
    """
    control = control or Control()
    round_, rows = np.zeros_like(flow), np.flatnonzero(flow)
    room(Footprint(120 * len(rows) + 16 * network.n_vertices))
    is_loop = network.edge_arc[rows] == NO_ARC
    round_[rows[is_loop]] = flow[rows[is_loop]]
    rows = rows[~is_loop]
    ahead, amount, count = flow[rows] > 0, np.abs(flow[rows]), len(rows)
    ends = network.edge_ends(rows)
    begin, end = np.where(ahead, *ends), np.where(ahead, *ends[::-1])
    tail, head = np.concatenate([begin, end]), np.concatenate([end, begin])
    order = np.argsort(tail, kind="stable")
    place = np.empty(2 * count, np.int32)
    place[order] = np.arange(2 * count)
    offsets = np.zeros(network.n_vertices + 1, np.int32)
    np.cumsum(np.bincount(tail, minlength=network.n_vertices), out=offsets[1:])
    reverse = place[np.where(order < count, order + count, order - count)]
    left = np.concatenate([amount, -amount])[order]
    cancel_cycles(offsets, head[order], reverse, left, control.slots)
    if control.cancelled:
        raise Cancelled("cancelled while cycles were looked for in a flow")
    gone = amount - left[place[:count]]
    round_[rows] = np.where(ahead, gone, -gone)
    return round_
