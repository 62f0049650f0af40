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
import structlog

from service.errors import ServiceError
from service.protocol import TERMINAL_STATUSES, Arguments, Command, Kind, Problem, Reply, Status
from service.queue.job_list import JobList, JobPage, Mark, Sees, describe
from service.queue.models import JobEvent, JobInfo
from service.queue.replies import LatestReplies
from service.queue.submission import Submission
from service.queue.watch import RETRY_AFTER_S, Watch, away
from service.settings import Settings
from service.store.blobs import AsyncBlobs
from service.store.connection import AWAY, WATCH_CONNECTIONS, connect_async, connect_listeners
from service.store.keys import Keys
from service.store.outcomes import CANCELLED, UNFINISHED_TTL_S, is_over
from service.store.written import wait_written_async

BLOCK_MS: Final = 2000
JOBS_KEPT: Final = 20_000
TRIM_EVERY: Final = 64
CANCELS_KEPT: Final = 1000
RETRY_S: Final = 0.05
LOST: Final = "Redis lost the command; send it again"
UNREADABLE: Final = "the reply of the worker cannot be read; the log has why"
CAUGHT_UP_AT_ONCE: Final = 100
"""Jobs that are looked at in one round trip."""

MAX_ENTRY_NUMBER: Final = 2**64 - 1
"""Either number of a stream entry's id."""

log = structlog.get_logger("headrace.api")


