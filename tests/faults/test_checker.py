"""The checker itself: a clean history passes, and each kind of harm is seen."""

import ast
import copy
import hashlib
import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from tests.faults.aof import Commit, Committed, Load, read_commands, read_committed
from tests.faults.checker import check
from tests.faults.history import BATCH_UNIT, LOAD_UNIT, Cut, Edges, History, Look, Op


@dataclass
class Story:
    """One graph, loaded (1), changed twice (2, 3), asked, changed by a cancelled job, deleted; a second apart.

    0 ==marks==> 3
    0 --5--> 1 <--5-- 2 --5--> 3
    """

    history: History = field(default_factory=lambda: History(0))
    load: Load = field(default_factory=lambda: Load("g", "id", 1))
    committed: Committed = field(default_factory=Committed)

    def __post_init__(self) -> None:
        edges = Edges(4, [0, 0, 0, 2, 2], [3, 3, 1, 1, 3], [LOAD_UNIT, 0, 5, 5, 5])
        self.load.edges = copy.deepcopy(edges)
        self.committed.loads.append(self.load)
        self.put = self._op("put", {"version": 1}, number=1, edges=edges)
        self.first = self._patch(2, 4)
        self.second = self._patch(3, 3)
        self.answer = self._op("max-flow", self.flow(3, 3, 0), key="flow", jobs=["job-flow"])
        self.committed.endings["job-flow"] = ["succeeded"]
        self.matching = self._op("matching", matching(3), key="matching")
        for op in (self.second, self.answer, self.matching):
            op.again.append(Look(200, copy.deepcopy(op.body), op.answered_at))
        self.answer.views = [Look(200, job("job-flow", "succeeded", self.answer.body), 3.1) for _ in range(2)]
        self.limited = self._op("max-flow", {"code": "timeout"}, limit_s=0.1)
        self.limited.status = 504
        self.stopped = self._stopped()
        self.delete = self._op("delete", None)
        self.load.deleted = True
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
        self.load.commits.append(Commit(number, f"key-{number}", [1, 2], own, [False] * 2, f"job-{number}"))
        return self._op(
            "patch", {"version": number, "flow_states": []}, number=number, batch=batch, key=f"key-{number}"
        )

    def flow(self, version: int, batch: int, through: int) -> dict[str, Any]:
        value = LOAD_UNIT + batch * BATCH_UNIT + through
        proof = {"valid": True}
        return {"version": version, "value": value, "cut": {"edges": [0, 1]}, "certificate": proof}

    def do_what_was_cancelled(self) -> None:
        self.stopped.batch = [{"edges": [1], "set": [4 * BATCH_UNIT]}]
        self.load.commits.append(Commit(4, "key-4", [1], [4 * BATCH_UNIT], [False], "job-4"))


def matching(version: int) -> dict[str, Any]:
    cover = {"left": [0, 2], "right": []}
    proof = {"valid": True}
    rows = {"edges": [2, 4], "left": [0, 2], "right": [1, 3]}
    return {"version": version, "size": 2, "cover": cover, "certificate": proof} | rows


def job(name: str, status: str, result: Any = None, error: Any = None, *, cancelling: bool = False) -> dict[str, Any]:
    times = {"finished_at": "then"}
    return {"id": name, "status": status, "result": result, "error": error, "cancelling": cancelling} | times


def verdict(harm: Callable[[Story], object]) -> list[str]:
    story = Story()
    harm(story)
    return check(story.history, story.committed).faults


def lose_a_batch(story: Story) -> None:
    story.load.commits.pop()
    story.history.ops.remove(story.answer)


def apply_twice(story: Story) -> None:
    commit = story.load.commits[-1]
    story.load.commits.append(Commit(4, commit.key, [], [], []))
    story.load.commits[-1].rows, story.load.commits[-1].own = commit.rows, commit.own
    story.load.commits[-1].closed = commit.closed


def lose_the_graph(story: Story) -> None:
    story.history.ops.remove(story.delete)


def cut_off(story: Story) -> None:
    lose_a_batch(story)
    story.history.cuts.append(Cut(10.0, 11.0))


def do_it_again(began_at: float, ended_at: float) -> Callable[[Story], object]:
    """The second batch (asked at 2.0, and again at 2.5) was done by a job that its client was not told of."""

    def harm(story: Story) -> None:
        story.second.jobs = ["job-9"]
        story.history.cuts.append(Cut(began_at, ended_at))

    return harm


