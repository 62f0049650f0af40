"""Batches of capacity operations, resolved against a network before anything changes.

Every edge has its *own* capacity, which operations change, and may be *closed*: then its *effective* capacity,
the one engines see, is zero until it is reopened. `Network.capacity` holds effective capacities; the table holds
which edges are closed and what they will have when reopened.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import ROWS_SHOWN, EngineError, InvalidNetwork
from gpu_engine.networks.amounts import changed as changed_by
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.ends import EndIndex
from gpu_engine.networks.growing import with_zeros
from gpu_engine.networks.network import Network
from gpu_engine.networks.refused import Ids, OperationLike, complete, unknown_edges
from gpu_engine.networks.rounded import UNROUNDED, Rounded
from gpu_engine.networks.rounding import Rounding
from gpu_engine.networks.tally import Tally
from gpu_engine.networks.validate import twice
from gpu_engine.text.names import Names
from gpu_engine.types import BoolArray, EdgeArray, UnitArray


class AmbiguousEdge(EngineError):
    """End points name several parallel edges; `edges` are their ids, `rows` which end points."""

    code = "ambiguous_edge"


@dataclass(frozen=True, slots=True)
class Change:
    """A batch that was checked: distinct rising edge rows and their state afterwards."""

    rows: EdgeArray
    own: UnitArray
    closed: BoolArray
    skipped: int = 0
    """How many of the named edges the network does not have."""
    unchanged: int = 0
    """How many distinct edges were named and end up as they were; they are not in `rows`."""
    rounded: Rounded = UNROUNDED

    @property
    def effective(self) -> UnitArray:
        """int64[k]: the capacities the engine is to see."""
        return np.where(self.closed, 0, self.own)


@dataclass(frozen=True, slots=True)
class Located:
    """The edges that the operations of a batch name."""

    found: Sequence[EdgeArray]
    """For each operation the edge row of each of its names, -1 where there is none."""
    touched: EdgeArray
    """Distinct rising edge rows of all operations."""
    missing: int
    """How many of the names belong to no edge."""

    def places(self, table: "CapacityTable", place: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For one operation which of its names are edges, and where in `touched` these edges stand. Raises
        `InvalidNetwork` if one stands there twice."""
        rows = self.found[place]
        known = np.flatnonzero(rows >= 0)
        table.refuse_twice(rows)
        return known, np.searchsorted(self.touched, rows[known])


