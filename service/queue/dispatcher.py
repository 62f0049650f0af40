"""The API's side of the queue: submit commands, wait for replies, follow and cancel jobs.

One per API process. Replies come by one task (`service.queue.replies`), and jobs are read from their records.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

import redis

from service.protocol import Arguments, Command, Kind, Reply
from service.queue.drains import Drains
from service.queue.patience import Patience
from service.queue.placement import Placement
from service.queue.replies import Replies
from service.queue.rows import Rows
from service.queue.submission import Submission
from service.queue.versions import Versions
from service.queue.watch import Watch, away
from service.settings import Settings
from service.store.blobs import AsyncBlobs
from service.store.connection import AWAY, WATCH_CONNECTIONS, connect_async, connect_listeners
from service.store.durable import AsyncWritten, Restarted
from service.store.feed.reading import FeedReader
from service.store.jobs.events import FROM_THE_BEGINNING, Events, JobEvent
from service.store.jobs.listing import JobList, JobPage, Mark, Sees
from service.store.jobs.reading import Jobs
from service.store.jobs.record import JobInfo
from service.store.keys import Keys
from service.store.lost_data import data_is_gone

JOBS_KEPT: Final = 20_000
TRIM_EVERY: Final = 64


class Dispatcher:
    """Queues commands and follows their jobs, in the event loop that starts it. Methods raise ServiceError only."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keys = Keys(settings.redis_prefix)
        self.id = uuid.uuid4().hex
        self.client = connect_async(settings)
        self.blobs = AsyncBlobs(self.client, self.keys)
        self._listeners = connect_listeners(settings)
        """The client for reads that block."""
        self._watching = connect_async(settings, WATCH_CONNECTIONS)
        self.watch = Watch(self._watching, self.keys)
        self._jobs = Jobs(self.client, self.keys)
        self._job_list = JobList(self.client, self.keys)
        self._events = Events(self.client, self._listeners, self.keys, settings.job_ttl_s)
        self.feed = FeedReader(self.client, self._listeners, self.keys)
        self.replies = Replies(self.client, self._listeners, self.keys, self.id, self._jobs)
        self.rows = Rows(self._jobs, self._events, self.blobs, self.wait)
        placement = Placement(self.client, self.keys, self.watch, settings.queue_limit)
        self._submission = Submission(self.client, self.keys, placement, partial(data_is_gone, settings))
        self.drains = Drains(self.client, self.keys, self.watch, settings.lease_s)
        self._written = AsyncWritten(self.client, self.keys)
        self.versions = Versions(settings, self.keys)
        self._submitted = 0
        self._patience = Patience()

    async def start(self) -> None:
        await self.replies.start()

    async def close(self) -> None:
        await self.replies.close()
        await self.versions.close()
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
        in_batch: bool = False,
    ) -> str:
        """Queue a command for the graph's owner and return its job id. ``in_batch``: see `Command.in_batch`.

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
        ).carrying(args, in_batch=in_batch)
        return await self._send(command)

    async def _send(self, command: Command) -> str:
        self.replies.expect(command.id)
        job_id = None
        try:
            job_id = await self._submission.submit(command)
        except AWAY as error:
            raise away(error) from error
        finally:
            if job_id != command.id:
                self.replies.forget(command.id)
        self.replies.confirm(job_id)
        self._submitted += 1
        if self._submitted % TRIM_EVERY == 0:
            await self._trim_jobs()
        return job_id

    async def knows(self, graph: str, idempotency_key: str) -> bool:
        """Whether the key has been used on this graph."""
        try:
            return await self._jobs.knows(graph, idempotency_key)
        except AWAY as error:
            raise away(error) from error

    def when_done(self, job_id: str, act: Callable[[], None]) -> None:
        """Call `act` once this job has ended; at once if it is not of this process, or has ended already."""
        self.replies.when_done(job_id, act)

    def hurry(self, within_s: float) -> None:
        """No wait lasts longer than this from now on, one that has begun neither."""
        self._patience.hurry(within_s)

    async def wait(self, job_id: str, timeout_s: float) -> Reply | None:
        """The reply, or None if the job still runs after `timeout_s`. Raises unknown_job."""
        try:
            if (reply := self.replies.latest.get(job_id)) is not None:
                return reply
            if timeout_s <= 0:
                return await self._jobs.reply(job_id)
            async with self._patience.waits(timeout_s):
                if (pending := self.replies.pending(job_id)) is not None:
                    return await asyncio.shield(pending)
                async for event in self.events(job_id, None):
                    if event.event == "done":
                        return await self._jobs.reply(job_id)
        except TimeoutError:
            with suppress(*AWAY):
                return await self._jobs.reply(job_id)
        except AWAY as error:
            raise away(error) from error
        return None

    async def job(self, job_id: str) -> JobInfo | None:
        """The job as it is now; None if it never was or is forgotten."""
        try:
            return await self._jobs.find(job_id)
        except AWAY as error:
            raise away(error) from error

    async def jobs(self, limit: int, sees: Sees = lambda _: True, after: Mark | None = None) -> JobPage:
        """A page of the jobs on graphs that `sees` accepts, the newest first, without results."""
        try:
            return await self._job_list.page(limit, sees, after)
        except AWAY as error:
            raise away(error) from error

    async def until_written(self, is_there: Callable[[], Awaitable[bool]]) -> None:
        """Return once what was accepted is with the kernel of Redis, and so outlives its process.

        `is_there` looks whether Redis has it. Raises worker_unavailable if Redis was started again without it.
        """
        try:
            while True:
                run = await self._written.run()
                if not await is_there():
                    raise Restarted("Redis was started again, and has lost what was sent; send it again")
                with suppress(Restarted):  # look again
                    return await self._written.wait(run)
        except AWAY as error:
            raise away(error) from error

    async def until_job_written(self, job_id: str) -> None:
        """`until_written` for a job that was accepted."""
        await self.until_written(partial(self._jobs.exists, job_id))

    async def cancel(self, job_id: str) -> JobInfo | None:
        """Decide that a job is not to be done, unless it has committed or ended; the job as it is now.

        `cancelling` says whether it was in time. Of one that has committed, a worker is told to leave out what is
        not yet done beside the commit.
        """
        try:
            return await self._jobs.cancel(job_id)
        except AWAY as error:
            raise away(error) from error

    async def events(self, job_id: str, last_event_id: str | None) -> AsyncIterator[JobEvent]:
        """Progress from `last_event_id` (None: from the beginning) to `done`. Raises unknown_job."""
        try:
            async for event in self._events.follow(job_id, last_event_id or FROM_THE_BEGINNING):
                yield event
        except AWAY as error:
            raise away(error) from error

    async def is_end(self, job_id: str, event_id: str) -> bool:
        """Whether an event of this id has told somebody of the end of a job, which is over."""
        try:
            return await self._events.is_end(job_id, event_id)
        except AWAY as error:
            raise away(error) from error

    async def _trim_jobs(self) -> None:
        """Forget the oldest ended jobs beyond `JOBS_KEPT`."""
        with suppress(redis.RedisError):  # the next one will
            await self._job_list.trim(JOBS_KEPT, 4 * TRIM_EVERY)