HARMS: dict[str, tuple[Callable[[Story], object], str | None]] = {
    "clean": (lambda story: None, None),
    "a batch is lost": (lose_a_batch, "lost"),
    "a batch is lost with the end of the log": (cut_off, None),
    "a batch is there twice": (apply_twice, "doubled"),
    "a batch is another": (lambda story: story.load.commits[-1].own.__setitem__(1, 9), "wrong"),
    "a version is missing": (lambda story: setattr(story.load.commits[-1], "version", 4), "wrong"),
    "a graph is gone": (lose_the_graph, "lost"),
    "a graph is another": (lambda story: story.load.edges.capacity.__setitem__(3, 6), "wrong"),
    "a delete did nothing": (lambda story: story.committed.removals.clear(), "lost"),
    "a load is there twice": (
        lambda story: story.committed.loads.append(Load("g", "other", 1, story.load.edges)),
        "doubled",
    ),
    "a refused batch is there": (
        lambda story: change(story.second, status=412, body={"code": "version_conflict"}),
        "wrong",
    ),
    "an answer is old": (lambda story: setattr(story.answer, "body", story.flow(2, 2, 0)), "wrong: max-flow"),
    "an answer is not right": (lambda story: setattr(story.answer, "body", story.flow(3, 3, 4)), "wrong"),
    "an answer is mixed": (lambda story: setattr(story.answer, "body", story.flow(3, 2, 0)), "wrong"),
    "an answer is early": (lambda story: change(story.second, invoked_at=9.0, answered_at=9.5), "wrong"),
    "a graph is said to be gone": (
        lambda story: change(story.answer, status=404, body={"code": "unknown_graph"}),
        "lost",
    ),
    "a repeated question is a conflict": (
        lambda story: change(story.answer.again[0], status=409, body={"code": "idempotency_conflict"}),
        "wrong",
    ),
    "a repeated question is answered anew": (
        lambda story: change(story.answer.again[0], body=story.flow(2, 2, 0)),
        "wrong",
    ),
    "a repeated batch is another version": (lambda story: story.second.again[0].body.update(version=4), "wrong"),
    "a repeated batch is refused": (
        lambda story: change(story.second.again[0], status=412, body={"code": "version_conflict"}),
        "wrong",
    ),
    "a repeated batch is to come later": (
        lambda story: change(story.second.again[0], status=503, body={"code": "worker_unavailable"}),
        None,
    ),
    "a cancelled batch is there": (Story.do_what_was_cancelled, "wrong: job job-4 was cancelled"),
    "a cancelled batch is there, and the cancel is not": (
        lambda story: (story.do_what_was_cancelled(), story.committed.cancelled.clear()),
        "wrong: job job-4 was said to be cancelled",
    ),
    "a cancelled batch succeeds": (
        lambda story: change(story.stopped, status=200, body=story.second.body),
        "wrong: job job-4 was said to be cancelled in time, and to have succeeded",
    ),
    "a cancel comes too late for nothing": (
        lambda story: story.stopped.cancels[0].body.update(cancelling=False),
        "wrong: job job-4 was said to have been too far",
    ),
    "nobody cancelled": (lambda story: story.stopped.cancels.clear(), "refused"),
    "a job is gone": (lambda story: change(story.answer.views[1], status=404, body={}), "lost: job"),
    "a job ends twice": (lambda story: story.committed.endings["job-flow"].append("failed"), "wrong: job job-flow"),
    "a job does two things": (lambda story: change(story.load.commits[1], job="job-2"), "doubled: job job-2"),
    "a job is said to be another": (
        lambda story: change(story.answer.views[1], body=job("job-flow", "succeeded", story.flow(2, 2, 0))),
        "wrong: a job that was over",
    ),
    "a job ended otherwise": (
        lambda story: story.committed.endings.update({"job-flow": ["failed"]}),
        "wrong: job job-flow was said to be succeeded",
    ),
    "a job succeeds and does nothing": (lambda story: change(story.second, jobs=["job-9"]), "lost: job job-9"),
    "a second job is made for one key": (
        lambda story: change(story.answer, jobs=["job-2", "job-flow"]),
        "doubled: job job-2",
    ),
    "a batch is another job's": (lambda story: change(story.first, jobs=["job-9"]), "wrong: batch 2 was done by"),
    "a batch is another job's after a cut": (do_it_again(2.2, 2.4), None),
    "a batch is another job's before a cut": (do_it_again(2.6, 2.8), "wrong: batch 3 was done by"),
    "a batch is another job's long after a cut": (do_it_again(1.6, 1.8), "wrong: batch 3 was done by"),
    "a matching is too small": (
        lambda story: story.matching.body.update(size=1, edges=[2], left=[0], right=[1]),
        "wrong: matching",
    ),
    "a matching is too large": (
        lambda story: story.matching.body.update(size=3, edges=[2, 3, 4], left=[0, 2, 2], right=[1, 1, 3]),
        "wrong: matching",
    ),
    "a matching has a closed edge": (
        lambda story: (story.put.edges.capacity.__setitem__(4, 0), story.load.edges.capacity.__setitem__(4, 0)),
        "wrong: matching",
    ),
    "a matching covers too little": (
        lambda story: story.matching.body.update(cover={"left": [0], "right": [1]}),
        "wrong: matching",
    ),
    "a matching has other ends": (lambda story: story.matching.body.update(right=[3, 3]), "wrong: matching"),
    "a matching is old": (lambda story: story.matching.body.update(version=2), "wrong: matching"),
    "a matching's state is wrong": (
        lambda story: story.first.body["flow_states"].append({"kind": "matching", "value": 1}),
        "wrong: patch",
    ),
    "a matching's state is right": (
        lambda story: story.first.body["flow_states"].append({"kind": "matching", "value": 2}),
        None,
    ),
    "time is over too soon": (lambda story: change(story.limited, limit_s=0.6), "refused"),
    "time is over without a limit": (lambda story: change(story.limited, limit_s=None), "refused"),
    "a proof fails": (lambda story: change(story.history, certificate_failures=1), "wrong: 1 answers"),
    "a 500 that was tried again": (lambda story: story.history.answered(500), "refused: 1 answers were 500"),
    "our own fault": (lambda story: change(story.answer, status=500, body={"code": "internal_error"}), "refused"),
    "no answer ever": (lambda story: change(story.second, status=503, body={}, answered_at=50.0), "hung"),
}


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
        self.page = self._op("capacities", {"version": 1, "capacity": list(edges.capacity), "closed": [False] * 5})
        self.page.graph = "h"

    def file(self, version: int, batch: int, capacity: int) -> dict[str, Any]:
        assert self.put.edges is not None
        ends = {"tail": list(self.put.edges.tail), "head": list(self.put.edges.head), "closed": [False] * 5}
        own = [LOAD_UNIT, batch * BATCH_UNIT, capacity, 5, 5]
        return ends | {"version": version, "n_vertices": 4, "source": 0, "sink": 3, "capacity": own}

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

