"""Batches of capacity operations, resolved against a network before anything changes.

Every edge has its *own* capacity, which operations change, and may be *closed*: then its *effective* capacity,
the one engines see, is zero until it is reopened. `Network.capacity` holds effective capacities; the table holds
which edges are closed and what they will have when reopened.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow, EngineError, InvalidNetwork, UnknownEdge
from gpu_engine.names import Names
from gpu_engine.network import Network
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray, EdgeArray, UnitArray, VertexArray
from gpu_engine.units import read_amounts, read_decimal, scale_units, to_units

Ids = Sequence[int] | Sequence[str]


class AmbiguousEdge(EngineError):
    """End points name several parallel edges; `rows` are their ids."""

    code = "ambiguous_edge"


class OperationLike(Protocol):
    """One operation: edges by id, or by tail and head; decimal literals for set, add and scale."""

    @property
    def op(self) -> Literal["set", "add", "scale", "close", "reopen"]: ...
    @property
    def edges(self) -> Ids | None: ...
    @property
    def tail(self) -> Ids | None: ...
    @property
    def head(self) -> Ids | None: ...
    @property
    def amounts(self) -> Sequence[str] | None: ...


@dataclass(frozen=True, slots=True)
class Change:
    """What a batch comes to: distinct rising edge rows and their state afterwards."""

    rows: EdgeArray
    own: UnitArray
    closed: BoolArray
    skipped: int = 0
    """Named edges the network does not have."""
    unchanged: int = 0
    """Distinct edges that were named and end up as they were; they are not in `rows`."""

    @property
    def effective(self) -> UnitArray:
        """int64[k]: the capacities the engine is to see."""
        return np.where(self.closed, 0, self.own)


class CapacityTable:
    """Which edges of a network are closed, and their own capacities. 1 byte an edge, 9 once one has been closed."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.closed: BoolArray = np.zeros(network.n_edges, np.bool_)
        self._own_of_closed: UnitArray = np.zeros(0, np.int64)
        """int64[m] once an edge has been closed; what stands at open edges has no meaning."""

    @property
    def nbytes(self) -> int:
        """Bytes at rest, those of its index included once edges were named by their ends."""
        index = sum(self.__dict__[name].nbytes for name in ("_edges_by_arc", "_arcs_sorted") if name in self.__dict__)
        loops = sum(column.nbytes for column in self.__dict__.get("_loops", ()))
        return self.closed.nbytes + self._own_of_closed.nbytes + int(index) + int(loops)

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
        rounding: Literal["exact", "down"] = "exact",
    ) -> Change:
        """Run the operations in order on copies of the edges they name; the table stays as it is.

        Raises `UnknownEdge`, `AmbiguousEdge`, `InvalidNetwork` or `CapacityOverflow`, with at most ten edge ids.
        Cost: O(k log k), and O(m log m) once for edges named by their ends.
        """
        found = [self._find(operation) for operation in batch]
        missing = sum(int((rows < 0).sum()) for rows in found)
        if missing and on_missing == "error":
            raise UnknownEdge(f"{missing} edges are unknown", _names_of_missing(batch, found))
        touched = np.unique(np.concatenate([*found, np.empty(0, np.int64)]))
        touched = touched[touched >= 0]
        before, was_closed = self.own(touched), self.closed[touched]
        own, closed = before.copy(), was_closed.copy()
        for operation, rows in zip(batch, found, strict=True):
            known = np.flatnonzero(rows >= 0)
            self._refuse_twice(rows[known])
            at = np.searchsorted(touched, rows[known])
            self._run(operation, known, at, own, closed, rounding == "down")
        changed = (own != before) | (closed != was_closed)
        return Change(touched[changed], own[changed], closed[changed], missing, int((~changed).sum()))

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
        down: bool,
    ) -> None:
        """One operation on the touched edges; ``at`` are their places, ``known`` those of their amounts."""
        if operation.op in ("close", "reopen"):
            if operation.amounts is not None:
                raise InvalidNetwork(f"{operation.op} takes no amounts")
            closed[at] = operation.op == "close"
            return
        names = operation.edges if operation.edges is not None else operation.tail
        if operation.amounts is None or names is None or len(operation.amounts) != len(names):
            count = 0 if operation.amounts is None else len(operation.amounts)
            raise InvalidNetwork(f"{operation.op} has {count} amounts for {0 if names is None else len(names)} edges")
        literals = [operation.amounts[i] for i in known.tolist()]
        ids = [names[i] for i in known.tolist()]
        if operation.op == "set":
            own[at] = read_amounts(literals, self.network.decimals, ids)
        elif operation.op == "add":
            own[at] = self._added(own[at].tolist(), literals, ids)
        else:
            own[at] = _scaled(own[at].tolist(), literals, ids, down)

    def _added(self, own: list[int], literals: list[str], ids: list[int | str]) -> list[int]:
        sums = []
        for units, literal, name in zip(own, literals, ids, strict=True):
            more = to_units(read_decimal(literal, name), self.network.decimals, name)
            total = units if units == INFINITE else units + more
            if total < 0:
                raise InvalidNetwork("the capacity would be negative", [name])
            if total > MAX_TOTAL and total != INFINITE:
                raise CapacityOverflow(f"the capacity would be beyond {MAX_TOTAL} units", [name])
            sums.append(total)
        return sums

    def _refuse_twice(self, rows: EdgeArray) -> None:
        order = np.sort(rows)
        twice = order[1:][order[1:] == order[:-1]]
        if len(twice):
            shown = self.network.edge_ids.of(twice[:10])
            raise InvalidNetwork(f"{len(twice)} edges are named twice in one operation", shown)

    def _find(self, operation: OperationLike) -> EdgeArray:
        """int64[k]: the edge row of each name, -1 where there is none."""
        if operation.edges is not None and operation.tail is None and operation.head is None:
            return rows_of(self.network.edge_ids, operation.edges)
        if operation.edges is not None or operation.tail is None or operation.head is None:
            raise InvalidNetwork("an operation names its edges either by id or by tail and head")
        if len(operation.tail) != len(operation.head):
            raise InvalidNetwork(f"{len(operation.tail)} tails for {len(operation.head)} heads")
        labels = self.network.vertex_labels
        return self._between(rows_of(labels, operation.tail), rows_of(labels, operation.head))

    def _between(self, tails: NDArray[np.int64], heads: NDArray[np.int64]) -> EdgeArray:
        found = np.full(len(tails), -1, np.int64)
        for i, (tail, head) in enumerate(zip(tails.tolist(), heads.tolist(), strict=True)):
            if tail < 0 or head < 0:
                continue
            edges = self._loops_at(tail) if tail == head else self._edges_between(tail, head)
            if len(edges) > 1:
                shown = self.network.edge_ids.of(np.array(edges[:10]))
                raise AmbiguousEdge(f"{len(edges)} parallel edges join the same vertices", shown)
            found[i] = edges[0] if edges else -1
        return found

    def _edges_between(self, tail: int, head: int) -> list[int]:
        """Edges from tail to head; an undirected edge is found in either orientation."""
        network = self.network
        first, last = network.row_offsets[tail], network.row_offsets[tail + 1]
        arc = int(first + np.searchsorted(network.head[first:last], head))
        if arc >= last or network.head[arc] != head:
            return []
        along = self._edges_of_arc(arc)
        against = self._edges_of_arc(int(network.reverse_arc[arc]))
        return [*along.tolist(), *against[network.is_undirected(against)].tolist()]

    def _edges_of_arc(self, arc: int) -> EdgeArray:
        first, last = np.searchsorted(self._arcs_sorted, (arc, arc + 1))
        return self._edges_by_arc[first:last]

    @cached_property
    def _edges_by_arc(self) -> EdgeArray:
        return np.argsort(self.network.edge_arc, kind="stable")

    @cached_property
    def _arcs_sorted(self) -> NDArray[np.int32]:
        return self.network.edge_arc[self._edges_by_arc]

    def _loops_at(self, vertex: int) -> list[int]:
        rows, vertices = self._loops
        first, last = np.searchsorted(vertices, (vertex, vertex + 1))
        found: list[int] = rows[first:last].tolist()
        return found

    @cached_property
    def _loops(self) -> tuple[EdgeArray, VertexArray]:
        """Self-loops by their vertices: rows and vertices."""
        rows = np.flatnonzero(self.network.edge_arc < 0)
        vertices = self.network.edge_tail(rows)
        order = np.argsort(vertices, kind="stable")
        return rows[order], vertices[order]


