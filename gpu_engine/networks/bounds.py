"""What must flow at least: lower bounds of edges, and least amounts from sources and into sinks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gpu_engine.errors import ROWS_SHOWN, CapacityOverflow, InvalidTerminals, NotDirected
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.validate import exact_total
from gpu_engine.types import MAX_TOTAL, EdgeArray, UnitArray, VertexArray


@dataclass(frozen=True, eq=False, slots=True)
class LowerBounds:
    """Lower bounds beside the capacities of a network and the caps of terminals, in units. All of them together are at
    most `MAX_TOTAL`, none is negative, and no undirected edge has one."""

    terminals: Terminals
    """The terminals; sources or sinks may be none."""
    lower: UnitArray
    """int64[m]: what each edge carries at least. It may be more than the capacity, and then nothing is feasible."""
    supply: UnitArray
    """int64[sources]: what each source supplies at least, at most its cap; in the order of the terminals."""
    demand: UnitArray
    """int64[sinks]: what each sink takes at least, at most its cap."""

    @classmethod
    def of(
        cls,
        network: Network,
        terminals: Terminals,
        rows: EdgeArray,
        lower: UnitArray,
        supply: UnitArray | None = None,
        demand: UnitArray | None = None,
    ) -> Self:
        """The bounds ``lower`` of distinct edges ``rows``, int64[k] each, and 0 for all other edges. O(m). Raises
        `NotDirected`, `CapacityOverflow`, and `InvalidTerminals` for a bound above the cap of its terminal."""
        bound = np.flatnonzero((lower > 0) & network.is_undirected(rows))
        if len(bound):
            names = network.edge_ids.of(rows[bound[:ROWS_SHOWN]])
            detail = f"the edge {names[0]!r} is undirected, and only a directed one has a lower bound"
            raise NotDirected(detail, bound.tolist(), edges=names, field="/edges")
        least = [
            _least(network, terminals.sources, supply, terminals.supply, "supply"),
            _least(network, terminals.sinks, demand, terminals.demand, "demand"),
        ]
        total = sum(exact_total(column, np.zeros(1, np.bool_)) for column in (lower, *least))
        if total > MAX_TOTAL:
            raise CapacityOverflow(f"the lower bounds add up to {total} units; the limit is {MAX_TOTAL}")
        by_row = np.zeros(network.n_edges, np.int64)
        by_row[rows] = lower
        return cls(terminals, by_row, *least)

    @property
    def nbytes(self) -> int:
        ends = self.terminals
        columns: Sequence[UnitArray | VertexArray] = (ends.sources, ends.supply, ends.sinks, ends.demand)
        return sum(column.nbytes for column in (self.lower, self.supply, self.demand, *columns))


def _least(network: Network, vertices: VertexArray, least: UnitArray | None, most: UnitArray, kind: str) -> UnitArray:
    """The column itself, or zeros. Raises `InvalidTerminals`."""
    if least is None:
        return np.zeros(len(vertices), np.int64)
    above = np.flatnonzero(least > most)
    if len(above):
        names = network.vertex_labels.of(vertices[above[:ROWS_SHOWN]].astype(np.int64))
        detail = f"of {names[0]!r} more is asked for at least than at most: min_{kind} is above {kind}"
        raise InvalidTerminals(detail, vertices=names, field=f"/min_{kind}")
    return least