HARMS_LATER: dict[str, tuple[Callable[[Later], object], str | None]] = {
    "clean": (lambda story: None, None),
    "a file is old": (lambda story: change(story.export, body=story.file(2, 2, 4)), "wrong: export"),
    "a file is mixed": (lambda story: change(story.export, body=story.file(3, 2, 4)), "wrong: export"),
    "a file has another capacity": (lambda story: change(story.export, body=story.file(3, 3, 4)), "wrong: export"),
    "a file has an edge closed": (
        lambda story: story.export.body["closed"].__setitem__(4, True),
        "wrong: export",
    ),
    "a file has another edge": (lambda story: story.export.body["head"].__setitem__(4, 1), "wrong: export"),
    "a file has other terminals": (lambda story: story.export.body.update(sink=2), "wrong: export"),
    "a file is broken": (lambda story: change(story.export, body={"broken": "cut"}), "wrong: export"),
    "a file does not say what is closed": (lambda story: story.export.body.update(closed=None), None),
    "a restore is lost": (lambda story: (story.load.commits.pop(), story.committed.loads.pop()), "lost: restore 5"),
    "a restore is there twice": (Later.restore_again, "doubled: restore 5"),
    "a restore is of another version": (lambda story: change(story.restore, target=1), "wrong: version 4"),
    "a restore is of a version that there was not": (lambda story: change(story.restore, target=9), "wrong: 5 of g"),
    "a restore is half done": (
        lambda story: change(story.load.commits[-1], rows=[1], own=[2 * BATCH_UNIT], closed=[False]),
        "wrong: version 4",
    ),
    "a restore counts wrongly": (lambda story: story.restore.body.update(applied=3), "wrong: restore"),
    "a restore is said to be another version": (lambda story: story.restore.body.update(version=5), "wrong: restore 5"),
    "a restore repeated is another": (lambda story: story.restore.again[0].body.update(version=5), "wrong"),
    "a restore has another key": (lambda story: change(story.load.commits[-1], key="other"), "wrong: restore 5"),
    "a restore was for another version": (lambda story: change(story.restore, if_match=2), "wrong: restore 5 asked"),
    "a restore was refused and is there": (
        lambda story: story.refuse(story.restore, "version_conflict", keep=True),
        "wrong: restore 5 was refused",
    ),
    "a restore is refused for nothing": (
        lambda story: story.refuse(story.restore, "version_unavailable"),
        "wrong: restore",
    ),
    "a restore is refused behind two snapshots": (
        lambda story: (change(story.load, reach=3), story.refuse(story.restore, "version_unavailable")),
        None,
    ),
    "a restore is refused for a version to come": (
        lambda story: (change(story.restore, target=5), story.refuse(story.restore, "version_unavailable")),
        None,
    ),
    "a restore is nobody's": (lambda story: story.committed.requests.pop("job-5"), "doubled: batch 2"),
    "a copy is lost": (lambda story: story.committed.loads.pop(), "lost: copy 6"),
    "a copy is there twice": (Later.copy_again, "doubled: load 6"),
    "a copy is no version": (lambda story: story.copied.edges.capacity.__setitem__(3, 6), "wrong: copy 6"),
    "a copy has an edge closed": (
        lambda story: change(story.copied.edges, closed=[True] + [False] * 4),
        "wrong: copy 6",
    ),
    "a copy has another edge": (lambda story: story.copied.edges.head.__setitem__(4, 1), "wrong: copy 6"),
    "a copy is old": (
        lambda story: (
            story.copied.edges.capacity.__setitem__(slice(1, 3), [3 * BATCH_UNIT, 3]),
            story.page.body.update(capacity=list(story.copied.edges.capacity)),
        ),
        "wrong: copy 6 of g: what was copied is older",
    ),
    "a copy is of the future": (lambda story: change(story.copied, order=3), "wrong: copy 6 of g"),
    "a copy is nobody's": (lambda story: story.committed.requests.pop("job-6"), "wrong: load 1 of h is nobody's"),
    "a copy is refused for nothing": (
        lambda story: story.refuse(story.copy, "already_exists"),
        "wrong: copy 6 of h: refused",
    ),
    "a copy was refused and is there": (
        lambda story: story.refuse(story.copy, "already_exists", keep=True),
        "wrong: copy 6 was refused",
    ),
    "a load is refused as a copy is": (
        lambda story: change(story.second, status=409, body={"code": "already_exists"}),
        "refused: patch",
    ),
    "what was copied is said to be gone": (lambda story: story.refuse(story.copy, "unknown_graph"), "lost: copy"),
    "a copy is gone": (
        lambda story: change(story.page, status=404, body={"code": "unknown_graph"}),
        "lost: capacities",
    ),
    "a copy is changed": (lambda story: story.page.body["capacity"].__setitem__(3, 9), "wrong: capacities"),
}