class CapacityTable:
    """Which edges of a network are closed, and their own capacities. 1 byte an edge, 9 once one has been closed."""

    def __init__(self, network: Network, edges: EdgeList | None = None) -> None:
        """`edges` are those the network was made of, if some of them are closed from the beginning."""
        self.network = network
        self.closed: BoolArray = np.zeros(network.n_edges, np.bool_)
        self._own_of_closed: UnitArray = np.zeros(0, np.int64)
        """int64[m] once an edge has been closed; what stands at open edges has no meaning."""
        if edges is not None and edges.closed is not None:
            rows = np.flatnonzero(edges.closed)
            self.apply(Change(rows, edges.capacity[rows], np.ones(len(rows), np.bool_)))

    def fork(self, network: Network) -> "CapacityTable":
        """The table as it is now, for a fork of its network. O(m)."""
        other = copy.copy(self)
        other.network, other.closed, other._own_of_closed = network, self.closed.copy(), self._own_of_closed.copy()
        return other

    @property
    def nbytes(self) -> int:
        """Bytes at rest, those of its index included once edges were named by their ends."""
        index = self._ends.nbytes if "_ends" in self.__dict__ else 0
        return self.closed.nbytes + self._own_of_closed.nbytes + index

    def grow(self, network: Network) -> None:
        """Go on with the network that has grown out of the present one; new edges are open. O(m)."""
        more = network.n_edges - self.network.n_edges
        self.network, self.closed = network, with_zeros(self.closed, more)
        if len(self._own_of_closed):
            self._own_of_closed = with_zeros(self._own_of_closed, more)
        self.forget_ends()

    def forget_ends(self) -> None:
        """Edges were inserted or deleted: the index by ends is made anew when one is named so."""
        self.__dict__.pop("_ends", None)

    def own(self, rows: EdgeArray) -> UnitArray:
        """int64[k]: the edges' own capacities, closed or not."""
        own = self.network.capacity[rows]
        closed = np.flatnonzero(self.closed[rows])
        own[closed] = self._own_of_closed[rows[closed]] if len(closed) else 0
        return own

    def resolve(
        self,
        batch: Sequence[OperationLike],
        *,
        on_missing: Literal["error", "skip"] = "error",
        rounding: Rounding = "error",
    ) -> Change:
        """Run the operations in order on copies of the edges they name; the table stays as it is.

        Raises `UnknownEdge`, `AmbiguousEdge`, `InvalidNetwork` or `CapacityOverflow`, with at most ten edge ids.
        Cost: O(k log k), and O(m log m) once for edges named by their ends.
        """
        located = self.locate(batch, on_missing)
        before, was_closed = self.own(located.touched), self.closed[located.touched]
        own, closed, place, tally = before.copy(), was_closed.copy(), 0, Tally(rounding)
        try:
            for place, operation in enumerate(batch):
                known, at = located.places(self, place)
                self._run(operation, known, at, own, closed, tally)
        except EngineError as error:
            error.where = complete(self.network, batch, place, located.found, error.where)
            raise
        changed = (own != before) | (closed != was_closed)
        unchanged = int((~changed).sum())
        touched = located.touched[changed]
        return Change(touched, own[changed], closed[changed], located.missing, unchanged, tally.rounded)

    def locate(self, batch: Sequence[OperationLike], on_missing: Literal["error", "skip"]) -> "Located":
        """The edges that the operations name. Raises `UnknownEdge`, `AmbiguousEdge` or `InvalidNetwork`.

        O(k log k), and O(m log m) once for edges named by their ends.
        """
        found: list[EdgeArray] = []
        place = 0
        try:
            for place in range(len(batch)):
                found.append(self._find(batch[place]))
            missing = sum(int((rows < 0).sum()) for rows in found)
            if missing and on_missing == "error":
                place = next(place for place, rows in enumerate(found) if (rows < 0).any())
                raise unknown_edges(self.network, batch[place], found[place])
        except EngineError as error:
            error.where = complete(self.network, batch, place, found, error.where)
            raise
        touched = _distinct(np.concatenate([*found, np.empty(0, np.int64)]))
        return Located(found, touched[touched >= 0], missing)

    def refuse_twice(self, rows: EdgeArray) -> None:
        """Raises `InvalidNetwork` for edges that stand twice among the rows of one operation; -1 is none."""
        at = twice(rows)
        if at:
            names = self.network.edge_ids.of(np.unique(rows[at])[:ROWS_SHOWN])
            raise InvalidNetwork(f"edge {names[0]!r} is named twice in one operation", at, edges=names, field="/edges")

    def apply(self, change: Change) -> None:
        """Remember closed edges. The effective capacities go to the network by the engine. O(k)."""
        self.closed[change.rows] = change.closed
        if not len(self._own_of_closed) and change.closed.any():
            self._own_of_closed = np.zeros(self.network.n_edges, np.int64)
        if len(self._own_of_closed):
            self._own_of_closed[change.rows] = change.own

    def _run(
        self,
        operation: OperationLike,
        known: NDArray[np.int64],
        at: NDArray[np.int64],
        own: UnitArray,
        closed: BoolArray,
        tally: Tally,
    ) -> None:
        """One operation on the touched edges; ``at`` are their places, ``known`` those of their amounts."""
        if operation.op in ("close", "reopen"):
            if operation.amounts is not None:
                raise InvalidNetwork(f"{operation.op} takes no amounts")
            closed[at] = operation.op == "close"
            return
        literals = literals_of(operation, known)
        own[at] = changed_by(operation.op, own[at], literals, known, self.network.decimals, tally)

    def _find(self, operation: OperationLike) -> EdgeArray:
        """int64[k]: the edge row of each name, -1 where there is none."""
        if operation.edges is not None and operation.tail is None and operation.head is None:
            return self.named(operation.edges)
        if operation.edges is not None or operation.tail is None or operation.head is None:
            raise InvalidNetwork("an operation names its edges either by id or by tail and head")
        if len(operation.tail) != len(operation.head):
            raise InvalidNetwork(f"{len(operation.tail)} tails for {len(operation.head)} heads")
        tails, heads = (vertices_named(self.network, given) for given in (operation.tail, operation.head))
        return self._between(tails, heads)

    def named(self, ids: Ids) -> EdgeArray:
        """int64[k]: the row of each of these edges; -1 where there is none, or it was deleted. O(k)."""
        return _there(rows_of(self.network.edge_ids, ids), self.network.deleted)

    def _between(self, tails: NDArray[np.int64], heads: NDArray[np.int64]) -> EdgeArray:
        found, counts = self._ends.find(tails, heads)
        for i in np.flatnonzero(counts > 1)[:1].tolist():
            ids = self.network.edge_ids.of(self._ends.all(int(tails[i]), int(heads[i]))[:ROWS_SHOWN])
            raise AmbiguousEdge(
                f"{counts[i]} parallel edges join the same vertices: name the one you mean by its id, {ids[0]!r}",
                [i],
                edges=ids,
                field="/tail",
            )
        return found

    @cached_property
    def _ends(self) -> EndIndex:
        return EndIndex(self.network)