class Dispatcher:
    """Start it in the event loop that uses it. Methods raise ServiceError only."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keys = Keys(settings.redis_prefix)
        self.id = uuid.uuid4().hex
        self.client = connect_async(settings)
        self.blobs = AsyncBlobs(self.client, self.keys)
        self._redis: Any = self.client
        self._listeners: Any = connect_listeners(settings)
        """For reads that block."""
        self._watching = connect_async(settings, WATCH_CONNECTIONS)
        self.watch = Watch(self._watching, self.keys)
        self._pending: dict[str, asyncio.Future[Reply]] = {}
        self.latest = LatestReplies()
        self._queued: set[str] = set()
        """Pending jobs that Redis has confirmed."""
        self._submission = Submission(self.client, self.keys, settings, self.watch)
        self._job_list = JobList(self.client, self.keys)
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
        for client in (self._listeners, self._watching, self.client):
            await client.aclose()

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
        worker_unavailable, unknown_graph or idempotency_conflict. Cost: two round trips.
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
        return await self._send(command)

    async def _send(self, command: Command) -> str:
        self._pending[command.id] = asyncio.get_running_loop().create_future()  # no reply can come too early
        job_id = None
        try:
            job_id = await self._submission.submit(command)
        except AWAY as error:
            raise away(error) from error
        finally:
            if job_id != command.id:
                self._pending.pop(command.id, None)
        if job_id in self._pending:  # not if the reply was faster
            self._queued.add(job_id)
        self._submitted += 1
        if self._submitted % TRIM_EVERY == 0:
            await self._trim_jobs()
        return job_id

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
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.get(self.keys.outcome(job_id))
                pipe.hgetall(self.keys.job(job_id))
                outcome, row = await pipe.execute()
            return await self._job_info(job_id, row, outcome) if b"status" in row else None
        except AWAY as error:
            raise away(error) from error

    async def jobs(self, limit: int, sees: Sees = lambda _: True, after: Mark | None = None) -> JobPage:
        """The newest first, without results: of those that `sees` accepts the graphs of."""
        try:
            return await self._job_list.page(limit, sees, after)
        except AWAY as error:
            raise away(error) from error

    async def until_written(self) -> None:
        """Return once all that Redis has taken is with its kernel: a job that was accepted outlives its process."""
        try:
            await wait_written_async(self.client, self.keys)
        except AWAY as error:
            raise away(error) from error

    async def cancel(self, job_id: str) -> JobInfo | None:
        """Decide that a job is not to be done, unless it has committed or ended; the job as it is now.

        `cancelling` says whether it was in time. Of one that has committed, a worker is told to leave out what is
        not yet done beside the commit.
        """
        outcome_key, job = self.keys.outcome(job_id), self.keys.job(job_id)
        try:
            worker, status = await self._redis.hmget(job, "worker", "status")
            if worker is None or is_over(status):
                return await self.job(job_id)
            async with self._redis.pipeline() as pipe:
                pipe.set(outcome_key, CANCELLED, nx=True, ex=UNFINISHED_TTL_S)
                pipe.get(outcome_key)
                pipe.hgetall(job)
                control = self.keys.control(worker.decode())
                pipe.xadd(control, {"cancel": job_id}, maxlen=CANCELS_KEPT, approximate=True)
                _, outcome, row, _ = await pipe.execute()
            if is_over(row.get(b"status")):
                await self._redis.unlink(outcome_key)  # it has ended since; nobody will look at this any more
            await wait_written_async(self.client, self.keys)
            return await self._job_info(job_id, row, outcome) if b"status" in row else None
        except AWAY as error:
            raise away(error) from error

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
        if _entry(last) > _entry(subscribed.decode()) or max(_entry(last)) > MAX_ENTRY_NUMBER:
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

    async def _trim_jobs(self) -> None:
        """Forget the oldest ended jobs beyond `JOBS_KEPT`."""
        with suppress(redis.RedisError):  # the next one will
            await self._job_list.trim(JOBS_KEPT, 4 * TRIM_EVERY)

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
                    self._resolve(fields.get(b"id", b"").decode("utf-8", "replace"), fields)
            except redis.RedisError:
                caught_up_at = float("-inf")  # until it succeeds: an xread that does says nothing of what was missed
                await asyncio.sleep(RETRY_S)

    async def _catch_up(self) -> None:
        """Replies that came while Redis was away, and commands it lost together with all that followed them."""
        pending = list(self._pending)
        for start in range(0, len(pending), CAUGHT_UP_AT_ONCE):
            some = pending[start : start + CAUGHT_UP_AT_ONCE]
            queued = self._queued & set(some)  # before their jobs are read
            async with self._redis.pipeline(transaction=False) as pipe:
                for job_id in some:
                    pipe.hgetall(self.keys.job(job_id))
                rows = await pipe.execute()
            for job_id, row in zip(some, rows, strict=True):
                if not row and job_id in queued:
                    self._settle(job_id, _failed(job_id, "worker_unavailable", LOST), 0)
                elif b"reply" in row:
                    self._resolve(job_id, row)

    def _resolve(self, job_id: str, fields: dict[bytes, bytes]) -> None:
        """A reply that cannot be read ends its own job: the reader goes on, all others wait for it."""
        if job_id not in self._pending:
            return
        try:
            reply = _read_reply(fields)
        except (KeyError, ValueError) as error:
            log.error("unreadable_reply", job_id=job_id, error=str(error))
            reply = _failed(job_id, "internal_error", UNREADABLE)
        self._settle(job_id, reply, sum(map(len, fields.values())))

    def _settle(self, job_id: str, reply: Reply, text_bytes: int) -> None:
        future = self._pending.pop(job_id, None)
        if future is None:
            return
        self._queued.discard(job_id)
        self.latest.keep(reply, text_bytes)
        if not future.done():
            future.set_result(reply)

    async def _stored_reply(self, job_id: str) -> Reply | None:
        row = await self._redis.hgetall(self.keys.job(job_id))
        return _read_reply(row) if b"reply" in row else None

    async def _job_info(self, job_id: str, row: dict[bytes, bytes], outcome: bytes | None) -> JobInfo:
        reply = _read_reply(row) if b"reply" in row else None
        position = await self._redis.zrank(self.keys.waiting(row[b"worker"].decode()), job_id)
        info = describe(job_id, row, outcome, position, reply.problem if reply else None)
        if reply is None:
            return info
        return info.model_copy(update={"result_json": reply.result_json, "result_blob": reply.result_blob})


def _read_reply(fields: dict[bytes, bytes]) -> Reply:
    """The reply with its result, or with the name of the blob where a long one lies."""
    reply = Reply.model_validate_json(fields[b"reply"])
    text, blob = fields.get(b"result"), fields.get(b"result_blob")
    found = {"result_json": text and text.decode(), "result_blob": blob and blob.decode()}
    return reply.model_copy(update=found)


def _failed(job_id: str, code: str, detail: str) -> Reply:
    return Reply(id=job_id, status=Status.FAILED, problem=Problem(code=code, detail=detail))


def digest_of(body: bytes) -> str:
    """SHA-256 of a body, as `submit` takes it."""
    return hashlib.sha256(body).hexdigest()


def _entry(entry_id: str) -> tuple[int, int]:
    """A stream entry's id, in order."""
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)
