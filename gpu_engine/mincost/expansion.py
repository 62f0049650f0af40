"""The cheapest way to let more flow: which edges to widen, and by how much, so that the maximum rises by so many units.

Each edge that may be widened gets a second one beside it, which has room for what may be added and costs its price a
unit; all else costs nothing. A cheapest flow of the wanted value says what to add: Ahuja, Magnanti, Orlin, "Network
Flows" (1993), chapter 9. Take it less any maximum flow of today. That is paths of as many units as are wanted more, and
cycles, none of which pays for itself; so no edge need be widened by more than that many units.

Where a maximum flow of today is given, only those units are sent, along successive shortest paths from it (Ahuja,
Magnanti, Orlin, section 9.8): a few searches where OR-tools, which starts at zero, has to do with all of the flow. It
solves what that would take too long for.
"""

from dataclasses import dataclass

import numpy as np

from gpu_engine.checks.costs import CostProof, prove_cheapest
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import CapacityOverflow, Infeasible, Unbounded
from gpu_engine.footprint import Counts, Footprint, Room, on_cpu, unlimited
from gpu_engine.mincost.augmenting import cheapest_from
from gpu_engine.mincost.cheapest import cheapest_flow
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import MAX_TOTAL, EdgeArray, UnitArray

BUILD_BYTES = 40
"""Bytes for each edge while the network with second edges is made."""
PROOF_BYTES = 80
"""Bytes for each edge while the flow is proven."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Edges that may be widened: distinct rows, the price of a unit, 0 or more, and how many units may be added at most
    (`INFINITE`: any number). int64[k] each."""

    rows: EdgeArray
    price: UnitArray
    most: UnitArray


@dataclass(frozen=True, slots=True)
class Expansion:
    """``add`` int64[k]: the units to add to each candidate; the flow that then passes costs ``proof.cost``."""

    add: UnitArray
    proof: CostProof
    """The proof that these units are enough, and that no others cost less."""
    from_flow: bool
    """Whether the flow was found from the one that was given."""


class TooMuch(Infeasible):
    """The maximum cannot rise by so much, whatever is added. ``most`` is the maximum where all is added that may be, in
    units."""

    most: int = 0


def cheapest_expansion(
    network: Network,
    terminals: Terminals,
    candidates: Candidates,
    value: int,
    more: int,
    control: Control | None = None,
    room: Room = unlimited,
    flow: UnitArray | None = None,
) -> Expansion:
    """The units to add, at the least cost, so that ``more`` units can flow beyond ``value``, the present maximum.
    ``flow`` is int64[m] along each edge, has that value, and may have cycles. Raises `TooMuch`, and as
    `cheapest_flow`."""
    control, k = control or Control(), len(candidates.rows)
    widened = Counts(network.n_vertices, network.n_edges + k, network.n_arcs + 2 * k)
    room(on_cpu(widened).network + Footprint(BUILD_BYTES * widened.n_edges))
    doubled = _doubled(network, candidates.rows, np.minimum(candidates.most, more))
    _refuse_too_much(doubled, terminals, value + more, control, room)
    cost = np.concatenate([np.zeros(network.n_edges, np.int64), candidates.price])
    found = None if flow is None else cheapest_from(doubled, cost, terminals, flow, more, control, room)
    from_flow = found is not None
    if found is None:
        found = cheapest_flow(doubled, cost, terminals, value + more, control, room)
    along = _own_first(network, candidates.rows, found.flow)
    room(Footprint(PROOF_BYTES * doubled.n_edges))
    proof = prove_cheapest(doubled, cost, terminals, along, value + more, found.potential, found.sink_potential)
    return Expansion(np.abs(along[network.n_edges :]), proof, from_flow)


def _doubled(network: Network, rows: EdgeArray, beside: UnitArray) -> Network:
    """The network with a second edge beside each of these. Raises `CapacityOverflow`."""
    own = np.arange(network.n_edges)
    every = np.concatenate([own, rows])
    edges = EdgeList(
        n_vertices=network.n_vertices,
        tail=network.edge_tail(every),
        head=network.edge_head(every),
        capacity=np.concatenate([network.capacity, beside]),
        undirected=np.array(network.is_undirected(every)),
        decimals=network.decimals,
    )
    try:
        return Network(edges)
    except CapacityOverflow:  # the error names rows of the second edges too, which the caller has not named
        most = f"the limit is {MAX_TOTAL} units, and each edge may be widened by all that is to flow more"
        detail = f"the capacities, and what may be added to them, add up to too much: {most}; `max_add` bounds it"
        raise CapacityOverflow(detail, field="/raise_by") from None


def _own_first(network: Network, rows: EdgeArray, flow: UnitArray) -> UnitArray:
    """The same flow between the same vertices, in which a second edge carries only what the first one cannot."""
    flow = flow.copy()
    both = flow[rows] + flow[network.n_edges :]
    own = np.clip(both, -network.capacity[rows], network.capacity[rows])
    flow[rows], flow[network.n_edges :] = own, both - own
    return flow


def _refuse_too_much(doubled: Network, terminals: Terminals, wanted: int, control: Control, room: Room) -> None:
    """Raises `TooMuch`, with the maximum flow of the widened network."""
    room(on_cpu(doubled.counts).of_one_state)
    engine = CpuEngine(doubled)
    try:
        state = engine.open(terminals)
    except Unbounded:
        return
    most = engine.solve(state, control).value
    if most < wanted:
        refusal = TooMuch("the network cannot carry so much, whatever is added")
        refusal.most = most
        raise refusal
