"""Flows that are routes: without cycles, and short where that is found with little work."""

from typing import Final

import numpy as np

from gpu_engine.control import Control
from gpu_engine.cpu.cycles import cancel_cycles
from gpu_engine.cpu.reroute import reroute
from gpu_engine.cpu.roads import find_roads, open_links, use_roads
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import most_roads
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import BoolArray, UnitArray

FEW_STEPS: Final = 1 << 16
"""The search for a shorter flow looks at this many roads in any case before it gives up."""

ALL_STEPS: Final = 3
"""The search among all roads looks at this many roads, at most, for each arc and vertex of the network. That takes
about as long as a cold solve."""

USED_STEPS: Final = 1
"""The same limit for the search among the roads that carry flow, which follows if there are too many roads in all or
the first search has given up."""


def straighten(
    network: Network, terminals: Terminals, capacity: UnitArray, flow: UnitArray, value: int, control: Control
) -> None:
    """Change ``flow`` int64[arcs], which is antisymmetric, to one of the same value without cycles. Raises `Cancelled`.

    ``capacity`` int64[arcs]. The least total length that there is anywhere is found if all links that are open make few
    roads (`gpu_engine.cpu.roads`), as they do on a map; the least on the links that carry ``flow`` if those make few
    roads. Either takes no more work than about a cold solve. Sources and sinks may then share the value in another way,
    within their caps. Else only the cycles go.
    """
    csr = network.row_offsets, network.head, network.reverse_arc
    is_end = np.zeros(network.n_vertices, np.bool_)
    is_end[terminals.sources] = is_end[terminals.sinks] = True
    arguments = network, terminals, capacity, flow, value, is_end, control
    short = not _is_dense(network, capacity) and _shorten(*arguments, open_links(*csr, capacity, is_end), ALL_STEPS)
    if not short and not _shorten(*arguments, flow != 0, USED_STEPS):
        cancel_cycles(*csr, flow, control.slots)
    if control.cancelled:
        raise Cancelled("cancelled while cycles were taken out of a flow")


def _is_dense(network: Network, capacity: UnitArray) -> bool:
    """Whether the links that are open make too many roads, as far as their number tells: dead ends and chains have as
    many links as vertices, so there are at least as many roads as there are links more than vertices. (Roads that come
    back to where they began are left out of `find_roads`, but not of this.)"""
    open_links_at_least = np.count_nonzero(capacity) // 2
    return bool(open_links_at_least - network.n_vertices > most_roads(network.n_vertices, network.n_arcs))


def _shorten(
    network: Network,
    terminals: Terminals,
    capacity: UnitArray,
    flow: UnitArray,
    value: int,
    is_end: BoolArray,
    control: Control,
    used: BoolArray,
    steps_an_arc: int,
) -> bool:
    """Whether ``flow`` is the shortest on the links that may be ``used`` bool[arcs]; if not, it is as it was."""
    csr = network.row_offsets, network.head, network.reverse_arc
    most = most_roads(network.n_vertices, network.n_arcs) - len(terminals.sources) - len(terminals.sinks)
    roads = find_roads(*csr, capacity, used, is_end, max(most, 0))
    steps = steps_an_arc * (network.n_vertices + network.n_arcs) + FEW_STEPS
    amount = reroute(network.row_offsets, terminals, roads, flow, value, steps, control.slots)
    if amount is None:
        return False
    use_roads(*csr, used, roads.junction, roads.first, amount, flow)
    return True
