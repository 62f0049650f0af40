"""Holds a history against what was committed.

Every acknowledged batch, load and delete is committed once; every answer is right for one version that the graph
may have had between question and answer, and never older than what anybody knew before asking.
"""

from collections import Counter
from dataclasses import dataclass, field

from tests.faults.answers import REFUSALS
from tests.faults.aof import Committed
from tests.faults.feeds import check_feeds
from tests.faults.history import History, Op
from tests.faults.job_checks import check_jobs, check_log
from tests.faults.model import Model, build
from tests.faults.windows import Windows


@dataclass
class Verdict:
    faults: list[str] = field(default_factory=list)
    """Each begins with "lost", "doubled", "wrong", "refused", "hung" or "died"."""
    counts: Counter[str] = field(default_factory=Counter)


def check(history: History, committed: Committed) -> Verdict:
    """Judge one history whose commands have all come to an end."""
    model = build(history, committed)
    verdict = Verdict(list(model.faults))
    verdict.counts["commits"] = sum(state.update is not None for state in model.made.values())
    verdict.counts["loads"] = len(model.made) - verdict.counts["commits"]
    for op in history.ops:
        verdict.counts["questions"] += 1
        verdict.counts["acknowledged"] += op.acknowledged
        verdict.counts[f"acknowledged {op.kind}"] += op.acknowledged
        _check_done(op, model, history, verdict)
        if history.survives(op):
            verdict.faults += check_jobs(op, committed)
    _check_deletes(history, committed, verdict)
    verdict.faults += check_log(history, committed)
    if not model.faults:  # what watches see is told of the versions that there are
        verdict.faults += check_feeds(history, committed, model)
    if history.certificate_failures:
        verdict.faults.append(f"wrong: {history.certificate_failures} answers could not be proven")
    if history.statuses[500]:
        verdict.faults.append(f"refused: {history.statuses[500]} answers were 500")
    _count(history, committed, verdict.counts)
    for graph in sorted({op.graph for op in history.ops}):
        ops = [op for op in history.ops if graph in (op.graph, op.source)]
        verdict.faults += Windows(graph, ops, model, history).faults()
    return verdict


def _count(history: History, committed: Committed, counts: Counter[str]) -> None:
    """What the history had in it: a check that nothing ever reaches shows nothing."""
    for op in history.ops:
        counts["jobs"] += len(set(op.jobs))
        counts["cancels accepted"] += op.stopped
        counts["cancels too late"] += bool(op.cancels) and not op.stopped
        counts["asked again"] += len(op.again)
        counts["asked again, same answer"] += sum(look.status < 300 for look in op.again)
        counts["timed out"] += op.code == "timeout"
        counts["busy"] += op.status in BUSY
    counts["large"] += any(shape.is_large for shape in history.shapes.values())
    counts["answers"] += history.statuses.total()
    counts["cancels in the log"] += len(committed.cancelled)
    counts["events"] += sum(len(feed) for feed in committed.feeds.values())
    counts["events of watches"] += sum(
        entry.type.endswith(".changed") for feed in committed.feeds.values() for entry in feed
    )
    counts["events followed"] += sum(len(events) for events in history.told.values())
    structures = [
        commit.structure for load in committed.loads for commit in load.commits if commit.structure is not None
    ]
    counts["vertices inserted"] += sum(structure.n_vertices for structure in structures)
    counts["edges inserted"] += sum(len(structure.tail) for structure in structures)
    counts["edges deleted"] += sum(len(structure.deleted) for structure in structures)
    counts["edges there again"] += sum(len(structure.revived) for structure in structures)
    counts["edges inserted with a lower bound"] += sum(sum(map(bool, of.lower or ())) for of in structures)
    counts["vertices inserted with coordinates"] += sum(len(structure.x or ()) for structure in structures)
    counts["lower bounds changed"] += sum(len(commit.lowers) for load in committed.loads for commit in load.commits)
    counts["vertices deleted"] += sum(len(structure.deleted_vertices) for structure in structures)
    counts["vertices there again"] += sum(len(structure.revived_vertices) for structure in structures)
    counts["vertices inserted with a capacity"] += sum(
        len({*commit.limits} - {*commit.structure.deleted_vertices})
        for load in committed.loads
        for commit in load.commits
        if commit.structure is not None and commit.structure.n_vertices
    )
    counts["resets"] += sum(told.type == "reset" for events in history.told.values() for told in events)


ALLOWED = {"unknown_graph", "version_conflict", "version_unavailable", "unknown_watch"}
BUSY = (429, 507)
"""Refused for now, which a client without a key is told too."""


def _is_allowed(op: Op) -> bool:
    """Whether what was refused may be."""
    if op.code == "timeout":
        return op.limit_s is not None and op.answered_at - op.invoked_at >= op.limit_s
    if op.code == "already_exists":
        return op.kind == "copy"
    if op.code in REFUSALS:
        return op.kind == "edges"
    return op.code in ALLOWED or op.status in BUSY or (op.code == "cancelled" and bool(op.cancels))


def _check_done(op: Op, model: Model, history: History, verdict: Verdict) -> None:
    """Committed if acknowledged, not if refused."""
    if op.status is not None and op.status >= 400 and not op.unknown and not _is_allowed(op):
        verdict.faults.append(f"refused: {op.kind} {op.number} of {op.graph}: {op.status} {op.body}")
        return
    if (
        (op.unknown or op.status in BUSY)
        and (op.key is not None or op.number == 0)
        and op.answered_at - op.invoked_at > 30
    ):
        verdict.faults.append(f"hung: {op.kind} {op.number} of {op.graph} after {op.tries} tries: {op.body}")
    if not op.number:
        return
    state = model.made.get(op.number)
    if op.acknowledged and state is None:
        if history.survives(op):
            verdict.faults.append(f"lost: {op.kind} {op.number} of {op.graph}")
        else:
            verdict.counts["cut off"] += 1
    elif state is not None and not op.acknowledged and not op.unknown and history.survives(op):
        verdict.faults.append(f"wrong: {op.kind} {op.number} was refused with {op.code} and yet committed")
    elif state is not None and op.acknowledged:
        said = op.body["version"]
        if said != state.version and history.survives(op):
            verdict.faults.append(f"wrong: {op.kind} {op.number} made version {state.version}, not {said}")


def _check_deletes(history: History, committed: Committed, verdict: Verdict) -> None:
    """No graph was removed that nobody asked to delete, and each acknowledged DELETE removed one."""
    removed = Counter(graph for graph, _ in committed.removals)
    for graph in {op.graph for op in history.ops}:
        deletes = [op for op in history.ops if op.kind == "delete" and op.graph == graph]
        sure = sum(op.acknowledged for op in deletes)
        maybe = sum(op.unknown or (not op.acknowledged and history.asked_anew(op)) for op in deletes)
        if removed[graph] > sure + maybe:
            verdict.faults.append(f"lost: {graph} was removed {removed[graph]} times, {sure} to {maybe} asked for")
        if removed[graph] < sure and not history.cuts:
            verdict.faults.append(f"lost: {sure} deletes of {graph} acknowledged, {removed[graph]} done")
