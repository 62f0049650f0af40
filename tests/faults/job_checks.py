"""What was said of jobs, cancels and repeated requests, held against each other and against the log.

A job ends once and everybody is told the same of it; one whose cancel was accepted changes nothing; whoever repeats a
request under its key gets the first answer.
"""

from typing import Any, Final

from tests.faults.aof import Committed
from tests.faults.history import History, Look, Op

CHANGES: Final = ("put", "copy", "patch", "costs", "edges", "vertices", "restore", "delete")
LATER: Final = (202, 429, 503, 504, 507)
"""Answers that say nothing of what was asked, but to come back."""


def check_log(history: History, committed: Committed) -> list[str]:
    """What is wrong whatever anybody was told: these hold in any log, and in the beginning of any."""
    faults = []
    did: dict[str, str] = {}
    for job, what in committed.by_job():
        if job in did:
            faults.append(f"doubled: job {job} did {did[job]} and {what}")
        if job in committed.cancelled:
            faults.append(f"wrong: job {job} was cancelled, and did {what}")
        did[job] = what
    for job, endings in committed.endings.items():
        if len(set(endings)) > 1 and not history.cuts:
            faults.append(f"wrong: job {job} ended as {endings}")
    return faults


def check_jobs(op: Op, committed: Committed) -> list[str]:
    """What is wrong with one question that no cut of the log has touched."""
    faults = _check_cancels(op, committed) + _check_views(op, committed) + _check_again(op)
    return [f"{fault}: {op.kind} {op.number or ''} of {op.graph}, key {op.key}" for fault in faults]


def _check_cancels(op: Op, committed: Committed) -> list[str]:
    did = dict(committed.by_job())
    faults = []
    for look in op.cancels:
        job, status = look.body["id"], look.body["status"]
        if look.body["cancelling"]:
            if job in did:
                faults.append(f"wrong: job {job} was said to be cancelled in time, and did {did[job]}")
            if op.kind in CHANGES and op.acknowledged and op.jobs[-1] == job:
                faults.append(f"wrong: job {job} was said to be cancelled in time, and to have succeeded")
        elif status in ("queued", "running") and job not in did:
            faults.append(f"wrong: job {job} was said to have been too far to be cancelled, and did nothing")
    return faults


def _check_views(op: Op, committed: Committed) -> list[str]:
    faults = []
    for job in set(op.jobs[:-1]) - set(op.jobs[-1:]):
        if op.key is not None and set(committed.endings.get(job, ["nothing"])) != {"failed"}:
            faults.append(f"doubled: job {job} was followed by {op.jobs[-1]} and ended as {committed.endings.get(job)}")
    seen = [_told(look) for look in op.views if look.status not in LATER]
    if any(told != seen[0] for told in seen):
        faults.append(f"wrong: a job that was over was said to be {seen}")
    for look in op.views:
        if look.status == 404:
            faults.append(f"lost: job {op.jobs[-1]}")
        elif look.status == 200:
            ended = committed.endings.get(look.body["id"], [])
            if look.body["status"] not in ended:
                faults.append(f"wrong: job {look.body['id']} was said to be {look.body['status']}, it ended as {ended}")
    job = op.jobs[-1] if op.jobs else None
    if job is not None and op.kind in CHANGES and op.acknowledged and job not in dict(committed.by_job()):
        faults.append(f"lost: job {job} succeeded and did nothing")
    return faults


def _told(look: Look) -> Any:
    if look.status != 200:
        return look.status
    error = look.body["error"]
    return look.body["status"], look.body["result"], error and error["code"], look.body["finished_at"]


def _check_again(op: Op) -> list[str]:
    """Each repetition had the first answer, or was told to come later."""
    faults = []
    for look in op.again:
        code = look.body.get("code") if isinstance(look.body, dict) else None
        if code == "idempotency_conflict":
            faults.append(f"wrong: repeated, it was told {look.body}")
        elif op.unknown or (look.status in LATER and code != "timeout"):
            continue
        elif (look.status < 300) != op.acknowledged or code != op.code:
            faults.append(f"wrong: it was answered {op.status} {op.body}, repeated {look.status} {look.body}")
        elif op.acknowledged and look.body != op.body:
            faults.append(f"wrong: it was answered {op.body}, repeated {look.body}")
    return faults
