"""Batches of changes of structure, resolved against a network before anything changes.

The order within a batch does not matter: vertices are inserted first, then edges, which may join them, and what is
deleted are vertices, with all of their edges, and edges that were there before the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Literal, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import (
    ROWS_SHOWN,
    AlreadyExists,
    CapacityOverflow,
    CostOverflow,
    EngineError,
    InvalidNetwork,
    NoCosts,
    NotDirected,
    TooLarge,
    UnknownVertex,
)
from gpu_engine.networks.coordinates import Floats, joined_places
from gpu_engine.networks.costs import CostTable
from gpu_engine.networks.lowers import LowerTable, lowers_of
from gpu_engine.networks.network import Network
from gpu_engine.networks.refused import Ids, complete, numbered_edges, numbered_vertices, unknown_vertices
from gpu_engine.networks.removal import Removal
from gpu_engine.networks.rounding import Rounding
from gpu_engine.networks.structure import NO_ROWS, Structure
from gpu_engine.networks.tally import Tally
from gpu_engine.networks.units import WIDE, read_amounts, read_decimal, to_units
from gpu_engine.networks.updates import CapacityTable, Change, rows_of, vertices_named
from gpu_engine.networks.validate import largest_cost
from gpu_engine.text.names import Names, joined
from gpu_engine.types import INFINITE, BoolArray, UnitArray, VertexArray


class StructureOperation(Protocol):
    """One operation: ``insert`` of vertices, or of edges by their ends, or ``delete`` of edges or of vertices."""

    @property
    def op(self) -> Literal["insert", "delete"]: ...
    @property
    def vertices(self) -> Ids | None: ...
    @property
    def count(self) -> int | None: ...
    @property
    def edge_ids(self) -> Ids | None: ...
    @property
    def edges(self) -> Ids | None: ...
    @property
    def tail(self) -> Ids | None: ...
    @property
    def head(self) -> Ids | None: ...
    @property
    def capacity(self) -> Sequence[str] | None: ...
    @property
    def vertex_capacity(self) -> Sequence[str] | None: ...
    @property
    def cost(self) -> Sequence[str] | None: ...
    @property
    def lower(self) -> Sequence[str] | None: ...
    @property
    def undirected(self) -> bool | Sequence[bool] | None: ...
    @property
    def x(self) -> Sequence[float] | Floats | None: ...
    @property
    def y(self) -> Sequence[float] | Floats | None: ...


@dataclass(frozen=True, slots=True)
class Close:
    """A deletion as `CapacityTable.locate` knows operations."""

    edges: Ids | None
    tail: Ids | None
    head: Ids | None
    op: Literal["close"] = "close"
    amounts: None = None


NOTHING: Final = Close(NO_ROWS, None, None)
"""In place of an insertion, so that a deletion that is refused has its place in the batch."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a graph may have."""

    vertices: int
    edges: int
    """Those that were deleted count, as their rows stay."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a batch inserts and deletes, and the capacities that come and go with that."""

    structure: Structure
    change: Change
    limited: VertexArray
    """int32[k], rising: the inserted vertices that have a capacity."""
    vertex_capacity: UnitArray
    """int64[k], of these."""


