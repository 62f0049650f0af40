"""What is kept about a job, and what is read from it.

The hash has from the beginning `kind`, `graph`, `worker`, `created_at`, `status` and perhaps `in_batch`; `started_at`
and `progress` once the job runs for longer; `attempts` if a worker left it behind; at its end `started_at`,
`finished_at`, `reply` and, if it succeeded, `envelope` and either `result` or `result_blob`. `draft` says where the
lines of an answer lie as they are written. A result that is no JSON lies in `file`, or in the blob that `file_blob`
names, and `result` says what it is: API processes of the release before show that. `unwritten` stands there too: for a
while after the end nobody is told of it before it has left the process of Redis. The job's id is in the list of all
jobs, and until its end in that of its worker. Its outcome, its Idempotency-Key and the stream of its events are keys of
their own.
"""

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, Field

from service.protocol import JSON_TYPE, STRINGS_TYPE, TERMINAL_STATUSES, Envelope, Kind, Problem, Reply, Status
from service.store.jobs.outcomes import CANCELLED
from service.store.keys import Keys
from service.store.watched import Read

UNWRITTEN: Final = "unwritten"
"""The field of an end that is not to be told before Redis has handed it to the kernel. A reply has it that tells of a
version which may be lost, and each job that has ended: nobody is to read that it is over, and then that it is not."""

SETTLED_S: Final = 600.0
"""So long after its end a job is read as it is: Redis holds back for two seconds at most what it has acknowledged. The
clocks of two machines may differ by the rest."""

SETTLES: Final = "settles"
"""The field beside a command by which its API process says that it knows `UNWRITTEN`. One of the release before does
not say so, and would tell of such an end at once: what it asks for is ended when Redis cannot lose it any more."""

IN_BATCH: Final = "in_batch"
"""The field of a job whose caller has sent a `batch`: where it is wrong is told of that, as it is to who waits for the
answer. A worker, which knows nothing of it, tells of the only operation of a batch as of a body that is one."""

SHOWN: Final = (
    *("status", "kind", "graph", "worker", "progress", "created_at", "started_at", "finished_at", "reply"),
    UNWRITTEN,
    IN_BATCH,
)
"""What a list needs of a job: all but its result, which may be long."""

OF_RESULT: Final = ("version", "generation", "replaced")
"""What results say of themselves as envelopes do. The `unchanged` of an update is a number of edges."""

Row: TypeAlias = Mapping[bytes, bytes]
"""The hash, or part of it."""

Fields: TypeAlias = dict[str, str | bytes | float]


class JobInfo(BaseModel):
    """A job as docs/api.md shows it, and its result as the worker wrote it."""

    id: str
    kind: Kind
    graph: str
    status: Status
    cancelling: bool = False
    """Whether the job was cancelled in time: nothing of it is or will be done, and it is about to end."""
    position: int | None = None
    """Jobs of the same worker that were there before; None once it runs."""
    progress: dict[str, Any] | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: Problem | None = None
    result_json: str | None = None
    """The result as text, to be passed on."""
    result_blob: str | None = None
    """The name of the blob where a long result lies."""
    file_blob: str | None = None
    """The name of the blob where a result that is no JSON lies."""
    in_batch: bool = Field(default=False, exclude=True)
    """See `Command.in_batch`: what a worker has just told of its end does not say so."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a job that succeeded is answered with, or the name of the blob that holds it. `envelope` says what it is."""

    text: bytes = b""
    blob: str | None = None
    blob_bytes: int = 0
    """How many bytes the blob holds."""
    envelope: Envelope = field(default_factory=Envelope)

    @classmethod
    def of_commit(cls, text: str) -> "Result":
        """The result that a command left as its outcome, when it committed."""
        return cls(text.encode(), envelope=envelope_of(text))


class Draft(BaseModel):
    """The lines of an answer that have been written so far, the first one and a row at least."""

    blob: str
    """The name of the blob that they grow in."""
    envelope: Envelope


def reply_fields(header: Reply, result: Result | None) -> Fields:
    """A reply as a job and a stream of replies have it."""
    fields: Fields = {"reply": header.model_dump_json()}
    if result is None:
        return fields
    found: Fields
    if result.envelope.media_type in (JSON_TYPE, STRINGS_TYPE):
        found = {"result": result.text} if result.blob is None else {"result_blob": result.blob}
    else:
        found = {"file": result.text} if result.blob is None else {"file_blob": result.blob}
        said = {
            "version": result.envelope.version,
            "media_type": result.envelope.media_type,
            "bytes": len(result.text) if result.blob is None else result.blob_bytes,
        }
        found["result"] = json.dumps(said)
    return fields | found | {"envelope": result.envelope.model_dump_json()}


