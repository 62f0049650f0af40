"""The minimum cut of a state on the device, where its sides are searched. Only they and the cut edges are copied."""

from typing import Final

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Topology
from gpu_engine.cuda.launch.drain import Drains
from gpu_engine.cuda.launch.state import leaving
from gpu_engine.cuda.state import CudaFlowState
from gpu_engine.engine import Cut
from gpu_engine.networks.network import Network
from gpu_engine.types import End

DEEP: Final = 128
"""A network is deep if it has fewer arcs than this for each layer that the searches of its last solve from zero went
through. A search on the device takes about half a microsecond a layer, the copy of an arc and its search on the host
three nanoseconds."""


def is_deep(network: Network, state: CudaFlowState) -> bool:
    """Whether the cut is found sooner on the host, from a copy of all residuals."""
    return state.depth * DEEP > network.n_arcs


def cut(network: Network, topology: Topology, state: CudaFlowState, near: End) -> Cut:
    """The minimum cut of a solved state nearest this end, and whether it is the only one, as
    `gpu_engine.cpu.derive.cut` defines both. O(n + m) on the device; n bytes for each end that is read, and the rows of
    the cut edges, are copied to the host."""
    drains = Drains(network.n_vertices, network.n_arcs)
    least = drains.reached(topology.row_offsets, state, from_sources=True)
    beyond = drains.reached(topology.row_offsets, state, from_sources=False)
    side, others = (least, beyond) if near == "sources" else (~beyond, least)
    edges, unique = leaving(topology, state, side, others, inside=near == "sinks")
    on_host = side.get()
    paid = state.terminals.paid_by(on_host)
    capped = np.concatenate([paid.sources, paid.sinks])
    capped = capped[on_host[capped] == (near == "sinks")]
    unique = unique and bool(others[cupy.asarray(capped)].all())
    return Cut(on_host, edges.get(), state.value, unique)
