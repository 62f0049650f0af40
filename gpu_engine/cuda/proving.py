"""Certificates of flow states on the device: which scan a state gets, and what of it is kept for the next one."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks.certificate import Certificate, verdict
from gpu_engine.cuda.launch.arrays import Topology
from gpu_engine.cuda.launch.certify import certify, prove, prove_again
from gpu_engine.cuda.layout import OFFENDERS
from gpu_engine.cuda.state import CudaFlowState
from gpu_engine.cuda.transfer import own_supply
from gpu_engine.networks.network import Network


def certificate(network: Network, topology: Topology, state: CudaFlowState, *, complete: bool) -> Certificate:
    """Prove the state from capacities, residuals and excesses alone. O(n + m).

    Unless ``complete``, the capacities are taken from the last complete proof, with the changes of updates since added:
    then the edges, which lie apart from their arcs, are not read.
    """
    supply = own_supply(network.n_vertices, state.terminals)
    if state.sums and not complete:
        found = prove_again(topology, state, supply, state.sums)
        if found is not None:
            return replace(_certificate(state, found), complete=False)
    proven, state.sums = None, None
    if not network.n_infinite or not (state.wide or network.has_shared_links):
        proven = prove(topology, state, supply)
    if proven is None:
        return _certificate(state, certify(topology, state, supply))
    found, sums = proven
    state.sums = sums if state.solved else None
    return _certificate(state, found)


def _certificate(state: CudaFlowState, found: NDArray[np.void]) -> Certificate:
    """What a `FINDINGS` record says of the state."""
    first = [int(found[name]) for name in OFFENDERS]
    side = state.sides_of_terminals()
    return verdict(state.terminals, *side, int(found["across"]), int(found["cut_capacity"]), first)