def resolve(
    table: CapacityTable,
    costs: CostTable | None,
    batch: Sequence[StructureOperation],
    limits: Limits,
    *,
    on_missing: Literal["error", "skip"] = "error",
    rounding: Rounding = "error",
    lowers: LowerTable | None = None,
) -> Resolved:
    """What the operations insert and delete. Nothing changes yet.

    Raises `AlreadyExists`, `UnknownEdge`, `UnknownVertex`, `AmbiguousEdge`, `TooLarge`, `NoCosts`, `CostOverflow`,
    `CapacityOverflow` (of one amount) or `InvalidNetwork`. Cost: O(k log k), O(m) where vertices come to a graph with
    costs, and O(m log m) where edges are deleted by their ends.
    """
    removal = Removal.of(table.network, batch, on_missing)
    reader = _Reader(table.network, costs, limits, Tally(rounding), removal.vertices)
    place = 0
    try:
        for wanted in (reader.insert_vertices, reader.insert_edges):
            for place in range(len(batch)):
                wanted(batch[place])
    except EngineError as error:
        if len(batch) > 1:
            field = error.where.field and f"/batch/{place}{error.where.field}"
            error.where = replace(error.where, operation=place, field=field)
        raise
    deletions = [Close(o.edges, o.tail, o.head) if o.op == "delete" and o.vertices is None else NOTHING for o in batch]
    if reader.structure.lower is not None:
        lowers_of(lowers, table.network).check_total(NO_ROWS, NO_ROWS, reader.structure.lower)
    located = table.locate(deletions, on_missing)
    try:
        for place in range(len(batch)):
            located.places(table, place)
    except EngineError as error:
        error.where = complete(table.network, deletions, place, located.found, error.where)
        raise
    deleted = np.union1d(located.touched, removal.edges(table.network))
    structure = replace(reader.structure, deleted=deleted, deleted_vertices=removal.vertices)
    gained, missing = reader.capacity, located.missing + removal.missing
    rows = np.concatenate([deleted, table.network.n_edges + np.arange(len(gained))])
    own = np.concatenate([np.zeros(len(deleted), np.int64), gained])
    change = Change(rows, own, np.zeros(len(rows), np.bool_), missing, rounded=reader.tally.rounded)
    return Resolved(structure, change, reader.limited, reader.vertex_capacity)


