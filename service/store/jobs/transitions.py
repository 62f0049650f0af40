"""How a job changes: each function queues the commands of one change on a pipeline.

The pipelines of both clients queue alike, so API processes and workers call the same functions. The caller opens the
MULTI, watches what the change depends on, and executes it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from service.protocol import Command, Kind, Reply, Status
from service.store.jobs.idempotency import claim, key_name
from service.store.jobs.outcomes import UNFINISHED_TTL_S, decision
from service.store.jobs.record import IN_BATCH, SETTLES, UNWRITTEN, Draft, Fields, Result, reply_fields
from service.store.keys import Keys
from service.store.watched import Read

GROUP: Final = "worker"
"""The one consumer group of every stream of commands."""

RETRIED: Final = frozenset({"worker_unavailable", "engine_error", "out_of_memory", "internal_error"})
"""Codes of problems that are not kept as the answer under an Idempotency-Key: the same command is tried again."""

CHANGES: Final = frozenset(
    {
        *(Kind.LOAD, Kind.DELETE, Kind.RESTORE),
        *(Kind.PATCH, Kind.PATCH_COSTS, Kind.PATCH_LOWER, Kind.PATCH_VERTICES, Kind.PATCH_EDGES),
    }
)
"""Commands behind which a question may have another answer."""

REPLIES_KEPT: Final = 2000
EVENTS_KEPT: Final = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """The stream entry in which a worker was given a command."""

    worker: str
    entry_id: bytes


@dataclass(frozen=True, slots=True)
class Queued:
    """A command that a worker is to be given, and the text of it."""

    command: Command
    text: bytes
    worker: str


def enqueue(pipe: Any, keys: Keys, some: Sequence[Queued]) -> None:
    """New jobs, their keys, and the commands themselves in the streams of their workers, in order."""
    changing: dict[str, list[str]] = {}
    waiting: dict[str, dict[str, float]] = {}
    for one in some:
        command = one.command
        claim(pipe, keys, command, UNFINISHED_TTL_S)  # the command may wait for long; its end shortens this
        job = keys.job(command.id)
        fields: Fields = {
            "kind": command.kind.value,
            "graph": command.graph,
            "worker": one.worker,
            "created_at": command.created_at,
            "status": Status.QUEUED.value,
        }
        if command.in_batch:
            fields[IN_BATCH] = 1
        pipe.hset(job, mapping=fields)
        pipe.expire(job, UNFINISHED_TTL_S)
        pipe.xadd(keys.commands(one.worker), {"command": one.text, SETTLES: 1})
        waiting.setdefault(one.worker, {})[command.id] = command.created_at
        if command.kind in CHANGES:
            changing.setdefault(command.graph, []).append(command.id)
    pipe.zadd(keys.jobs, {one.command.id: one.command.created_at for one in some})
    for worker, its in waiting.items():
        pipe.zadd(keys.waiting(worker), its)
    for graph, job_ids in changing.items():
        pipe.sadd(keys.changing(graph), *job_ids)
        pipe.expire(keys.changing(graph), UNFINISHED_TTL_S)


def changes_waiting(keys: Keys, graph: str) -> Read:
    """Reads how many commands have not ended that may change what the graph answers."""
    return "SCARD", keys.changing(graph)


def before_report(keys: Keys, job_id: str) -> tuple[list[str], tuple[Read, Read]]:
    """What must be watched and read before `report`, which is not for a job that is over or lost."""
    return [keys.job(job_id)], decision(keys, job_id)


def report(
    pipe: Any,
    keys: Keys,
    job_id: str,
    started_at: float,
    counters: Mapping[str, Any],
    ttl_s: int,
    draft: Draft | None = None,
) -> None:
    """The job runs, how far it is, and where what is written of its answer can be read."""
    progress, events = json.dumps(counters), keys.events(job_id)
    running: Fields = {"status": Status.RUNNING.value, "started_at": started_at, "progress": progress}
    if draft is not None:
        running["draft"] = draft.model_dump_json()
    pipe.hset(keys.job(job_id), mapping=running)
    pipe.xadd(events, {"event": "progress", "data": progress}, maxlen=EVENTS_KEPT, approximate=True)
    pipe.expire(events, ttl_s)


def before_try(keys: Keys, job_ids: Sequence[str]) -> tuple[list[str], list[Read]]:
    """What must be watched and read before commands are tried, for `finish` without a further look: their outcomes, how
    many of them somebody follows, and the status of each."""
    jobs, events = [keys.job(job_id) for job_id in job_ids], [keys.events(job_id) for job_id in job_ids]
    statuses: list[Read] = [("HGET", job, "status") for job in jobs]
    return jobs + events, [("MGET", *map(keys.outcome, job_ids)), ("EXISTS", *events), *statuses]


def before_success(keys: Keys, job_id: str) -> tuple[list[str], Read]:
    """What must be watched and read before `finish` with a result: whether the job is over."""
    return [keys.job(job_id)], ("HGET", keys.job(job_id), "status")


def count_attempt(client: Any, keys: Keys, job_id: str) -> int:
    """One more delivery of a command that a process left behind, counted at once: how many there were.

    Nobody goes on with what that process had written of an answer.
    """
    with client.pipeline() as pipe:
        pipe.hincrby(keys.job(job_id), "attempts", 1)
        pipe.hdel(keys.job(job_id), "draft")
        attempts, _ = pipe.execute()
    return int(attempts)


def before_refusal(keys: Keys, command: Command) -> tuple[list[str], tuple[Read, ...]]:
    """What must be watched and read before a command is ended without a result: its decision, and what lies under its
    key."""
    outcome_key, job = keys.outcome(command.id), keys.job(command.id)
    name = key_name(keys, command.graph, command.idempotency_key)
    keyed = command.idempotency_key is not None
    return [outcome_key, job, name] if keyed else [outcome_key, job], (*decision(keys, command.id), ("GET", name))


@dataclass(frozen=True, slots=True)
class End:
    """How a command of a worker ends. Times are unix seconds."""

    command: Command
    entry_id: bytes
    header: Reply
    result: Result | None
    started_at: float
    finished_at: float
    keyed: bool = True
    """False if the Idempotency-Key does not stand for this command any more, and is left as it is."""
    followed: bool = True
    """False: there is no stream of its events, and that is watched."""
    unwritten: bool = False
    """Whether who waits for it is not to be told before Redis has handed it to the kernel."""


def finish(pipe: Any, keys: Keys, worker: str, ends: Sequence[End], ttl_s: int) -> None:
    """The end of jobs: their replies and when each was, for whoever waits, and the removal of their commands."""
    for end in ends:
        _record(pipe, keys, end, ttl_s)
    for reply_to in dict.fromkeys(end.command.reply_to for end in ends if end.command.reply_to):
        pipe.expire(keys.replies(reply_to), ttl_s)
    _leave(pipe, keys, worker, [end.command for end in ends], [end.entry_id for end in ends])


def _record(pipe: Any, keys: Keys, end: End, ttl_s: int) -> None:
    """What is to be read of the end of one job."""
    command, header = end.command, end.header
    job, events = keys.job(command.id), keys.events(command.id)
    fields = reply_fields(header, end.result)
    times: Fields = {"started_at": end.started_at, "finished_at": end.finished_at}
    pipe.hset(job, mapping=fields | times | {"status": header.status.value, UNWRITTEN: 1})
    pipe.expire(job, ttl_s)
    if command.reply_to:  # a command that cannot be read may lack it
        replies = keys.replies(command.reply_to)
        mark = {UNWRITTEN: 1} if end.unwritten else {}
        pipe.xadd(replies, {"id": command.id} | fields | mark, maxlen=REPLIES_KEPT, approximate=True)
    if end.followed:
        pipe.xadd(events, {"event": "done", "data": f'{{"status":"{header.status}"}}'}, nomkstream=True)
        pipe.expire(events, ttl_s)
    if end.keyed and command.idempotency_key is not None:
        name = key_name(keys, command.graph, command.idempotency_key)
        if header.problem is not None and header.problem.code in RETRIED:
            pipe.unlink(name)
        else:
            pipe.expire(name, ttl_s)


def drop(pipe: Any, keys: Keys, command: Command, entry: Entry, ttl_s: int) -> None:
    """This delivery of a command is not needed: another one has ended it."""
    _leave(pipe, keys, entry.worker, [command], [entry.entry_id])
    pipe.expire(keys.job(command.id), ttl_s)


def forward(pipe: Any, keys: Keys, command: Command, entry: Entry, worker: str) -> None:
    """Pass the command on from the worker that was given it to another one, which ends it when Redis cannot lose that
    any more."""
    pipe.xadd(keys.commands(worker), {"command": command.model_dump_json()})
    pipe.hset(keys.job(command.id), "worker", worker)
    pipe.zadd(keys.waiting(worker), {command.id: command.created_at})
    _remove(pipe, keys, entry.worker, [command.id], [entry.entry_id])


def move(pipe: Any, keys: Keys, command: Command, entry: Entry, fields: Mapping[bytes, bytes], worker: str) -> None:
    """Move a command from the stream of a worker that is away to that of `worker`, as an entry with these `fields`."""
    pipe.xadd(keys.commands(worker), fields)
    pipe.zrem(keys.waiting(entry.worker), command.id)
    pipe.zadd(keys.waiting(worker), {command.id: command.created_at})
    pipe.hset(keys.job(command.id), "worker", worker)
    acknowledge(pipe, keys, entry.worker, [entry.entry_id])


def acknowledge(pipe: Any, keys: Keys, worker: str, entry_ids: Sequence[bytes]) -> None:
    """The entries are gone from the worker's stream."""
    stream = keys.commands(worker)
    pipe.xack(stream, GROUP, *entry_ids)
    pipe.xdel(stream, *entry_ids)


def _leave(pipe: Any, keys: Keys, worker: str, commands: Sequence[Command], entry_ids: Sequence[bytes]) -> None:
    """The commands are over, whatever has become of them."""
    pipe.unlink(*(keys.outcome(command.id) for command in commands))
    _remove(pipe, keys, worker, [command.id for command in commands], entry_ids)
    changing = [command for command in commands if command.kind in CHANGES]
    for graph in dict.fromkeys(command.graph for command in changing):
        pipe.srem(keys.changing(graph), *(command.id for command in changing if command.graph == graph))


def _remove(pipe: Any, keys: Keys, worker: str, job_ids: Sequence[str], entry_ids: Sequence[bytes]) -> None:
    """The worker has no more to do with the commands."""
    pipe.zrem(keys.waiting(worker), *job_ids)
    acknowledge(pipe, keys, worker, entry_ids)


def forget(pipe: Any, keys: Keys, job_id: bytes) -> None:
    """The record of a job that has ended, and its place in the list."""
    pipe.unlink(keys.job(job_id.decode(errors="replace")))
    pipe.zrem(keys.jobs, job_id)
