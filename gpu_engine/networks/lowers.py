"""What edges carry at least in a circulation, and batches of operations on it.

Lower bounds are exact integers in the units of the capacities. They belong to the edges whether these are closed or
not, and may be above a capacity: then no circulation keeps them. No engine knows them, so a change of theirs leaves
every flow state as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from gpu_engine.errors import ROWS_SHOWN, CapacityOverflow, EngineError, InvalidNetwork, NotDirected
from gpu_engine.networks.amounts import changed as changed_by
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import with_zeros
from gpu_engine.networks.network import Network
from gpu_engine.networks.refused import OperationLike, complete
from gpu_engine.networks.rounded import UNROUNDED, Rounded
from gpu_engine.networks.rounding import Rounding
from gpu_engine.networks.tally import Tally
from gpu_engine.networks.updates import CapacityTable, literals_of
from gpu_engine.networks.validate import exact_total
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray, EdgeArray, UnitArray


@dataclass(frozen=True, slots=True)
class LowerChange:
    """A batch that was checked: distinct rising edge rows and their lower bounds afterwards."""

    rows: EdgeArray
    lower: UnitArray
    skipped: int = 0
    """How many of the named edges the network does not have."""
    unchanged: int = 0
    """How many distinct edges were named and have the same lower bound as before; they are not in `rows`."""
    rounded: Rounded = UNROUNDED


class LowerTable:
    """The lower bounds of a network's edges, int64[m]. 8 bytes an edge."""

    def __init__(self, network: Network, lower: UnitArray) -> None:
        self.network = network
        self.lower = lower
        self._some: tuple[BoolArray, bool] | None = None
        """The marks of deleted edges for which `some` was worked out last, and what it was."""

    @classmethod
    def of(cls, network: Network, edges: EdgeList) -> "Self | None":
        """The lower bounds in the edge list that the network was made of; None if it has none."""
        return None if edges.lower is None else cls(network, np.array(edges.lower, np.int64))

    @property
    def nbytes(self) -> int:
        return self.lower.nbytes

    @property
    def rows(self) -> EdgeArray:
        """int64[k]: the edges that are there and have a lower bound. O(m)."""
        return self.network.live(np.flatnonzero(self.lower))

    @property
    def some(self) -> bool:
        """Whether an edge that is there has a lower bound. O(m) once they have changed, or edges were deleted."""
        gone = self.network.deleted
        if self._some is None or self._some[0] is not gone:  # each deletion makes marks of its own
            of_deleted = np.count_nonzero(self.lower[gone]) if len(gone) else 0
            self._some = gone, bool(np.count_nonzero(self.lower) > of_deleted)
        return self._some[1]

    def grown(self, network: Network, more: UnitArray | None) -> Self:
        """The lower bounds of the network that has grown out of the present one. ``more`` is int64[k], those of its new
        edges; None stands for zeros."""
        n_more = network.n_edges - self.network.n_edges
        added = with_zeros(self.lower, n_more) if more is None else np.concatenate([self.lower, more])
        return type(self)(network, added)

    def apply(self, change: LowerChange) -> None:
        """Store what was checked. O(k)."""
        self.lower[change.rows] = change.lower
        self._some = None

    def check_total(self, rows: EdgeArray, lower: UnitArray, more: UnitArray) -> None:
        """Raise `CapacityOverflow` if the sum of all lower bounds is too large with ``lower``, int64[k], at these
        distinct rows, and with ``more`` in addition. O(m)."""
        after = self.lower.copy()
        after[rows] = lower
        after[self.network.deleted if len(self.network.deleted) else rows[:0]] = 0
        total = exact_total(after, np.zeros(1, np.bool_)) + exact_total(more, np.zeros(1, np.bool_))
        if total > MAX_TOTAL:
            raise CapacityOverflow(f"the lower bounds would add up to {total} units; the limit is {MAX_TOTAL}")

    def resolve(
        self,
        table: CapacityTable,
        batch: Sequence[OperationLike],
        *,
        on_missing: Literal["error", "skip"] = "error",
        rounding: Rounding = "error",
    ) -> LowerChange:
        """Run the operations set, add and scale in order on copies of the lower bounds; nothing changes yet.

        ``table`` finds the edges. Raises `UnknownEdge`, `AmbiguousEdge`, `NotDirected`, `InvalidNetwork` or
        `CapacityOverflow`, with at most ten edge ids. O(m), and O(m log m) once for edges named by their ends.
        """
        located = table.locate(batch, on_missing)
        before = self.lower[located.touched]
        lower, place, tally = before.copy(), 0, Tally(rounding)
        try:
            for place, operation in enumerate(batch):
                known, at = located.places(table, place)
                lower[at] = self._run(operation, lower[at], known, tally)
                self._refuse(located.touched[at], lower[at], known)
        except EngineError as error:
            error.where = complete(self.network, batch, place, located.found, error.where)
            raise
        moved = lower != before
        rows, unchanged = located.touched[moved], int((~moved).sum())
        self.check_total(rows, lower[moved], lower[:0])
        return LowerChange(rows, lower[moved], located.missing, unchanged, tally.rounded)

    def _run(self, operation: OperationLike, lower: UnitArray, known: EdgeArray, tally: Tally) -> UnitArray:
        """The lower bounds after one operation, in which ``known`` are the places of their amounts."""
        if operation.op in ("close", "reopen"):
            raise InvalidNetwork(f"{operation.op} is an operation on capacities, not on lower bounds")
        literals = literals_of(operation, known)
        return changed_by(operation.op, lower, literals, known, self.network.decimals, tally, what="lower bound")

    def _refuse(self, rows: EdgeArray, lower: UnitArray, known: EdgeArray) -> None:
        for i in np.flatnonzero(lower == INFINITE)[:1].tolist():
            raise InvalidNetwork("a lower bound is finite", [int(known[i])])
        refuse_undirected(self.network, rows, lower, known)


def refuse_undirected(network: Network, rows: EdgeArray, lower: UnitArray, known: EdgeArray) -> None:
    """Raise `NotDirected` for a bound of an undirected edge; ``known`` are the rows in the body."""
    bound = np.flatnonzero((lower > 0) & network.is_undirected(rows))
    if len(bound):
        names = network.edge_ids.of(rows[bound[:ROWS_SHOWN]])
        detail = f"the edge {names[0]!r} is undirected, and only a directed one has a lower bound"
        raise NotDirected(detail, known[bound[:ROWS_SHOWN]].tolist(), edges=names)


def lowers_of(table: LowerTable | None, network: Network) -> LowerTable:
    """The table itself, or that of a ``network`` none of whose edges has a lower bound."""
    return LowerTable(network, np.zeros(network.n_edges, np.int64)) if table is None else table