class _Reader:
    """Reads what is inserted, one operation after the other."""

    def __init__(
        self, network: Network, costs: CostTable | None, limits: Limits, tally: Tally, doomed: VertexArray
    ) -> None:
        """``doomed`` are the vertices that the batch deletes: no edge can join them."""
        self._network = network
        self._doomed = doomed
        self._costs = costs
        self._limits = limits
        self.tally = tally
        self.structure = Structure(cost=None if costs is None else NO_ROWS)
        self.capacity: UnitArray = NO_ROWS
        self.limited: VertexArray = np.empty(0, np.int32)
        self.vertex_capacity: UnitArray = NO_ROWS

    def insert_vertices(self, operation: StructureOperation) -> None:
        if operation.op != "insert" or (operation.vertices is None and operation.count is None):
            return
        labels, so_far = self._network.vertex_labels, self.structure
        if labels.column is None and operation.vertices is not None:
            raise numbered_vertices(self._network)
        if labels.column is not None and operation.vertices is None:
            raise InvalidNetwork("the vertices of this graph have names: give new ones in `vertices`", field="/count")
        count = len(operation.vertices) if operation.vertices is not None else int(operation.count or 0)
        self._fits("vertices", self._network.n_vertices + so_far.n_vertices + count, self._limits.vertices)
        column = self._new_names(labels, so_far.vertex_labels, operation.vertices, "/vertices")
        n_vertices = so_far.n_vertices + count
        x, y = joined_places(self._network.coordinates, (so_far.x, so_far.y), (operation.x, operation.y), count)
        if operation.vertex_capacity is not None:
            first = self._network.n_vertices + so_far.n_vertices
            capacity = self._read_capacities(operation.vertex_capacity)
            self.limited = np.concatenate([self.limited, first + np.arange(count, dtype=np.int32)])
            self.vertex_capacity = np.concatenate([self.vertex_capacity, capacity])
        self.structure = replace(so_far, n_vertices=n_vertices, vertex_labels=column, x=x, y=y)
        if self._costs is not None and len(self._costs.cost):
            limit = largest_cost(self._network.n_vertices + n_vertices)
            if max(int(self._costs.cost.max()), -int(self._costs.cost.min())) > limit:
                raise CostOverflow(f"with so many vertices no edge may cost more than {limit} units either way")

    def insert_edges(self, operation: StructureOperation) -> None:
        if operation.op != "insert" or operation.tail is None or operation.head is None:
            return
        network, so_far, n_more = self._network, self.structure, len(operation.tail)
        self._fits("edges", network.n_edges + so_far.n_edges + n_more, self._limits.edges)
        if network.edge_ids.column is None and operation.edge_ids is not None:
            raise numbered_edges(network)
        if network.edge_ids.column is not None and operation.edge_ids is None:
            raise InvalidNetwork("the edges of this graph have ids: give new ones in `edge_ids`", field="/edge_ids")
        tail, head = self._vertices(operation.tail, "/tail"), self._vertices(operation.head, "/head")
        undirected = np.broadcast_to(np.asarray(operation.undirected or False, np.bool_), n_more)
        ids = self._new_names(network.edge_ids, so_far.edge_ids, operation.edge_ids, "/edge_ids")
        cost = self._read_costs(operation.cost, undirected)
        lower = so_far.lower
        if lower is not None or operation.lower is not None:
            before = np.zeros(so_far.n_edges, np.int64) if lower is None else lower
            lower = np.concatenate([before, self._read_lower(operation.lower, undirected)])
        self.capacity = np.concatenate([self.capacity, self._read_capacities(operation.capacity or [])])
        self.structure = replace(
            so_far,
            tail=np.concatenate([so_far.tail, tail]),
            head=np.concatenate([so_far.head, head]),
            undirected=np.concatenate([so_far.undirected, undirected]),
            edge_ids=ids,
            cost=None if cost is None or so_far.cost is None else np.concatenate([so_far.cost, cost]),
            lower=lower,
        )

    def _fits(self, what: str, count: int, limit: int) -> None:
        if count > limit:
            raise TooLarge(f"the graph would have {count} {what}; the limit is {limit} (max_{what})")

    def _new_names(self, names: Names, before: Any, given: Ids | None, field: str) -> Any:
        """The names given so far and these. Raises `AlreadyExists` for one that is taken, or was."""
        if given is None:
            return before
        first: Any = next((c for c in (names.column, before) if c is not None and len(c)), given)
        is_text = len(first) > 0 and isinstance(first[0], str)
        if len(given) and isinstance(given[0], str) != is_text:
            kind = "text" if is_text else "integers"
            raise InvalidNetwork(f"the {names.kind}s of this graph are {kind}", field=field)
        column: Any = given if is_text else np.asarray(given, np.int64)
        taken = np.flatnonzero(rows_of(names, column) >= 0)
        if len(taken):
            self._refuse_taken(names, "is taken, if only by a deleted one", taken, column, field)
        try:
            every = column if before is None else joined(before, [column])
            Names(every, len(every), names.kind)
        except InvalidNetwork as error:
            at = len(every) - len(column)
            rows = np.array([int(str(row)) - at for row in error.rows if int(str(row)) >= at], np.int64)
            self._refuse_taken(names, "is inserted twice", rows, column, field)
        return every

    def _refuse_taken(self, names: Names, why: str, rows: NDArray[np.int64], column: Any, field: str) -> NoReturn:
        first = [column[row] for row in rows[:ROWS_SHOWN].tolist()]
        plain = [name if isinstance(name, str) else int(name) for name in first]
        where: dict[str, Any] = {"vertices" if field == "/vertices" else "edges": plain}
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        raise AlreadyExists(f"the {names.kind} {plain[0]!r}{more} {why}", rows.tolist(), field=field, **where)

    def _vertices(self, given: Ids, field: str) -> VertexArray:
        """int32[k]: the vertices of these names, inserted ones too. Raises `UnknownVertex`."""
        network, more = self._network, self.structure
        rows = vertices_named(network, given)
        doomed = np.flatnonzero(np.isin(rows, self._doomed))
        if len(doomed):
            at = doomed[:ROWS_SHOWN]
            names = network.vertex_labels.of(rows[at])
            detail = f"vertex {names[0]!r} is deleted by the same batch"
            raise UnknownVertex(detail, at.tolist(), vertices=names, field=field)
        missing = np.flatnonzero(rows < 0)
        if len(missing) and more.n_vertices:
            wanted: Any = [given[i] for i in missing.tolist()]
            if network.vertex_labels.column is None:
                here = np.array([w if isinstance(w, int | np.integer) else -1 for w in wanted], object)
                first, last = network.n_vertices, network.n_vertices + more.n_vertices
                rows[missing] = [w if first <= w < last else -1 for w in here]
            else:
                found = rows_of(Names(more.vertex_labels, more.n_vertices, "vertex label"), wanted)
                rows[missing] = np.where(found >= 0, network.n_vertices + found, -1)
            missing = missing[rows[missing] < 0]
        if len(missing):
            shown = missing[:ROWS_SHOWN].tolist()
            names = [given[i] if isinstance(given[i], str) else int(given[i]) for i in shown]
            raise unknown_vertices(network, names, shown, count=len(missing), field=field)
        return rows.astype(np.int32)

    def _read_capacities(self, literals: Sequence[str], field: str = "/capacity") -> UnitArray:
        decimals, tally = self._network.decimals, self.tally

        def one(i: int) -> int:
            (units,) = read_amounts([literals[i]], decimals, [i], tally.rounding)
            if units != INFINITE:
                tally.note(Decimal(literals[i]).scaleb(decimals, WIDE), units, decimals)
            return units

        return _at(tally.set, field, literals, decimals, one)

    def _read_lower(self, literals: Sequence[str] | None, undirected: BoolArray) -> UnitArray:
        """int64[k]: the lower bounds of inserted edges."""
        if literals is None:
            return np.zeros(len(undirected), np.int64)
        units = self._read_capacities(literals, "/lower")
        endless, both_ways = np.flatnonzero(units == INFINITE), np.flatnonzero((units > 0) & undirected)
        if len(endless):
            raise InvalidNetwork("a lower bound is finite", endless[:ROWS_SHOWN].tolist(), field="/lower")
        if len(both_ways):
            detail = "only a directed edge has a lower bound"
            raise NotDirected(detail, both_ways[:ROWS_SHOWN].tolist(), field="/lower")
        return units

    def _read_costs(self, literals: Sequence[str] | None, undirected: BoolArray) -> UnitArray | None:
        if self._costs is None:
            if literals is not None:
                raise NoCosts("the edges of this graph have no costs: leave `cost` out", field="/cost")
            return None
        if literals is None:
            raise InvalidNetwork("the edges of this graph have costs: give those of new ones in `cost`", field="/cost")
        given, decimals, tally = literals, self._costs.decimals, self.tally

        def one(i: int) -> int:
            number = read_decimal(given[i], i)
            units = to_units(number, decimals, i, tally.rounding)
            tally.note(number.scaleb(decimals, WIDE), units, decimals)
            return units

        try:
            cost = _at(tally.set, "/cost", given, decimals, one, signed=True)
        except CapacityOverflow as error:
            refused = CostOverflow(error.message)
            refused.where = error.where
            raise refused from None
        limit = largest_cost(self._network.n_vertices + self.structure.n_vertices)
        beyond = np.flatnonzero(np.abs(cost) > limit)
        if len(beyond):
            raise CostOverflow(f"a cost is beyond {limit} units either way", beyond.tolist(), field="/cost")
        below = np.flatnonzero((cost < 0) & undirected)
        if len(below):
            raise InvalidNetwork("an undirected edge cannot cost less than nothing", below.tolist(), field="/cost")
        return cost


def _at(read: Any, field: str, *arguments: Any, **options: Any) -> UnitArray:
    """What ``read`` returns. What it raises is about this member."""
    try:
        units: UnitArray = read(*arguments, **options)
    except EngineError as error:
        error.where = replace(error.where, field=field)
        raise
    return units
