"""The stream of events of one job, for whoever follows it."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import redis.asyncio
from pydantic import BaseModel

from service.errors import RETRY_AFTER_S, ServiceError
from service.store.durable import AsyncWritten
from service.store.jobs.outcomes import is_over
from service.store.keys import Keys
from service.store.unreadable import readable

BLOCK_MS: Final = 2000
LOST: Final = "Redis lost the command; send it again"
SUBSCRIPTIONS_KEPT: Final = 1000

FROM_THE_BEGINNING: Final = "0"
"""The id of an event before all others."""

FROM_NOW: Final = "$"
"""The id that stands for the newest event, so that only later ones follow."""

ENDS: Final = frozenset({b"done", b"subscribed"})
"""The types of stream entries whose ids readers may have got with the end of a job."""

MAX_ENTRY_NUMBER: Final = 2**64 - 1
"""The largest that either number of a stream entry's id can be."""


class JobEvent(BaseModel):
    """One server-sent event: `progress` with counters, or `done` with the job's status."""

    id: str
    event: str
    data: dict[str, Any]


class Events:
    """Follows the events of jobs. Raises RedisError."""

    def __init__(self, client: redis.asyncio.Redis, listeners: redis.asyncio.Redis, keys: Keys, ttl_s: int) -> None:
        """`listeners`: for reads that block. A stream is kept for `ttl_s` after somebody began to follow it."""
        self._redis: Any = client
        self._listeners: Any = listeners
        self._keys = keys
        self._ttl_s = ttl_s
        self._written = AsyncWritten(client, keys)

    async def follow(self, job_id: str, last: str = FROM_THE_BEGINNING) -> AsyncIterator[JobEvent]:
        """What comes after the event `last`, until the job has ended. Raises unknown_job.

        The subscriber makes the stream, then looks at the job: an end before that is seen in the job, a later
        one in the stream. A Redis that lost the stream tells by the job, looked at again when nothing comes.
        """
        stream = self._keys.events(job_id)
        async with self._redis.pipeline() as pipe:
            pipe.xadd(stream, {"event": "subscribed"}, maxlen=SUBSCRIPTIONS_KEPT, approximate=True)
            pipe.expire(stream, self._ttl_s)
            pipe.hget(self._keys.job(job_id), "status")
            subscribed, *_, status = await pipe.execute()
        if status is None:
            await self._redis.unlink(stream)
            raise ServiceError("unknown_job", f"there is no job {job_id}")
        if last == FROM_NOW:
            last = subscribed.decode()
        if in_order(last) > in_order(subscribed.decode()) or max(in_order(last)) > MAX_ENTRY_NUMBER:
            last = FROM_THE_BEGINNING  # of another stream, or one that Redis lost: what comes would never be after it
        ended = is_over(status)
        while True:
            if ended:
                ended = await self._has_ended(job_id)
            answer = await self._listeners.xread({stream: last}, block=None if ended else BLOCK_MS)
            for entry_id, fields in answer[0][1] if answer else []:
                last = entry_id.decode()
                if fields.get(b"event") == b"subscribed":
                    continue
                for event in readable([(entry_id, fields)], stream, _read):
                    is_end = event.event == "done"
                    if is_end and not await self._has_ended(job_id):
                        continue
                    yield event
                    if is_end:
                        return
            if ended:
                yield JobEvent(id=last, event="done", data={"status": status.decode(errors="replace")})
                return
            if not answer:
                status = await self._redis.hget(self._keys.job(job_id), "status")
                if status is None:
                    raise _lost()
                ended = is_over(status)

    async def _has_ended(self, job_id: str) -> bool:
        """Whether the job, which said so, has ended for good: once Redis has handed that to the kernel. False: Redis
        was started again without it, and the job is done again. Raises worker_unavailable if the job was lost too."""
        (status,) = await self._written.settled(("HGET", self._keys.job(job_id), "status"))
        if status is None:
            raise _lost()
        return is_over(status)

    async def is_end(self, job_id: str, event_id: str) -> bool:
        """Whether an event of this id has told somebody that the job, which is over, has ended.

        What `follow` tells of a job that was over before anybody listened has the id of a subscription, which nothing
        else is told under. Of an end whose id is not kept any more nobody knows: it is told again, under a new id.
        """
        if max(in_order(event_id)) > MAX_ENTRY_NUMBER:
            return False
        found = await self._redis.xrange(self._keys.events(job_id), event_id, event_id, 1)
        return any(entry.decode() == event_id and fields.get(b"event") in ENDS for entry, fields in found)


def _lost() -> ServiceError:
    return ServiceError("worker_unavailable", LOST, retry_after_s=RETRY_AFTER_S)


def _read(entry_id: str, fields: dict[bytes, bytes]) -> JobEvent:
    """Raises `unreadable.NOT_READ`."""
    return JobEvent(id=entry_id, event=fields[b"event"].decode(), data=json.loads(fields[b"data"]))


def in_order(entry_id: str) -> tuple[int, int]:
    """The id of a stream entry as a pair of numbers, which compare in the order of the stream."""
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)
