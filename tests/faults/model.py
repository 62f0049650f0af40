"""What the graphs must have been: every version of every load, replayed from the log, solved by OR-tools.

Shares no code with the service: operations are applied one by one to plain arrays.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import max_flow

from tests.faults.aof import Commit, Committed, Load
from tests.faults.history import BATCH_UNIT, LOAD_UNIT, SOURCE, Cut, Edges, History, Op

Own: TypeAlias = NDArray[np.int64]
Closed: TypeAlias = NDArray[np.bool_]
Values: TypeAlias = tuple[Own, Closed, Own | None]
"""Capacities, which edges are closed, and costs if there are any."""
Marks: TypeAlias = tuple[int, int, int]
"""Load, batch and version that an answer names."""

UNMARKED: Final = ("copy", "restore")
"""Changes that set no mark of their own."""


@dataclass(frozen=True, eq=False)
class State:
    """One version of one load."""

    load: int
    """Place among the loads of its name."""
    version: int
    edges: Edges
    own: Own
    closed: Closed
    put: Op
    """The PUT or the copy that made its load."""
    update: Op | None = None
    """The batch or the restore that made it."""
    order: int = 0
    """Place of its commit in the log."""
    n_changed: int = 0
    """Edges that are not as they were at the version before."""
    cost: Own | None = None
    """int64[m]; None for a graph without costs."""

    @property
    def key(self) -> tuple[int, int]:
        """States of one name in their order; `(2 * load + 1, 0)` is the time after a DELETE."""
        return 2 * self.load, self.version

    @property
    def possible_from(self) -> float:
        return self.put.invoked_at if self.update is None else max(self.put.invoked_at, self.update.invoked_at)

    @property
    def marks(self) -> Marks:
        """States of one name with equal marks have equal capacities: each batch has a mark of its own."""
        return int(self.own[0]) // LOAD_UNIT, int(self.own[1]) // BATCH_UNIT, self.version

    @property
    def price_mark(self) -> int | None:
        """The last batch of costs, which pages and files of the graph name by the cost of edge 1."""
        return None if self.cost is None else int(self.cost[1])

    @property
    def values(self) -> Values:
        return self.own, self.closed, self.cost

    @property
    def effective(self) -> Own:
        return np.where(self.closed, 0, self.own)

    @cached_property
    def value(self) -> int:
        solver = max_flow.SimpleMaxFlow()
        solver.add_arcs_with_capacity(self.edges.tail, self.edges.head, self.effective)
        assert solver.solve(SOURCE, self.edges.sink) == solver.OPTIMAL
        return int(solver.optimal_flow())

    @cached_property
    def matching(self) -> int:
        """The size of a maximum matching of even vertices and odd ones, which all edges join."""
        n, is_open = self.edges.n_vertices, self.effective > 0
        ends = np.array([self.edges.tail, self.edges.head])[:, is_open]
        vertices = np.arange(n)
        solver = max_flow.SimpleMaxFlow()
        left, right = np.where(ends[0] % 2 == 0, ends, ends[::-1])
        tails = np.concatenate([left, np.where(vertices % 2 == 0, n, vertices)])
        heads = np.concatenate([right, np.where(vertices % 2 == 0, vertices, n + 1)])
        solver.add_arcs_with_capacity(tails, heads, np.ones(len(tails), np.int64))
        assert solver.solve(n, n + 1) == solver.OPTIMAL
        return int(solver.optimal_flow())


@dataclass
class Model:
    """All states by graph name, in order, and what is wrong with the log itself."""

    states: dict[str, list[State]] = field(default_factory=lambda: defaultdict(list))
    absences: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Loads that a DELETE ended."""
    made: dict[int, State] = field(default_factory=dict)
    """By number of the load, copy, batch or restore: the state that it made."""
    copied: dict[int, list[State]] = field(default_factory=dict)
    """By number of the copy: states of its source, committed before it, with the edges that it has."""
    reach: dict[tuple[str, int], int] = field(default_factory=dict)
    """By graph name and place of the load: a restore of an older version may be refused."""
    faults: list[str] = field(default_factory=list)
    """"doubled ..." or "wrong ..."."""


