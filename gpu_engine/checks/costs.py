"""Independent proofs of cheapest flows; nothing here knows how one was made.

A flow of a value costs least if there are potentials such that no residual way is a shortcut: with
``gain = potential[head] - potential[tail]``, an edge that could carry more has ``gain <= cost``, and one that could
carry less has ``gain >= cost`` (complementary slackness; Ahuja, Magnanti, Orlin: Network Flows, section 9.3). The same
holds for what supplies a source and demands at a sink, at no cost. Then by weak duality no flow of the value costs less
than the bound::

    value * (potential beyond the sinks - potential before the sources) - sum of capacity * max(0, gain - cost)
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from gpu_engine.checks.flows import FlowProof, prove_flow
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import BoolArray, UnitArray

STEP: Final = 1 << 16
"""The products of so many rows are added up at a time, as integers without a limit."""


@dataclass(frozen=True, slots=True)
class CostProof:
    """The outcome of all checks of a cheapest flow."""

    failures: tuple[str, ...]
    """One line for each kind of fault; () for a flow that costs least."""
    cost: int
    """The exact cost of the flow, in units of amount times units of cost."""
    dual_bound: int
    """No flow of the same value costs less than this. It equals the cost when that is proven to be least."""
    terminals: FlowProof
    """The proof that it is a flow, with the units that it takes from sources and brings to sinks."""

    @property
    def valid(self) -> bool:
        """Whether the flow is proven to cost least."""
        return not self.failures


def prove_cheapest(
    network: Network,
    cost: UnitArray,
    terminals: Terminals,
    flow: UnitArray,
    value: int,
    potential: UnitArray,
    sink_potential: int,
) -> CostProof:
    """Check that ``flow`` int64[m] is a flow of ``value`` units and that none costs less.

    ``cost`` int64[m], ``potential`` int64[n]; before the sources it is 0, beyond the sinks ``sink_potential``. O(n + m)
    time, 60 bytes an edge while it runs.
    """
    proof = prove_flow(network, terminals, flow)
    failures = [*proof.failures]
    if proof.value != value:
        failures.append(f"{proof.value} units arrive, not {value}")
    rows = np.arange(network.n_edges)
    gain = potential[network.edge_head(rows)] - potential[network.edge_tail(rows)]
    capacity, both_ways = network.capacity, network.is_undirected(rows)
    short = (flow < capacity) & (flow >= 0) & (gain > cost)
    short |= (flow > 0) & (gain < cost)
    short |= both_ways & (flow <= 0) & (flow > -capacity) & (-gain > cost)
    short |= both_ways & (flow < 0) & (-gain < cost)
    if short.any():
        failures.append(f"the flow could be had for less by way of edge {short.argmax()}")
    supplying, demanding = potential[terminals.sources], sink_potential - potential[terminals.sinks]
    at_source = _short(proof.supplied, terminals.supply, supplying)
    at_sink = _short(proof.delivered, terminals.demand, demanding)
    for name, vertices, wrong in (("source", terminals.sources, at_source), ("sink", terminals.sinks, at_sink)):
        if wrong.any():
            failures.append(f"the flow could be had for less by way of the {name} {vertices[wrong.argmax()]}")
    saved = np.maximum(np.where(both_ways, np.abs(gain), gain) - cost, 0)
    bound = value * sink_potential - _sum(saved, capacity)
    bound -= _sum(np.maximum(supplying, 0), terminals.supply) + _sum(np.maximum(demanding, 0), terminals.demand)
    total = _sum(cost, np.where(both_ways, np.abs(flow), flow))
    if total != bound:
        failures.append(f"the flow costs {total}, and the potentials prove {bound}")
    return CostProof(tuple(failures), total, bound, proof)


def _short(carried: UnitArray, cap: UnitArray, gain: UnitArray) -> BoolArray:
    """bool[k]: the terminals that could carry more, or less, and gain by it."""
    short: BoolArray = ((carried < cap) & (gain > 0)) | ((carried > 0) & (gain < 0))
    return short


def _sum(left: UnitArray, right: UnitArray) -> int:
    """The exact sum of products. `INFINITE` is a number as any other here, and proves nothing where it counts."""
    rows = np.flatnonzero((left != 0) & (right != 0))
    total = 0
    for at in range(0, len(rows), STEP):
        some = rows[at : at + STEP]
        total += sum(map(int.__mul__, left[some].tolist(), right[some].tolist()))
    return total
