"""The checker itself: a clean history passes, and each kind of harm is seen."""

import ast
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.faults.aof import Load
from tests.faults.entries import Commit
from tests.faults.history import BATCH_UNIT, Cut, Look
from tests.faults.stories import Later, Story, change, job, see


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


def do_it_again_in_vain(story: Story) -> None:
    """The same, and the second client was not told of anything."""
    do_it_again(2.2, 2.4)(story)
    story.second.again, story.second.unanswered = [], [look.answered_at for look in story.second.again]


def cancel_the_delete(story: Story, *, is_cut: bool) -> None:
    """Its client was told that it is cancelled, asked once more under the same key, and was told that it is done."""
    delete = story.delete
    cancel = Look(200, job("job-delete", "queued", cancelling=True), delete.invoked_at)
    again = Look(204, None, delete.answered_at)
    change(delete, status=409, body={"code": "cancelled"}, cancels=[cancel], again=[again])
    if is_cut:
        story.history.cuts.append(Cut(delete.invoked_at, delete.answered_at))


def answer_before_a_cut(story: Story, invoked_at: float) -> None:
    """The answer has another value than the third version, which came at 2.0."""
    change(story.answer, invoked_at=invoked_at, answered_at=invoked_at + 0.5, body=story.flow(3, 3, 4))
    story.history.cuts.append(Cut(10.0, 11.0))


HARMS: dict[str, tuple[Callable[[Story], object], str | None]] = {
    "clean": (lambda story: None, None),
    "a batch is lost": (lose_a_batch, "lost"),
    "a batch is lost with the end of the log": (cut_off, None),
    "a batch is there twice": (apply_twice, "doubled"),
    "a batch is another": (lambda story: story.load.commits[-1].own.__setitem__(1, 9), "wrong"),
    "a version is missing": (lambda story: setattr(story.load.commits[-1], "version", 4), "wrong"),
    "a graph is gone": (lose_the_graph, "lost"),
    "a cancelled delete is done": (partial(cancel_the_delete, is_cut=False), "lost"),
    "a cancelled delete is done for who asked again after a cut": (partial(cancel_the_delete, is_cut=True), None),
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
    "an answer before a cut is not right": (partial(answer_before_a_cut, invoked_at=3.0), "wrong: max-flow"),
    "an answer is about a version that was cut off and came again": (
        partial(answer_before_a_cut, invoked_at=1.2),
        None,
    ),
    "an answer is mixed": (lambda story: setattr(story.answer, "body", story.flow(3, 2, 0)), "wrong"),
    "an answer is early": (lambda story: change(story.second, invoked_at=9.0, answered_at=9.5), "wrong"),
    "a graph is said to be gone": (
        lambda story: change(story.answer, status=404, body={"code": "unknown_graph"}),
        "lost",
    ),
    "a repeated batch is a conflict": (
        lambda story: change(story.second.again[0], status=409, body={"code": "idempotency_conflict"}),
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
        lambda story: change(story.second, jobs=["job-9", "job-3"]),
        "doubled: job job-9",
    ),
    "a batch is another job's": (lambda story: change(story.first, jobs=["job-9"]), "wrong: batch 2 was done by"),
    "a batch is another job's after a cut": (do_it_again(2.2, 2.4), None),
    "a batch is another job's after a cut, and nobody was told": (do_it_again_in_vain, None),
    "a batch is another job's before a cut": (do_it_again(2.6, 2.8), "wrong: batch 3 was done by"),
    "a batch is another job's long after a cut": (do_it_again(1.6, 1.8), "wrong: batch 3 was done by"),
    "a scenario's value is wrong": (
        lambda story: story.scenarios.body["answers"][1].update(value=7),
        "wrong: what-if",
    ),
    "a scenario is not answered": (lambda story: story.scenarios.body["answers"].pop(), "wrong: what-if"),
    "a scenario is not proven": (
        lambda story: story.scenarios.body["answers"][2].update(certificate={"valid": False}),
        "wrong: what-if",
    ),
    "scenarios are old": (lambda story: change(story.scenarios, body=story.rows(2, 2, 0)), "wrong: what-if"),
    "a matching is too small": (
        lambda story: story.matching.body.update(size=1, matching={"edges": [2], "left": [0], "right": [1]}),
        "wrong: matching",
    ),
    "a matching is too large": (
        lambda story: story.matching.body.update(
            size=3, matching={"edges": [2, 3, 4], "left": [0, 2, 2], "right": [1, 1, 3]}
        ),
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
    "a matching has other ends": (
        lambda story: story.matching.body["matching"].update(right=[3, 3]),
        "wrong: matching",
    ),
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


@pytest.mark.parametrize(("harm", "kind"), HARMS.values(), ids=HARMS.keys())
def test_harm_is_seen(harm: Callable[[Story], object], kind: str | None) -> None:
    see(Story(), harm, kind)


@pytest.mark.parametrize(("harm", "kind"), HARMS_LATER.values(), ids=HARMS_LATER.keys())
def test_harm_to_files_copies_and_restores_is_seen(harm: Callable[[Later], object], kind: str | None) -> None:
    see(Later(), harm, kind)


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
    assert {"model", "history", "job_checks", "matchings", "windows", "exports", "scenarios", "cheapest"} <= seen
    assert {"entries", "structure", "answers", "feeds"} <= seen
