"""How a command gets into the stream of the worker that owns its graph.

What a submission depends on, who owns the graph and what the Idempotency-Key stands for, is watched and read in one
round trip; job, key and command are written in another. So no command is queued with a worker that has just handed
the graph on, and the commands of one graph keep their order while it moves.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

import redis
import redis.asyncio

from service.errors import DATA_GONE, OTHER_REQUEST, ServiceError
from service.protocol import Command, Kind
from service.queue.beside import beside
from service.queue.grouped import Group
from service.queue.models import WorkerInfo
from service.queue.placement import Placement, Seen, unavailable
from service.store.catalogue import give
from service.store.jobs.idempotency import Known, key_name
from service.store.jobs.record import job_exists
from service.store.jobs.transitions import Queued, enqueue
from service.store.keys import Keys
from service.store.room import AsyncRoom, Need
from service.store.watched import Read, watched_async

PATIENCE_S: Final = 1.5
"""How long a submission is repeated while Redis is away or the graph's owner changes."""

PATCHES: Final = (Kind.PATCH, Kind.PATCH_COSTS, Kind.PATCH_LOWER, Kind.PATCH_VERTICES, Kind.PATCH_EDGES)
NEEDS: Final = {
    **dict.fromkeys((Kind.LOAD, *PATCHES, Kind.RESTORE, Kind.WATCH), Need.GROWTH),
    Kind.DELETE: Need.RELEASE,
    Kind.UNWATCH: Need.RELEASE,
}
"""The need of room of each kind of command that changes something. All other kinds have `Need.ANSWER`."""

CHANGES: Final = frozenset({*NEEDS, Kind.SNAPSHOT})
"""The kinds of command that are refused where what is acknowledged would be lost."""

FIRST_PAUSE_S: Final = 0.02
LONGEST_PAUSE_S: Final = 0.5


class Submission:
    """Puts commands into the streams of workers. Raises ServiceError and RedisError."""

    def __init__(
        self,
        client: redis.asyncio.Redis,
        keys: Keys,
        placement: Placement,
        is_lost: Callable[[], bool] = lambda: False,
    ) -> None:
        """``is_lost`` says whether what is acknowledged now would be lost when the service ends."""
        self._redis: Any = client
        self._is_lost = is_lost
        self._room = AsyncRoom(client)
        self._keys = keys
        self._placement = placement
        self._group = Group(client, keys, placement, self._ask, self._take)

    async def submit(self, command: Command) -> str:
        """Queue the command. Returns the id of its job: the command's own, or that of the first command under its key.

        Raises rate_limited, worker_unavailable, data_gone, unknown_graph, idempotency_conflict or out_of_memory. Cost:
        two round trips, which short commands share.
        """
        if command.kind in CHANGES and self._is_lost():
            raise ServiceError("data_gone", DATA_GONE)
        text = await beside(command.carried, command.to_json)
        pause_s, deadline, tried = FIRST_PAUSE_S, time.monotonic() + PATIENCE_S, False
        if self._group.takes(command, text):
            if await self._group.put(command, text):
                return command.id
            tried = True
        chosen = None
        while True:
            try:
                job_id = await self._try(command, text, chosen, tried)
                if job_id is not None:
                    return job_id
                chosen = await self._placement.choose(command)
                continue
            except (redis.WatchError, redis.ConnectionError) as error:  # a lost answer of Redis raises this too
                if time.monotonic() > deadline:
                    if isinstance(error, redis.ConnectionError):
                        raise
                    raise unavailable(
                        "the owner of the graph kept changing, or the connection to Redis was lost repeatedly"
                    ) from error
                chosen, tried = None, True
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _try(self, command: Command, text: bytes, chosen: WorkerInfo | None, tried: bool) -> str | None:
        """Try once; None if a worker must be chosen first. All is asked on one connection: no other may be free."""
        async with self._redis.pipeline() as pipe:
            seen, known, written = await self._look(pipe, command)
            if known is not None:
                return await self._known_job(pipe, known, command)
            if tried and written:
                return command.id  # by the try before, whose answer was lost
            self._take(command, len(text))
            if seen.is_free(command):
                if chosen is None:
                    return None
                seen = Seen(chosen.name, False, chosen.alive, chosen.waiting)
            owner = self._placement.checked(command.graph, seen)
            pipe.multi()
            if chosen is not None and owner == chosen.name:
                give(pipe, self._keys, command.graph, owner)
            enqueue(pipe, self._keys, [Queued(command, text, owner)])
            await pipe.execute()
        return command.id

    def _take(self, command: Command, n_bytes: int) -> None:
        self._room.take_as_heard(n_bytes, NEEDS.get(command.kind, Need.ANSWER))

    async def _look(self, pipe: Any, command: Command) -> tuple[Seen, bytes | None, bool]:
        """Who owns the graph, what its key stands for, and whether the command is there already."""
        keys, graph = self._keys, command.graph
        guess = self._placement.guess(graph)
        name = key_name(keys, graph, command.idempotency_key)
        keyed = command.idempotency_key is not None
        *owner, known, written = await self._ask(
            pipe,
            [keys.claim(graph), name] if keyed else [keys.claim(graph)],
            *self._placement.reads(graph, guess),
            ("GET", name),
            job_exists(keys, command.id),
        )
        seen = await self._placement.seen(pipe, guess, owner)
        return seen, known if keyed else None, bool(written)

    async def _ask(self, pipe: Any, keys: list[str], *reads: Read) -> list[Any]:
        """Watch and read; if it was asked too long ago, ask in the same round trip how full Redis is."""
        if not self._room.is_stale:
            return await watched_async(pipe, keys, *reads)
        try:
            *answers, info = await watched_async(pipe, keys, *reads, ("INFO", "memory"))
        except redis.exceptions.NoPermissionError:
            self._room.heard(None)
            return await watched_async(pipe, keys, *reads)
        self._room.heard(info)
        return answers

    async def _known_job(self, pipe: Any, value: bytes, command: Command) -> str:
        """The first job of a key. Raises idempotency_conflict for another body, or if the first job is forgotten."""
        known = Known.read(value, key_name(self._keys, command.graph, command.idempotency_key))
        if known.digest != command.body_digest:
            raise ServiceError("idempotency_conflict", OTHER_REQUEST)
        (kept,) = await watched_async(pipe, [], job_exists(self._keys, known.job))
        if not kept:
            raise ServiceError("idempotency_conflict", "the Idempotency-Key was used; its answer is no longer kept")
        return known.job
