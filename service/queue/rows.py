"""Answers in lines on their way to those who read them while their rows are made.

A worker reports how far each job is a few times a second, as an event. What it has written is looked at with each.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from service.errors import RETRY_AFTER_S, ServiceError
from service.protocol import Reply
from service.queue.watch import away
from service.store.blobs import AsyncBlobs, BrokenBlob
from service.store.connection import AWAY
from service.store.jobs.events import FROM_NOW, Events
from service.store.jobs.reading import Jobs
from service.store.jobs.record import Draft

SOON_S: Final = 0.25
"""An answer that is complete within this time is waited for like any other, without following the events of its job."""

BEGUN_AGAIN: Final = "the question was begun again, and these lines end here: ask for the result of its job"
GONE: Final = "the lines that have been written are no longer kept"

Wait: TypeAlias = Callable[[str, float], Awaitable[Reply | None]]


class Ended(Exception):
    """Raised when a job has ended without a result."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class Rows:
    """Reads such answers for one API process."""

    def __init__(self, jobs: Jobs, events: Events, blobs: AsyncBlobs, wait: Wait) -> None:
        """`wait` is `Dispatcher.wait`."""
        self._jobs = jobs
        self._events = events
        self._blobs = blobs
        self._wait = wait

    async def first(self, job_id: str, timeout_s: float) -> Reply | Draft | None:
        """The reply, or what has been written of it as soon as there is a row; None after `timeout_s` without either.

        Raises unknown_job and worker_unavailable.
        """
        until = time.monotonic() + timeout_s
        if (reply := await self._wait(job_id, min(timeout_s, SOON_S))) is not None:
            return reply
        try:
            if (found := await self._jobs.reply_or_draft(job_id)) is not None:
                return found
            if (left_s := until - time.monotonic()) <= 0:
                return None
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    async for _ in self._events.follow(job_id, FROM_NOW):
                        if (found := await self._jobs.reply_or_draft(job_id)) is not None:
                            return found
        except AWAY as error:
            raise away(error) from error
        return None

    async def pieces(self, job_id: str, draft: Draft) -> AsyncGenerator[bytes, None]:
        """What has been written of the answer, then more of it as it comes, to its end. One piece is in memory.

        Raises `Ended` with the reply that says why it has no end, behind all that was written; worker_unavailable if
        the question was begun again, as the lines of two tries are never mixed; unknown_job if what was written is not
        kept any more, or is not what was written.
        """
        growing = self._blobs.growing(draft.blob)
        try:
            async for piece in growing.chunks():
                yield piece
            if growing.is_whole:
                return
            async for _ in self._events.follow(job_id, FROM_NOW):
                found = await self._jobs.reply_or_draft(job_id)
                if _began_again(found, draft):
                    raise ServiceError("worker_unavailable", BEGUN_AGAIN, retry_after_s=RETRY_AFTER_S)
                async for piece in growing.chunks():
                    yield piece
                if growing.is_whole:
                    return
                if isinstance(found, Reply):
                    raise Ended(found) if found.problem else ServiceError("unknown_job", GONE)
        except BrokenBlob:
            raise ServiceError("unknown_job", GONE) from None
        except AWAY as error:
            raise away(error) from error


def _began_again(found: Reply | Draft | None, draft: Draft) -> bool:
    """Whether the draft that is stored now is that of another try."""
    if isinstance(found, Reply):
        return found.problem is None and found.file_blob != draft.blob
    return found is None or found.blob != draft.blob
