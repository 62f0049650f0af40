"""Histories without a fault, for the tests of the checker to do harm to."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.faults.aof import Committed, Entry, Load
from tests.faults.checker import check
from tests.faults.entries import Commit
from tests.faults.history import BATCH_UNIT, LOAD_UNIT, Edges, History, Look, Op


@dataclass
class Story:
    """One graph, loaded (1), changed twice (2, 3), asked, changed by a cancelled job, deleted; a second apart.

    0 ==marks==> 3
    0 --5--> 1 <--5-- 2 --5--> 3
    """

    history: History = field(default_factory=lambda: History(0))
    load: Load = field(default_factory=lambda: Load("g", "id", 1, order=1))
    committed: Committed = field(default_factory=Committed)

    def __post_init__(self) -> None:
        edges = Edges(4, [0, 0, 0, 2, 2], [3, 3, 1, 1, 3], [LOAD_UNIT, 0, 5, 5, 5])
        self.load.edges = copy.deepcopy(edges)
        self.committed.loads.append(self.load)
        self.put = self._op("put", {"version": 1}, number=1, edges=edges)
        self.first = self._patch(2, 4)
        self.second = self._patch(3, 3)
        self.answer = self._op("max-flow", self.flow(3, 3, 0), jobs=["job-flow"])
        self.committed.endings["job-flow"] = ["succeeded"]
        self.matching = self._op("matching", matching(3))
        self.scenarios = self._op("what-if", self.rows(3, 3, 0))
        self.second.again.append(Look(200, copy.deepcopy(self.second.body), self.second.answered_at))
        self.answer.views = [Look(200, job("job-flow", "succeeded", self.answer.body), 3.1) for _ in range(2)]
        self.limited = self._op("max-flow", {"code": "timeout"}, limit_s=0.1)
        self.limited.status = 504
        self.stopped = self._stopped()
        self.delete = self._op("delete", None)
        self.load.deleted, self.load.deleted_at = True, 9
        self.committed.removals.append(("g", "job-delete"))

    def _stopped(self) -> Op:
        """A PATCH whose cancel was accepted."""
        op = self._op("patch", {"code": "cancelled"}, number=4, batch=[], key="key-4", jobs=["job-4"])
        op.status = 409
        op.cancels.append(Look(200, job("job-4", "queued", cancelling=True), op.invoked_at))
        op.views = [Look(200, job("job-4", "cancelled", None, {"code": "cancelled"}), op.invoked_at)]
        self.committed.cancelled.add("job-4")
        self.committed.endings["job-4"] = ["cancelled"]
        return op

    def _op(self, kind: str, body: Any, **fields: Any) -> Op:
        at = float(len(self.history.ops))
        op = Op(0, kind, "g", at, answered_at=at + 0.5, **({"status": 200, "body": body} | fields))
        self.history.ops.append(op)
        return op

    def _patch(self, number: int, capacity: int) -> Op:
        batch = [{"edges": [1], "set": [number * BATCH_UNIT]}, {"edges": [2], "set": [capacity]}]
        own = [number * BATCH_UNIT, capacity]
        commit = Commit(number, f"key-{number}", [1, 2], own, [False] * 2, f"job-{number}", order=number)
        self.load.commits.append(commit)
        return self._op(
            "patch", {"version": number, "flow_states": []}, number=number, batch=batch, key=f"key-{number}"
        )

    def flow(self, version: int, batch: int, through: int) -> dict[str, Any]:
        value = LOAD_UNIT + batch * BATCH_UNIT + through
        proof = {"valid": True}
        return {"version": version, "value": value, "cut": {"edges": [0, 1]}, "certificate": proof}

    def rows(self, version: int, batch: int, through: int) -> dict[str, Any]:
        """Closing edge 2, or edges 3 and 4, stops what goes through, and vertex 2 lets 7 of it pass."""
        value, proof = LOAD_UNIT + batch * BATCH_UNIT + through, {"valid": True}
        losses = (through, through, 0, max(0, through - 7))
        rows = [
            {"row": i, "id": i, "value": value - loss, "change": -loss, "certificate": proof}
            for i, loss in enumerate(losses)
        ]
        return {"version": version, "base": {"value": value}, "answers": rows}

    def do_what_was_cancelled(self) -> None:
        self.stopped.batch = [{"edges": [1], "set": [4 * BATCH_UNIT]}]
        self.load.commits.append(Commit(4, "key-4", [1], [4 * BATCH_UNIT], [False], "job-4", order=4))


def matching(version: int) -> dict[str, Any]:
    cover = {"left": [0, 2], "right": []}
    proof = {"valid": True}
    rows = {"edges": [2, 4], "left": [0, 2], "right": [1, 3]}
    return {"version": version, "size": 2, "matching": rows, "cover": cover, "certificate": proof}


def job(name: str, status: str, result: Any = None, error: Any = None, *, cancelling: bool = False) -> dict[str, Any]:
    times = {"finished_at": "then"}
    return {"id": name, "status": status, "result": result, "error": error, "cancelling": cancelling} | times


class Later(Story):
    """The graph is not deleted: it is exported, taken back to version 2 (4), copied to h, and h is asked for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.history.ops.remove(self.delete)
        self.load.deleted = False
        self.committed.removals.clear()
        self.export = self._op("export", self.file(3, 3, 3), format="npz")
        self.restore = self._op("restore", RESTORED | {}, number=5, key="key-5", target=2, request="r5", jobs=["job-5"])
        rows, own = [1, 2], [2 * BATCH_UNIT, 4]
        self.load.commits.append(Commit(4, "key-5", rows, own, [False, False], "job-5", order=4))
        self.copy = self._op("copy", {"version": 1}, number=6, key="key-6", source="g", request="r6", jobs=["job-6"])
        self.copy.graph = "h"
        assert self.load.edges is not None
        edges = copy.deepcopy(self.load.edges)
        edges.capacity[1:3] = own
        self.copied = Load("h", "job-6", 1, edges, order=5)
        self.committed.loads.append(self.copied)
        self.committed.requests |= {"job-5": "r5", "job-6": "r6"}
        for op, status in ((self.restore, "job-5"), (self.copy, "job-6")):
            op.again = [Look(200, copy.deepcopy(op.body), op.answered_at)]
            self.committed.endings[status] = ["succeeded"]
        self.page = self._op("capacities", page(edges, 1))
        self.page.graph = "h"

    def file(self, version: int, batch: int, capacity: int) -> dict[str, Any]:
        assert self.put.edges is not None
        ends = {"tail": list(self.put.edges.tail), "head": list(self.put.edges.head), "closed": [False] * 5}
        own = [LOAD_UNIT, batch * BATCH_UNIT, capacity, 5, 5]
        return ends | {"version": version, "n_vertices": 4, "source": 0, "sink": 3, "capacity": own, "limits": {}}

    def restore_again(self) -> None:
        commit = copy.deepcopy(self.load.commits[-1])
        self.load.commits.append(commit)
        change(commit, version=5, rows=[], own=[], closed=[], order=6)

    def copy_again(self) -> None:
        self.committed.loads.append(copy.deepcopy(self.copied))

    def refuse(self, op: Op, code: str, *, keep: bool = False) -> None:
        """Nothing was done, and nothing is known of what would have been."""
        change(op, status=409, body={"code": code}, jobs=[], again=[])
        if op is self.restore and not keep:
            self.load.commits.pop()
            self.refuse(self.copy, "cancelled")
        if op is self.copy and not keep:
            self.committed.loads.pop()
            self.history.ops.remove(self.page)
            change(op, cancels=[Look(200, job("job-9", "queued", cancelling=True), 0.0)])


