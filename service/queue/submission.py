"""How a command gets into the stream of the worker that owns its graph.

What a submission depends on, who owns the graph and what the Idempotency-Key stands for, is watched and read in one
round trip; job, key and command are written in another. So no command is queued with a worker that has just handed
the graph on, and the commands of one graph keep their order while it moves.
"""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any, Final

import redis
import redis.asyncio

from service.errors import ServiceError
from service.protocol import Command, Kind, Status
from service.queue.models import WorkerInfo
from service.queue.watch import RETRY_AFTER_S, Watch
from service.settings import Settings
from service.store.catalogue import give
from service.store.keys import Keys
from service.store.outcomes import UNFINISHED_TTL_S
from service.store.room import AsyncRoom, Need
from service.store.watched import Read, watched_async

PATIENCE_S: Final = 1.5
"""How long a submission is tried again, through an absence of Redis or changes of the graph's owner."""

NEEDS: Final = {Kind.LOAD: Need.GROWTH, Kind.PATCH: Need.GROWTH, Kind.RESTORE: Need.GROWTH, Kind.DELETE: Need.RELEASE}
"""What the other kinds need is `Need.ANSWER`."""

FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 0.5
OWNERS_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What one round trip says of a graph's owner."""

    owner: str | None
    exists: bool
    """There is a graph of the name."""
    alive: bool
    waiting: int
    """Commands of the owner that have not ended."""

    def is_free(self, command: Command) -> bool:
        """The command loads a graph whose name nobody serves, or nobody who is there and nothing was loaded."""
        return command.kind is Kind.LOAD and (self.owner is None or not (self.alive or self.exists))