def build(history: History, committed: Committed) -> Model:
    """Replay what was committed, each change as its client asked for it."""
    builder = _Builder(history, committed)
    graphs = {op.graph for op in history.ops}
    for load in committed.loads:
        if load.graph in graphs:
            builder.replay(load)
    if len(committed.removals) != len(set(committed.removals)):
        builder.model.faults.append("doubled: one DELETE removed two graphs")
    return builder.model


class _Builder:
    """Loads and batches are known by their marks, copies and restores by the request that their job was made for."""

    def __init__(self, history: History, committed: Committed) -> None:
        self.model = Model()
        self._history = history
        self._committed = committed
        self._by_number = {op.number: op for op in history.ops if op.number}
        self._by_request = {op.request: op for op in history.ops if op.kind in UNMARKED}

    def replay(self, load: Load) -> None:
        """All versions of one load. The graphs that copies were made of have been replayed by then."""
        assert load.edges is not None
        op = self._asked(load.graph_id) or self._by_number.get(load.number)
        if op is None or op.kind not in ("put", "copy") or op.graph != load.graph:
            self._fault(f"wrong: load {load.number} of {load.graph} is nobody's")
            return
        if op.kind == "put" and load.edges != op.edges:
            self._fault(f"wrong: load {load.number} of {load.graph} is not what was sent")
        states = self.model.states[load.graph]
        place = 0 if not states else states[-1].load + 1
        edges = load.edges if op.edges is None else op.edges
        own, closed = np.array(edges.capacity, np.int64), np.array(edges.closed or [False] * len(edges.tail))
        cost = None if edges.cost is None else np.array(edges.cost, np.int64)
        state = State(place, 1, edges, own, closed, op, order=load.order, cost=cost)
        if op.kind == "copy":
            self._copied(op, state)
        self._made(op, state, f"load {op.number}")
        self.model.reach[load.graph, place] = load.reach
        for commit in load.commits:
            change = self._change(load, commit, state)
            if change is None:
                return
            state = self._committed_as(load, commit, *change)
        if load.deleted:
            self.model.absences[load.graph].append(place)

    def _fault(self, text: str) -> None:
        self.model.faults.append(text)

    def _asked(self, job: str) -> Op | None:
        return self._by_request.get(self._committed.requests.get(job, ""))

    def _made(self, op: Op, state: State, what: str) -> None:
        if op.number in self.model.made:
            self._fault(f"doubled: {what}")
        self.model.made[op.number] = state
        self.model.states[op.graph].append(state)

    def _copied(self, op: Op, state: State) -> None:
        """Find what was copied among the versions that its source had had by then."""
        assert op.source is not None
        found = [past for past in self.model.states[op.source] if past.order <= state.order and _equal(past, state)]
        self.model.copied[op.number] = found
        if not found and self._history.survives(op):  # else what was copied may have been cut off
            self._fault(f"wrong: copy {op.number} is no version of {op.source}")

    def _change(self, load: Load, commit: Commit, state: State) -> tuple[Op, Values] | None:
        """Who asked for a commit, and what the graph is to be after it; None if nobody did."""
        if commit.version != state.version + 1:
            self._fault(f"wrong: version {commit.version} of load {load.number} follows {state.version}")
        op = self._asked(commit.job)
        number = dict(zip(commit.rows, commit.own, strict=True)).get(1, -1) // BATCH_UNIT
        if not commit.rows:
            number = dict(zip(commit.cost_rows, commit.costs, strict=True)).get(1, -1)
        if op is None:
            op = self._by_number.get(number)
        if op is None or op.graph != load.graph or op.kind not in ("patch", "costs", "restore"):
            self._fault(f"wrong: batch {number} in load {load.number} is nobody's")
            return None
        if op.kind != "restore":
            assert op.batch is not None
            return op, apply(state.values, op.batch) if op.kind == "patch" else reprice(state.values, op.batch)
        found = [past for past in self.model.states[load.graph] if (past.load, past.version) == (state.load, op.target)]
        if not found:
            self._fault(f"wrong: {op.number} of {load.graph} led back to version {op.target}, which there was not")
            return None
        return op, found[0].values

    def _committed_as(self, load: Load, commit: Commit, op: Op, values: Values) -> State:
        """The state after a commit, which must say what it does, and be done by the right job."""
        before, what = self.model.states[load.graph][-1], f"batch {op.number}" if op.batch else f"restore {op.number}"
        if op.key is not None and op.key != commit.key:
            self._fault(f"wrong: {what} is logged under another key")
        if op.jobs and commit.job not in op.jobs and not _was_asked_again_after(self._history.cuts, op):
            self._fault(f"wrong: {what} was done by job {commit.job}, not by {op.jobs}")
        if op.if_match is not None and op.if_match != commit.version - 1:
            self._fault(f"wrong: {what} asked for version {op.if_match}, made {commit.version}")
        own, closed, cost = values
        rows = np.flatnonzero((own != before.own) | (closed != before.closed))
        logged = list(zip(commit.rows, commit.own, commit.closed, strict=True))
        right = list(zip(rows.tolist(), own[rows].tolist(), closed[rows].tolist(), strict=True)) == logged
        if cost is not None and before.cost is not None:
            costly = np.flatnonzero(cost != before.cost)
            right &= (costly.tolist(), cost[costly].tolist()) == (commit.cost_rows, commit.costs)
            rows = np.union1d(rows, costly)
        if not right or (cost is None and commit.cost_rows):
            self._fault(f"wrong: version {commit.version} of load {load.number} is not what was asked for")
        state = State(
            before.load, commit.version, before.edges, own, closed, before.put, op, commit.order, len(rows), cost
        )
        self._made(op, state, what)
        return state


