"""What a graph has at one version, and what each kind of change makes of it: plain arrays, row by row.

The row of an edge is never given twice, and that of a deleted edge stays, so that versions can be compared by row.
What clients see leaves such rows out.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tests.faults.entries import Commit, Structure, n_vertices
from tests.faults.history import Edges
from tests.faults.limits import UNLIMITED, limited
from tests.faults.limits import changed as changed_limits

Own: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


class Values(NamedTuple):
    """One version of a graph."""

    edges: Edges
    """All that ever were, with those of their members that no batch of capacities or costs changes."""
    own: Own
    closed: Flags
    cost: Own | None
    gone: Flags
    """Edges that are not there."""
    limits: Mapping[int, int]
    """The capacities of vertices that have one."""
    lost: frozenset[int] = frozenset()
    """Vertices that are not there."""
    lower: Own | None = None
    """What each edge is to carry at least; None: no edge ever had a lower bound."""

    @classmethod
    def of(cls, edges: Edges) -> "Values":
        """A graph as it is loaded."""
        m = len(edges.tail)
        cost = None if edges.cost is None else np.array(edges.cost, np.int64)
        closed = np.array(edges.closed or [False] * m, np.bool_)
        lower = None if edges.lower is None else np.array(edges.lower, np.int64)
        own, gone = np.array(edges.capacity, np.int64), np.zeros(m, np.bool_)
        return cls(edges, own, closed, cost, gone, edges.limits, lower=lower)

    def rows(self, ids: list[int] | range) -> Own:
        """The rows of these edges; -1 for one that there is not."""
        if self.edges.ids is None:
            rows = np.array(ids, np.int64)
            rows[(rows < 0) | (rows >= len(self.own))] = -1
        else:
            places = {name: row for row, name in enumerate(self.edges.ids)}
            rows = np.array([places.get(name, -1) for name in ids], np.int64)
        rows[self.gone[rows] & (rows >= 0)] = -1
        return rows

    @property
    def has_ids(self) -> bool:
        return self.edges.ids is not None

    @property
    def seen(self) -> Edges:
        """As clients see it, and as a copy begins: edges that keep their numbers where others are gone have ids."""
        edges, there = self.edges, np.flatnonzero(~self.gone)
        ids = edges.ids
        if ids is None and self.gone.any():
            ids = list(range(len(self.own)))
        tail, head, ids = (column and np.array(column)[there].tolist() for column in (edges.tail, edges.head, ids))
        cost, lower = (None if of is None else of[there].tolist() for of in (self.cost, self.lower))
        own, closed = self.own[there].tolist(), self.closed[there].tolist()
        seen = Edges(edges.n_vertices, tail, head, own, closed, cost, ids, edges.sink, dict(self.limits), lower)
        seen.x, seen.y = edges.x, edges.y
        return seen

    def padded(self, m: int) -> "Values":
        """With rows for edges that come later, which are not there."""
        more = m - len(self.own)
        zeros = np.zeros(more, np.int64)
        cost, lower = (None if of is None else np.concatenate([of, zeros]) for of in (self.cost, self.lower))
        own, closed = np.concatenate([self.own, zeros]), np.concatenate([self.closed, zeros != 0])
        gone = np.concatenate([self.gone, zeros == 0])
        return self._replace(own=own, closed=closed, cost=cost, gone=gone, lower=lower)


def apply(values: Values, batch: list[dict[str, Any]]) -> Values:
    """The graph after a batch of capacities; edges that are not there are passed over."""
    own, closed = values.own.copy(), values.closed.copy()
    for operation in batch:
        for i, row in enumerate(values.rows(operation["edges"]).tolist()):
            if row < 0:
                continue
            if "set" in operation:
                own[row] = operation["set"][i]
            elif "add" in operation:
                own[row] += operation["add"][i]
            else:
                closed[row] = operation["op"] == "close"
    return values._replace(own=own, closed=closed)


def reprice(values: Values, batch: list[dict[str, Any]]) -> Values:
    """The graph after a batch of costs. One without costs gets none."""
    return values if values.cost is None else values._replace(cost=_calculated(values, values.cost, batch))


def bound(values: Values, batch: list[dict[str, Any]]) -> Values:
    """The graph after a batch of lower bounds, the first ones perhaps."""
    before = np.zeros(len(values.own), np.int64) if values.lower is None else values.lower
    return values._replace(lower=_calculated(values, before, batch))


def _calculated(values: Values, before: Own, batch: list[dict[str, Any]]) -> Own:
    """A column of the edges after a batch."""
    column = before.copy()
    for operation in batch:
        for i, row in enumerate(values.rows(operation["edges"]).tolist()):
            if row < 0:
                continue
            if "set" in operation:
                column[row] = operation["set"][i]
            elif "add" in operation:
                column[row] += operation["add"][i]
            else:
                column[row] *= operation["scale"][i]
    return column


def limit(values: Values, batch: list[dict[str, Any]]) -> Values:
    """The graph after a batch of capacities of vertices."""
    return values._replace(limits=limited(values.limits, batch, values.lost))


def restructure(values: Values, batch: list[dict[str, Any]]) -> Values:
    """The graph after a batch that inserts and deletes; edges to delete that are not there are passed over."""
    inserted = [operation for operation in batch if "tail" in operation]
    n_vertices = values.edges.n_vertices + sum(operation.get("count", 0) for operation in batch)
    columns = {
        name: [one for operation in inserted for one in operation.get(name, ())]
        for name in ("tail", "head", "capacity", "cost", "edge_ids")
    }
    columns |= {name: [one for operation in batch for one in operation.get(name, ())] for name in ("x", "y")}
    columns["lower"] = [one for each in inserted for one in each.get("lower", [0] * len(each["tail"]))]
    before, m = values.edges, len(values.own)
    ids = None if before.ids is None else [*before.ids, *columns["edge_ids"]]
    tail, head = [*before.tail, *columns["tail"]], [*before.head, *columns["head"]]
    edges = Edges(n_vertices, tail, head, before.capacity, before.closed, before.cost, ids, before.sink)
    if before.x is not None and before.y is not None:
        edges.x, edges.y = [*before.x, *columns["x"]], [*before.y, *columns["y"]]
    if values.lower is None and any("lower" in operation for operation in inserted):
        values = bound(values, [])
    own, closed, cost, gone = values.padded(len(tail))[1:5]
    lower = values.padded(len(tail)).lower
    if lower is not None:
        lower[m:] = columns["lower"]
    own[m:], gone[m:] = columns["capacity"], False
    if cost is not None:
        cost[m:] = columns["cost"]
    lost = {v for v in doomed(batch) if is_there(values, v)}
    joins = np.isin(before.tail, [*lost]) | np.isin(before.head, [*lost])
    rows = np.flatnonzero(joins & ~values.gone)
    for operation in batch:
        if operation["op"] == "delete" and "edges" in operation:
            rows = np.union1d(rows, values.rows(operation["edges"]))
    rows = rows[rows >= 0]
    own[rows], closed[rows], gone[rows] = 0, False, True
    limits = {v: 0 if v in lost else units for v, units in values.limits.items()}
    at = before.n_vertices
    for operation in batch:
        for i, amount in enumerate(operation["capacity"] if "count" in operation and "capacity" in operation else ()):
            limits[at + i] = UNLIMITED if amount == "inf" else amount
        at += operation.get("count", 0)
    return Values(edges, own, closed, cost, gone, limits, values.lost | lost, lower)


def doomed(batch: list[dict[str, Any]]) -> list[int]:
    """The vertices that a batch names to delete, each time that it does."""
    return [v for operation in batch if operation.get("op") == "delete" for v in operation.get("vertices", ())]


def is_there(values: Values, vertex: int) -> bool:
    return 0 <= vertex < values.edges.n_vertices and vertex not in values.lost


def n_missing_edges(values: Values, batch: list[dict[str, Any]]) -> int:
    """How many of the edges that a batch names, each time that it does, are not there."""
    return sum(int((values.rows(operation["edges"]) < 0).sum()) for operation in batch if "edges" in operation)


def n_missing(values: Values, batch: list[dict[str, Any]]) -> int:
    """The same, and vertices to delete that are not there."""
    return n_missing_edges(values, batch) + sum(not is_there(values, v) for v in doomed(batch))


def back_to(now: Values, then: Values) -> Values:
    """The graph after a restore of an earlier version: with its edges, by the rows and among the vertices of now."""
    past = then.padded(len(now.own))
    cost = now.cost if now.cost is None or past.cost is None else np.where(past.gone, now.cost, past.cost)
    lower = None if now.lower is None else np.where(past.gone, now.lower, 0 if past.lower is None else past.lower)
    lost = then.lost | {v for v in now.lost if v >= then.edges.n_vertices}
    limits = {
        v: units if v in now.lost and not is_there(then, v) else then.limits.get(v, UNLIMITED)
        for v, units in now.limits.items()
    }
    return Values(now.edges, past.own, past.closed, cost, past.gone, limits, lost, lower)


def expected(before: Values, after: Values, *, is_structural: bool) -> Commit:
    """What the log entry between these two must say, without version, key and job.

    A change of structure says so, even if all that it names was passed over.
    """
    m, past = len(before.own), before.padded(len(after.own))
    changed = (past.own != after.own) | (past.closed != after.closed) | (past.gone != after.gone)
    rows = np.flatnonzero(changed)
    own, closed = after.own[rows].tolist(), after.closed[rows].tolist()
    commit = Commit(0, "", rows.tolist(), own, closed, limits=changed_limits(before.limits, after.limits))
    inserted = {v: units for v, units in after.limits.items() if v >= before.edges.n_vertices}
    gone = {v: after.limits[v] for v in sorted(after.lost - before.lost) if v in after.limits}
    if is_structural:
        commit.limits = {**gone, **inserted}
    if past.cost is not None and after.cost is not None:
        costly = np.flatnonzero((past.cost != after.cost) & ~after.gone)
        costly = costly[costly < m]
        commit.cost_rows, commit.costs = costly.tolist(), after.cost[costly].tolist()
    if after.lower is not None:
        least = np.zeros(m, np.int64) if before.lower is None else before.lower
        commit.lower_rows = np.flatnonzero((least != after.lower[:m]) & ~after.gone[:m]).tolist()
        commit.lowers = after.lower[commit.lower_rows].tolist()
        commit.is_bounded = bool(commit.lower_rows)
    n_more = after.edges.n_vertices - before.edges.n_vertices
    if is_structural or n_more or (past.gone != after.gone).any() or before.lost != after.lost:
        deleted = np.flatnonzero(~past.gone & after.gone).tolist()
        revived = np.flatnonzero(past.gone[:m] & ~after.gone[:m]).tolist()
        tail, head, ids = after.edges.tail[m:], after.edges.head[m:], after.edges.ids
        cost = None if after.cost is None else after.cost[m:].tolist()
        ids = None if ids is None else ids[m:]
        commit.structure = Structure(n_more, tail, head, deleted, revived, ids or None, cost or None)
        if after.lower is not None and after.lower[m:].any():
            commit.structure.lower = after.lower[m:].tolist()
        if n_more and after.edges.x is not None and after.edges.y is not None:
            commit.structure.x, commit.structure.y = (of[-n_more:] for of in (after.edges.x, after.edges.y))
        commit.structure.deleted_vertices = sorted(after.lost - before.lost)
        commit.structure.revived_vertices = sorted(before.lost - after.lost)
        commit.size = after.edges.n_vertices - len(after.lost), int((~after.gone).sum())
    return commit


def n_applied(commit: Commit) -> int:
    """How many rows the answer to such a change says were changed, vertices that came and went among them."""
    return len({*commit.rows, *commit.cost_rows, *commit.lower_rows}) + n_vertices(commit.structure, commit.limits)
