"""A cheapest flow of more units, from a cheapest flow that exists."""

from typing import Final

import numpy as np

from gpu_engine.checks.flows import prove_flow
from gpu_engine.control import Control
from gpu_engine.footprint import Room
from gpu_engine.mincost.cheapest import CheapestFlow, of_arcs
from gpu_engine.mincost.problem import Problem, problem_of
from gpu_engine.mincost.successive import sent
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import UnitArray

SEARCHES: Final = 400
"""At most this many searches of the whole network are tried."""


def cheapest_from(
    network: Network,
    cost: UnitArray,
    terminals: Terminals,
    flow: UnitArray,
    more: int,
    control: Control,
    room: Room,
) -> CheapestFlow | None:
    """A cheapest flow of ``more`` units than ``flow`` int64[j] has, which is a cheapest one along the first edges and
    uses no edge that costs anything; no ``cost`` int64[m] is negative. None where that takes too many searches.

    Raises `Cancelled`.
    """
    along = np.zeros(network.n_edges, np.int64)
    along[: len(flow)] = flow
    proof = prove_flow(network, terminals, along)
    if proof.failures:
        return None
    problem = problem_of(network, cost, terminals, proof.value + more)
    there = np.concatenate([_of_arcs(problem, along), proof.supplied, proof.delivered])
    found = sent(problem, there, more, SEARCHES, control, room)
    return None if found is None else of_arcs(network, problem, *found)


def _of_arcs(problem: Problem, along: UnitArray) -> UnitArray:
    """int64[k]: the flow on each arc of the problem, from the flow ``along`` each edge; that of an undirected edge lies
    on one of its two arcs."""
    ahead, back = problem.edges[: problem.n_ahead], problem.edges[problem.n_ahead :]
    return np.concatenate([np.maximum(along[ahead], 0), np.maximum(-along[back], 0)])