def _equal(one: State, other: State) -> bool:
    same_ends = (one.edges.tail, one.edges.head) == (other.edges.tail, other.edges.head)
    same_size = one.edges.n_vertices == other.edges.n_vertices
    same_own = np.array_equal(one.own, other.own) and np.array_equal(one.closed, other.closed)
    if one.cost is None or other.cost is None:
        return same_ends and same_size and same_own and one.cost is other.cost
    return same_ends and same_size and same_own and np.array_equal(one.cost, other.cost)


def _was_asked_again_after(cuts: list[Cut], op: Op) -> bool:
    """A cut may have taken the batch with its key: whoever asked again then has had it done by another job."""
    taking = [cut for cut in cuts if op.invoked_at <= cut.ended_at]
    return any(look.asked_at >= cut.began_at for cut in taking for look in op.again)


def apply(values: Values, batch: list[dict[str, Any]]) -> Values:
    """The capacities after a batch, as new arrays, and the costs, which stay as they are."""
    own, closed, cost = values[0].copy(), values[1].copy(), values[2]
    for operation in batch:
        for i, row in enumerate(operation["edges"]):
            if "set" in operation:
                own[row] = operation["set"][i]
            elif "add" in operation:
                own[row] += operation["add"][i]
            else:
                closed[row] = operation["op"] == "close"
    return own, closed, cost


def reprice(values: Values, batch: list[dict[str, Any]]) -> Values:
    """The costs after a batch of costs, as a new array; all else stays as it is. A graph without costs gets none."""
    own, closed, before = values
    if before is None:
        return values
    cost = before.copy()
    for operation in batch:
        for i, row in enumerate(operation["edges"]):
            if "set" in operation:
                cost[row] = operation["set"][i]
            elif "add" in operation:
                cost[row] += operation["add"][i]
            else:
                cost[row] *= operation["scale"][i]
    return own, closed, cost
