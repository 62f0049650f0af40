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
from gpu_engine.types import BoolArray, Links, UnitArray

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
    roads (`gpu_engine.cpu.roads`), as they do on a map; else `straighten_used` looks for a short one. Either takes no
    more work than about a cold solve. Sources and sinks may then share the value in another way, within their caps.
    """
    csr, size = (network.row_offsets, network.head, network.reverse_arc), (network.n_vertices, network.n_arcs)
    is_end = ends_of(network, terminals)
    if not is_dense(int(np.count_nonzero(capacity)), *size):
        used = open_links(*csr, capacity, is_end)
        if _shorten(network, terminals, capacity, flow, value, is_end, control, used, ALL_STEPS, size):
            raise_if_cancelled(control)
            return
    straighten_used(network, terminals, capacity, flow, value, control, size)


def straighten_used(
    links: Links,
    terminals: Terminals,
    capacity: UnitArray,
    flow: UnitArray,
    value: int,
    control: Control,
    size: tuple[int, int],
) -> None:
    """`straighten` among the links that carry ``flow``, which are all that ``links`` need hold: the least total length
    on these is found if they make few roads, else only the cycles go. ``size``: how many vertices and arcs the whole
    network has, by which the work is bounded."""
    csr, is_end = (links.row_offsets, links.head, links.reverse_arc), ends_of(links, terminals)
    if not _shorten(links, terminals, capacity, flow, value, is_end, control, flow != 0, USED_STEPS, size):
        cancel_cycles(*csr, flow, control.slots)
    raise_if_cancelled(control)


def raise_if_cancelled(control: Control) -> None:
    if control.cancelled:
        raise Cancelled("cancelled while cycles were taken out of a flow")


def ends_of(links: Links, terminals: Terminals) -> BoolArray:
    """bool[n]: which vertices are terminals."""
    is_end = np.zeros(links.n_vertices, np.bool_)
    is_end[terminals.sources] = is_end[terminals.sinks] = True
    return is_end


def is_dense(n_open: int, n_vertices: int, n_arcs: int) -> bool:
    """Whether the links that are open make too many roads, as far as their number tells: dead ends and chains have as
    many links as vertices, so there are at least as many roads as there are links more than vertices. (Roads that come
    back to where they began are left out of `find_roads`, but not of this.) ``n_open``: how many arcs have any
    capacity; at least half as many links are open."""
    return n_open // 2 - n_vertices > most_roads(n_vertices, n_arcs)


def _shorten(
    links: Links,
    terminals: Terminals,
    capacity: UnitArray,
    flow: UnitArray,
    value: int,
    is_end: BoolArray,
    control: Control,
    used: BoolArray,
    steps_an_arc: int,
    size: tuple[int, int],
) -> bool:
    """Whether ``flow`` is the shortest on the links that may be ``used`` bool[arcs]; if not, it is as it was."""
    csr = links.row_offsets, links.head, links.reverse_arc
    most = most_roads(*size) - len(terminals.sources) - len(terminals.sinks)
    roads = find_roads(*csr, capacity, used, is_end, max(most, 0))
    steps = steps_an_arc * sum(size) + FEW_STEPS
    amount = reroute(links.row_offsets, terminals, roads, flow, value, steps, control.slots)
    if amount is None:
        return False
    use_roads(*csr, used, roads.junction, roads.first, amount, flow)
    return True