def settles(row: Row) -> bool:
    """Whether the API process that has sent this command tells of no end that Redis may still lose."""
    return SETTLES.encode() in row


def has_reply(row: Row) -> bool:
    return b"reply" in row


def is_unwritten(row: Row) -> bool:
    """Whether the end that this tells of may still be lost with the process of Redis."""
    if UNWRITTEN.encode() not in row:
        return False
    try:
        finished_at = float(row.get(b"finished_at", b"inf"))
    except ValueError:  # somebody has written it by hand
        return True
    return time.time() - finished_at < SETTLED_S


def read_reply(row: Row) -> Reply:
    """The reply with its result, or with the name of the blob where a long one lies. Raises KeyError or ValueError."""
    reply = Reply.model_validate_json(row[b"reply"])
    text, blob, said = row.get(b"result"), row.get(b"result_blob"), row.get(b"envelope")
    envelope = envelope_of(text or b"") if said is None else Envelope.model_validate_json(said)
    file, file_blob = row.get(b"file"), row.get(b"file_blob")
    found = {
        "result_json": text and text.decode(),
        "result_blob": blob and blob.decode(),
        "file": file,
        "file_blob": file_blob and file_blob.decode(),
        "envelope": envelope,
        "problem": _told(reply.problem, row),
    }
    return reply.model_copy(update=found)


def read_draft(row: Row) -> Draft | None:
    """What has been written of the answer; None while no row has."""
    return Draft.model_validate_json(row[b"draft"]) if b"draft" in row else None


def envelope_of(text: str | bytes) -> Envelope:
    """The envelope of a short result that was stored without one: an outcome, or a reply of the release before.

    A long result of that release, which lies in a blob, is answered without what an envelope would have said of it.
    """
    with suppress(ValueError):
        answer = json.loads(text)
        if isinstance(answer, dict):
            return Envelope.model_validate({name: answer[name] for name in OF_RESULT if name in answer})
    return Envelope()


def replied_job(fields: Row) -> str:
    """Which job an entry in a stream of replies is about; empty for what is no reply."""
    return fields.get(b"id", b"").decode("utf-8", "replace")


def is_known(row: Row) -> bool:
    """The job is there. The hash of one that Redis lost may count attempts, and has nothing else."""
    return b"status" in row


def worker_of(row: Row) -> str:
    return row.get(b"worker", b"").decode(errors="replace")


def as_row(values: Iterable[bytes | None]) -> dict[bytes, bytes]:
    """The hash as far as `SHOWN` says, from the values of those fields."""
    return {name.encode(): value for name, value in zip(SHOWN, values, strict=True) if value is not None}


def describe(job_id: str, row: Row, outcome: bytes | None, position: int | None, problem: Problem | None) -> JobInfo:
    """A job as its hash has it, without its result."""
    status = Status(row[b"status"].decode())
    created = _at(row[b"created_at"])
    assert created is not None
    return JobInfo(
        id=job_id,
        kind=Kind(row[b"kind"].decode()),
        graph=row[b"graph"].decode(),
        status=status,
        cancelling=outcome == CANCELLED and status not in TERMINAL_STATUSES,
        position=position if status is Status.QUEUED else None,
        progress=json.loads(row[b"progress"]) if b"progress" in row else None,
        created_at=created,
        started_at=_at(row.get(b"started_at")),
        finished_at=_at(row.get(b"finished_at")),
        error=problem,
        in_batch=IN_BATCH.encode() in row,
    )


def problem_of(row: Row) -> Problem | None:
    """The problem that a job has ended with, read without a look at its result."""
    return _told(Reply.model_validate_json(row[b"reply"]).problem, row) if has_reply(row) else None


def job_exists(keys: Keys, job_id: str) -> Read:
    return ("EXISTS", keys.job(job_id))


def graph_of(keys: Keys, job_id: str) -> Read:
    """The name of the graph that a job is about."""
    return ("HGET", keys.job(job_id), "graph")


def waiting_jobs(keys: Keys, worker: str, count: int) -> Read:
    """The ids of the first `count` jobs that wait for a worker, in order."""
    return ("ZRANGE", keys.waiting(worker), "0", str(count - 1))


def oldest_waiting(pipe: Any, keys: Keys, worker: str) -> str:
    """Ask, on a pipeline, for the first job that waits for a worker, and when it was created. Returns the key that is
    asked."""
    key = keys.waiting(worker)
    pipe.zrange(key, 0, 0, withscores=True)
    return key


def _told(problem: Problem | None, row: Row) -> Problem | None:
    """The problem as the caller of the job is told of it."""
    return problem.in_batch() if problem is not None and IN_BATCH.encode() in row else problem


def _at(seconds: bytes | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(float(seconds), UTC)
