"""What the graphs must have been: every version of every load, replayed from the log, solved by OR-tools.

Shares no code with the service: operations are applied one by one to plain arrays.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import max_flow

from tests.faults.aof import Committed, Load
from tests.faults.history import BATCH_UNIT, SOURCE, Cut, Edges, History, Op

Own: TypeAlias = NDArray[np.int64]
Closed: TypeAlias = NDArray[np.bool_]


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
    patch: Op | None = None
    """The batch that made it."""

    @property
    def key(self) -> tuple[int, int]:
        """States of one name in their order; `(2 * load + 1, 0)` is the time after a DELETE."""
        return 2 * self.load, self.version

    @property
    def possible_from(self) -> float:
        return self.put.invoked_at if self.patch is None else max(self.put.invoked_at, self.patch.invoked_at)

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
    of_batch: dict[int, State] = field(default_factory=dict)
    of_load: dict[int, State] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """"doubled ..." or "wrong ..."."""


def build(history: History, committed: Committed) -> Model:
    """Replay what was committed, each batch as its client asked for it."""
    model = Model()
    puts = {op.number: op for op in history.ops if op.kind == "put"}
    patches = {op.number: op for op in history.ops if op.kind == "patch"}
    graphs = {op.graph for op in history.ops}
    place: dict[str, int] = defaultdict(int)
    for load in committed.loads:
        if load.graph not in graphs:
            continue
        put = puts.get(load.number)
        if put is None or put.graph != load.graph:
            model.faults.append(f"wrong: load {load.number} of {load.graph} is nobody's")
            continue
        _replay(model, load, place[load.graph], put, patches, history.cuts)
        place[load.graph] += 1
    if len(committed.removals) != len(set(committed.removals)):
        model.faults.append("doubled: one DELETE removed two graphs")
    return model


def _replay(model: Model, load: Load, place: int, put: Op, patches: dict[int, Op], cuts: list[Cut]) -> None:
    assert put.edges is not None
    if load.edges is not None and load.edges != put.edges:
        model.faults.append(f"wrong: load {load.number} of {load.graph} is not what was sent")
    own, closed = np.array(put.edges.capacity, np.int64), np.zeros(len(put.edges.tail), np.bool_)
    state = State(place, 1, put.edges, own, closed, put)
    if load.number in model.of_load:
        model.faults.append(f"doubled: load {load.number}")
    model.of_load[load.number] = state
    model.states[load.graph].append(state)
    for i, commit in enumerate(load.commits):
        if commit.version != i + 2:
            model.faults.append(f"wrong: version {commit.version} of load {load.number} follows {i + 1}")
        number = dict(zip(commit.rows, commit.own, strict=True)).get(1, -1) // BATCH_UNIT
        patch = patches.get(number)
        if patch is None or patch.graph != load.graph or patch.batch is None:
            model.faults.append(f"wrong: batch {number} in load {load.number} is nobody's")
            return
        if number in model.of_batch:
            model.faults.append(f"doubled: batch {number}")
        if patch.key is not None and patch.key != commit.key:
            model.faults.append(f"wrong: batch {number} is logged under another key")
        if patch.jobs and commit.job not in patch.jobs and not _was_asked_again_after(cuts, patch):
            model.faults.append(f"wrong: batch {number} was done by job {commit.job}, not by {patch.jobs}")
        if patch.if_match is not None and patch.if_match != commit.version - 1:
            model.faults.append(f"wrong: batch {number} asked for version {patch.if_match}, made {commit.version}")
        own, closed = apply(own, closed, patch.batch)
        logged = zip(commit.rows, commit.own, commit.closed, strict=True)
        rows = np.flatnonzero((own != state.own) | (closed != state.closed))
        if list(zip(rows.tolist(), own[rows].tolist(), closed[rows].tolist(), strict=True)) != list(logged):
            model.faults.append(f"wrong: version {commit.version} of load {load.number} is not what was asked for")
        state = State(place, commit.version, put.edges, own, closed, put, patch)
        model.of_batch[number] = state
        model.states[load.graph].append(state)
    if load.deleted:
        model.absences[load.graph].append(place)


def _was_asked_again_after(cuts: list[Cut], patch: Op) -> bool:
    """A cut may have taken the batch with its key: whoever asked again then has had it done by another job."""
    taking = [cut for cut in cuts if patch.invoked_at <= cut.ended_at]
    return any(look.asked_at >= cut.began_at for cut in taking for look in patch.again)


def apply(own: Own, closed: Closed, batch: list[dict[str, Any]]) -> tuple[Own, Closed]:
    """The capacities after a batch; new arrays."""
    own, closed = own.copy(), closed.copy()
    for operation in batch:
        for i, row in enumerate(operation["edges"]):
            if "set" in operation:
                own[row] = operation["set"][i]
            elif "add" in operation:
                own[row] += operation["add"][i]
            else:
                closed[row] = operation["op"] == "close"
    return own, closed
