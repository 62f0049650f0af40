"""How a job changes: each function queues the commands of one change on a pipeline.

The pipelines of both clients queue alike, so API processes and workers call the same functions. The caller opens the
MULTI, watches what the change depends on, and executes it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from service.protocol import Command, Kind, Reply, Status
from service.store.jobs.idempotency import claim, key_name
from service.store.jobs.outcomes import UNFINISHED_TTL_S, decision
from service.store.jobs.record import Draft, Fields, Result, reply_fields
from service.store.keys import Keys
from service.store.watched import Read

GROUP: Final = "worker"
"""The one consumer group of every stream of commands."""

RETRIED: Final = frozenset({"worker_unavailable", "engine_error", "out_of_memory", "internal_error"})
"""Codes of problems that are no answer to keep: who repeats such a command under its key has it tried again."""

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
    """Where a worker was given a command."""

    worker: str
    entry_id: bytes


def enqueue(pipe: Any, keys: Keys, command: Command, text: bytes, worker: str) -> None:
    """A new job, its key, and the command itself as `text` in the stream of a worker."""
    claim(pipe, keys, command, UNFINISHED_TTL_S)  # the command may wait for long; its end shortens this
    job = keys.job(command.id)
    fields = {
        "kind": command.kind.value,
        "graph": command.graph,
        "worker": worker,
        "created_at": command.created_at,
        "status": Status.QUEUED.value,
    }
    pipe.hset(job, mapping=fields)
    pipe.expire(job, UNFINISHED_TTL_S)
    pipe.zadd(keys.jobs, {command.id: command.created_at})
    pipe.zadd(keys.waiting(worker), {command.id: command.created_at})
    pipe.xadd(keys.commands(worker), {"command": text})
    if command.kind in CHANGES:
        pipe.sadd(keys.changing(command.graph), command.id)
        pipe.expire(keys.changing(command.graph), UNFINISHED_TTL_S)


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


def before_try(keys: Keys, job_id: str) -> tuple[list[str], tuple[Read, ...]]:
    """What must be watched and read before a command is tried, for `finish` without a further look: its decision, and
    whether anybody follows it."""
    job, events = keys.job(job_id), keys.events(job_id)
    return [job, events], (*decision(keys, job_id), ("EXISTS", events))


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


def finish(
    pipe: Any,
    keys: Keys,
    command: Command,
    entry: Entry,
    header: Reply,
    result: Result | None,
    times: Mapping[str, float],
    ttl_s: int,
    keyed: bool = True,
    followed: bool = True,
) -> None:
    """The end of a job: its reply and when it was, for whoever waits, and the command's removal.

    `times`: `started_at` and `finished_at`. `keyed` False: the Idempotency-Key does not stand for this command any
    more, and is left alone. `followed` False: there is no stream of its events, and that is watched.
    """
    job, events, replies = keys.job(command.id), keys.events(command.id), keys.replies(command.reply_to)
    fields = reply_fields(header, result)
    pipe.hset(job, mapping=fields | dict(times) | {"status": header.status.value})
    pipe.expire(job, ttl_s)
    pipe.unlink(keys.outcome(command.id))
    if command.reply_to:  # who wrote one that cannot be read may not have said it where we look
        pipe.xadd(replies, {"id": command.id} | fields, maxlen=REPLIES_KEPT, approximate=True)
        pipe.expire(replies, ttl_s)
    if followed:
        pipe.xadd(events, {"event": "done", "data": f'{{"status":"{header.status}"}}'}, nomkstream=True)
        pipe.expire(events, ttl_s)
    if keyed and command.idempotency_key is not None:
        name = key_name(keys, command.graph, command.idempotency_key)
        if header.problem is not None and header.problem.code in RETRIED:
            pipe.unlink(name)
        else:
            pipe.expire(name, ttl_s)
    _remove(pipe, keys, command.id, entry)
    _changed(pipe, keys, command)


def drop(pipe: Any, keys: Keys, command: Command, entry: Entry, ttl_s: int) -> None:
    """This delivery of a command is not needed: another one has ended it."""
    _remove(pipe, keys, command.id, entry)
    _changed(pipe, keys, command)
    pipe.unlink(keys.outcome(command.id))
    pipe.expire(keys.job(command.id), ttl_s)


def forward(pipe: Any, keys: Keys, command: Command, entry: Entry, worker: str) -> None:
    """Pass the command on from the worker that was given it to another one."""
    pipe.xadd(keys.commands(worker), {"command": command.model_dump_json()})
    pipe.hset(keys.job(command.id), "worker", worker)
    pipe.zadd(keys.waiting(worker), {command.id: command.created_at})
    _remove(pipe, keys, command.id, entry)


def move(pipe: Any, keys: Keys, command: Command, entry: Entry, fields: Mapping[bytes, bytes], worker: str) -> None:
    """Move a command from the stream of a worker that is away to that of `worker`, as an entry with these `fields`."""
    pipe.xadd(keys.commands(worker), fields)
    pipe.zrem(keys.waiting(entry.worker), command.id)
    pipe.zadd(keys.waiting(worker), {command.id: command.created_at})
    pipe.hset(keys.job(command.id), "worker", worker)
    acknowledge(pipe, keys, entry)


def acknowledge(pipe: Any, keys: Keys, entry: Entry) -> None:
    """The entry is gone from its stream."""
    stream = keys.commands(entry.worker)
    pipe.xack(stream, GROUP, entry.entry_id)
    pipe.xdel(stream, entry.entry_id)


def _remove(pipe: Any, keys: Keys, job_id: str, entry: Entry) -> None:
    """The worker has no more to do with the command."""
    pipe.zrem(keys.waiting(entry.worker), job_id)
    acknowledge(pipe, keys, entry)


def _changed(pipe: Any, keys: Keys, command: Command) -> None:
    """The command will change nothing any more."""
    if command.kind in CHANGES:
        pipe.srem(keys.changing(command.graph), command.id)


def forget(pipe: Any, keys: Keys, job_id: bytes) -> None:
    """The record of a job that has ended, and its place in the list."""
    pipe.unlink(keys.job(job_id.decode()))
    pipe.zrem(keys.jobs, job_id)
