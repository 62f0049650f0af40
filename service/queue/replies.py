"""Replies on their way to those who wait for them, in one API process.

One task reads the process's own stream of replies; nothing polls. A worker that commits an update ends its job with the
commit, so such a reply is there before Redis has handed the commit to the kernel. Another task waits for that, for all
replies that have come meanwhile together, and only then passes them on.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final

import redis
import redis.asyncio
import structlog

from service.errors import RETRY_AFTER_S, ServiceError
from service.protocol import Problem, Reply, Status
from service.store.connection import AWAY, why_away
from service.store.jobs.events import BLOCK_MS, FROM_THE_BEGINNING, LOST, in_order
from service.store.jobs.outcomes import is_over
from service.store.jobs.reading import Jobs
from service.store.jobs.record import Row, has_reply, is_unwritten, read_reply, replied_job
from service.store.keys import Keys

RETRY_S: Final = 0.05
UNREADABLE: Final = "the reply of the worker cannot be read; the log has why"
CAUGHT_UP_AT_ONCE: Final = 100
"""How many jobs are read in one round trip."""

HELD_BYTES: Final = 16 << 20
ONE_BYTES: Final = 64 << 10
"""Longer replies are not kept here; they are read from Redis."""

OBJECT_BYTES: Final = 2048
"""Bytes of memory for each reply beside its text."""

log = structlog.get_logger("headrace.api")


class LatestReplies:
    """The latest replies, for callers who begin to wait after the job has ended.

    Their bytes are bounded, and the oldest go first. They are kept by job. Of a result that lies in a blob only the
    name of the blob is kept.
    """

    def __init__(self) -> None:
        self._replies: OrderedDict[str, tuple[Reply, int]] = OrderedDict()
        self.used_bytes = 0

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._replies

    def get(self, job_id: str) -> Reply | None:
        found = self._replies.get(job_id)
        return None if found is None else found[0]

    def keep(self, reply: Reply, text_bytes: int) -> None:
        """Keep a reply, which came as a text of `text_bytes`."""
        if reply.id in self._replies or text_bytes > ONE_BYTES:
            return
        self._replies[reply.id] = (reply, OBJECT_BYTES + text_bytes)
        self.used_bytes += OBJECT_BYTES + text_bytes
        while self.used_bytes > HELD_BYTES:
            _, (_, n_bytes) = self._replies.popitem(last=False)
            self.used_bytes -= n_bytes


class Replies:
    """Reads replies and wakes those who wait for them, in the event loop that starts it."""

    def __init__(
        self, client: redis.asyncio.Redis, listeners: redis.asyncio.Redis, keys: Keys, reader: str, jobs: Jobs
    ) -> None:
        """`reader` names the stream, as commands say it; `listeners` are for reads that block."""
        self._redis: Any = client
        self._listeners: Any = listeners
        self._stream = keys.replies(reader)
        self._jobs = jobs
        self.latest = LatestReplies()
        self._pending: dict[str, asyncio.Future[Reply]] = {}
        self._queued: set[str] = set()
        """Pending jobs whose commands are known to be queued."""
        self._unwritten: dict[str, tuple[Reply, int]] = {}
        """Replies of pending jobs that Redis may still lose, and the bytes of their texts."""
        self._has_unwritten = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_away = False
        self._note_absence: Callable[[Callable[[], ServiceError] | None], None] = lambda _: None

    def when_away(self, note: Callable[[Callable[[], ServiceError] | None], None]) -> None:
        """Call `note` with what makes a refusal that says so whenever Redis is found to be away, and with None once it
        is back."""
        self._note_absence = note

    async def start(self) -> None:
        self._tasks = {
            asyncio.create_task(self._read(), name="replies"),
            asyncio.create_task(self._settle_unwritten(), name="unwritten replies"),
        }

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for future in self._pending.values():
            future.cancel()
        with suppress(redis.RedisError):
            await self._redis.unlink(self._stream)

    def expect(self, job_id: str) -> None:
        """Expect the reply of a command that is about to be queued, so that it cannot come too early."""
        self._pending[job_id] = asyncio.get_running_loop().create_future()

    def forget(self, job_id: str) -> None:
        """Expect no reply any more: the command was not queued after all."""
        self._pending.pop(job_id, None)

    def confirm(self, job_id: str) -> None:
        """Take note that Redis has the command queued. From now on it is lost if its job is not there."""
        if job_id in self._pending:  # not if the reply was faster
            self._queued.add(job_id)

    def pending(self, job_id: str) -> asyncio.Future[Reply] | None:
        """The future that gets the reply; None for a job that is not of this process, or has ended."""
        return self._pending.get(job_id)

    def when_done(self, job_id: str, act: Callable[[], None]) -> None:
        """Call `act` once this job has ended; at once if it is not of this process, or has ended already."""
        future = self._pending.get(job_id)
        if future is None:
            act()
        else:
            future.add_done_callback(lambda _: act())

    async def _read(self) -> None:
        """Resolve futures as replies come in. After an absence of Redis, and now and then (the client itself sits
        out short absences), look into the jobs themselves."""
        last, caught_up_at = FROM_THE_BEGINNING, time.monotonic()
        while True:
            try:
                if time.monotonic() - caught_up_at > BLOCK_MS / 1000:
                    await self.catch_up()
                    caught_up_at = time.monotonic()
                block_ms = None if self._is_away else BLOCK_MS  # waiting callers are to know at once that Redis is back
                answer = await self._listeners.xread({self._stream: last}, block=block_ms)
                if self._is_away:
                    self._is_away = False
                    self._note_absence(None)
                for entry_id, fields in answer[0][1] if answer else []:
                    last = entry_id.decode()
                    self._resolve(replied_job(fields), fields)
                if not answer and await self._is_anew(last):
                    last = FROM_THE_BEGINNING
            except redis.RedisError as error:
                caught_up_at = float("-inf")  # until it succeeds: an xread that does says nothing of what was missed
                if isinstance(error, AWAY):
                    self._is_away = True
                    told = "worker_unavailable", why_away(error)
                    self._note_absence(partial(ServiceError, *told, retry_after_s=RETRY_AFTER_S))
                await asyncio.sleep(RETRY_S)

    async def _is_anew(self, last: str) -> bool:
        """Whether the stream was begun anew since `last` was read, so that what comes may never be behind that.

        Streams number their entries by the clock, and that of an idle process expires: once the clock was set back in
        between, or Redis was lost and is on another machine, all that comes is before what was read.
        """
        newest = await self._redis.xrevrange(self._stream, count=1)
        return not newest or in_order(newest[0][0].decode()) < in_order(last)

    async def catch_up(self) -> None:
        """Replies that came while Redis was away, and commands it lost together with all that followed them."""
        pending = list(self._pending)
        for start in range(0, len(pending), CAUGHT_UP_AT_ONCE):
            some = pending[start : start + CAUGHT_UP_AT_ONCE]
            queued = self._queued & set(some)  # before their jobs are read
            for job_id, row in zip(some, await self._jobs.rows(some), strict=True):
                if not row and job_id in queued:
                    self._settle(job_id, _failed(job_id, "worker_unavailable", LOST), 0)
                elif has_reply(row):
                    self._resolve(job_id, row, settled=True)

    def _resolve(self, job_id: str, fields: Row, *, settled: bool = False) -> None:
        """Resolve the future of one reply, unless it may still be lost and is not said to be ``settled``. One that
        cannot be read ends its own job alone: the reader must go on."""
        if job_id not in self._pending:
            return
        try:
            reply = read_reply(fields)
        except (KeyError, ValueError) as error:
            log.error("unreadable_reply", job_id=job_id, error=str(error))
            reply = _failed(job_id, "internal_error", UNREADABLE)
        text_bytes = sum(map(len, fields.values()))
        if settled or not is_unwritten(fields):
            self._settle(job_id, reply, text_bytes)
            return
        self._unwritten[job_id] = reply, text_bytes
        self._has_unwritten.set()

    async def _settle_unwritten(self) -> None:
        """Pass on replies once Redis cannot lose them any more, all that are there with one look at it.

        A job that has not ended after all is done again, since Redis was started again without its end; one that is not
        there has been lost as well.
        """
        while True:
            await self._has_unwritten.wait()
            some = dict(islice(self._unwritten.items(), CAUGHT_UP_AT_ONCE))
            try:
                statuses = await self._jobs.settled([*some])
            except redis.RedisError:
                await asyncio.sleep(RETRY_S)
                continue
            for (job_id, (reply, text_bytes)), status in zip(some.items(), statuses, strict=True):
                del self._unwritten[job_id]
                if status is None:
                    self._settle(job_id, _failed(job_id, "worker_unavailable", LOST), 0)
                elif is_over(status):
                    self._settle(job_id, reply, text_bytes)
            if not self._unwritten:
                self._has_unwritten.clear()

    def _settle(self, job_id: str, reply: Reply, text_bytes: int) -> None:
        future = self._pending.pop(job_id, None)
        if future is None:
            return
        self._queued.discard(job_id)
        self.latest.keep(reply, text_bytes)
        if not future.done():
            future.set_result(reply)


def _failed(job_id: str, code: str, detail: str) -> Reply:
    return Reply(id=job_id, status=Status.FAILED, problem=Problem(code=code, detail=detail))