def rows_of(names: Names, wanted: Ids) -> NDArray[np.int64]:
    """int64[k]: the rows of these names; -1 where there is none, integers beyond int64 included."""
    try:
        return names.rows(wanted)
    except OverflowError:
        low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        within = [-1 if isinstance(name, int) and not low <= name <= high else name for name in wanted]
        beyond = [kept != name for kept, name in zip(within, wanted, strict=True)]
        return np.where(beyond, -1, names.rows(cast(Ids, within)))


def _scaled(own: list[int], literals: list[str], ids: list[int | str], down: bool) -> list[int]:
    scaled = []
    for units, literal, name in zip(own, literals, ids, strict=True):
        factor = read_decimal(literal, name)
        if factor < 0:
            raise InvalidNetwork(f"the factor {literal} is negative", [name])
        scaled.append(scale_units(units, factor, down=down, row=name))
    return scaled


def _names_of_missing(batch: Sequence[OperationLike], found: Sequence[EdgeArray]) -> list[object]:
    names: list[object] = []
    for operation, rows in zip(batch, found, strict=True):
        for i in np.flatnonzero(rows < 0)[:10].tolist():
            if operation.edges is not None:
                names.append(operation.edges[i])
            elif operation.tail is not None and operation.head is not None:
                names.append([operation.tail[i], operation.head[i]])
    return names
