"""What an API process asks about single jobs, and how it cancels one."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import redis
import redis.asyncio

from service.protocol import Reply
from service.store.connection import is_of_wrong_type
from service.store.durable import AsyncWritten, Restarted
from service.store.jobs.idempotency import key_name
from service.store.jobs.outcomes import CANCELLED, UNFINISHED_TTL_S, is_over
from service.store.jobs.record import (
    Draft,
    JobInfo,
    Row,
    describe,
    has_reply,
    is_known,
    is_unwritten,
    read_draft,
    read_reply,
    worker_of,
)
from service.store.keys import Keys
from service.store.unreadable import each, reading

CANCELS_KEPT: Final = 1000


class Jobs:
    """Reads and cancels jobs. Raises RedisError, and `Unreadable` for a job whose record is none."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys
        self._written = AsyncWritten(client, keys)

    async def find(self, job_id: str) -> JobInfo | None:
        """The job; None if it never was or is forgotten."""
        row, outcome = await self._look(job_id)
        return await self._info(job_id, row, outcome) if is_known(row) else None

    async def _look(self, job_id: str) -> tuple[Row, bytes | None]:
        """The hash of a job, empty for one that is not there, and its outcome. One round trip, or two for an end that
        may have been lost."""
        reads = ("GET", self._keys.outcome(job_id)), ("HGETALL", self._keys.job(job_id))
        async with self._redis.pipeline(transaction=False) as pipe:
            for read in reads:
                pipe.execute_command(*read)
            outcome, row = await pipe.execute()
        if is_unwritten(row):
            outcome, row = await self._written.settled(*reads)
        return row, outcome

    async def reply(self, job_id: str) -> Reply | None:
        """The reply to a job; None while there is none."""
        (row,) = await self.rows([job_id])
        with reading(f"job {job_id}", self._keys.job(job_id)):
            return read_reply(row) if has_reply(row) else None

    async def reply_or_draft(self, job_id: str) -> Reply | Draft | None:
        """The reply to a job, or what has been written of it so far; None while there is neither."""
        (row,) = await self.rows([job_id])
        with reading(f"job {job_id}", self._keys.job(job_id)):
            return read_reply(row) if has_reply(row) else read_draft(row)

    async def rows(self, job_ids: Sequence[str]) -> list[Row]:
        """The hashes of jobs, empty for one that is not there, or whose key is of another kind. One round trip, or two
        if an end may have been lost."""
        keys = [*map(self._keys.job, job_ids)]
        async with self._redis.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.hgetall(key)
            rows: list[Row] = [row or {} for row in each(await pipe.execute(raise_on_error=False), keys)]
        if any(map(is_unwritten, rows)):
            rows = await self._written.settled(*(("HGETALL", key) for key in keys))
        return rows

    async def settled(self, job_ids: Sequence[str]) -> list[bytes | None]:
        """The status of each job, once it cannot be lost any more with the process of Redis; None for one that has
        been, or whose key is of another kind by now. One round trip."""
        reads = (("HGET", self._keys.job(job_id), "status") for job_id in job_ids)
        try:
            statuses: list[bytes | None] = await self._written.settled(*reads)
        except redis.ResponseError as error:
            if not is_of_wrong_type(error):
                raise
            if len(job_ids) == 1:
                return [None]
            return [status for job_id in job_ids for status in await self.settled([job_id])]
        return statuses

    async def exists(self, job_id: str) -> bool:
        """Whether there is such a job."""
        return bool(await self._redis.hexists(self._keys.job(job_id), "status"))

    async def knows(self, graph: str, idempotency_key: str) -> bool:
        """Whether the key has been used on this graph."""
        return bool(await self._redis.exists(key_name(self._keys, graph, idempotency_key)))

    async def cancel(self, job_id: str) -> JobInfo | None:
        """Decide that a job is not to be done, unless it has committed or ended; the job as it is now.

        `cancelling` says whether it was in time. Of one that has committed, a worker is told to leave out what is
        not yet done beside the commit.
        """
        while True:
            run = await self._written.run()
            row, outcome = await self._decide(job_id)
            with suppress(Restarted):  # what was decided may be gone with Redis
                await self._written.wait(run)
                return await self._info(job_id, row, outcome) if is_known(row) else None

    async def _decide(self, job_id: str) -> tuple[Row, bytes | None]:
        """The job as it is after an attempt to cancel it, and its outcome; no row if there is no such job."""
        outcome_key, job = self._keys.outcome(job_id), self._keys.job(job_id)
        worker, status = await self._redis.hmget(job, "worker", "status")
        if worker is None or is_over(status):
            return await self._look(job_id)
        async with self._redis.pipeline() as pipe:
            pipe.set(outcome_key, CANCELLED, nx=True, ex=UNFINISHED_TTL_S)
            pipe.get(outcome_key)
            pipe.hgetall(job)
            control = self._keys.control(worker.decode(errors="replace"))
            pipe.xadd(control, {"cancel": job_id}, maxlen=CANCELS_KEPT, approximate=True)
            _, outcome, row, _ = await pipe.execute()
        if is_over(row.get(b"status")):
            await self._redis.unlink(outcome_key)  # it has ended since; nobody will look at this any more
        return row, outcome

    async def _info(self, job_id: str, row: Row, outcome: bytes | None) -> JobInfo:
        """A job with its place in its worker's line, and its result."""
        position = await self._redis.zrank(self._keys.waiting(worker_of(row)), job_id)
        with reading(f"job {job_id}", self._keys.job(job_id)):
            reply = read_reply(row) if has_reply(row) else None
            info = describe(job_id, row, outcome, position, reply.problem if reply else None)
        if reply is None:
            return info
        found = {"result_json": reply.result_json, "result_blob": reply.result_blob, "file_blob": reply.file_blob}
        return info.model_copy(update=found)
