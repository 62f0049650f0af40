"""What a unit of flow costs on each edge, and batches of operations on it.

Costs are exact integers in units of ``10 ** -decimals``, with decimals of their own. They belong to the edges whether
these are closed or not. No engine knows them, so a change of costs leaves every flow state as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Literal

import numpy as np

from gpu_engine.errors import ROWS_SHOWN, CapacityOverflow, CostOverflow, EngineError, InvalidNetwork, NoCosts
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.refused import OperationLike, complete
from gpu_engine.networks.rounded import UNROUNDED, Rounded
from gpu_engine.networks.rounding import Rounding
from gpu_engine.networks.tally import Tally
from gpu_engine.networks.units import WIDE, read_decimal, to_units
from gpu_engine.networks.updates import CapacityTable, literals_of
from gpu_engine.networks.validate import largest_cost
from gpu_engine.text.counted import counted
from gpu_engine.types import EdgeArray, UnitArray


@dataclass(frozen=True, slots=True)
class CostChange:
    """A batch that was checked: distinct rising edge rows and their costs afterwards."""

    rows: EdgeArray
    cost: UnitArray
    skipped: int = 0
    """How many of the named edges the network does not have."""
    unchanged: int = 0
    """How many distinct edges were named and cost as much as before; they are not in `rows`."""
    rounded: Rounded = UNROUNDED


class CostTable:
    """The costs of a network's edges, int64[m]. 8 bytes an edge."""

    def __init__(self, network: Network, cost: UnitArray, decimals: int) -> None:
        self.network = network
        self.cost = cost
        self.decimals = decimals

    @classmethod
    def of(cls, network: Network, edges: EdgeList) -> "CostTable | None":
        """The costs in the edge list that the network was made of; None if it has none."""
        return None if edges.cost is None else cls(network, np.array(edges.cost, np.int64), edges.cost_decimals)

    @property
    def nbytes(self) -> int:
        return self.cost.nbytes

    def grown(self, network: Network, more: UnitArray) -> "CostTable":
        """The costs of the network that has grown out of the present one. ``more`` is int64[k], the costs of its new
        edges."""
        return CostTable(network, np.concatenate([self.cost, more]), self.decimals)

    def check(self, change: CostChange) -> None:
        """Raise `CostOverflow` for costs of an earlier version that are too large for the vertices there are now."""
        limit = largest_cost(self.network.n_vertices)
        rows = change.rows[np.abs(change.cost) > limit]
        if len(rows):
            detail = f"{counted(len(rows), 'cost is', 'costs are')} beyond {limit} units either way"
            several = f"the limit for {self.network.n_vertices} vertices, of which some came since"
            raise CostOverflow(f"{detail}, {several}", edges=self.network.edge_ids.of(rows[:ROWS_SHOWN]))

    def apply(self, change: CostChange) -> None:
        """Store what was checked. O(k)."""
        self.cost[change.rows] = change.cost

    def resolve(
        self,
        table: CapacityTable,
        batch: Sequence[OperationLike],
        *,
        on_missing: Literal["error", "skip"] = "error",
        rounding: Rounding = "error",
    ) -> CostChange:
        """Run the operations set, add and scale in order on copies of the costs; nothing changes yet.

        ``table`` finds the edges. Raises `UnknownEdge`, `AmbiguousEdge`, `InvalidNetwork` or `CostOverflow`, with at
        most ten edge ids. Cost: O(k log k), and O(m log m) once for edges named by their ends.
        """
        located = table.locate(batch, on_missing)
        before = self.cost[located.touched]
        cost, place, tally = before.copy(), 0, Tally(rounding)
        try:
            for place, operation in enumerate(batch):
                known, at = located.places(table, place)
                cost[at] = self._run(operation, cost[at], known, tally)
                self._check(located.touched[at], cost[at], known)
        except EngineError as error:
            refused = CostOverflow(error.message) if isinstance(error, CapacityOverflow) else error
            refused.where = complete(self.network, batch, place, located.found, error.where)
            raise refused from None
        changed = cost != before
        rows, unchanged = located.touched[changed], int((~changed).sum())
        return CostChange(rows, cost[changed], located.missing, unchanged, tally.rounded)

    def _run(self, operation: OperationLike, cost: UnitArray, known: EdgeArray, tally: Tally) -> UnitArray:
        """The costs after one operation, in which ``known`` are the places of their amounts."""
        if operation.op in ("close", "reopen"):
            raise InvalidNetwork(f"{operation.op} is an operation on capacities, not on costs")
        literals, rows, decimals = literals_of(operation, known), known.tolist(), self.decimals

        def exact(i: int) -> int:
            """The cost of one edge after the operation, in units."""
            with localcontext(WIDE):
                own = Decimal(int(cost[i])).scaleb(-decimals)
                if operation.op == "scale":
                    number = own * read_decimal(literals[i], rows[i])
                else:
                    number = read_decimal(literals[i], rows[i])
                    number += own if operation.op == "add" else 0
                units = to_units(number, decimals, rows[i], tally.rounding)
                tally.note(number.scaleb(decimals), units, decimals)
            return units

        if operation.op == "set":
            return tally.set(literals, decimals, exact, signed=True)
        if operation.op == "add":
            return cost + tally.add(cost, literals, decimals, lambda i: exact(i) - int(cost[i]))
        return tally.scale(cost, literals, decimals, exact)

    def _check(self, rows: EdgeArray, cost: UnitArray, known: EdgeArray) -> None:
        limit = largest_cost(self.network.n_vertices)
        for i in np.flatnonzero(np.abs(cost) > limit)[:1].tolist():
            raise CostOverflow(f"the cost would be beyond {limit} units either way", [int(known[i])])
        below = (cost < 0) & self.network.is_undirected(rows)
        for i in np.flatnonzero(below)[:1].tolist():
            raise InvalidNetwork("an undirected edge cannot cost less than nothing", [int(known[i])])


def costs_of(table: CostTable | None) -> CostTable:
    """The table itself. Raises `NoCosts` if the graph has none."""
    if table is None:
        raise NoCosts("the edges of this graph have no costs: load it with a column `cost`, one amount for each edge")
    return table
