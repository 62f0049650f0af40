"""Flows that are routes: without cycles, and short where that is found with little work."""

from typing import Final

import numpy as np

from gpu_engine.cpu.cycles import cancel_cycles
from gpu_engine.cpu.roads import NOWHERE, find_roads, use_roads
from gpu_engine.cpu.shortest import shortest_flow
from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import most_roads
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import UnitArray

FEW_STEPS: Final = 1 << 16
"""Roads that are always looked at before the search for a shorter flow is given up."""


def straighten(
    network: Network, terminals: Terminals, capacity: UnitArray, flow: UnitArray, value: int, control: Control
) -> None:
    """Change ``flow`` int64[arcs], which is antisymmetric, to one of the same value without cycles. Raises `Cancelled`.

    ``capacity`` int64[arcs]. The least total length on the links that carry ``flow`` is found if these are few roads
    (`gpu_engine.cpu.roads`) and it takes no more work than a look at every arc; sources and sinks may then share the
    value in another way, within their caps. Else only the cycles go.
    """
    if not _shorten(network, terminals, capacity, flow, value, control):
        cancel_cycles(network.row_offsets, network.head, network.reverse_arc, flow, control.slots)
    if control.cancelled:
        raise Cancelled("cancelled while cycles were taken out of a flow")


def _shorten(
    network: Network, terminals: Terminals, capacity: UnitArray, flow: UnitArray, value: int, control: Control
) -> bool:
    """False if some of the flow may still lead round in a cycle."""
    csr = network.row_offsets, network.head, network.reverse_arc
    is_end = np.zeros(network.n_vertices, np.bool_)
    is_end[terminals.sources] = is_end[terminals.sinks] = True
    roads = find_roads(*csr, capacity, flow, is_end, most_roads(network.n_vertices, network.n_arcs))
    if not len(roads.first):
        return False
    source, sink = roads.n_junctions, roads.n_junctions + 1
    givers, takers = roads.junction[terminals.sources], roads.junction[terminals.sinks]
    supply, demand = terminals.supply[givers != NOWHERE], terminals.demand[takers != NOWHERE]
    givers, takers = givers[givers != NOWHERE], takers[takers != NOWHERE]
    caps = np.minimum(np.concatenate((supply, demand)), value)
    none = np.zeros(len(caps), np.int64)
    amount = shortest_flow(
        roads.n_junctions + 2,
        np.concatenate((roads.tail, np.full(len(givers), source, np.int32), takers)),
        np.concatenate((roads.head, givers, np.full(len(takers), sink, np.int32))),
        np.concatenate((roads.length, none)),
        np.concatenate((roads.ahead, caps)),
        np.concatenate((roads.back, none)),
        source,
        sink,
        value,
        network.n_vertices + network.n_arcs + FEW_STEPS,
        control.slots,
    )
    if len(amount):
        use_roads(*csr, flow, roads.junction, roads.first, amount)
    return bool(len(amount)) and roads.all
