"""Jobs, the newest first, a page at a time, of those that a caller may see."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import redis.asyncio

from service.store.durable import AsyncWritten
from service.store.jobs.outcomes import is_over
from service.store.jobs.record import SHOWN, JobInfo, as_row, describe, is_known, is_unwritten, problem_of, worker_of
from service.store.jobs.transitions import forget
from service.store.keys import Keys
from service.store.unreadable import Unreadable, each, reading
from service.store.watched import Read

LOOKED_AT: Final = 5_000
"""How many jobs a page looks at before it is answered with those found so far."""

STEP: Final = 50
"""Jobs that are looked at or described in one round trip: the answers of one are parsed without a pause, which holds up
all other requests of the process for about 5 ms."""

Sees: TypeAlias = Callable[[str], bool]
"""Whether the caller may see jobs on the graph of this name."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A job's place in the list."""

    created_at: float
    job_id: str

    def __str__(self) -> str:
        return f"{self.created_at!r}_{self.job_id}"

    @classmethod
    def parse(cls, text: str) -> "Mark":
        """The mark that `str` has written; raises ValueError."""
        created_at, _, job_id = text.partition("_")
        return cls(float(created_at), job_id)

    def is_after(self, other: "Mark") -> bool:
        return (self.created_at, self.job_id) < (other.created_at, other.job_id)

    def told_to_others(self) -> "Mark":
        """The same place for callers who may not see the job: half of its id, which stands where the whole does."""
        return Mark(self.created_at, self.job_id[: len(self.job_id) // 2])


@dataclass(frozen=True, slots=True)
class JobPage:
    jobs: list[JobInfo]
    next: Mark | None = None
    """Where the next page begins; None: there are no more jobs."""


class JobList:
    """Reads the list of jobs, and forgets the oldest. Raises RedisError."""

    def __init__(self, client: redis.asyncio.Redis, keys: Keys) -> None:
        self._redis: Any = client
        self._keys = keys
        self._written = AsyncWritten(client, keys)
        self._trimmed_to = 0
        """Place in the list of the next job to look at for `trim`, from the oldest on."""

    async def trim(self, kept: int, at_once: int) -> None:
        """Forget ended jobs among the next `at_once` of those beyond the latest `kept`.

        Those that have not ended stay, and are passed over until the others have been looked at.
        """
        beyond = await self._redis.zcard(self._keys.jobs) - kept
        start = self._trimmed_to if self._trimmed_to < beyond else 0
        stop = min(start + at_once, beyond)
        old = await self._redis.zrange(self._keys.jobs, start, stop - 1) if start < stop else []
        async with self._redis.pipeline(transaction=False) as pipe:
            jobs = [self._keys.job(job_id.decode(errors="replace")) for job_id in old]
            for job in jobs:
                pipe.hget(job, "status")
            statuses = each(await pipe.execute(raise_on_error=False), jobs)
            ended = [job_id for job_id, status in zip(old, statuses, strict=True) if is_over(status)]
            for job_id in ended:
                forget(pipe, self._keys, job_id)
            await pipe.execute()
        self._trimmed_to = start + len(old) - len(ended)

    async def page(self, limit: int, sees: Sees, after: Mark | None = None) -> JobPage:
        """Up to `limit` jobs behind `after`, without results. It may have fewer, and yet a next page."""
        found: list[str] = []
        passed = 0
        for _ in range(0, LOOKED_AT, STEP):
            marks, ends = await self._behind(after, passed)
            passed = 0 if marks else passed + STEP  # all of these have the time of the mark, and come before it
            graphs = await self._graphs([mark.job_id for mark in marks])
            for mark, graph in zip(marks, graphs, strict=True):
                after = mark
                if graph is not None and sees(graph):
                    found.append(mark.job_id)
                if len(found) == limit:
                    return JobPage(await self._describe(found), after)
            if ends:
                return JobPage(await self._describe(found))
        if after is not None and after.job_id not in found:
            after = after.told_to_others()
        return JobPage(await self._describe(found), after)

    async def _behind(self, mark: Mark | None, passed: int) -> tuple[list[Mark], bool]:
        """The next jobs in the list, `STEP` of them at most, and whether it ends with them. So many jobs ``passed`` of
        the moment of the mark are known to be before it."""
        # Jobs of the mark's own time are read as well, and those up to the mark are left out below.
        highest = "+inf" if mark is None else repr(mark.created_at)
        rows = await self._redis.zrevrangebyscore(
            self._keys.jobs, highest, "-inf", start=passed, num=STEP + 1, withscores=True
        )
        read = [Mark(float(score), job_id.decode(errors="replace")) for job_id, score in rows]
        return [other for other in read if mark is None or other.is_after(mark)][:STEP], len(rows) <= STEP

    async def _graphs(self, job_ids: list[str]) -> list[str | None]:
        if not job_ids:
            return []
        async with self._redis.pipeline(transaction=False) as pipe:
            jobs = [*map(self._keys.job, job_ids)]
            for job in jobs:
                pipe.hget(job, "graph")
            graphs = each(await pipe.execute(raise_on_error=False), jobs)
        return [None if graph is None else graph.decode(errors="replace") for graph in graphs]

    async def _describe(self, job_ids: list[str]) -> list[JobInfo]:
        """Two round trips for each `STEP` of them, or three if an end may have been lost."""
        found: list[JobInfo] = []
        for first in range(0, len(job_ids), STEP):
            found += await self._describe_step(job_ids[first : first + STEP])
        return found

    async def _describe_step(self, job_ids: list[str]) -> list[JobInfo]:
        reads: list[Read] = []
        for job_id in job_ids:
            reads += ("GET", self._keys.outcome(job_id)), ("HMGET", self._keys.job(job_id), *SHOWN)
        async with self._redis.pipeline(transaction=False) as pipe:
            for read in reads:
                pipe.execute_command(*read)
            answers = await pipe.execute()
        rows = [as_row(values) for values in answers[1::2]]
        if any(map(is_unwritten, rows)):
            answers = await self._written.settled(*reads)
            rows = [as_row(values) for values in answers[1::2]]
        async with self._redis.pipeline(transaction=False) as pipe:
            for job_id, row in zip(job_ids, rows, strict=True):
                pipe.zrank(self._keys.waiting(worker_of(row)), job_id)
            positions = await pipe.execute()
        found: list[JobInfo] = []
        for job_id, row, outcome, position in zip(job_ids, rows, answers[::2], positions, strict=True):
            if is_known(row):
                with suppress(Unreadable), reading(f"job {job_id}", self._keys.job(job_id)):
                    found.append(describe(job_id, row, outcome, position, problem_of(row)))
        return found
