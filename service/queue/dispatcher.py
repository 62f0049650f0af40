"""The API's side of the queue: submit commands, wait for replies, follow and cancel jobs.

One per API process. One task reads the process's own reply stream and resolves whoever waits; nothing polls.
"""

import asyncio
import hashlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

import redis
import redis.asyncio

from service.errors import ServiceError
from service.protocol import TERMINAL_STATUSES, Arguments, Command, Kind, Problem, Reply, Status
from service.queue.models import JobEvent, JobInfo, at
from service.queue.replies import LatestReplies
from service.queue.watch import RETRY_AFTER_S, Watch, away
from service.settings import Settings
from service.store.blobs import AsyncBlobs
from service.store.connection import AWAY, connect_async, connect_listeners
from service.store.keys import Keys

BLOCK_MS: Final = 2000
QUEUED_TTL_S: Final = 7 * 86_400
"""A job nobody ever runs is forgotten after a week."""

JOBS_KEPT: Final = 20_000
TRIM_EVERY: Final = 64
CANCELS_KEPT: Final = 1000
RETRY_S: Final = 0.05
MAX_TRIES: Final = 20
LOST: Final = "Redis lost the command; send it again"


class Dispatcher:
    """Start it in the event loop that uses it. Methods raise ServiceError only."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keys = Keys(settings.redis_prefix)
        self.id = uuid.uuid4().hex
        self.client = connect_async(settings)
        self.blobs = AsyncBlobs(self.client, self.keys)
        self._redis: Any = self.client
        self.watch = Watch(self.client, self.keys)
        self._listeners: Any = connect_listeners(settings)
        """For reads that block."""
        self._pending: dict[str, asyncio.Future[Reply]] = {}
        self.latest = LatestReplies()
        self._queued: set[str] = set()
        """Pending jobs that Redis has confirmed."""
        self._owner_of: dict[str, str] = {}
        self._submitted = 0
        self._reader: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._reader = asyncio.create_task(self._read_replies(), name="replies")

    async def close(self) -> None:
        while self._reader is not None and not self._reader.done():
            self._reader.cancel()  # the client may lose one that comes while it takes up a connection
            await asyncio.wait({self._reader}, timeout=0.1)
        for future in self._pending.values():
            future.cancel()
        with suppress(redis.RedisError):
            await self._redis.unlink(self.keys.replies(self.id))
        await self._listeners.aclose()
        await self.client.aclose()

    async def submit(
        self,
        kind: Kind,
        graph: str,
        args: Arguments,
        *,
        idempotency_key: str | None = None,
        body_digest: str | None = None,
        request_id: str | None = None,
        traceparent: str | None = None,
    ) -> str:
        """Queue a command for the graph's owner and return its job id.

        A repeated key with the same digest returns the first job's id. Raises ServiceError: rate_limited,
        worker_unavailable, unknown_graph or idempotency_conflict. Cost: two round trips, three with a key.
        """
        command = Command(
            id=uuid.uuid4().hex,
            kind=kind,
            graph=graph,
            reply_to=self.id,
            idempotency_key=idempotency_key,
            body_digest=body_digest,
            created_at=time.time(),
            request_id=request_id,
            traceparent=traceparent,
        ).carrying(args)
        try:
            if idempotency_key is not None:
                known = await self._redis.get(self.keys.idempotency(graph, idempotency_key))
                if known is not None:
                    return await self._known_job(known, body_digest)
            owner = await self._find_owner(kind, graph)
            return await self._enqueue(command, owner)
        except AWAY as error:
            raise away(error) from error

    async def knows(self, graph: str, idempotency_key: str) -> bool:
        """Whether the key has been used on this graph."""
        try:
            return bool(await self._redis.exists(self.keys.idempotency(graph, idempotency_key)))
        except AWAY as error:
            raise away(error) from error

    def when_done(self, job_id: str, act: Callable[[], None]) -> None:
        """Call `act` once this job has ended; at once if it is not of this process, or has ended already."""
        future = self._pending.get(job_id)
        if future is None:
            act()
        else:
            future.add_done_callback(lambda _: act())

    async def wait(self, job_id: str, timeout_s: float) -> Reply | None:
        """The reply, or None if the job still runs after `timeout_s`. Raises unknown_job."""
        try:
            async with asyncio.timeout(timeout_s):
                if (reply := self.latest.get(job_id)) is not None:
                    return reply
                if job_id in self._pending:
                    return await asyncio.shield(self._pending[job_id])
                async for event in self.events(job_id, None):
                    if event.event == "done":
                        return await self._stored_reply(job_id)
        except TimeoutError:
            with suppress(*AWAY):
                return await self._stored_reply(job_id)
        except AWAY as error:
            raise away(error) from error
        return None

    async def job(self, job_id: str) -> JobInfo | None:
        """None for a job that never was or is forgotten."""
        try:
            row = await self._redis.hgetall(self.keys.job(job_id))
            return await self._job_info(job_id, row) if b"status" in row else None
        except AWAY as error:
            raise away(error) from error

    async def jobs(self, limit: int = 100) -> list[JobInfo]:
        """The newest first, without results."""
        try:
            ids = [job_id.decode() for job_id in await self._redis.zrevrange(self.keys.jobs, 0, limit - 1)]
            async with self._redis.pipeline(transaction=False) as pipe:
                for job_id in ids:
                    pipe.hgetall(self.keys.job(job_id))
                rows = await pipe.execute()
            hidden = (b"result", b"result_blob")
            plain = [{key: value for key, value in row.items() if key not in hidden} for row in rows]
            found = zip(ids, plain, strict=True)
            return [await self._job_info(job_id, row) for job_id, row in found if b"status" in row]
        except AWAY as error:
            raise away(error) from error

    async def cancel(self, job_id: str) -> JobInfo | None:
        """Ask for the end of a job that has not ended; the job as it is now."""
        info = await self.job(job_id)
        if info is None or info.status in TERMINAL_STATUSES:
            return info
        try:
            job = self.keys.job(job_id)
            worker = (await self._redis.hget(job, "worker")).decode()
            async with self._redis.pipeline() as pipe:
                pipe.hset(job, "cancel", 1)
                pipe.xadd(self.keys.control(worker), {"cancel": job_id}, maxlen=CANCELS_KEPT, approximate=True)
                await pipe.execute()
        except AWAY as error:
            raise away(error) from error
        return info

    async def events(self, job_id: str, last_event_id: str | None) -> AsyncIterator[JobEvent]:
        """Progress from `last_event_id` (None: from the beginning) to `done`. Raises unknown_job."""
        try:
            async for event in self._follow(job_id, last_event_id or "0"):
                yield event
        except AWAY as error:
            raise away(error) from error

    async def _follow(self, job_id: str, last: str) -> AsyncIterator[JobEvent]:
        """Until the job has ended.

        The subscriber makes the stream, then looks at the job: an end before that is seen in the job, a later
        one in the stream. A Redis that lost the stream tells by the job, looked at again when nothing comes.
        """
        stream = self.keys.events(job_id)
        async with self._redis.pipeline() as pipe:
            pipe.xadd(stream, {"event": "subscribed"}, maxlen=1000, approximate=True)
            pipe.expire(stream, self.settings.job_ttl_s)
            pipe.hget(self.keys.job(job_id), "status")
            subscribed, *_, status = await pipe.execute()
        if status is None:
            await self._redis.unlink(stream)
            raise ServiceError("unknown_job", f"there is no job {job_id}")
        if _entry(last) > _entry(subscribed.decode()):
            last = "0"  # of another stream, or of one that Redis lost: what comes would never be after it
        ended = Status(status.decode()) in TERMINAL_STATUSES
        while True:
            answer = await self._listeners.xread({stream: last}, block=None if ended else BLOCK_MS)
            for entry_id, fields in answer[0][1] if answer else []:
                last = entry_id.decode()
                if fields[b"event"] == b"subscribed":
                    continue
                event = JobEvent(id=last, event=fields[b"event"].decode(), data=json.loads(fields[b"data"]))
                yield event
                if event.event == "done":
                    return
            if ended:
                yield JobEvent(id=last, event="done", data={"status": status.decode()})
                return
            if not answer:
                status = await self._redis.hget(self.keys.job(job_id), "status")
                if status is None:
                    raise ServiceError("worker_unavailable", LOST, retry_after_s=RETRY_AFTER_S)
                ended = Status(status.decode()) in TERMINAL_STATUSES

    async def _find_owner(self, kind: Kind, graph: str) -> str:
        """The graph's worker, alive and with room for one more command. One round trip if it is where it was."""
        guess = self._owner_of.get(graph, "")
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.hget(self.keys.owners, graph)
            pipe.hexists(self.keys.names, graph)
            pipe.exists(self.keys.lease(guess))
            pipe.xlen(self.keys.commands(guess))
            found, exists, alive, waiting = await pipe.execute()
        owner = None if found is None else found.decode()
        if owner is None and kind is not Kind.LOAD:
            raise ServiceError("unknown_graph", f"there is no graph {graph!r}")
        if owner is not None and owner != guess:
            alive, waiting = await self._load_of(owner)
        if owner is None or (not alive and not exists and kind is Kind.LOAD):
            owner = await self._place(graph)
            alive, waiting = await self._load_of(owner)
        if not alive:
            raise ServiceError("worker_unavailable", f"worker {owner} is away", retry_after_s=RETRY_AFTER_S)
        if waiting >= self.settings.queue_limit:
            raise ServiceError(
                "rate_limited", f"{waiting} commands wait for worker {owner}", retry_after_s=RETRY_AFTER_S
            )
        if len(self._owner_of) >= 10_000:
            self._owner_of.clear()
        self._owner_of[graph] = owner
        return owner

    async def _load_of(self, worker: str) -> tuple[bool, int]:
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.exists(self.keys.lease(worker))
            pipe.xlen(self.keys.commands(worker))
            alive, waiting = await pipe.execute()
        return bool(alive), int(waiting)

    async def _place(self, graph: str) -> str:
        """Give a new name to the live worker with the fewest bytes."""
        alive = [worker for worker in await self.watch.workers() if worker.alive]
        if not alive:
            raise ServiceError("worker_unavailable", "no worker is there", retry_after_s=RETRY_AFTER_S)
        chosen = min(alive, key=lambda worker: (not worker.ready, worker.bytes, worker.graphs, worker.name))
        await self._redis.hset(self.keys.owners, graph, chosen.name)
        return chosen.name

    async def _enqueue(self, command: Command, owner: str) -> str:
        """Job and command in one MULTI; with a key, only if no other command has it. The job's id."""
        self._pending[command.id] = asyncio.get_running_loop().create_future()  # no reply can come too early
        job_id = None
        try:
            if command.idempotency_key is None:
                await self._enqueue_always(command, owner)
                job_id = command.id
            else:
                job_id = await self._enqueue_once(command, owner, command.idempotency_key)
        finally:
            if job_id != command.id:
                self._pending.pop(command.id, None)
        if job_id in self._pending:  # not if the reply was faster
            self._queued.add(job_id)
        self._submitted += 1
        if self._submitted % TRIM_EVERY == 0:
            await self._trim_jobs()
        return job_id

    async def _known_job(self, known: bytes, digest: str | None) -> str:
        """The first job of a key; of one that is forgotten it is only known that the key must not count again."""
        job_id = _same_job(known, digest)
        if job_id not in self.latest and not await self._redis.exists(self.keys.job(job_id)):
            raise ServiceError("idempotency_conflict", "the Idempotency-Key was used; its answer is no longer kept")
        return job_id

    async def _enqueue_always(self, command: Command, owner: str) -> None:
        async with self._redis.pipeline() as pipe:
            self._write_job(pipe, command, owner)
            await pipe.execute()

    async def _enqueue_once(self, command: Command, owner: str, key: str) -> str:
        """The job that has the key now. A lost connection is a WatchError as well: the key tells what came of it."""
        name = self.keys.idempotency(command.graph, key)
        value = json.dumps({"job": command.id, "digest": command.body_digest})
        for tried in range(MAX_TRIES):
            async with self._redis.pipeline() as pipe:
                with suppress(redis.WatchError):
                    await pipe.watch(name)
                    known = await pipe.get(name)
                    if known is not None:
                        return _same_job(known, command.body_digest)
                    if tried and await pipe.exists(self.keys.job(command.id)):
                        return command.id  # written after all, and ended by now with its key set free
                    pipe.multi()
                    pipe.set(name, value, ex=self.settings.job_ttl_s)
                    self._write_job(pipe, command, owner)
                    await pipe.execute()
                    return command.id
            await asyncio.sleep(RETRY_S)
        raise ServiceError("worker_unavailable", "Redis cannot be written to", retry_after_s=RETRY_AFTER_S)

    def _write_job(self, pipe: Any, command: Command, owner: str) -> None:
        job = self.keys.job(command.id)
        fields = {
            "kind": command.kind.value,
            "graph": command.graph,
            "worker": owner,
            "created_at": command.created_at,
        }
        pipe.hset(job, mapping=fields)
        # The client repeats this after a lost answer; by then the command may have been refused, and stays so.
        pipe.hsetnx(job, "status", Status.QUEUED.value)
        pipe.expire(job, QUEUED_TTL_S)
        pipe.zadd(self.keys.jobs, {command.id: command.created_at})
        pipe.zadd(self.keys.waiting(owner), {command.id: command.created_at})
        pipe.xadd(self.keys.commands(owner), {"command": command.to_json()})

    async def _trim_jobs(self) -> None:
        """Forget the oldest ended jobs beyond `JOBS_KEPT`."""
        with suppress(redis.RedisError):  # the next one will
            await self._trim(JOBS_KEPT)

    async def _trim(self, kept: int) -> None:
        old = await self._redis.zrange(self.keys.jobs, 0, -(kept + 1))
        async with self._redis.pipeline(transaction=False) as pipe:
            for job_id in old[: 4 * TRIM_EVERY]:
                pipe.hget(self.keys.job(job_id.decode()), "status")
            statuses = await pipe.execute()
            for job_id, status in zip(old, statuses, strict=False):
                if status is None or Status(status.decode()) in TERMINAL_STATUSES:
                    pipe.unlink(self.keys.job(job_id.decode()))
                    pipe.zrem(self.keys.jobs, job_id)
            await pipe.execute()

    async def _read_replies(self) -> None:
        """Resolve futures as replies come in. After an absence of Redis, and now and then (the client itself sits
        out short absences), look into the jobs themselves."""
        stream, last = self.keys.replies(self.id), "0"
        caught_up_at = time.monotonic()
        while True:
            try:
                if time.monotonic() - caught_up_at > BLOCK_MS / 1000:
                    await self._catch_up()
                    caught_up_at = time.monotonic()
                answer = await self._listeners.xread({stream: last}, block=BLOCK_MS)
                for entry_id, fields in answer[0][1] if answer else []:
                    last = entry_id.decode()
                    await self._resolve(fields[b"id"].decode(), fields)
            except redis.RedisError:
                caught_up_at = float("-inf")  # until it succeeds: an xread that does says nothing of what was missed
                await asyncio.sleep(RETRY_S)

    async def _catch_up(self) -> None:
        """Replies that came while Redis was away, and commands it lost together with all that followed them."""
        for job_id in list(self._pending):
            row = await self._redis.hgetall(self.keys.job(job_id))
            if not row and job_id in self._queued:
                lost = Problem(code="worker_unavailable", detail=LOST)
                row = {b"reply": Reply(id=job_id, status=Status.FAILED, problem=lost).model_dump_json().encode()}
            if b"reply" in row:
                await self._resolve(job_id, row)

    async def _resolve(self, job_id: str, fields: dict[bytes, bytes]) -> None:
        if job_id not in self._pending:
            return
        reply = _read_reply(fields)
        future = self._pending.pop(job_id)
        self._queued.discard(job_id)
        self.latest.keep(reply, sum(map(len, fields.values())))
        if not future.done():
            future.set_result(reply)

    async def _stored_reply(self, job_id: str) -> Reply | None:
        row = await self._redis.hgetall(self.keys.job(job_id))
        return _read_reply(row) if b"reply" in row else None

    async def _job_info(self, job_id: str, row: dict[bytes, bytes]) -> JobInfo:
        status = Status(row[b"status"].decode())
        reply = _read_reply(row) if b"reply" in row else None
        position = None
        if status is Status.QUEUED:
            position = await self._redis.zrank(self.keys.waiting(row[b"worker"].decode()), job_id)
        created = at(row[b"created_at"])
        assert created is not None
        return JobInfo(
            id=job_id,
            kind=Kind(row[b"kind"].decode()),
            graph=row[b"graph"].decode(),
            status=status,
            position=position,
            progress=json.loads(row[b"progress"]) if b"progress" in row else None,
            created_at=created,
            started_at=at(row.get(b"started_at")),
            finished_at=at(row.get(b"finished_at")),
            result_json=reply.result_json if reply else None,
            result_blob=reply.result_blob if reply else None,
            error=reply.problem if reply else None,
        )


def _read_reply(fields: dict[bytes, bytes]) -> Reply:
    """The reply with its result, or with the name of the blob where a long one lies."""
    reply = Reply.model_validate_json(fields[b"reply"])
    text, blob = fields.get(b"result"), fields.get(b"result_blob")
    found = {"result_json": text and text.decode(), "result_blob": blob and blob.decode()}
    return reply.model_copy(update=found)


def digest_of(body: bytes) -> str:
    """SHA-256 of a body, as `submit` takes it."""
    return hashlib.sha256(body).hexdigest()


def _entry(entry_id: str) -> tuple[int, int]:
    """A stream entry's id, in order."""
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)


def _same_job(known: bytes, digest: str | None) -> str:
    first = json.loads(known)
    if first["digest"] != digest:
        raise ServiceError("idempotency_conflict", "the Idempotency-Key was used with another body")
    return str(first["job"])