class Submission:
    """Raises ServiceError and RedisError."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys, settings: Settings, watch: Watch) -> None:
        self._redis: Any = client
        self._room = AsyncRoom(client)
        self._keys = keys
        self._settings = settings
        self._watch = watch
        self._owner_of: dict[str, str] = {}
        """By graph, as of its last command: most often it is still the one."""

    async def submit(self, command: Command) -> str:
        """The id of the job that is to do it: the command's own, or that of the first command under its key.

        Raises rate_limited, worker_unavailable, unknown_graph, idempotency_conflict or out_of_memory. Cost: two round
        trips.
        """
        text = command.to_json()
        pause_s, deadline, tried = FIRST_PAUSE_S, time.monotonic() + PATIENCE_S, False
        chosen = None
        while True:
            try:
                job_id = await self._try(command, text, chosen, tried)
                if job_id is not None:
                    return job_id
                chosen = await self._place()
                continue
            except (redis.WatchError, redis.ConnectionError) as error:  # an answer that was lost is one of them
                if time.monotonic() > deadline:
                    if isinstance(error, redis.ConnectionError):
                        raise
                    raise _unavailable("the graph keeps changing hands") from error
                chosen, tried = None, True
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _try(self, command: Command, text: bytes, chosen: WorkerInfo | None, tried: bool) -> str | None:
        """None if a worker must be chosen first. All is asked on one connection: there may be no other to be had."""
        async with self._redis.pipeline() as pipe:
            seen, known, written = await self._look(pipe, command)
            if known is not None:
                return await self._known_job(pipe, known, command)
            if tried and written:
                return command.id  # by the try before, whose answer was lost
            self._room.take_as_heard(len(text), NEEDS.get(command.kind, Need.ANSWER))
            if seen.is_free(command):
                if chosen is None:
                    return None
                seen = Seen(chosen.name, False, chosen.alive, chosen.waiting)
            owner = self._checked(command, seen)
            pipe.multi()
            if chosen is not None and owner == chosen.name:
                give(pipe, self._keys, command.graph, owner)
            self._write_job(pipe, command, text, owner)
            await pipe.execute()
        return command.id

    async def _look(self, pipe: Any, command: Command) -> tuple[Seen, bytes | None, bool]:
        """Who owns the graph, what its key stands for, and whether the command is there already."""
        keys, graph = self._keys, command.graph
        guess = self._owner_of.get(graph, "")
        name = keys.idempotency(graph, command.idempotency_key or "")
        keyed = command.idempotency_key is not None
        found, exists, alive, waiting, known, written = await self._ask(
            pipe,
            [keys.claim(graph), name] if keyed else [keys.claim(graph)],
            ("HGET", keys.owners, graph),
            ("HEXISTS", keys.names, graph),
            ("EXISTS", keys.lease(guess)),
            ("XLEN", keys.commands(guess)),
            ("GET", name),
            ("EXISTS", keys.job(command.id)),
        )
        owner = None if found is None else found.decode()
        if owner is not None and owner != guess:
            reads = (("EXISTS", keys.lease(owner)), ("XLEN", keys.commands(owner)))
            alive, waiting = await watched_async(pipe, [], *reads)
        return Seen(owner, bool(exists), bool(alive), waiting), known if keyed else None, bool(written)

    async def _ask(self, pipe: Any, keys: list[str], *reads: Read) -> list[Any]:
        """Watch and read; and how full Redis is, in the same round trip, if that was asked too long ago."""
        if not self._room.is_stale:
            return await watched_async(pipe, keys, *reads)
        try:
            *answers, info = await watched_async(pipe, keys, *reads, ("INFO", "memory"))
        except redis.exceptions.NoPermissionError:
            self._room.heard(None)
            return await watched_async(pipe, keys, *reads)
        self._room.heard(info)
        return answers

    async def _known_job(self, pipe: Any, known: bytes, command: Command) -> str:
        """The first job of a key; of one that is forgotten it is only known that the key must not count again."""
        first = json.loads(known)
        job_id = str(first["job"])
        if first["digest"] != command.body_digest:
            raise ServiceError("idempotency_conflict", "the Idempotency-Key was used with another body")
        (kept,) = await watched_async(pipe, [], ("EXISTS", self._keys.job(job_id)))
        if not kept:
            raise ServiceError("idempotency_conflict", "the Idempotency-Key was used; its answer is no longer kept")
        return job_id

    def _checked(self, command: Command, seen: Seen) -> str:
        """The worker, alive and with room for one more command."""
        if seen.owner is None:
            raise ServiceError("unknown_graph", f"there is no graph {command.graph!r}")
        if not seen.alive:
            raise _unavailable(f"worker {seen.owner} is away")
        if seen.waiting >= self._settings.queue_limit:
            detail = f"{seen.waiting} commands wait for worker {seen.owner}"
            raise ServiceError("rate_limited", detail, retry_after_s=RETRY_AFTER_S)
        if len(self._owner_of) >= OWNERS_KEPT:
            self._owner_of.clear()
        self._owner_of[command.graph] = seen.owner
        return seen.owner

    async def _place(self) -> WorkerInfo:
        """The live worker with the fewest bytes, for a new name."""
        alive = [worker for worker in await self._watch.workers() if worker.alive]
        if not alive:
            raise _unavailable("no worker is there")
        return min(alive, key=lambda worker: (not worker.ready, worker.bytes, worker.graphs, worker.name))

    def _write_job(self, pipe: Any, command: Command, text: bytes, owner: str) -> None:
        """Within the MULTI: the job, its key, and the command itself."""
        if command.idempotency_key is not None:
            name = self._keys.idempotency(command.graph, command.idempotency_key)
            value = json.dumps({"job": command.id, "digest": command.body_digest})
            pipe.set(name, value, ex=UNFINISHED_TTL_S)  # the command may wait for long; its end shortens this
        job = self._keys.job(command.id)
        fields = {
            "kind": command.kind.value,
            "graph": command.graph,
            "worker": owner,
            "created_at": command.created_at,
            "status": Status.QUEUED.value,
        }
        pipe.hset(job, mapping=fields)
        pipe.expire(job, UNFINISHED_TTL_S)
        pipe.zadd(self._keys.jobs, {command.id: command.created_at})
        pipe.zadd(self._keys.waiting(owner), {command.id: command.created_at})
        pipe.xadd(self._keys.commands(owner), {"command": text})


def _unavailable(detail: str) -> ServiceError:
    return ServiceError("worker_unavailable", detail, retry_after_s=RETRY_AFTER_S)