RESTORED: dict[str, Any] = {"version": 4, "applied": 2, "flow_states": []}


def change(thing: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(thing, name, value)


def page(edges: Edges, version: int) -> dict[str, Any]:
    """Of the capacities of a graph whose edges are numbered, or have ids."""
    ids = list(range(len(edges.tail))) if edges.ids is None else edges.ids
    columns = {"edge_ids": list(ids), "tail": list(edges.tail), "head": list(edges.head), "next": None}
    return columns | {"version": version, "capacity": list(edges.capacity), "closed": [False] * len(edges.tail)}


def announce(committed: Committed) -> None:
    """The events of all versions and removals there are, as their transactions tell them."""
    for i, load in enumerate(committed.loads):
        said: dict[str, Any] = {"graph": load.graph, "generation": f"{i:08x}"}
        happened = [(1, load.order, "version"), *((each.version, each.order, "version") for each in load.commits)]
        happened += [(happened[-1][0], load.deleted_at, "graph.deleted")] if load.deleted else []
        for version, order, kind in happened:
            name = f"{i:08x}-{version}-{kind.removeprefix('graph.')}"
            committed.feeds[load.graph].append(Entry(name, kind, json.dumps(said | {"version": version}), order))


def see(story: Story, harm: Callable[[Any], object], kind: str | None) -> None:
    """Do harm to a story: what is found begins with ``kind``, or nothing is found (None)."""
    harm(story)
    if not story.committed.feeds:
        announce(story.committed)
    faults = check(story.history, story.committed).faults
    assert any(text.startswith(kind) for text in faults) if kind else faults == [], faults
