"""The checker itself: a clean history passes, and each kind of harm is seen."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from service.store.keys import Keys
from tests.faults.aof import Commit, Committed, Load, read_commands, read_committed
from tests.faults.checker import check
from tests.faults.history import BATCH_UNIT, LOAD_UNIT, Cut, Edges, History, Op


@dataclass
class Story:
    """One graph, loaded (1), changed twice (2, 3), asked, deleted; a second apart.

    0 ==marks==> 2
    0 --5--> 1 --5--> 2
    """

    history: History = field(default_factory=lambda: History(0))
    load: Load = field(default_factory=lambda: Load("g", "id", 1))
    committed: Committed = field(default_factory=Committed)

    def __post_init__(self) -> None:
        edges = Edges(3, [0, 0, 0, 1], [2, 2, 1, 2], [LOAD_UNIT, 0, 5, 5])
        self.committed.loads.append(self.load)
        self.put = self._op("put", {"version": 1}, number=1, edges=edges)
        self.first = self._patch(2, 4)
        self.second = self._patch(3, 3)
        self.answer = self._op("max-flow", self.flow(3, 3, 3))
        self.delete = self._op("delete", None)
        self.load.deleted = True
        self.committed.removals.append(("g", "job"))

    def _op(self, kind: str, body: Any, **fields: Any) -> Op:
        at = float(len(self.history.ops))
        op = Op(0, kind, "g", at, answered_at=at + 0.5, status=200, body=body, **fields)
        self.history.ops.append(op)
        return op

    def _patch(self, number: int, capacity: int) -> Op:
        batch = [{"edges": [1], "set": [number * BATCH_UNIT]}, {"edges": [2], "set": [capacity]}]
        own = [number * BATCH_UNIT, capacity]
        self.load.commits.append(Commit(number, f"key-{number}", [1, 2], own, [False] * 2))
        return self._op(
            "patch", {"version": number, "flow_states": []}, number=number, batch=batch, key=f"key-{number}"
        )

    def flow(self, version: int, batch: int, through: int) -> dict[str, Any]:
        value = LOAD_UNIT + batch * BATCH_UNIT + through
        proof = {"valid": True}
        return {"version": version, "value": value, "cut": {"edges": [0, 1, 2]}, "certificate": proof}


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


HARMS: dict[str, tuple[Callable[[Story], object], str | None]] = {
    "clean": (lambda story: None, None),
    "a batch is lost": (lose_a_batch, "lost"),
    "a batch is lost with the end of the log": (cut_off, None),
    "a batch is there twice": (apply_twice, "doubled"),
    "a batch is another": (lambda story: story.load.commits[-1].own.__setitem__(1, 9), "wrong"),
    "a version is missing": (lambda story: setattr(story.load.commits[-1], "version", 4), "wrong"),
    "a graph is gone": (lose_the_graph, "lost"),
    "a delete did nothing": (lambda story: story.committed.removals.clear(), "lost"),
    "a load is there twice": (lambda story: story.committed.loads.append(Load("g", "other", 1)), "doubled"),
    "a refused batch is there": (
        lambda story: change(story.second, status=412, body={"code": "version_conflict"}),
        "wrong",
    ),
    "an answer is old": (lambda story: setattr(story.answer, "body", story.flow(2, 2, 4)), "wrong"),
    "an answer is not right": (lambda story: setattr(story.answer, "body", story.flow(3, 3, 4)), "wrong"),
    "an answer is mixed": (lambda story: setattr(story.answer, "body", story.flow(3, 2, 3)), "wrong"),
    "an answer is early": (lambda story: change(story.second, invoked_at=9.0, answered_at=9.5), "wrong"),
    "a graph is said to be gone": (
        lambda story: change(story.answer, status=404, body={"code": "unknown_graph"}),
        "lost",
    ),
    "our own fault": (lambda story: change(story.answer, status=500, body={"code": "internal_error"}), "refused"),
    "no answer ever": (lambda story: change(story.second, status=503, body={}, answered_at=50.0), "hung"),
}


def change(op: Op, **values: object) -> None:
    for name, value in values.items():
        setattr(op, name, value)


@pytest.mark.parametrize(("harm", "kind"), HARMS.values(), ids=HARMS.keys())
def test_harm_is_seen(harm: Callable[[Story], object], kind: str | None) -> None:
    faults = verdict(harm)
    if kind is None:
        assert faults == []
    else:
        assert any(text.startswith(kind) for text in faults), faults


def test_an_incomplete_command_is_left_out() -> None:
    whole = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
    assert list(read_commands(whole + whole[:-3])) == [[b"GET", b"a"]]
    with pytest.raises(ValueError, match="no command"):
        list(read_commands(b"garbage"))


def test_a_transaction_within_another_is_seen() -> None:
    """Redis would do the first one's part at its next start."""
    multi, set_, execute = (
        b"*1\r\n$5\r\nMULTI\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n",
        b"*1\r\n$4\r\nEXEC\r\n",
    )
    read_committed(multi + set_ + execute + multi + set_, Keys(""), LOAD_UNIT)
    with pytest.raises(ValueError, match="never came to its end"):
        read_committed(multi + set_ + multi + set_ + execute, Keys(""), LOAD_UNIT)