def literals_of(operation: OperationLike, known: NDArray[np.int64]) -> Sequence[str]:
    """The amounts of an operation on edges that stand at its rows ``known`` int64[k]. Raises `InvalidNetwork` unless
    there is one for each edge that it names."""
    names = operation.edges if operation.edges is not None else operation.tail
    if operation.amounts is None or names is None or len(operation.amounts) != len(names):
        count = 0 if operation.amounts is None else len(operation.amounts)
        raise InvalidNetwork(f"{operation.op} has {count} amounts for {0 if names is None else len(names)} edges")
    return chosen(operation.amounts, known)


def vertices_named(network: Network, wanted: Ids) -> NDArray[np.int64]:
    """int64[k]: the vertices of these names; -1 where there is none, or it was deleted. O(k)."""
    return _there(rows_of(network.vertex_labels, wanted), network.deleted_vertices)


def _there(rows: NDArray[np.int64], gone: BoolArray) -> NDArray[np.int64]:
    """The rows, -1 in place of those that are gone."""
    return np.where((rows >= 0) & gone[rows], -1, rows) if len(gone) else rows


def rows_of(names: Names, wanted: Ids) -> NDArray[np.int64]:
    """int64[k]: the rows of these names; -1 where there is none, integers beyond int64 included."""
    try:
        return names.rows(wanted)
    except OverflowError:
        low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        within = [-1 if isinstance(name, int) and not low <= name <= high else name for name in wanted]
        beyond = [kept != name for kept, name in zip(within, wanted, strict=True)]
        return np.where(beyond, -1, names.rows(cast(Ids, within)))


def _distinct(rows: EdgeArray) -> EdgeArray:
    """Rising. NumPy's own goes by a hash, which is slower, and holds the interpreter's lock."""
    if len(rows) < 2:
        return rows
    rising = np.sort(rows)
    return rising[np.diff(rising, prepend=np.int64(-2)) > 0]


def chosen(column: Sequence[Any], rows: NDArray[np.int64]) -> Sequence[Any]:
    """The items of a column at some of its rows; the column itself, and no copy, if they are all of them."""
    return column if len(rows) == len(column) else [column[i] for i in rows.tolist()]
