"""What the graphs must have been: every version of every load, replayed from the log, solved by OR-tools.

Shares no code with the service: operations are applied one by one to plain arrays.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from ortools.graph.python import max_flow

from tests.faults.aof import Committed, Load
from tests.faults.entries import Commit
from tests.faults.history import BATCH_UNIT, LOAD_UNIT, SOURCE, Edges, History, Op
from tests.faults.limits import UNLIMITED
from tests.faults.structure import (
    Flags,
    Own,
    Values,
    apply,
    back_to,
    bound,
    expected,
    limit,
    n_applied,
    n_missing,
    reprice,
    restructure,
)

Marks: TypeAlias = tuple[int, int, int]
"""Load, batch and version that an answer names."""

CHANGES: Final = {
    "patch": apply,
    "costs": reprice,
    "lower": bound,
    "edges": restructure,
    "vertices": limit,
    "restore": back_to,
}
"""What a change makes of a graph, by its kind."""

UNMARKED: Final = ("copy", "restore", "edges", "vertices", "lower")
"""Changes that set no mark of their own."""


@dataclass(frozen=True, eq=False)
class State:
    """One version of one load."""

    load: int
    """Place among the loads of its name."""
    version: int
    values: Values
    put: Op
    """The PUT or the copy that made its load."""
    update: Op | None = None
    """The batch or the restore that made it."""
    order: int = 0
    """Place of its commit in the log."""
    change: Commit | None = None
    """What its entry in the log must say; None: it is as loaded."""
    n_skipped: int = 0
    """Edges that its batch names and that there were not."""

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
    def edges(self) -> Edges:
        return self.values.edges

    def looks_like(self, other: "State") -> bool:
        """Whether clients see the same. Capacities tell most versions apart at once."""
        own, others = self.own[~self.values.gone], other.own[~other.values.gone]
        return np.array_equal(own, others) and self.values.seen == other.values.seen

    @property
    def own(self) -> Own:
        return self.values.own

    @property
    def closed(self) -> Flags:
        return self.values.closed

    @property
    def cost(self) -> Own | None:
        return self.values.cost

    @property
    def effective(self) -> Own:
        return np.where(self.closed, 0, self.own)

    @property
    def least(self) -> Own:
        """The lower bounds of all edges, 0 of those that are not there."""
        lower = self.values.lower
        return np.zeros(len(self.own), np.int64) if lower is None else np.where(self.values.gone, 0, lower)

    @property
    def n_changed(self) -> int:
        """Edges that are not as they were at the version before, and vertices that were not there."""
        return 0 if self.change is None else n_applied(self.change)

    @property
    def value(self) -> int:
        return self._solved[0]

    @property
    def cut(self) -> list[int]:
        """Rows of the edges of the minimum cut nearest the source."""
        return self._solved[1]

    @cached_property
    def _solved(self) -> tuple[int, list[int]]:
        solver, effective = max_flow.SimpleMaxFlow(), self.effective
        tail, head = np.array(self.edges.tail), np.array(self.edges.head)
        limits = {v: units for v, units in self.values.limits.items() if units != UNLIMITED}
        halved, units = np.array([*limits], np.int64), np.array([*limits.values()], np.int64)
        out = np.arange(self.edges.n_vertices)
        out[halved] = len(out) + np.arange(len(halved))
        solver.add_arcs_with_capacity(out[tail], head, effective)
        solver.add_arcs_with_capacity(halved, out[halved], units)
        assert solver.solve(SOURCE, self.edges.sink) == solver.OPTIMAL
        is_reached = np.zeros(len(out) + len(limits), np.bool_)
        is_reached[solver.get_source_side_min_cut()] = True
        rows = np.flatnonzero(is_reached[out[tail]] & ~is_reached[head] & (effective > 0)).tolist()
        return int(solver.optimal_flow()), rows

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
    """Loads and most batches are known by their marks, the other changes by the request that their job was made for."""

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
        state = State(place, 1, Values.of(edges), op, order=load.order)
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
        found = [past for past in self.model.states[op.source] if past.order <= state.order and past.looks_like(state)]
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
        if op is None or op.graph != load.graph or op.kind not in CHANGES:
            self._fault(f"wrong: batch {number} in load {load.number} is nobody's")
            return None
        if op.kind != "restore":
            assert op.batch is not None
            if not op.skips and n_missing(state.values, op.batch):
                self._fault(f"wrong: batch {op.number} of {load.graph} names edges that there were not")
            return op, CHANGES[op.kind](state.values, op.batch)
        found = [past for past in self.model.states[load.graph] if (past.load, past.version) == (state.load, op.target)]
        if not found:
            self._fault(f"wrong: {op.number} of {load.graph} led back to version {op.target}, which there was not")
            return None
        return op, back_to(state.values, found[0].values)

    def _committed_as(self, load: Load, commit: Commit, op: Op, values: Values) -> State:
        """The state after a commit, which must say what it does, and be done by the right job."""
        before, what = self.model.states[load.graph][-1], f"batch {op.number}" if op.batch else f"restore {op.number}"
        if op.key is not None and op.key != commit.key:
            self._fault(f"wrong: {what} is logged under another key")
        if op.jobs and commit.job not in op.jobs and not self._history.asked_anew(op):
            self._fault(f"wrong: {what} was done by job {commit.job}, not by {op.jobs}")
        if op.if_match is not None and op.if_match != commit.version - 1:
            self._fault(f"wrong: {what} asked for version {op.if_match}, made {commit.version}")
        right = expected(before.values, values, is_structural=op.kind == "edges")
        right.is_bounded |= op.kind == "lower"
        if replace(commit, version=0, key="", job="", order=0) != right:
            self._fault(f"wrong: version {commit.version} of load {load.number} is not what was asked for")
        n_skipped = n_missing(before.values, op.batch or [])
        state = State(before.load, commit.version, values, before.put, op, commit.order, right, n_skipped)
        self._made(op, state, what)
        return state