def change(thing: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(thing, name, value)


@pytest.mark.parametrize(("harm", "kind"), HARMS.values(), ids=HARMS.keys())
def test_harm_is_seen(harm: Callable[[Story], object], kind: str | None) -> None:
    faults = verdict(harm)
    if kind is None:
        assert faults == []
    else:
        assert any(text.startswith(kind) for text in faults), faults


@pytest.mark.parametrize(("harm", "kind"), HARMS_LATER.values(), ids=HARMS_LATER.keys())
def test_harm_to_files_copies_and_restores_is_seen(harm: Callable[[Later], object], kind: str | None) -> None:
    story = Later()
    harm(story)
    faults = check(story.history, story.committed).faults
    if kind is None:
        assert faults == []
    else:
        assert any(text.startswith(kind) for text in faults), faults


def test_what_judges_shares_no_code_with_the_service() -> None:
    """Else a fault of the service's own reader and writer could hide."""
    folder, seen, open_ = Path(__file__).parent, set[str](), ["checker", "aof"]
    while open_:
        name = open_.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [module for module in modules if module.startswith(("service", "gpu_engine", "headrace"))]
            open_ += [module.removeprefix("tests.faults.") for module in modules if module.startswith("tests.faults.")]
    assert {"model", "history", "job_checks", "matchings", "windows", "exports", "cheapest"} <= seen


def test_an_incomplete_command_is_left_out() -> None:
    whole = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
    assert list(read_commands(whole + whole[:-3])) == [[b"GET", b"a"]]
    assert list(read_commands(whole + bytes(9) + whole + bytes(9))) == [[b"GET", b"a"]] * 2
    with pytest.raises(ValueError, match="no command"):
        list(read_commands(b"garbage"))


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def test_a_transaction_within_another_is_seen() -> None:
    """Redis would do the first one's part at its next start."""
    multi, set_, execute = command(b"MULTI"), command(b"SET", b"a", b"1"), command(b"EXEC")
    read_committed(multi + set_ + execute + multi + set_, "")
    with pytest.raises(ValueError, match="never came to its end"):
        read_committed(multi + set_ + multi + set_ + execute, "")


def transaction(*commands: tuple[bytes, ...]) -> bytes:
    return command(b"MULTI") + b"".join(command(*words) for words in commands) + command(b"EXEC")


def packed_edges() -> bytes:
    columns = pa.table({"tail": [0, 0], "head": [1, 1], "capacity": [7 * LOAD_UNIT, 0]})
    table = columns.replace_schema_metadata({"n_vertices": "2", "decimals": "0", "source": "0", "sink": "1"})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def load_commands(data: bytes, digest: bytes | None = None) -> bytes:
    digest = digest or hashlib.sha256(data).hexdigest().encode()
    header = (b"chunks", b"1", b"bytes", b"%d" % len(data), b"sha256", digest)
    return command(b"HSET", b"p:blob:b", b"0", data, *header) + transaction(
        (b"HSET", b"p:names", b"g", b"job-1"),
        (b"HSET", b"p:graph:job-1", b"version", b"1", b"base", b"b"),
        (b"SET", b"p:outcome:job-1", b"{}", b"PXAT", b"1"),
    )


def patch_commands(outcome: bytes = b"{}", applied: int = 1) -> bytes:
    change = zstandard.ZstdCompressor().compress(struct.pack("<qq?", 1, 30, True))
    fields = (b"applied", json.dumps({"key": "k", "applied": applied}).encode(), b"change", change)
    return transaction(
        (b"XADD", b"p:log:job-1", b"2-0", *fields),
        (b"HSET", b"p:graph:job-1", b"version", b"2"),
        (b"SET", b"p:outcome:job-2", outcome),
    )


SNAPSHOTS = [[{"version": 4}], [{"version": 7}, {"version": 4}], [{"version": 7}]]
"""How the list of a graph's snapshots grows, and shrinks when one is broken."""


def test_what_the_service_writes_is_read() -> None:
    remove = transaction((b"HDEL", b"p:names", b"g"), (b"SET", b"p:outcome:job-3", b"{}"))
    cancel = command(b"SET", b"p:outcome:job-4", b"cancelled")
    end = command(b"HSET", b"p:job:job-4", b"status", b"cancelled")
    late = command(b"SET", b"p:outcome:job-2", b"cancelled")
    ended = command(b"HSET", b"p:job:job-2", b"status", b"succeeded")
    asked = command(b"XADD", b"p:commands:w0", b"1-0", b"command", b'{"id":"job-2","request_id":"request"}')
    listed = [command(b"SET", b"p:snapshots:job-1", json.dumps(rows).encode()) for rows in SNAPSHOTS]
    parts = (asked, load_commands(packed_edges()), patch_commands(), *listed, ended, late, cancel, end, remove)
    found = read_committed(b"".join(parts), "p:")
    assert found.requests == {"job-2": "request"}
    (load,) = found.loads
    assert (load.graph, load.graph_id, load.number, load.deleted) == ("g", "job-1", 7, True)
    assert load.edges == Edges(2, [0, 0], [1, 1], [7 * LOAD_UNIT, 0])
    assert load.commits == [Commit(2, "k", [1], [30], [True], "job-2", order=4)]
    assert (load.order, load.reach) == (3, 4)
    assert found.removals == [("g", "job-3")]
    assert found.cancelled == {"job-4"}
    assert found.endings == {"job-2": ["succeeded"], "job-4": ["cancelled"]}


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (load_commands(packed_edges(), b"0" * 64), "its header says"),
        (load_commands(packed_edges()) + patch_commands(applied=2), "are not the 2 rows"),
        (load_commands(packed_edges()) + patch_commands(outcome=b"cancelled"), "has 0 outcomes"),
        (transaction((b"SET", b"p:outcome:job-3", b"{}")), "makes 0 changes"),
    ],
    ids=["another blob", "another count", "a change of a cancelled job", "an outcome of nothing"],
)
def test_what_the_service_must_not_write_is_seen(data: bytes, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        read_committed(data, "p:")
