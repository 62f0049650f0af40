"""A flow with lower bounds as a maximum flow.

Each edge is given its lower bound, and keeps room for the rest of its capacity. That leaves vertices with too much or
too little, which a flow along the rooms must put right: it is one from all excesses to all deficits, and if all of it
can flow both together are a flow within the bounds (Ahuja, Magnanti, Orlin, "Network Flows", 1993, section 6.7).
Sources and sinks are joined by one more vertex, the root: from it to each source, and from each sink to it, there is
room for what the terminal may do beyond what it must.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from gpu_engine.errors import CapacityOverflow
from gpu_engine.networks.bounds import LowerBounds
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.validate import exact_total
from gpu_engine.types import INFINITE, MAX_TOTAL, UnitArray


@dataclass(frozen=True, slots=True)
class Problem:
    """A network with the edges of another, then those of its terminals, and one vertex more, the last."""

    network: Network
    balance: UnitArray
    """int64[n + 1]: what each vertex has too much of (or less than 0: lacks) while edges carry their lower bounds."""

    @classmethod
    def of(cls, network: Network, bounds: LowerBounds) -> Self:
        """No lower bound is above the capacity of its edge. Raises `CapacityOverflow`. O(n + m)."""
        terminals, root = bounds.terminals, network.n_vertices
        beyond = _rest(terminals.supply, bounds.supply), _rest(terminals.demand, bounds.demand)
        capacity = np.concatenate([_rest(network.capacity, bounds.lower), *beyond])
        every = np.arange(network.n_edges)
        undirected = np.zeros(len(capacity), np.bool_)
        undirected[: network.n_edges] = network.is_undirected(every)
        if (total := exact_total(capacity, undirected)) > MAX_TOTAL:
            detail = f"capacities and caps of terminals add up to {total} units beyond what must flow"
            raise CapacityOverflow(f"{detail}; the limit is {MAX_TOTAL}")
        from_root, to_root = np.full(len(terminals.sources), root), np.full(len(terminals.sinks), root)
        made = EdgeList(
            n_vertices=root + 1,
            tail=np.concatenate([network.edge_tail(every), from_root, terminals.sinks]).astype(np.int32),
            head=np.concatenate([network.edge_head(every), terminals.sources, to_root]).astype(np.int32),
            capacity=capacity,
            undirected=undirected,
            decimals=network.decimals,
        )
        return cls(Network(made), _balance(network, bounds))

    @property
    def terminals(self) -> Terminals | None:
        """The sources and sinks of the maximum flow, with their supplies and demands; None if nothing is to flow."""
        sources, sinks = np.flatnonzero(self.balance > 0), np.flatnonzero(self.balance < 0)
        if not len(sources):
            return None
        ends = sources.astype(np.int32), sinks.astype(np.int32)
        return Terminals.of(*ends, self.balance[sources], -self.balance[sinks])


def _rest(most: UnitArray, least: UnitArray) -> UnitArray:
    return np.where(most == INFINITE, INFINITE, most - least)


def _balance(network: Network, bounds: LowerBounds) -> UnitArray:
    """int64[n + 1]. All entries add up to 0. No partial sum leaves int64, because all bounds together are at most
    `MAX_TOTAL`."""
    rows = np.flatnonzero(bounds.lower)
    balance = np.zeros(network.n_vertices + 1, np.int64)
    np.add.at(balance, network.edge_head(rows), bounds.lower[rows])
    np.subtract.at(balance, network.edge_tail(rows), bounds.lower[rows])
    balance[bounds.terminals.sources] += bounds.supply
    balance[bounds.terminals.sinks] -= bounds.demand
    balance[-1] = bounds.demand.sum() - bounds.supply.sum()
    return balance
